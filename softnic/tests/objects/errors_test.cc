// Each way a request can fail: the status at the initiator, what the other end
// sees, and that both are in the state that follows.

#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "fixture.h"

namespace softnic_test {
namespace {

/// The state, once it is this one (up to a minute, on a busy machine).
ibv_qp_state settled_state(End& end, ibv_qp_state expected) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (end.state() != expected && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  return end.state();
}

/// One request that fails at the initiator alone.
void expect_local_failure(End& end, ibv_send_wr wr, ibv_wc_status expected) {
  ASSERT_EQ(end.post(wr), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), expected);
  EXPECT_EQ(end.state(), IBV_QPS_ERR);
  // Whatever follows is flushed.
  ASSERT_EQ(end.post(wr), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_WR_FLUSH_ERR);
}

TEST(SoftnicErrors, UnknownLocalKey) {
  Pair pair;
  ibv_sge sge = pair.client.memory->sge(0, 64);
  sge.lkey ^= 0x100;
  expect_local_failure(pair.client, pair.client.request(IBV_WR_RDMA_WRITE, pair.server.address(), sge),
                       IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(pair.server.state(), IBV_QPS_RTS);
}

TEST(SoftnicErrors, LocalBoundsAreChecked) {
  for (const bool before : {false, true}) {
    Pair pair;
    ibv_sge sge = pair.client.memory->sge(pair.client.memory->size() - 63, 64);
    if (before) sge.addr = pair.client.memory->address() - 1;
    expect_local_failure(pair.client, pair.client.request(IBV_WR_RDMA_WRITE, pair.server.address(), sge),
                         IBV_WC_LOC_PROT_ERR);
  }
}

TEST(SoftnicErrors, LocalKeyOfAnotherProtectionDomain) {
  Pair pair;
  Owned<ibv_pd> other(ibv_alloc_pd(pair.client.context.get()));
  Memory memory(other.get(), 4096);
  ibv_sge sge = memory.sge(0, 64);
  expect_local_failure(pair.client, pair.client.request(IBV_WR_RDMA_WRITE, pair.server.address(), sge),
                       IBV_WC_LOC_PROT_ERR);
}

TEST(SoftnicErrors, ReadIntoMemoryThatMayNotBeWritten) {
  EndOptions options;
  options.buffer_access = IBV_ACCESS_REMOTE_READ;
  Pair pair(options);
  ibv_sge sge = pair.client.memory->sge(0, 64);
  expect_local_failure(pair.client, pair.client.request(IBV_WR_RDMA_READ, pair.server.address(), sge),
                       IBV_WC_LOC_PROT_ERR);
}

TEST(SoftnicErrors, DeregisteredLocalKey) {
  Pair pair;
  ibv_sge sge = pair.client.memory->sge(0, 64);
  pair.client.memory->deregister();
  expect_local_failure(pair.client, pair.client.request(IBV_WR_RDMA_WRITE, pair.server.address(), sge),
                       IBV_WC_LOC_PROT_ERR);
}

/// One request that the target refuses. Both QPs end in ERR; a receive that is
/// posted there is flushed, and its device reports `event`.
void expect_refusal(Pair& pair, const Address& target, ibv_wr_opcode opcode, std::size_t offset,
                    std::uint32_t length, ibv_wc_status expected, ibv_event_type event) {
  ASSERT_EQ(pair.server.post_recv(0, 64, 99), 0);
  ASSERT_EQ(pair.client.post(opcode, target, offset, length), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), expected);
  EXPECT_EQ(pair.client.state(), IBV_QPS_ERR);
  EXPECT_EQ(settled_state(pair.server, IBV_QPS_ERR), IBV_QPS_ERR);
  const auto flushed = next_completion(pair.server.recv_cq.get());
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed->wr_id, 99u);
  ibv_async_event report{};
  ASSERT_EQ(ibv_get_async_event(pair.server.context.get(), &report), 0);
  EXPECT_EQ(report.event_type, event);
  EXPECT_EQ(report.element.qp, pair.server.qp.get());
  ibv_ack_async_event(&report);
}

TEST(SoftnicErrors, UnknownRemoteKey) {
  Pair pair;
  Address target = pair.server.address();
  target.rkey += 1;
  expect_refusal(pair, target, IBV_WR_RDMA_WRITE, 0, 64, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(SoftnicErrors, RemoteBoundsAreChecked) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    EndOptions small;
    small.buffer_bytes = 8192;
    Pair pair({}, small);
    const std::uint8_t before = pair.server.memory->data()[8191];
    expect_refusal(pair, pair.server.address(), opcode, 8192 - 63, 64, IBV_WC_REM_ACCESS_ERR,
                   IBV_EVENT_QP_ACCESS_ERR);
    EXPECT_EQ(pair.server.memory->data()[8191], before);
  }
}

TEST(SoftnicErrors, RemoteAddressThatWrapsAround) {
  Pair pair;
  Address target = pair.server.address();
  target.buffer = ~0ull - 31;
  expect_refusal(pair, target, IBV_WR_RDMA_WRITE, 0, 64, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(SoftnicErrors, RegionWithoutTheRight) {
  const struct {
    ibv_wr_opcode opcode;
    int access;
  } cases[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ},
               {IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE}};
  for (const auto& it : cases) {
    EndOptions there;
    there.buffer_access = it.access;
    Pair pair({}, there);
    expect_refusal(pair, pair.server.address(), it.opcode, 0, 64, IBV_WC_REM_ACCESS_ERR,
                   IBV_EVENT_QP_ACCESS_ERR);
  }
}

TEST(SoftnicErrors, QpWithoutTheRight) {
  const struct {
    ibv_wr_opcode opcode;
    int access;
  } cases[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ}, {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_WRITE}};
  for (const auto& it : cases) {
    EndOptions there;
    there.access = it.access;
    Pair pair({}, there);
    // Specification, responder faults: an operation that the QP is not set up for.
    expect_refusal(pair, pair.server.address(), it.opcode, 0, 64, IBV_WC_REM_INV_REQ_ERR,
                   IBV_EVENT_QP_REQ_ERR);
  }
}

TEST(SoftnicErrors, RemoteKeyOfAnotherProtectionDomain) {
  Pair pair;
  Owned<ibv_pd> other(ibv_alloc_pd(pair.server.context.get()));
  Memory memory(other.get(), 4096);
  Address target = pair.server.address();
  target.buffer = memory.address();
  target.rkey = memory.mr()->rkey;
  expect_refusal(pair, target, IBV_WR_RDMA_WRITE, 0, 64, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(SoftnicErrors, DeregisteredRemoteKey) {
  Pair pair;
  const Address target = pair.server.address();
  // The receive that expect_refusal posts is never reached.
  ibv_mr* second = register_memory(pair.server.pd.get(), pair.server.memory->data(), 4096, kAllAccess);
  Address gone = target;
  gone.rkey = second->rkey;
  ASSERT_EQ(ibv_dereg_mr(second), 0);
  expect_refusal(pair, gone, IBV_WR_RDMA_WRITE, 0, 64, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(SoftnicErrors, NothingMovesWithZeroLengthAndNoKeyIsNeeded) {
  Pair pair;
  Address target = pair.server.address();
  target.rkey = 0;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 0, 0), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
}

TEST(SoftnicErrors, MessageLargerThanTheReceive) {
  Pair pair;
  ASSERT_EQ(pair.server.post_recv(0, 63, 41), 0);
  ASSERT_EQ(pair.server.post_recv(100, 64, 42), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_INV_REQ_ERR);
  auto received = next_completion(pair.server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(received->wr_id, 41u);
  received = next_completion(pair.server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(received->wr_id, 42u);
  EXPECT_EQ(pair.client.state(), IBV_QPS_ERR);
  EXPECT_EQ(pair.server.state(), IBV_QPS_ERR);
}

TEST(SoftnicErrors, AReceiveMayReachBeyondItsMemoryWhereNothingIsWritten) {
  Pair pair;
  for (const ibv_wc_status wanted : {IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR}) {
    ibv_sge sge = pair.server.memory->sge(0, 64);
    sge.length += 1u << 24;
    sge.addr += wanted == IBV_WC_SUCCESS ? 0 : pair.server.memory->size() - 32;
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(pair.server.qp.get(), &wr, &bad), 0);
    ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 64), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), wanted == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
    EXPECT_EQ(status_of(pair.server.recv_cq.get()), wanted);
  }
}

TEST(SoftnicErrors, ReceiveIntoMemoryThatIsNotRegistered) {
  Pair pair;
  ibv_sge sge = pair.server.memory->sge(0, 64);
  sge.lkey ^= 0x100;
  ibv_recv_wr wr{};
  wr.wr_id = 51;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pair.server.qp.get(), &wr, &bad), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_OP_ERR);
  EXPECT_EQ(status_of(pair.server.recv_cq.get()), IBV_WC_LOC_PROT_ERR);
}

TEST(SoftnicErrors, NoReceiveAndNoMorePatience) {
  for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{3}}) {
    EndOptions options;
    options.rnr_retry = retries;
    Pair pair(options);
    ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 64, 1), 0);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64, 2), 0);
    auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(done->wr_id, 1u);
    done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(done->wr_id, 2u);
    EXPECT_EQ(pair.server.state(), IBV_QPS_RTS);
  }
}

TEST(SoftnicErrors, ASendWaitsForItsReceiveAndKeepsTheOrder) {
  Pair pair;
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 64, 1), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64, 2), 0);
  EXPECT_TRUE(stays_empty(pair.client.send_cq.get()));
  ASSERT_EQ(pair.server.post_recv(0, 64), 0);
  for (const std::uint64_t expected : {1u, 2u}) {
    const auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, IBV_WC_SUCCESS);
    EXPECT_EQ(done->wr_id, expected);
  }
}

TEST(SoftnicErrors, NobodyAnswers) {
  enum class Why { kNoSuchProcess, kNoSuchQp, kPeerNotReady, kPeerOfAnother, kPortDown, kOtherGidType };
  for (const Why why : {Why::kNoSuchProcess, Why::kNoSuchQp, Why::kPeerNotReady, Why::kPeerOfAnother,
                        Why::kPortDown, Why::kOtherGidType}) {
    EndOptions there;
    if (why == Why::kPortDown) there.device = "down0";
    if (why == Why::kOtherGidType) there.gid_index = 0;
    End client;
    End server(there);
    End stranger;
    Address target = server.address();
    if (why == Why::kNoSuchProcess) target.qpn ^= 0x5a5000;
    if (why == Why::kNoSuchQp) target.qpn ^= 0xfff;
    if (why == Why::kPeerOfAnother) {
      ASSERT_EQ(server.connect(stranger.address()), 0);
    } else if (why != Why::kPeerNotReady) {
      ASSERT_EQ(server.connect(client.address()), 0);
    }
    ASSERT_EQ(client.connect(target), 0);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, server.address(), 0, 64), 0);
    EXPECT_EQ(status_of(client.send_cq.get()), IBV_WC_RETRY_EXC_ERR) << static_cast<int>(why);
    // Four tries of 4.2 ms.
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(16));
    EXPECT_EQ(client.state(), IBV_QPS_ERR);
  }
}

TEST(SoftnicErrors, APeerThatComesLateIsReached) {
  EndOptions patient;
  patient.timeout = 18;  // 1.07 s a try
  End client(patient);
  End server;
  ASSERT_EQ(client.connect(server.address()), 0);
  ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, server.address(), 0, 64), 0);
  EXPECT_TRUE(stays_empty(client.send_cq.get()));
  ASSERT_EQ(server.connect(client.address()), 0);
  EXPECT_EQ(status_of(client.send_cq.get()), IBV_WC_SUCCESS);
}

TEST(SoftnicErrors, CompletionQueueOverrun) {
  EndOptions small;
  small.cqe = 16;
  Pair pair(small);
  const int capacity = pair.client.send_cq->cqe;
  for (int i = 0; i <= capacity; ++i) {
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8, static_cast<unsigned>(i)), 0);
  }
  ibv_async_event report{};
  ASSERT_EQ(ibv_get_async_event(pair.client.context.get(), &report), 0);
  EXPECT_EQ(report.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(report.element.cq, pair.client.send_cq.get());
  ibv_ack_async_event(&report);
  EXPECT_EQ(settled_state(pair.client, IBV_QPS_ERR), IBV_QPS_ERR);
  for (int i = 0; i < capacity; ++i) {
    ibv_wc done{};
    ASSERT_EQ(ibv_poll_cq(pair.client.send_cq.get(), 1, &done), 1);
    EXPECT_EQ(done.wr_id, static_cast<unsigned>(i));
  }
  ibv_wc none{};
  EXPECT_EQ(ibv_poll_cq(pair.client.send_cq.get(), 1, &none), -1);
}

TEST(SoftnicErrors, WrongRequestsAreRefusedAtOnce) {
  Pair pair;
  End& client = pair.client;
  ibv_sge sges[5] = {};
  for (ibv_sge& sge : sges) sge = client.memory->sge(0, 8);
  ibv_send_wr wr = client.request(IBV_WR_RDMA_WRITE, pair.server.address(), sges[0]);
  wr.num_sge = 5;
  EXPECT_EQ(client.post(wr), EINVAL);
  wr.num_sge = 1;
  wr.opcode = IBV_WR_TSO;
  EXPECT_EQ(client.post(wr), EINVAL);
  wr.opcode = IBV_WR_RDMA_WRITE;
  sges[0].length = 65;
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(client.post(wr), EINVAL);
  EXPECT_EQ(client.state(), IBV_QPS_RTS);
  EXPECT_TRUE(stays_empty(client.send_cq.get()));
}

TEST(SoftnicErrors, RegistrationIsChecked) {
  End end;
  ibv_pd* pd = end.pd.get();
  auto* data = end.memory->data();
  errno = 0;
  EXPECT_EQ(register_memory(pd, data, 4096, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(register_memory(pd, data, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(register_memory(pd, reinterpret_cast<void*>(4096), 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  void* constant = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(register_memory(pd, constant, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  Owned<ibv_mr> readable(register_memory(pd, constant, 4096, IBV_ACCESS_REMOTE_READ));
  EXPECT_NE(readable, nullptr);
  readable.reset();
  ::munmap(constant, 4096);
  EXPECT_EQ(reg_dmabuf_mr(pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST(SoftnicErrors, ObjectsInUseAreNotDestroyed) {
  End end;
  EXPECT_EQ(ibv_dealloc_pd(end.pd.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(end.send_cq.get()), EBUSY);
}

}  // namespace
}  // namespace softnic_test
