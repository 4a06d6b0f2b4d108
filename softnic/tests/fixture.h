#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Common part of the tests of the software device: verbs objects with owners,
/// ends that can be connected, and a second process.
namespace softnic_test {

struct Delete {
  void operator()(ibv_context* it) const { EXPECT_EQ(ibv_close_device(it), 0); }
  void operator()(ibv_pd* it) const { EXPECT_EQ(ibv_dealloc_pd(it), 0); }
  void operator()(ibv_comp_channel* it) const { EXPECT_EQ(ibv_destroy_comp_channel(it), 0); }
  void operator()(ibv_cq* it) const { EXPECT_EQ(ibv_destroy_cq(it), 0); }
  void operator()(ibv_srq* it) const { EXPECT_EQ(ibv_destroy_srq(it), 0); }
  void operator()(ibv_qp* it) const { EXPECT_EQ(ibv_destroy_qp(it), 0); }
  void operator()(ibv_ah* it) const { EXPECT_EQ(ibv_destroy_ah(it), 0); }
  void operator()(ibv_mr* it) const { EXPECT_EQ(ibv_dereg_mr(it), 0); }
};
template <typename T>
using Owned = std::unique_ptr<T, Delete>;

constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC;
/// GID index of RoCE v2 over IPv4.
constexpr std::uint8_t kGidIndex = 2;
/// The Q_Key of every UD end.
constexpr std::uint32_t kQkey = 0x1234;

/// A function of the device's that the headers here may be too old for.
template <typename F>
F* later(const char* name) {
  void* found = ::dlsym(RTLD_DEFAULT, name);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<F*>(found);
}
/// ibv_reg_dmabuf_mr, of rdma-core 34.
inline ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                             int access) {
  using Function = ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  return later<Function>("ibv_reg_dmabuf_mr")(pd, offset, length, iova, fd, access);
}

/// Opens a device by name; null (and a failed expectation) without it.
Owned<ibv_context> open_device(const std::string& name);

/// ibv_reg_mr with flags that are no constant: clang dislikes what its macro
/// makes of those.
ibv_mr* register_memory(ibv_pd* pd, void* address, std::size_t length, int access);

/// A mapping that can be read and written, apart from where the kernel puts one that has no place yet: what a test
/// unmaps of it stays a hole. Others are filled at once, by a sanitizer with memory of its own.
std::uint8_t* map_apart(std::size_t bytes, int flags, int fd = -1);

/// Page-aligned memory of its own mapping, and its registration.
class Memory {
 public:
  Memory(ibv_pd* pd, std::size_t bytes, int access = kAllAccess);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::uint8_t* data() { return data_; }
  std::size_t size() const { return size_; }
  std::uint64_t address(std::size_t offset = 0) const { return reinterpret_cast<std::uint64_t>(data_) + offset; }
  ibv_mr* mr() { return mr_.get(); }
  void deregister() { mr_.reset(); }
  ibv_sge sge(std::size_t offset, std::uint32_t length) const { return {address(offset), length, mr_->lkey}; }
  void fill(std::uint8_t seed);
  bool holds(std::uint8_t seed, std::size_t from, std::size_t length) const;

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_;
  Owned<ibv_mr> mr_;
};

/// Message from one end to the other.
struct Address {
  std::uint32_t qpn = 0;
  ibv_gid gid{};
  std::uint64_t buffer = 0;
  std::uint32_t rkey = 0;
};

/// Value of SOFTNIC_TEST_DEVICE, or soft0: tests that run once for each way of
/// the data.
std::string default_device();

struct EndOptions {
  ibv_qp_type type = IBV_QPT_RC;
  std::string device = default_device();
  int access = kAllAccess;
  std::uint32_t max_wr = 64;
  std::uint32_t max_sge = 4;
  std::uint32_t cqe = 256;
  bool events = false;
  bool srq = false;
  bool signal_all = true;
  std::size_t buffer_bytes = 1u << 20;
  int buffer_access = kAllAccess;
  std::uint8_t timeout = 10;  ///< 4.2 ms a try
  std::uint8_t retry_cnt = 3;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 1;  ///< 10 us
  std::uint8_t rd_atomic = 4;
  std::uint8_t gid_index = kGidIndex;
  std::uint8_t port = 1;
};

/// A device opened, with a PD, CQs, a QP in INIT and a buffer.
class End {
 public:
  explicit End(EndOptions options = {});

  Address address();
  /// INIT -> RTR -> RTS. 0, or the errno.
  int connect(const Address& peer);
  int to_init();
  int to_ready_to_receive(const Address& peer);
  int to_ready_to_send();
  int to(ibv_qp_state state);
  ibv_qp_state state();

  ibv_send_wr request(ibv_wr_opcode opcode, const Address& peer, ibv_sge& sge);
  int post(ibv_send_wr wr);
  /// One SGE of the buffer from `offset`, to the same offset of the peer's.
  int post(ibv_wr_opcode opcode, const Address& peer, std::size_t offset, std::uint32_t length,
           std::uint64_t wr_id = 1);
  int post_recv(std::size_t offset, std::uint32_t length, std::uint64_t wr_id = 1);

  const EndOptions options;
  Owned<ibv_context> context;
  Owned<ibv_pd> pd;
  Owned<ibv_comp_channel> channel;
  Owned<ibv_cq> send_cq;
  Owned<ibv_cq> recv_cq;
  Owned<ibv_srq> srq;
  std::unique_ptr<Memory> memory;
  Owned<ibv_qp> qp;
};

/// Two ends in this process, connected to each other.
struct Pair {
  explicit Pair(EndOptions a = {}, EndOptions b = {});
  End client;
  End server;
};

/// The next completion, within five seconds; none after that.
std::optional<ibv_wc> next_completion(ibv_cq* cq);
/// Its status; without one a failed expectation.
ibv_wc_status status_of(ibv_cq* cq);
/// No completion comes for 20 ms.
bool stays_empty(ibv_cq* cq);

/// A second process, forked, that runs `body` with its end of a socket pair
/// and exits with 0 when nothing failed in it.
class SecondProcess {
 public:
  explicit SecondProcess(const std::function<void(int socket)>& body);
  ~SecondProcess();
  int socket() const { return socket_; }
  int pid() const { return pid_; }
  void kill();
  /// Exit status of the process; 0 when all went well there.
  int wait();

 private:
  int pid_ = -1;
  int socket_ = -1;
};

template <typename T>
void tell(int socket, const T& value);
template <typename T>
T hear(int socket);

void send_bytes(int socket, const void* bytes, std::size_t size);
void receive_bytes(int socket, void* bytes, std::size_t size);
template <typename T>
void tell(int socket, const T& value) {
  send_bytes(socket, &value, sizeof value);
}
template <typename T>
T hear(int socket) {
  T value{};
  receive_bytes(socket, &value, sizeof value);
  return value;
}

/// Connects `end` and one of the second process, which is connected as well when
/// this returns there and here. Each returns the other's address.
Address meet(End& end, SecondProcess& other);
Address meet_parent(End& end, int socket);

/// Runs this program again with `arguments` and SOFTNIC set to `devices`;
/// returns its standard output and standard error.
struct Output {
  std::string out;
  std::string err;
};
/// Body of the program when run_again() hands it --live=FILE; set by the file
/// of tests that wants it.
inline bool (*live_part)(const std::string& path) = nullptr;
Output run_again(const std::string& devices, const std::string& argument);

}  // namespace softnic_test
