// Processes that may not, or cannot, reach each other: another program after exec, other users,
// other containers. What works works, and the rest ends in an error completion.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "fixture.h"

namespace softnic_test {
namespace {

constexpr uid_t kNobody = 65534;

/// The error completion of a request to a peer that is not there any more; success is tried again
/// while the hang-up is under way.
ibv_wc_status status_when_gone(End& end, const Address& peer) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < limit) {
    if (end.post(IBV_WR_RDMA_WRITE, peer, 0, 64) != 0) return IBV_WC_GENERAL_ERR;
    const ibv_wc_status status = status_of(end.send_cq.get());
    if (status != IBV_WC_SUCCESS) return status;
  }
  return IBV_WC_SUCCESS;
}

TEST(SoftnicIsolation, AProgramThatExecutesAnotherIsGone) {
  for (const char* device : {"soft0", "stay0"}) {
    EndOptions there;
    there.device = device;
    SecondProcess other([&there](int socket) {
      End end(there);
      tell(socket, end.address());
      ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
      tell(socket, 1);
      hear<int>(socket);
      // Its descriptors close, its memory is another's.
      ::execlp("sleep", "sleep", "60", nullptr);
    });
    EndOptions here;
    here.timeout = 0;  // would wait for ever
    End end(here);
    const auto peer = hear<Address>(other.socket());
    tell(other.socket(), end.address());
    ASSERT_EQ(end.connect(peer), 0);
    ASSERT_EQ(hear<int>(other.socket()), 1);
    ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
    EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS) << device;
    tell(other.socket(), 1);
    // Between the new memory and the closed descriptors there is only memory that is not there.
    const ibv_wc_status status = status_when_gone(end, peer);
    EXPECT_TRUE(status == IBV_WC_RETRY_EXC_ERR || (status == IBV_WC_REM_OP_ERR && there.device == "stay0"))
        << device << ": " << status;
  }
}

TEST(SoftnicIsolation, AnotherUserIsNotLetIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  End end;
  SecondProcess other([](int socket) {
    ASSERT_EQ(::setresgid(kNobody, kNobody, kNobody), 0);
    ASSERT_EQ(::setresuid(kNobody, kNobody, kNobody), 0);
    End stranger;
    tell(socket, stranger.address());
    const auto target = hear<Address>(socket);
    ASSERT_EQ(stranger.connect(target), 0);
    // Nobody answers: not the memory, not a word about it.
    ASSERT_EQ(stranger.post(IBV_WR_RDMA_WRITE, target, 0, 64), 0);
    EXPECT_EQ(status_of(stranger.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
    tell(socket, 1);
    hear<int>(socket);
  });
  end.memory->fill(1);
  const auto stranger = hear<Address>(other.socket());
  ASSERT_EQ(end.connect(stranger), 0);
  tell(other.socket(), end.address());
  EXPECT_EQ(hear<int>(other.socket()), 1);
  EXPECT_TRUE(end.memory->holds(1, 0, end.memory->size()));
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

TEST(SoftnicIsolation, TwoProcessesOfAnotherUserMeet) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  SecondProcess both([](int) {
    ASSERT_EQ(::setresgid(kNobody, kNobody, kNobody), 0);
    ASSERT_EQ(::setresuid(kNobody, kNobody, kNobody), 0);
    SecondProcess other([](int socket) {
      End end;
      tell(socket, end.address());
      ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
      tell(socket, 1);
      hear<int>(socket);
    });
    End end;
    const auto peer = hear<Address>(other.socket());
    tell(other.socket(), end.address());
    ASSERT_EQ(end.connect(peer), 0);
    ASSERT_EQ(hear<int>(other.socket()), 1);
    ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 65536), 0);
    EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
    tell(other.socket(), 1);
    EXPECT_EQ(other.wait(), 0);
  });
  EXPECT_EQ(both.wait(), 0);
}

void write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const auto written = ::write(fd, text.data(), text.size());
  ::close(fd);
}

/// Goes on in user, process, mount and IPC namespaces of its own, as its root; false where that is
/// not allowed.
bool enter_container() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) != 0) return false;
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  write_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  const pid_t inside = ::fork();
  if (inside < 0) return false;
  if (inside == 0) return true;
  int status = -1;
  ::waitpid(inside, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/// Registered pages that were moved need nothing but the descriptor that came over the socket; the
/// kernel's way needs a process number, which nobody in a container has of those outside, and so the
/// other end's agent copies.
TEST(SoftnicIsolation, ContainersMeet) {
  for (const char* device : {"soft0", "stay0"}) {
    EndOptions there;
    there.device = device;
    SecondProcess other([&there](int socket) {
      const bool inside = enter_container();
      tell(socket, inside);
      if (!inside) return;
      ASSERT_EQ(::getpid(), 1);
      End end(there);
      end.memory->fill(2);
      tell(socket, end.address());
      const auto peer = hear<Address>(socket);
      ASSERT_EQ(end.connect(peer), 0);
      tell(socket, 1);
      hear<int>(socket);
      ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 65536), 0);
      const ibv_wc_status status = status_of(end.send_cq.get());
      tell(socket, status);
      hear<int>(socket);
    });
    if (!hear<bool>(other.socket())) GTEST_SKIP() << "user namespaces are not allowed here";
    EndOptions here;
    here.device = device;
    End end(here);
    end.memory->fill(1);
    const auto peer = hear<Address>(other.socket());
    tell(other.socket(), end.address());
    ASSERT_EQ(end.connect(peer), 0);
    ASSERT_EQ(hear<int>(other.socket()), 1);
    ASSERT_EQ(end.post(IBV_WR_RDMA_READ, peer, 65536, 65536), 0);
    const ibv_wc_status in = status_of(end.send_cq.get());
    tell(other.socket(), 1);
    const auto out = hear<ibv_wc_status>(other.socket());
    EXPECT_EQ(in, IBV_WC_SUCCESS) << device;
    EXPECT_EQ(out, IBV_WC_SUCCESS) << device;
    EXPECT_TRUE(end.memory->holds(2, 0, 65536)) << device;
    tell(other.socket(), 1);
    EXPECT_EQ(other.wait(), 0);
  }
}

}  // namespace
}  // namespace softnic_test
