// Commands to /dev/infiniband/rdma_cm of the software device, written without librdmacm.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/rdma_user_cm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr std::uint32_t kConnectRequest = 4;  // RDMA_CM_EVENT_CONNECT_REQUEST of the library's header

/// Returns 0 or an errno.
template <typename Body>
int command(int fd, std::uint32_t number, const Body& body, std::uint16_t room = 0) {
  struct {
    rdma_ucm_cmd_hdr head;
    Body body;
  } whole{{number, sizeof body, room}, body};
  return ::write(fd, &whole, sizeof whole) == sizeof whole ? 0 : errno;
}

sockaddr_in6 loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 room{};
  std::memcpy(&room, &address, sizeof address);
  return room;
}

std::uint32_t make_id(int fd) {
  rdma_ucm_create_id_resp made{};
  rdma_ucm_create_id create{};
  create.uid = 1;
  create.response = reinterpret_cast<std::uintptr_t>(&made);
  create.ps = RDMA_PS_TCP;
  EXPECT_EQ(command(fd, RDMA_USER_CM_CMD_CREATE_ID, create, sizeof made), 0);
  return made.id;
}

/// Returns the port at which a new id listens.
std::uint16_t listen_at_some_port(int fd) {
  rdma_ucm_bind_ip bind{};
  bind.id = make_id(fd);
  std::uint16_t port = 20000;
  int error = EADDRINUSE;
  while (error == EADDRINUSE && port < 21000) {
    bind.addr = loopback(++port);
    error = command(fd, RDMA_USER_CM_CMD_BIND_IP, bind);
  }
  EXPECT_EQ(error, 0) << std::strerror(error);
  rdma_ucm_listen listen{};
  listen.id = bind.id;
  EXPECT_EQ(command(fd, RDMA_USER_CM_CMD_LISTEN, listen), 0);
  return port;
}

void connect_to(int fd, std::uint16_t port) {
  rdma_ucm_resolve_ip address{};
  address.id = make_id(fd);
  address.dst_addr = loopback(port);
  EXPECT_EQ(command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, address), 0);
  rdma_ucm_resolve_route route{};
  route.id = address.id;
  EXPECT_EQ(command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, route), 0);
  rdma_ucm_connect connect{};
  connect.id = address.id;
  connect.conn_param.qp_num = 1;
  connect.conn_param.valid = 1;
  EXPECT_EQ(command(fd, RDMA_USER_CM_CMD_CONNECT, connect), 0);
}

/// A thread that waits for a request.
class Waiter {
 public:
  explicit Waiter(int fd)
      : thread_([this, fd] {
          number_ = static_cast<int>(::syscall(SYS_gettid));
          rdma_ucm_get_event get{};
          get.response = reinterpret_cast<std::uintptr_t>(&event_);
          error_ = command(fd, RDMA_USER_CM_CMD_GET_EVENT, get, sizeof event_);
        }) {}
  /// Until the kernel holds it in recv().
  void await_sleep() const {
    for (int call = -1; call != SYS_recvfrom; std::this_thread::yield()) {
      std::ifstream("/proc/self/task/" + std::to_string(number_) + "/syscall") >> call;
    }
  }
  void expect_request() {
    thread_.join();
    EXPECT_EQ(error_, 0) << std::strerror(error_);
    EXPECT_EQ(event_.event, kConnectRequest);
  }

 private:
  std::atomic<int> number_{0};
  int error_ = -1;
  rdma_ucm_event_resp event_{};
  std::thread thread_;
};

TEST(SoftnicCmChannel, AThreadThatWaitsKeepsTheFileWhoseDescriptorIsClosed) {
  for (int round = 0; round < 50 && !HasFailure(); ++round) {
    const int fd = ::open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    const int client = ::open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ASSERT_GE(client, 0);
    const std::uint16_t port = listen_at_some_port(fd);
    std::array<Waiter, 2> waiters{Waiter(fd), Waiter(fd)};
    for (const Waiter& waiter : waiters) waiter.await_sleep();
    ::close(fd);
    // Its number is another file's now.
    const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(other, fd);
    // The first wakes both, and one of them finds none.
    connect_to(client, port);
    connect_to(client, port);
    for (Waiter& waiter : waiters) waiter.expect_request();
    ::close(other);
    ::close(client);
  }
}

}  // namespace
