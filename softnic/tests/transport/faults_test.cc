// Faults of messages: what each does to the data, and that nobody is told.

#include <cstdio>
#include <cstring>

#include "modelled_link.h"

namespace softnic_test {
namespace {

using std::chrono::steady_clock;

/// Effect of a fault that concerns each message on 4 KiB of a WRITE, READ, SEND.
struct Damage {
  const char* device;
  std::size_t wrong_low, wrong_high;  ///< bytes that differ from what was sent
};

std::size_t wrong_bytes(const std::uint8_t* data, const std::uint8_t* expected, std::size_t length) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < length; ++i) wrong += data[i] != expected[i] ? 1 : 0;
  return wrong;
}

class SoftnicFaults : public ::testing::TestWithParam<Damage> {};

TEST_P(SoftnicFaults, DamageDataAndSaySuccess) {
  const Damage damage = GetParam();
  constexpr std::uint32_t kLength = 4096;
  const std::uint64_t before = counter(damage.device, "faults_injected");
  Pair pair(on(damage.device), on(damage.device));
  auto* mine = pair.client.memory->data();
  auto* theirs = pair.server.memory->data();
  const auto check = [&](const char* what, const std::uint8_t* got, const std::uint8_t* sent) {
    const std::size_t wrong = wrong_bytes(got, sent, kLength);
    std::printf("    %-9s %-6s %4zu of %u bytes wrong\n", damage.device, what, wrong, kLength);
    EXPECT_GE(wrong, damage.wrong_low) << what;
    EXPECT_LE(wrong, damage.wrong_high) << what;
  };
  for (std::size_t i = 0; i < kLength; ++i) mine[8192 + i] = static_cast<std::uint8_t>(i % 251 + 1);
  std::memset(theirs, 0, 32768);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 8192, kLength), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  check("WRITE", theirs + 8192, mine + 8192);

  std::memset(theirs, 0, 32768);
  for (std::size_t i = 0; i < kLength; ++i) theirs[8192 + i] = static_cast<std::uint8_t>(i % 251 + 1);
  std::memset(mine, 0, 32768);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, pair.server.address(), 8192, kLength), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  check("READ", mine + 8192, theirs + 8192);

  for (std::size_t i = 0; i < kLength; ++i) mine[8192 + i] = static_cast<std::uint8_t>(i % 251 + 1);
  std::memset(theirs, 0, 32768);
  ASSERT_EQ(pair.server.post_recv(8192, kLength), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, pair.server.address(), 8192, kLength), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  check("SEND", theirs + 8192, mine + 8192);
  if (std::strcmp(damage.device, "drop0") == 0) {
    EXPECT_TRUE(stays_empty(pair.server.recv_cq.get()));
  } else {
    const auto received = next_completion(pair.server.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, IBV_WC_SUCCESS);
    EXPECT_EQ(received->byte_len, kLength);
  }
  EXPECT_EQ(counter(damage.device, "faults_injected"), before + 3);
}

INSTANTIATE_TEST_SUITE_P(, SoftnicFaults,
                         ::testing::Values(Damage{"drop0", 4096, 4096}, Damage{"stale0", 4096, 4096},
                                           Damage{"flip0", 1, 1}, Damage{"trunc0", 2048, 2048},
                                           Damage{"misp0", 3000, 4096}, Damage{"delay0", 0, 0},
                                           Damage{"stall0", 0, 0}, Damage{"loss0", 0, 0}),
                         [](const auto& info) { return std::string(info.param.device); });

TEST(SoftnicFault, ALossShowsInCountersAsOnANic) {
  Pair pair(on("loss0"), on("loss0"));
  const auto resent = counter("loss0", "packet_seq_err");
  const auto missed = counter("loss0", "out_of_sequence");
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(counter("loss0", "packet_seq_err"), resent + 1);
  EXPECT_EQ(counter("loss0", "out_of_sequence"), missed + 1);
}

TEST(SoftnicFault, HitsEveryNthFromAMessageOn) {
  // some0: fault=stale:every=3:from=4:count=2:op=write
  Pair pair(on("some0"), on("some0"));
  std::string hit;
  for (int i = 0; i < 16; ++i) {
    std::memset(pair.client.memory->data(), i + 1, 64);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    hit += pair.server.memory->data()[0] == i + 1 ? '.' : 'x';
  }
  EXPECT_EQ(hit, "......x..x......");
}

TEST(SoftnicFault, RnrGoesAwayOrDoesNot) {
  // rnr0: for 10 ms
  EndOptions patient = on("rnr0");
  Pair pair(patient, patient);
  ASSERT_EQ(pair.server.post_recv(0, 64), 0);
  const auto start = steady_clock::now();
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, pair.server.address(), 0, 64), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_GE(elapsed_ms(start), 10);
  EXPECT_EQ(status_of(pair.server.recv_cq.get()), IBV_WC_SUCCESS);

  // rnr1: for longer than any machine is busy
  EndOptions impatient = on("rnr1");
  impatient.rnr_retry = 0;
  Pair refused(impatient, impatient);
  ASSERT_EQ(refused.server.post_recv(0, 64), 0);
  ASSERT_EQ(refused.client.post(IBV_WR_SEND, refused.server.address(), 0, 64), 0);
  EXPECT_EQ(status_of(refused.client.send_cq.get()), IBV_WC_RNR_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace softnic_test
