// Completion events: raised once for each arming, waited for without polling.

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <thread>

#include "fixture.h"

namespace softnic_test {
namespace {

/// Exit status of a process that nothing ended.
constexpr int kNotKilled = 99;

bool readable(int fd, int wait_ms) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, wait_ms) == 1;
}

EndOptions with_events() {
  EndOptions options;
  options.events = true;
  return options;
}

ibv_cq* fetch(End& end) {
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  EXPECT_EQ(ibv_get_cq_event(end.channel.get(), &cq, &user), 0);
  if (cq != nullptr) ibv_ack_cq_events(cq, 1);
  return cq;
}

TEST(SoftnicEvents, OneForEachArming) {
  Pair pair(with_events());
  End& client = pair.client;
  const int fd = client.channel->fd;
  const Address peer = pair.server.address();
  ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0);
  EXPECT_FALSE(readable(fd, 20));  // not armed
  ASSERT_TRUE(next_completion(client.send_cq.get()));
  ASSERT_EQ(ibv_req_notify_cq(client.send_cq.get(), 0), 0);
  ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0);
  ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0);
  ASSERT_TRUE(readable(fd, 1000));
  EXPECT_EQ(fetch(client), client.send_cq.get());
  EXPECT_FALSE(readable(fd, 20));
}

TEST(SoftnicEvents, OnlySolicitedOnesWhenAskedForThose) {
  Pair pair({}, with_events());
  End& server = pair.server;
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(server.post_recv(0, 64, i), 0);
  ASSERT_EQ(ibv_req_notify_cq(server.recv_cq.get(), 1), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8), 0);
  EXPECT_FALSE(readable(server.channel->fd, 20));
  ibv_sge sge = pair.client.memory->sge(0, 8);
  ibv_send_wr wr = pair.client.request(IBV_WR_SEND, {}, sge);
  wr.send_flags |= IBV_SEND_SOLICITED;
  ASSERT_EQ(pair.client.post(wr), 0);
  ASSERT_TRUE(readable(server.channel->fd, 1000));
  EXPECT_EQ(fetch(server), server.recv_cq.get());
}

TEST(SoftnicEvents, SayWhichQueue) {
  Pair pair(with_events(), {});
  End& client = pair.client;
  ASSERT_EQ(client.post_recv(0, 64), 0);
  ASSERT_EQ(ibv_req_notify_cq(client.send_cq.get(), 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(client.recv_cq.get(), 0), 0);
  ASSERT_EQ(pair.server.post(IBV_WR_SEND, {}, 0, 8), 0);
  EXPECT_EQ(fetch(client), client.recv_cq.get());
  ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
  EXPECT_EQ(fetch(client), client.send_cq.get());
}

TEST(SoftnicEvents, NonBlockingChannelsSayThatThereIsNone) {
  End end(with_events());
  ASSERT_EQ(::fcntl(end.channel->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  EXPECT_EQ(ibv_get_cq_event(end.channel.get(), &cq, &user), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(SoftnicEvents, AnEventThatNobodyFetchedDoesNotOutliveItsQueue) {
  Pair pair(with_events());
  End& client = pair.client;
  ASSERT_EQ(ibv_req_notify_cq(client.send_cq.get(), 0), 0);
  ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
  ASSERT_TRUE(readable(client.channel->fd, 1000));
  client.qp.reset();
  client.send_cq.reset();
  EXPECT_FALSE(readable(client.channel->fd, 0));
}

/// Both ends sleep until an event comes, many times in turn.
TEST(SoftnicEvents, TwoProcessesWakeEachOther) {
  constexpr int kRounds = 200;
  const auto take_turn = [](End& end, std::uint64_t round) {
    while (true) {
      ASSERT_EQ(fetch(end), end.recv_cq.get());
      ASSERT_EQ(ibv_req_notify_cq(end.recv_cq.get(), 0), 0);
      ibv_wc received{};
      if (ibv_poll_cq(end.recv_cq.get(), 1, &received) == 1) {
        ASSERT_EQ(received.status, IBV_WC_SUCCESS);
        ASSERT_EQ(received.imm_data, round);
        return;
      }
    }
  };
  SecondProcess other([&](int socket) {
    End end(with_events());
    ASSERT_EQ(end.post_recv(0, 64), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.recv_cq.get(), 0), 0);
    meet_parent(end, socket);
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      take_turn(end, i);
      if (::testing::Test::HasFatalFailure()) return;
      ASSERT_EQ(end.post_recv(0, 64), 0);
      ASSERT_EQ(end.post(IBV_WR_SEND_WITH_IMM, {}, 0, 8, i), 0);
      ASSERT_TRUE(next_completion(end.send_cq.get()));
    }
    hear<int>(socket);
  });
  End end(with_events());
  const auto peer = hear<Address>(other.socket());
  ASSERT_EQ(end.post_recv(0, 64), 0);
  ASSERT_EQ(ibv_req_notify_cq(end.recv_cq.get(), 0), 0);
  tell(other.socket(), end.address());
  ASSERT_EQ(end.connect(peer), 0);
  ASSERT_EQ(hear<int>(other.socket()), 1);
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(end.post(IBV_WR_SEND_WITH_IMM, {}, 0, 8, i), 0);
    ASSERT_TRUE(next_completion(end.send_cq.get()));
    take_turn(end, i);
    if (HasFatalFailure()) return;
    ASSERT_EQ(end.post_recv(0, 64), 0);
  }
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

/// Nobody polls: a request that waits for a receive is moved on nevertheless.
TEST(SoftnicEvents, AWaitingRequestMovesOnWhileItsProcessSleeps) {
  Pair pair(with_events());
  ASSERT_EQ(ibv_req_notify_cq(pair.client.send_cq.get(), 0), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8), 0);
  EXPECT_FALSE(readable(pair.client.channel->fd, 20));
  ASSERT_EQ(pair.server.post_recv(0, 8), 0);
  EXPECT_TRUE(readable(pair.client.channel->fd, 2000));
  EXPECT_EQ(fetch(pair.client), pair.client.send_cq.get());
}

TEST(SoftnicEvents, SharedReceiveQueueReportsItsLimit) {
  EndOptions there;
  there.srq = true;
  Pair pair({}, there);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(pair.server.post_recv(0, 64, i), 0);
  ibv_srq_attr attr{};
  attr.srq_limit = 3;
  ASSERT_EQ(ibv_modify_srq(pair.server.srq.get(), &attr, IBV_SRQ_LIMIT), 0);
  const int fd = pair.server.context->async_fd;
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8), 0);
  EXPECT_FALSE(readable(fd, 20));
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8), 0);
  ASSERT_TRUE(readable(fd, 1000));
  ibv_async_event report{};
  ASSERT_EQ(ibv_get_async_event(pair.server.context.get(), &report), 0);
  EXPECT_EQ(report.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(report.element.srq, pair.server.srq.get());
  ibv_ack_async_event(&report);
}

/// From now on the kernel kills this process where it writes to an eventfd.
bool die_at_an_event() {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sizeof(std::uint64_t), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), const_cast<sock_filter*>(filter)};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(SoftnicEvents, ASenderKilledBeforeItTellsTheEventLeavesNoSleeper) {
  SecondProcess other([](int socket) {
    End end;
    meet_parent(end, socket);
    end.post(IBV_WR_SEND, {}, 0, 64);
    hear<int>(socket);
    if (die_at_an_event()) end.post(IBV_WR_SEND, {}, 0, 64);
    ::_exit(kNotKilled);
  });
  End end(with_events());
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(end.post_recv(i * 64, 64, i), 0);
  ASSERT_EQ(ibv_req_notify_cq(end.recv_cq.get(), 0), 0);
  meet(end, other);
  for (std::uint64_t message = 0; message < 2; ++message) {
    // The second one's sender is dead.
    ASSERT_TRUE(readable(end.channel->fd, 20'000)) << "message " << message;
    EXPECT_EQ(fetch(end), end.recv_cq.get());
    ASSERT_EQ(ibv_req_notify_cq(end.recv_cq.get(), 0), 0);
    EXPECT_EQ(next_completion(end.recv_cq.get())->wr_id, message);
    if (message == 0) tell(other.socket(), 1);
  }
  const int status = other.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotKilled) GTEST_SKIP() << "no seccomp here";
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

}  // namespace
}  // namespace softnic_test
