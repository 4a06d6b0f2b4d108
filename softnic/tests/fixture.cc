#include "fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace softnic_test {

using Clock = std::chrono::steady_clock;

std::string default_device() {
  const char* name = std::getenv("SOFTNIC_TEST_DEVICE");
  return name != nullptr ? name : "soft0";
}

Owned<ibv_context> open_device(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  Owned<ibv_context> context;
  for (int i = 0; i < count; ++i) {
    if (name == ibv_get_device_name(list[i])) context.reset(ibv_open_device(list[i]));
  }
  ibv_free_device_list(list);
  EXPECT_NE(context, nullptr) << name;
  return context;
}

ibv_mr* register_memory(ibv_pd* pd, void* address, std::size_t length, int access) {
  return ibv_reg_mr(pd, address, length, access);
}

std::uint8_t* map_apart(std::size_t bytes, int flags, int fd) {
  constexpr std::uintptr_t kStep = 2u << 20;
  // Where programs with AddressSanitizer or ThreadSanitizer have memory, too. Elsewhere than asked for will do.
  static std::atomic<std::uintptr_t> next{0x7ea000000000};
  const std::uintptr_t at = next.fetch_add((bytes / kStep + 2) * kStep);
  void* mapped = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  EXPECT_NE(mapped, MAP_FAILED);
  return static_cast<std::uint8_t*>(mapped);
}

Memory::Memory(ibv_pd* pd, std::size_t bytes, int access)
    : data_(map_apart(bytes, MAP_PRIVATE | MAP_ANONYMOUS)), size_(bytes) {
  if (pd != nullptr) {
    mr_.reset(ibv_reg_mr(pd, data_, bytes, access));
    EXPECT_NE(mr_, nullptr) << std::strerror(errno);
  }
}

Memory::~Memory() {
  mr_.reset();
  ::munmap(data_, size_);
}

void Memory::fill(std::uint8_t seed) {
  for (std::size_t i = 0; i < size_; ++i) data_[i] = static_cast<std::uint8_t>(seed + i * 7 + (i >> 8));
}

bool Memory::holds(std::uint8_t seed, std::size_t from, std::size_t length) const {
  for (std::size_t i = from; i < from + length; ++i) {
    if (data_[i] != static_cast<std::uint8_t>(seed + i * 7 + (i >> 8))) return false;
  }
  return true;
}

End::End(EndOptions given) : options(std::move(given)), context(open_device(options.device)) {
  pd.reset(ibv_alloc_pd(context.get()));
  if (options.events) channel.reset(ibv_create_comp_channel(context.get()));
  const int cqe = static_cast<int>(options.cqe);
  send_cq.reset(ibv_create_cq(context.get(), cqe, nullptr, channel.get(), 0));
  recv_cq.reset(ibv_create_cq(context.get(), cqe, nullptr, channel.get(), 0));
  if (options.srq) {
    ibv_srq_init_attr attr{};
    attr.attr.max_wr = options.max_wr;
    attr.attr.max_sge = options.max_sge;
    srq.reset(ibv_create_srq(pd.get(), &attr));
  }
  memory = std::make_unique<Memory>(pd.get(), options.buffer_bytes, options.buffer_access);
  ibv_qp_init_attr attr{};
  attr.send_cq = send_cq.get();
  attr.recv_cq = recv_cq.get();
  attr.srq = srq.get();
  attr.qp_type = options.type;
  attr.sq_sig_all = options.signal_all ? 1 : 0;
  attr.cap = {options.max_wr, options.max_wr, options.max_sge, options.max_sge, 64};
  qp.reset(ibv_create_qp(pd.get(), &attr));
  EXPECT_NE(qp, nullptr) << std::strerror(errno);
  if (qp != nullptr) {
    EXPECT_EQ(to_init(), 0);
  }
}

Address End::address() {
  Address address;
  address.qpn = qp->qp_num;
  EXPECT_EQ(ibv_query_gid(context.get(), options.port, options.gid_index, &address.gid), 0);
  address.buffer = memory->address();
  address.rkey = memory->mr() != nullptr ? memory->mr()->rkey : 0;
  return address;
}

int End::to_init() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = options.port;
  attr.qp_access_flags = static_cast<unsigned>(options.access);
  attr.qkey = kQkey;
  const int own = options.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own);
}

int End::to_ready_to_receive(const Address& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer.qpn;
  attr.max_dest_rd_atomic = options.rd_atomic;
  attr.min_rnr_timer = options.min_rnr_timer;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = options.port;
  attr.ah_attr.grh.dgid = peer.gid;
  attr.ah_attr.grh.sgid_index = options.gid_index;
  attr.ah_attr.grh.hop_limit = 1;
  int mask = IBV_QP_STATE;
  if (options.type != IBV_QPT_UD) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (options.type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return ibv_modify_qp(qp.get(), &attr, mask);
}

int End::to_ready_to_send() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = options.timeout;
  attr.retry_cnt = options.retry_cnt;
  attr.rnr_retry = options.rnr_retry;
  attr.max_rd_atomic = options.rd_atomic;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (options.type == IBV_QPT_RC)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(qp.get(), &attr, mask);
}

int End::connect(const Address& peer) {
  const int error = to_ready_to_receive(peer);
  return error != 0 ? error : to_ready_to_send();
}

int End::to(ibv_qp_state next) {
  ibv_qp_attr attr{};
  attr.qp_state = next;
  return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE);
}

ibv_qp_state End::state() {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

ibv_send_wr End::request(ibv_wr_opcode opcode, const Address& peer, ibv_sge& sge) {
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = peer.buffer;
  wr.wr.rdma.rkey = peer.rkey;
  return wr;
}

int End::post(ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp.get(), &wr, &bad);
  if (error != 0) {
    EXPECT_EQ(bad, &wr);
  }
  return error;
}

int End::post(ibv_wr_opcode opcode, const Address& peer, std::size_t offset, std::uint32_t length,
              std::uint64_t wr_id) {
  ibv_sge sge = memory->sge(offset, length);
  ibv_send_wr wr = request(opcode, peer, sge);
  wr.wr_id = wr_id;
  wr.imm_data = static_cast<std::uint32_t>(wr_id);
  wr.wr.rdma.remote_addr = peer.buffer + offset;
  return post(wr);
}

int End::post_recv(std::size_t offset, std::uint32_t length, std::uint64_t wr_id) {
  ibv_sge sge = memory->sge(offset, length);
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return srq != nullptr ? ibv_post_srq_recv(srq.get(), &wr, &bad) : ibv_post_recv(qp.get(), &wr, &bad);
}

Pair::Pair(EndOptions a, EndOptions b) : client(std::move(a)), server(std::move(b)) {
  EXPECT_EQ(server.connect(client.address()), 0);
  EXPECT_EQ(client.connect(server.address()), 0);
}

std::optional<ibv_wc> next_completion(ibv_cq* cq) {
  const auto limit = Clock::now() + std::chrono::seconds(60);  // a hang, not a busy machine
  while (Clock::now() < limit) {
    ibv_wc completion{};
    const int count = ibv_poll_cq(cq, 1, &completion);
    if (count > 0) return completion;
    if (count < 0) return std::nullopt;
    ::sched_yield();
  }
  return std::nullopt;
}

ibv_wc_status status_of(ibv_cq* cq) {
  const auto done = next_completion(cq);
  EXPECT_TRUE(done) << "no completion";
  return done ? done->status : IBV_WC_GENERAL_ERR;
}

bool stays_empty(ibv_cq* cq) {
  const auto limit = Clock::now() + std::chrono::milliseconds(20);
  ibv_wc completion{};
  while (Clock::now() < limit) {
    if (ibv_poll_cq(cq, 1, &completion) != 0) return false;
    ::sched_yield();
  }
  return true;
}

SecondProcess::SecondProcess(const std::function<void(int socket)>& body) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  pid_ = ::fork();
  EXPECT_GE(pid_, 0);
  if (pid_ == 0) {
    // A parent that crashes leaves nobody to end it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    body(ends[1]);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

SecondProcess::~SecondProcess() {
  if (pid_ > 0) {
    kill();
    wait();
  }
  ::close(socket_);
}

void SecondProcess::kill() {
  ASSERT_GT(pid_, 1);  // fork may have failed; -1 would be everybody
  ::kill(pid_, SIGKILL);
}

int SecondProcess::wait() {
  int status = -1;
  if (pid_ > 0) {
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  }
  pid_ = -1;
  return status;
}

Address meet(End& end, SecondProcess& other) {
  const auto peer = hear<Address>(other.socket());
  tell(other.socket(), end.address());
  EXPECT_EQ(end.connect(peer), 0);
  EXPECT_EQ(hear<int>(other.socket()), 1);
  return peer;
}

Address meet_parent(End& end, int socket) {
  tell(socket, end.address());
  const auto peer = hear<Address>(socket);
  EXPECT_EQ(end.connect(peer), 0);
  tell(socket, 1);
  return peer;
}

void send_bytes(int socket, const void* bytes, std::size_t size) {
  ASSERT_EQ(::send(socket, bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
}

void receive_bytes(int socket, void* bytes, std::size_t size) {
  ASSERT_EQ(::recv(socket, bytes, size, MSG_WAITALL), static_cast<ssize_t>(size));
}

Output run_again(const std::string& devices, const std::string& argument) {
  Output output;
  int out[2];
  int err[2];
  EXPECT_EQ(::pipe(out), 0);
  EXPECT_EQ(::pipe(err), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    for (const int fd : {out[0], out[1], err[0], err[1]}) ::close(fd);
    ::setenv("SOFTNIC", devices.c_str(), 1);
    ::execl("/proc/self/exe", "softnic_test", argument.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  const auto drain = [](int fd, std::string& text) {
    char block[4096];
    ssize_t got;
    while ((got = ::read(fd, block, sizeof block)) > 0) text.append(block, static_cast<std::size_t>(got));
    ::close(fd);
  };
  drain(out[0], output.out);
  drain(err[0], output.err);
  int status;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return output;
}

}  // namespace softnic_test
