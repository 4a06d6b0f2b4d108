// Two users on one machine: each works for himself, nobody gets in to the other, and with permission
// both ways they reach each other.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "fixture.h"
#include "shared/segment/layout.h"
#include "host/process/names.h"
#include "shared/segment/sealed.h"
#include "host/peers/stranger.h"
#include "users.h"
#include "host/process/wire.h"

namespace softnic_test {
namespace {

using namespace gdrperf;           // NOLINT: the device's own words for what is on the wire
using namespace gdrperf::softnic;  // NOLINT

constexpr uid_t kUser = 65534;
constexpr uid_t kOtherUser = 65533;

EndOptions allows_users() {
  EndOptions options;
  options.device = "users0";
  return options;
}

/// One of each kind of request to a peer, which has posted a receive.
void use_everything(End& end, const Address& peer) {
  end.memory->fill(9);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 300'000), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  ASSERT_EQ(end.post(IBV_WR_SEND_WITH_IMM, peer, 0, 4096, 5), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  ibv_sge sge = end.memory->sge(400'000, 8);
  ibv_send_wr add = end.request(IBV_WR_ATOMIC_FETCH_AND_ADD, peer, sge);
  add.wr.atomic.remote_addr = peer.buffer + 400'000;
  add.wr.atomic.rkey = peer.rkey;
  add.wr.atomic.compare_add = 1;
  ASSERT_EQ(end.post(add), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  std::memset(end.memory->data(), 0, 300'000);
  ASSERT_EQ(end.post(IBV_WR_RDMA_READ, peer, 0, 300'000), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(end.memory->holds(9, 0, 300'000));
}

int mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("softnic-segment") != std::string::npos ? 1 : 0;
  return count;
}

/// Each allows the other: requests of every kind get through, and neither sees the other's memory.
TEST(SoftnicUsers, WithPermissionBothWaysTheyMeet) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  SecondProcess other([](int socket) {
    become_user(kUser);
    End end(allows_users());
    std::memset(end.memory->data() + 400'000, 0, 8);
    ASSERT_EQ(end.post_recv(600'000, 4096), 0);
    const Address peer = meet_parent(end, socket);
    hear<int>(socket);
    const auto received = next_completion(end.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, IBV_WC_SUCCESS);
    EXPECT_EQ(received->imm_data, 5u);
    EXPECT_EQ(received->byte_len, 4096u);
    EXPECT_EQ(end.memory->data()[400'000], 1);
    EXPECT_EQ(std::memcmp(end.memory->data() + 600'000, end.memory->data(), 4096), 0);
    tell(socket, 1);
    hear<int>(socket);
    // And the other way round.
    ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
    EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(mapped_segments(), 1);
    tell(socket, 1);
    hear<int>(socket);
  });
  // In a process of its own, which has met nobody else.
  SecondProcess here([&other](int) {
    End end(allows_users());
    const Address peer = meet(end, other);
    use_everything(end, peer);
    tell(other.socket(), 1);
    ASSERT_EQ(hear<int>(other.socket()), 1);
    EXPECT_EQ(mapped_segments(), 1);
    tell(other.socket(), 1);
    ASSERT_EQ(hear<int>(other.socket()), 1);
    // Beyond the region: refused.
    ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, {peer.qpn, peer.gid, peer.buffer + (1u << 20), peer.rkey}, 0, 64), 0);
    EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
    tell(other.socket(), 1);
  });
  EXPECT_EQ(here.wait(), 0);
  EXPECT_EQ(other.wait(), 0);
}

/// One allows it, the other does not: neither direction works.
TEST(SoftnicUsers, WithPermissionOneWayTheyDoNotMeet) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  SecondProcess other([](int socket) {
    become_user(kUser);
    End end(allows_users());
    const Address peer = meet_parent(end, socket);
    ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
    EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
    tell(socket, 1);
    hear<int>(socket);
  });
  End end;
  end.memory->fill(3);
  const Address peer = meet(end, other);
  ASSERT_EQ(hear<int>(other.socket()), 1);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(end.memory->holds(3, 0, end.memory->size()));
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

/// Two users at once, each with a pair of processes.
TEST(SoftnicUsers, EachWorksForItself) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto work = [](uid_t user) {
    become_user(user);
    meet_a_friend(200);
  };
  SecondProcess one([&work](int) { work(kOtherUser); });
  SecondProcess two([&work](int) { work(kUser); });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(two.wait(), 0);
}

/// An admitted user who sends anything: nothing that was not registered for him changes, and the
/// next connection is served.
TEST(SoftnicUsers, WhatAStrangerAsksIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  End end(allows_users());
  end.memory->fill(4);
  const Address victim = end.address();
  SecondProcess liar([&victim](int) {
    become_user(kUser);
    std::mt19937_64 random(1);
    for (int connection = 0; connection < 20; ++connection) {
      const UniqueFd socket = connect_to(socket_name(qpn_block(victim.qpn)), [](const ucred&) { return true; });
      ASSERT_TRUE(socket);
      WireRequest greeting;
      greeting.kind = WireKind::kStranger;
      const UniqueFd memory = connection % 2 == 0 ? sealed_memory("hostile", kStrangerBytes)
                                                  : UniqueFd(::memfd_create("hostile", MFD_CLOEXEC));
      const int shared = memory.get();
      ASSERT_TRUE(send_packet(socket.get(), &greeting, sizeof greeting, &shared, 1));
      WireReply welcome;
      int fds[2];
      const bool served = receive_packet(socket.get(), &welcome, sizeof welcome, fds);
      EXPECT_EQ(served, connection % 2 == 0);
      for (int i = 0; served && i < 200; ++i) {
        std::uint64_t words[sizeof(StrangerRequest) / 8 + 1];
        for (std::uint64_t& word : words) word = random();
        StrangerRequest request;
        std::memcpy(&request, words, sizeof request);
        request.to_qpn = victim.qpn;
        if (i % 2 == 0) request.rkey = victim.rkey;
        if (i % 3 == 0) request.remote_addr = victim.buffer;
        request.opcode = static_cast<std::uint8_t>(i % 12);
        StrangerReply reply;
        ASSERT_TRUE(send_packet(socket.get(), &request, sizeof request, nullptr, 0));
        ASSERT_TRUE(receive_packet(socket.get(), &reply, sizeof reply, fds));
        EXPECT_NE(reply.kind, 0u);
      }
    }
  });
  EXPECT_EQ(liar.wait(), 0);
  EXPECT_TRUE(end.memory->holds(4, 0, end.memory->size()));
}

}  // namespace
}  // namespace softnic_test
