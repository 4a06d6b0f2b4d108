// Posting threads on a device made by hand: it watches doorbells, checks each request, and writes completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mem/rings/run.h"

namespace gdrperf::mem::rings {
namespace {

constexpr std::uint32_t kEntries = 64;
constexpr std::uint32_t kSlots = 4;
constexpr std::uint64_t kStride = 4096;
constexpr std::uint64_t kRemote = 0x10000000;

std::uint32_t word_at(const std::uint8_t* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return big32(word);
}

/// A device with one QP, whose thread this is.
class HandMadeDevice {
 public:
  HandMadeDevice() : send_(kEntries * kBlockBytes), completions_(kEntries * kCompletionBytes, 0xff) {
    queue_.send_ring = send_.data();
    queue_.send_mask = kEntries - 1;
    queue_.qpn = 0x77;
    queue_.records = records_;
    queue_.doorbell = &doorbell_;
    queue_.completions = completions_.data();
    queue_.completion_mask = kEntries - 1;
    queue_.completion_record = &completion_record_;
    queue_.message.opcode = Opcode::kWrite;
    queue_.message.remote = kRemote;
    queue_.message.bytes = 8;
    queue_.stride = kStride;
    queue_.slot_mask = kSlots - 1;
    queue_.depth = 32;
  }
  ~HandMadeDevice() { stop(); }
  HandMadeDevice(const HandMadeDevice&) = delete;
  HandMadeDevice& operator=(const HandMadeDevice&) = delete;

  Queue& queue() { return queue_; }
  void start(std::uint64_t fail_at = ~std::uint64_t{0}) {
    fail_at_ = fail_at;
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  /// After stop().
  const std::string& wrong() const { return wrong_; }
  std::uint64_t done() const { return done_; }
  std::uint64_t signalled() const { return completed_; }

 private:
  void run() {
    std::uint64_t last = 0;
    while (!stop_.load()) {
      const std::uint64_t bell = load(&doorbell_);
      if (bell == last) {
        rest();
        continue;
      }
      last = bell;
      const auto end = static_cast<std::uint16_t>((big32(static_cast<std::uint32_t>(bell)) >> 8 & 0xffff) + 1);
      const std::uint64_t record = big32(load(&records_[kSendRecord]));
      // A later one may have been recorded in the meantime.
      if (static_cast<std::uint16_t>(record - end) > kEntries) wrong_ = "the doorbell is ahead of its record";
      while (static_cast<std::uint16_t>(done_) != end) execute();
    }
  }
  void execute() {
    const std::uint8_t* const at = send_.data() + (done_ % kEntries) * kBlockBytes;
    if ((word_at(at) >> 8 & 0xffff) != (done_ & 0xffff)) wrong_ = "index " + std::to_string(done_);
    if (word_at(at + 4) != (0x77u << 8 | 3)) wrong_ = "QPN or segments";
    const std::uint64_t remote = std::uint64_t{word_at(at + 16)} << 32 | word_at(at + 20);
    if (remote != kRemote + done_ % kSlots * kStride) wrong_ = "slot of " + std::to_string(done_);
    const bool fails = done_ == fail_at_;
    if ((word_at(at + 8) & 8) != 0 || fails) complete(fails);
    ++done_;
  }
  void complete(bool fails) {
    std::uint8_t* const at = completions_.data() + (completed_ % kEntries) * kCompletionBytes;
    if (fails) {
      store(at + kSyndromeAt, std::uint8_t{0x13});
      store(at + kVendorSyndromeAt, std::uint8_t{0x88});
    }
    const std::uint32_t owner = completed_ / kEntries % 2;
    const std::uint32_t kind = fails ? 13 : 0;
    const std::uint32_t place = big32(static_cast<std::uint32_t>(done_ & 0xffff)) >> 16;
    ++completed_;
    store(reinterpret_cast<std::uint32_t*>(at + kLastWord), place | kind << 28 | owner << 24);
  }

  std::vector<std::uint8_t> send_;
  std::vector<std::uint8_t> completions_;
  std::uint32_t records_[2] = {};
  std::uint32_t completion_record_ = 0;
  std::uint64_t doorbell_ = 0;
  Queue queue_;
  std::uint64_t fail_at_ = 0;
  std::atomic<bool> stop_{false};
  std::string wrong_;
  std::uint64_t done_ = 0;
  std::uint64_t completed_ = 0;
  std::thread thread_;
};

/// Threads that post to a queue; several share it.
class Posting {
 public:
  explicit Posting(Queue& queue, int threads = 1) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &queue, threads] {
        threads > 1 ? stream<true>(OneThread(), &queue, &orders_, &report, {0, 1, 1})
                    : stream<false>(OneThread(), &queue, &orders_, &report, {0, 1, 1});
      });
    }
  }
  void order(std::uint64_t limit) { store(&orders_.reach.first, limit); }
  std::uint64_t newest() const { return load(&report.slots[load(&report.count) % Report::kSlots].completed); }
  void wait_for(std::uint64_t completed) const {
    while (newest() < completed) rest();
  }
  void reach(std::uint64_t limit) {
    order(limit);
    wait_for(limit);
  }
  void join() {
    for (std::thread& each : threads_) each.join();
  }

  Report report{};

 private:
  Orders orders_;
  std::vector<std::thread> threads_;
};

TEST(RingLoop, PostsUpToItsLimitAndSignalsTheLast) {
  HandMadeDevice device;
  device.queue().list = 8;
  device.queue().signal_every = 8;
  device.start();
  Posting posting(device.queue());
  posting.reach(1003);
  EXPECT_EQ(posting.newest(), 1003u);
  posting.reach(70'001);  // beyond 16 bits
  posting.order(70'001 | kFinish);
  posting.join();
  device.stop();
  EXPECT_EQ(device.wrong(), "");
  EXPECT_EQ(device.done(), 70'001u) << "nothing more was posted";
  EXPECT_EQ(load(&posting.report.over), 1u);
}

TEST(RingLoop, FinishTellsWhenAllIsThrough) {
  for (const int threads : {1, 4}) {
    HandMadeDevice device;
    device.queue().list = 4;
    device.queue().signal_every = threads == 1 ? 16 : 4;
    device.start();
    Posting posting(device.queue(), threads);
    posting.reach(20'002);
    posting.order(kNoLimit);
    posting.wait_for(30'000);
    posting.order(kNoLimit | kFinish);
    posting.join();
    device.stop();
    EXPECT_EQ(device.wrong(), "") << threads;
    EXPECT_EQ(posting.newest(), device.done()) << threads;
  }
}

TEST(RingLoop, AFailedRequestEndsItWithItsSyndrome) {
  for (const int threads : {1, 2}) {
    HandMadeDevice device;
    device.queue().signal_every = 4;
    device.start(100);
    Posting posting(device.queue(), threads);
    posting.order(kNoLimit);
    posting.join();
    device.stop();
    EXPECT_EQ(load(&posting.report.error), 1u + 0x13) << threads;
    EXPECT_EQ(load(&posting.report.vendor_error), 0x88u) << threads;
  }
}

TEST(RingLoop, StopEndsItAtOnce) {
  HandMadeDevice device;
  Posting posting(device.queue(), 2);
  posting.order(kNoLimit);  // nobody answers
  posting.order(kNoLimit | kStop);
  posting.join();
  EXPECT_EQ(load(&posting.report.over), 0u);
}

TEST(RingLoop, GroupsShareQueuesAsNeighboursDo) {
  EXPECT_EQ(groups_of({4, 64, Together::kWarp}), 8u);
  EXPECT_EQ(groups_of({4, 64, Together::kBlock}), 4u);
  EXPECT_EQ(groups_of({4, 64, Together::kOne}), 256u);
  EXPECT_TRUE(shares(8, 4));
  EXPECT_EQ(duty_of(0, 8, 4).first, 0u);
  EXPECT_EQ(duty_of(1, 8, 4).first, 0u);
  EXPECT_EQ(duty_of(7, 8, 4).first, 3u);
  EXPECT_EQ(duty_of(1, 2, 4).first, 1u);
  EXPECT_EQ(duty_of(1, 2, 4).step, 2u);
}

}  // namespace
}  // namespace gdrperf::mem::rings
