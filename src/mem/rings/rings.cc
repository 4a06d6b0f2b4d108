#include "gdrperf/mem/rings.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/patience.h"
#include "gdrperf/base/thread.h"
#include "mem/rings/place.h"
#include "mem/rings/queue_rings.h"

namespace gdrperf::mem {
namespace rings {
namespace {

/// Somebody else may use the GPU.
constexpr std::chrono::seconds kStart{10};
constexpr std::uint64_t kSamples = 1u << 16;

Opcode opcode_of(const ibv_send_wr& request) {
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE: return Opcode::kWrite;
    case IBV_WR_RDMA_WRITE_WITH_IMM: return Opcode::kWriteImmediate;
    case IBV_WR_SEND: return Opcode::kSend;
    case IBV_WR_SEND_WITH_IMM: return Opcode::kSendImmediate;
    case IBV_WR_RDMA_READ: return Opcode::kRead;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return Opcode::kCompareSwap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return Opcode::kFetchAdd;
    default: return Opcode::kNop;
  }
}

Message message_of(const ibv_send_wr& request) {
  Message message;
  message.opcode = opcode_of(request);
  if (is_atomic(message.opcode)) {
    message.remote = request.wr.atomic.remote_addr;
    message.rkey = request.wr.atomic.rkey;
    message.operand = request.wr.atomic.compare_add;
  } else if (has_remote(message.opcode)) {
    message.remote = request.wr.rdma.remote_addr;
    message.rkey = request.wr.rdma.rkey;
  }
  if (request.num_sge == 0) return message;
  message.local = request.sg_list[0].addr;
  message.lkey = request.sg_list[0].lkey;
  message.bytes = request.sg_list[0].length;
  return message;
}

std::uint32_t shift_of(const CompletionRing& ring) {
  return static_cast<std::uint32_t>(std::countr_zero(ring.entry_bytes));
}

/// Rings for threads that cannot reach the registers: they leave their doorbells in memory.
class Ringer {
 public:
  struct Line {
    std::uint64_t* from;
    std::uint64_t* to;
    std::uint64_t last = 0;
  };
  explicit Ringer(std::vector<Line> lines)
      : lines_(std::move(lines)),
        thread_(start_thread(
            "doorbells", [this] { run(); }, [](const std::exception_ptr&) {})) {}
  ~Ringer() {
    stop_.store(true);
    thread_.join();
  }
  Ringer(const Ringer&) = delete;
  Ringer& operator=(const Ringer&) = delete;

 private:
  void run() {
    while (!stop_.load(std::memory_order_relaxed)) {
      bool rang = false;
      for (Line& line : lines_) {
        const std::uint64_t value = load(line.from);
        if (value == line.last) continue;
        ring(line.to, value);
        line.last = value;
        rang = true;
      }
      if (!rang) rest();
    }
  }
  std::vector<Line> lines_;
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

double host_ns() { return Clock::get().now_ns(); }

/// Of the poster's clock and this host's, at one moment.
struct Moment {
  double here_ns = 0;
  double there_ns = 0;
  double uncertain_ns = std::numeric_limits<double>::infinity();
};

class MappedRings final : public Rings {
 public:
  MappedRings(const std::vector<RingQueue>& queues, const Poster& poster, const std::string& flag)
      : place_(poster.gpu < 0 ? make_cpu_place(poster) : make_gpu_place(poster, flag)), flag_(flag) {
    for (const RingQueue& each : queues) hosts_.push_back(rings_of(each.qp, each.send_cq, each.recv_cq, flag));
    const std::size_t count = queues.size();
    near_queues_ = static_cast<Queue*>(place_->near(count * sizeof(Queue)));
    copied_ = static_cast<std::uint64_t*>(place_->near(sizeof(std::uint64_t)));
    given_ = static_cast<Queue*>(place_->shared(count * sizeof(Queue)));
    orders_ = static_cast<Orders*>(place_->shared(count * sizeof(Orders)));
    bounce_ = static_cast<Bounce*>(place_->shared(sizeof(Bounce)));
    reports_ = static_cast<Report*>(place_->shared(count * sizeof(Report)));
    meeting_ = static_cast<Meeting*>(place_->shared(sizeof(Meeting)));
    samples_ = static_cast<std::uint32_t*>(place_->shared(kSamples * sizeof(std::uint32_t)));
    auto* const bells = static_cast<std::uint64_t*>(place_->shared(count * kBellStride * sizeof(std::uint64_t)));
    for (std::size_t q = 0; q < count; ++q) queues_.push_back(mapped(hosts_[q], bells + q * kBellStride));
    std::fill_n(orders_, count, Orders());
    if (!lines_.empty()) ringer_ = std::make_unique<Ringer>(lines_);
  }
  ~MappedRings() override {
    try {
      MappedRings::end();
    } catch (const Error&) {
      // The run has failed already.
    }
  }
  MappedRings(const MappedRings&) = delete;
  MappedRings& operator=(const MappedRings&) = delete;

  const std::string& doorbells() const override { return doorbells_; }

  void start(const std::vector<RingWork>& work, const std::optional<RingBounce>& bounce) override {
    // Nothing here asks the GPU's driver, which may wait for kernels of the peer in this process.
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      give(queues_[q], work[q]);
      given_[q] = queues_[q];
    }
    if (bounce) *bounce_ = bounce_of(*bounce);
    place_->launch({near_queues_, given_, copied_, orders_, reports_, meeting_,
                    static_cast<std::uint32_t>(queues_.size()), bounce ? bounce_ : nullptr});
    running_ = true;
    Patience patience(kStart);
    while (load(&meeting_->started) == 0) {
      if (patience.over()) {
        throw Error(ExitCode::kEnvironment, fmt::format("{}: the kernel that posts does not start", flag_),
                    "is the GPU busy? nvidia-smi");
      }
      rest();
    }
    begin_ = meet_threads();
    tick_mark_ = newest(reports_[0]);
  }

  void orders(const std::vector<RingOrder>& orders) override {
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      Orders& now = orders_[q];
      const RingOrder& wanted = orders[q];
      store(&now.reach.second, wanted.base);
      store(&now.operand, wanted.operand);
      store(&now.compare, wanted.compare);
      store(&now.compare_step, wanted.compare_step);
      // What belongs to new messages is there before they may be posted.
      store(&now.reach.first, std::min(wanted.limit, kNoLimit));
    }
  }

  void finish() override { flag_all(kFinish); }

  bool over() const override {
    return std::all_of(reports_, reports_ + queues_.size(), [](const Report& each) { return load(&each.over) != 0; });
  }

  RingPosition position(std::size_t queue) const override {
    const Report::Slot slot = newest(reports_[queue]);
    RingPosition position;
    position.completed = slot.completed;
    if (slot.before_ns != 0) position.before_ns = here(slot.before_ns);
    if (slot.after_ns != 0) position.after_ns = here(slot.after_ns);
    return position;
  }

  std::optional<RingFault> fault() const override {
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      const std::uint64_t error = load(&reports_[q].error);
      if (error == 0) continue;
      return RingFault{static_cast<std::uint8_t>(error - 1),
                       static_cast<std::uint8_t>(load(&reports_[q].vendor_error))};
    }
    return std::nullopt;
  }

  std::uint64_t early_signals() const override { return load(&reports_[0].early_signals); }

  double sample_ns(std::uint64_t round) const override {
    return static_cast<double>(load(samples_ + round % kSamples)) / ticks_per_ns();
  }
  std::uint64_t sample_count() const override { return kSamples; }

  RingClock end() override {
    if (!running_) return clock_;
    running_ = false;
    if (!over()) flag_all(kStop);
    try {
      const Moment last = meet_threads();
      clock_.seconds = (last.here_ns - begin_.here_ns) * 1e-9;
      clock_.apart_ns = (last.there_ns - begin_.there_ns) - (last.here_ns - begin_.here_ns);
      clock_.uncertain_ns = last.uncertain_ns + begin_.uncertain_ns;
    } catch (const Error&) {
      store(&meeting_->give_up, std::uint64_t{1});
      place_->join();
      throw;
    }
    place_->join();
    return clock_;
  }

 private:
  static constexpr std::size_t kBellStride = 8;

  Queue mapped(const QueueRings& host, std::uint64_t* bell) {
    Queue queue;
    queue.send_ring = map(host.send, std::size_t{host.send_blocks} * kBlockBytes);
    queue.send_mask = host.send_blocks - 1;
    queue.qpn = host.qpn;
    queue.records = map(host.records, 2 * sizeof(std::uint32_t));
    std::string kind;
    queue.doorbell = place_->map_doorbell(host.doorbell, kind);
    if (queue.doorbell == nullptr) {
      queue.doorbell = bell;
      lines_.push_back({bell, host.doorbell});
    }
    doorbells_ = kind;
    map_completions(host.sent, queue.completions, queue.completion_mask, queue.completion_shift,
                    queue.completion_record);
    if (receives_.receive_ring != nullptr || host.receives == 0) return queue;
    receives_.receive_ring = map(host.receive, std::size_t{host.receives} * host.receive_bytes);
    receives_.receive_mask = host.receives - 1;
    receives_.receive_stride = host.receive_bytes;
    map_completions(host.received, receives_.completions, receives_.completion_mask, receives_.completion_shift,
                    receives_.completion_record);
    return queue;
  }

  template <typename T>
  T* map(T* at, std::size_t bytes) {
    return static_cast<T*>(place_->map(at, bytes));
  }

  void map_completions(const CompletionRing& host, std::uint8_t*& at, std::uint32_t& mask, std::uint32_t& shift,
                       std::uint32_t*& record) {
    at = map(host.entries, std::size_t{host.count} * host.entry_bytes);
    mask = host.count - 1;
    shift = shift_of(host);
    record = map(host.record, sizeof(std::uint32_t));
  }

  static void give(Queue& queue, const RingWork& work) {
    queue.message = message_of(*work.request);
    queue.stride = work.stride;
    queue.slot_mask = work.slots - 1;
    queue.depth = std::min(work.depth, queue.send_mask + 1);
    queue.list = work.list;
    queue.signal_every = work.signal_every;
  }

  Bounce bounce_of(const RingBounce& asked) const {
    Bounce bounce = receives_;
    bounce.ends = static_cast<RoundEnds>(asked.ends);
    bounce.opens = asked.opens;
    bounce.outgoing_last = asked.outgoing_last;
    bounce.incoming_last = asked.incoming_last;
    if (asked.signal != nullptr) bounce.signal = message_of(*asked.signal);
    for (int i = 0; i < 2; ++i) {
      bounce.stamps[i] = asked.stamps[i];
      bounce.expected_stamps[i] = asked.expected_stamps[i];
    }
    bounce.samples = samples_;
    bounce.sample_mask = kSamples - 1;
    if (asked.receive == nullptr) return bounce;
    bounce.receives_posted = asked.receives;
    bounce.receive_address = asked.receive->sg_list[0].addr;
    bounce.receive_bytes = asked.receive->sg_list[0].length;
    bounce.receive_key = asked.receive->sg_list[0].lkey;
    return bounce;
  }

  void flag_all(std::uint64_t flag) {
    for (std::size_t q = 0; q < queues_.size(); ++q)
      store(&orders_[q].reach.first, load(&orders_[q].reach.first) | flag);
  }

  /// The clocks' meeting: of several the shortest.
  Moment meet_threads() {
    Moment best;
    for (std::uint64_t i = 0; i < kMeetings; ++i) {
      Patience patience(kStart);
      const double asked = host_ns();
      store(&meeting_->ping, ++met_);
      while (load(&meeting_->pong) < met_) {
        if (patience.over()) {
          throw Error(ExitCode::kEnvironment, fmt::format("{}: the threads that post do not answer", flag_),
                      "is the GPU busy? nvidia-smi");
        }
      }
      const double answered = host_ns();
      if (const double half = (answered - asked) / 2; half < best.uncertain_ns) {
        best = {asked + half, static_cast<double>(load(&meeting_->pong_ns)), half};
      }
    }
    return best;
  }
  double here(std::uint64_t there_ns) const {
    return begin_.here_ns + (static_cast<double>(there_ns) - begin_.there_ns);
  }

  static Report::Slot newest(const Report& report) {
    while (true) {
      const std::uint64_t count = load(&report.count);
      const Report::Slot& at = report.slots[count % Report::kSlots];
      const Report::Slot slot{load(&at.completed), load(&at.before_ns), load(&at.after_ns), load(&at.ticks)};
      if (load(&report.count) - count < Report::kSlots - 2) return slot;
    }
  }

  /// Of the last stretch between reports that was long enough: a GPU's clock changes its rate.
  double ticks_per_ns() const {
    if (const double fixed = place_->ticks_per_ns(); fixed > 0) return fixed;
    constexpr std::uint64_t kLongEnoughNs = 50'000;
    const Report::Slot slot = newest(reports_[0]);
    if (slot.after_ns >= tick_mark_.after_ns + kLongEnoughNs) {
      ticks_per_ns_ =
          static_cast<double>(slot.ticks - tick_mark_.ticks) / static_cast<double>(slot.after_ns - tick_mark_.after_ns);
      tick_mark_ = slot;
    }
    return ticks_per_ns_;
  }

  std::unique_ptr<Place> place_;
  std::string flag_;
  std::vector<QueueRings> hosts_;
  Bounce receives_;  ///< the first queue's
  std::vector<Queue> queues_;
  Queue* near_queues_ = nullptr;
  std::uint64_t* copied_ = nullptr;
  Queue* given_ = nullptr;
  Orders* orders_ = nullptr;
  Bounce* bounce_ = nullptr;
  Report* reports_ = nullptr;
  Meeting* meeting_ = nullptr;
  std::uint32_t* samples_ = nullptr;
  std::string doorbells_;
  std::vector<Ringer::Line> lines_;
  std::unique_ptr<Ringer> ringer_;
  bool running_ = false;
  std::uint64_t met_ = 0;
  Moment begin_;
  RingClock clock_;
  mutable Report::Slot tick_mark_{};
  mutable double ticks_per_ns_ = 1;
};

}  // namespace
}  // namespace rings

std::unique_ptr<Rings> make_rings(const std::vector<RingQueue>& queues, const Poster& poster, const std::string& flag) {
  return std::make_unique<rings::MappedRings>(queues, poster, flag);
}

}  // namespace gdrperf::mem
