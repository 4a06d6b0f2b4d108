// Processes that die, fork and exec.

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "fixture.h"

namespace softnic_test {
namespace {

using Clock = std::chrono::steady_clock;

/// A peer that connects, posts `receives` receives, and sleeps.
void be_there(int socket, int receives) {
  End end;
  for (int i = 0; i < receives; ++i) ASSERT_EQ(end.post_recv(0, 64), 0);
  meet_parent(end, socket);
  hear<int>(socket);
}

TEST(SoftnicProcess, AKilledPeerIsNoticedByTheNextRequest) {
  SecondProcess other([](int socket) { be_there(socket, 0); });
  EndOptions patient;
  patient.timeout = 0;  // would wait for ever
  End end(patient);
  const Address peer = meet(end, other);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
  EXPECT_EQ(next_completion(end.send_cq.get())->status, IBV_WC_SUCCESS);
  other.kill();
  other.wait();
  // The requests themselves would wait for ever: an error is the notice. The limit ends a test that hangs.
  const auto begin = Clock::now();
  ibv_wc_status status = IBV_WC_SUCCESS;
  while (status == IBV_WC_SUCCESS && Clock::now() - begin < std::chrono::seconds(60)) {
    ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
    const auto done = next_completion(end.send_cq.get());
    ASSERT_TRUE(done);
    status = done->status;
  }
  EXPECT_EQ(status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(end.state(), IBV_QPS_ERR);
}

TEST(SoftnicProcess, AKilledPeerEndsWhatWaitsForIt) {
  SecondProcess other([](int socket) { be_there(socket, 0); });
  EndOptions patient;
  patient.timeout = 0;
  End end(patient);
  const Address peer = meet(end, other);
  ASSERT_EQ(end.post(IBV_WR_SEND, peer, 0, 64, 1), 0);  // no receive there: waits
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64, 2), 0);
  ASSERT_EQ(end.post_recv(0, 64, 3), 0);
  EXPECT_TRUE(stays_empty(end.send_cq.get()));
  other.kill();
  auto done = next_completion(end.send_cq.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(done->wr_id, 1u);
  done = next_completion(end.send_cq.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, IBV_WC_WR_FLUSH_ERR);
  done = next_completion(end.recv_cq.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(done->wr_id, 3u);
}

/// A sleeper with armed queues is woken by the error.
TEST(SoftnicProcess, AKilledPeerWakesASleeper) {
  SecondProcess other([](int socket) { be_there(socket, 0); });
  EndOptions options;
  options.events = true;
  options.timeout = 0;
  End end(options);
  const Address peer = meet(end, other);
  ASSERT_EQ(ibv_req_notify_cq(end.send_cq.get(), 0), 0);
  ASSERT_EQ(end.post(IBV_WR_SEND, peer, 0, 64), 0);
  other.kill();
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  ASSERT_EQ(ibv_get_cq_event(end.channel.get(), &cq, &user), 0);
  ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(next_completion(end.send_cq.get())->status, IBV_WC_RETRY_EXC_ERR);
}

/// kill -9 of a sender at any moment leaves the receiver whole.
TEST(SoftnicProcess, ASenderKilledAtAnyMomentLeavesTheReceiverWhole) {
  for (int round = 0; round < 20; ++round) {
    SecondProcess other([](int socket) {
      End end;
      meet_parent(end, socket);
      while (true) {
        end.post(IBV_WR_SEND, {}, 0, 65536);
        next_completion(end.send_cq.get());
      }
    });
    End end;
    meet(end, other);
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(end.post_recv(i * 65536, 65536, i), 0);
    const auto begin = Clock::now();
    const auto lifetime = std::chrono::microseconds(1000 + round * 311);
    std::uint64_t posted = 8;
    std::uint64_t completed = 0;
    const auto handle = [&](const ibv_wc& received) {
      ++completed;
      if (received.status != IBV_WC_SUCCESS) return;
      ASSERT_EQ(end.post_recv(received.wr_id * 65536, 65536, received.wr_id), 0);
      ++posted;
    };
    ibv_wc received{};
    while (Clock::now() - begin < lifetime) {
      if (ibv_poll_cq(end.recv_cq.get(), 1, &received) == 1) handle(received);
    }
    other.kill();
    other.wait();
    ASSERT_EQ(end.to(IBV_QPS_ERR), 0);
    // Every receive completes, one way or another.
    while (completed < posted) {
      const auto last = next_completion(end.recv_cq.get());
      ASSERT_TRUE(last) << "round " << round << ": " << completed << " of " << posted;
      ++completed;
    }
  }
}

TEST(SoftnicProcess, TheNextPeerIsNotTakenForTheDeadOne) {
  EndOptions quick;
  End end(quick);
  Address old;
  {
    SecondProcess other([](int socket) { be_there(socket, 0); });
    old = meet(end, other);
  }
  SecondProcess next([](int socket) { be_there(socket, 0); });
  End second;
  const Address peer = meet(second, next);
  ASSERT_EQ(second.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
  EXPECT_EQ(next_completion(second.send_cq.get())->status, IBV_WC_SUCCESS);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, old, 0, 64), 0);
  EXPECT_EQ(next_completion(end.send_cq.get())->status, IBV_WC_RETRY_EXC_ERR);
  tell(next.socket(), 1);
  EXPECT_EQ(next.wait(), 0);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

std::size_t device_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::size_t count = 0;
  while (std::getline(maps, line)) count += line.find("softnic-") != std::string::npos ? 1 : 0;
  return count;
}

TEST(SoftnicProcess, PeersThatLeaveLeaveNothingBehind) {
  const auto round = [] {
    SecondProcess other([](int socket) { be_there(socket, 1); });
    End end;
    const Address peer = meet(end, other);
    ASSERT_EQ(end.post(IBV_WR_SEND, peer, 0, 64), 0);
    ASSERT_TRUE(next_completion(end.send_cq.get()));
  };
  round();  // whatever is made once, is made
  const std::size_t descriptors = open_descriptors();
  const std::size_t mappings = device_mappings();
  for (int i = 0; i < 10; ++i) round();
  // The last hang-up is noticed by another thread.
  const auto limit = Clock::now() + std::chrono::seconds(60);
  while ((open_descriptors() > descriptors || device_mappings() > mappings) && Clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LE(open_descriptors(), descriptors);
  EXPECT_LE(device_mappings(), mappings);
}

TEST(SoftnicFork, AChildHasItsOwnCopyOfRegisteredMemory) {
  End end;
  ASSERT_EQ(end.connect(end.address()), 0);
  end.memory->fill(1);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!end.memory->holds(1, 0, end.memory->size())) ::_exit(2);
    end.memory->fill(2);
    if (!end.memory->holds(2, 0, end.memory->size())) ::_exit(3);
    // Inherited objects do not work, and say so.
    if (end.post(IBV_WR_RDMA_WRITE, end.address(), 0, 64) == 0) ::_exit(4);
    if (ibv_alloc_pd(end.context.get()) != nullptr) ::_exit(5);
    if (ibv_destroy_qp(end.qp.get()) != 0) ::_exit(6);
    if (ibv_dereg_mr(end.memory->mr()) != 0) ::_exit(7);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_TRUE(end.memory->holds(1, 0, end.memory->size()));
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, end.address(), 0, 64), 0);
  EXPECT_EQ(next_completion(end.send_cq.get())->status, IBV_WC_SUCCESS);
}

TEST(SoftnicFork, AChildThatLivesOnDoesNotHideItsParentsDeath) {
  SecondProcess other([](int socket) {
    End end;
    tell(socket, end.address());
    ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    tell(socket, child);
    hear<int>(socket);
  });
  EndOptions patient;
  patient.timeout = 0;
  End end(patient);
  const auto peer = hear<Address>(other.socket());
  tell(other.socket(), end.address());
  ASSERT_EQ(end.connect(peer), 0);
  const auto grandchild = hear<pid_t>(other.socket());
  ASSERT_EQ(end.post(IBV_WR_SEND, peer, 0, 64), 0);
  other.kill();
  const auto done = next_completion(end.send_cq.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, IBV_WC_RETRY_EXC_ERR);
  ASSERT_GT(grandchild, 1);
  ::kill(grandchild, SIGKILL);
}

/// A connection to the socket at which this process's device listens, as another process would make it; -1 without.
int connection_to_own_device() {
  std::ifstream table("/proc/net/unix");
  std::string line;
  while (std::getline(table, line)) {
    const auto at = line.find("@gdrperf-softnic.");
    if (at == std::string::npos) continue;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto name = line.substr(at + 1);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    ucred listener{};
    socklen_t size = sizeof listener;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
        ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 && listener.pid == ::getpid()) {
      return fd;
    }
    ::close(fd);
  }
  return -1;
}

// A thread that makes or accepts a connection while another one forks has it in hand, and nowhere else.
TEST(SoftnicFork, AChildKeepsNoConnectionThatAThreadHadInHand) {
  End end;
  const int in_hand = connection_to_own_device();
  ASSERT_GE(in_hand, 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::fcntl(in_hand, F_GETFD) < 0 ? 0 : 2);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "exit status " << WEXITSTATUS(status);
  EXPECT_GE(::fcntl(in_hand, F_GETFD), 0);
  ::close(in_hand);
}

}  // namespace
}  // namespace softnic_test
