// Calls beside the data path: what they do, and with what errno they refuse.

#include <dlfcn.h>
#include <infiniband/ib.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fixture.h"

namespace softnic_test {
namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

TEST(SoftnicVerbs, CompletionsAreStamped) {
  Pair pair;
  End& client = pair.client;
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(client.context.get(), nullptr, &device), 0);
  EXPECT_EQ(device.hca_core_clock, 1'000'000u);  // kHz: nanoseconds
  EXPECT_NE(device.completion_timestamp_mask, 0u);
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  ibv_cq_ex* cq = ibv_create_cq_ex(client.context.get(), &attr);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {8, 8, 1, 1, 0};
  client.qp.reset(ibv_create_qp(client.pd.get(), &init));
  ASSERT_EQ(client.to_init(), 0);
  ASSERT_EQ(client.connect(client.address()), 0);

  ibv_values_ex before{};
  before.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  ASSERT_EQ(ibv_query_rt_values_ex(client.context.get(), &before), 0);
  const std::uint64_t wall_before = clock_ns(CLOCK_REALTIME);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, client.address(), 0, 64), 0);
  ibv_values_ex after = before;
  ASSERT_EQ(ibv_query_rt_values_ex(client.context.get(), &after), 0);
  ibv_poll_cq_attr poll{};
  ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
  const std::uint64_t first = ibv_wc_read_completion_ts(cq);
  EXPECT_GE(first, static_cast<std::uint64_t>(before.raw_clock.tv_nsec));
  EXPECT_GE(ibv_wc_read_completion_wallclock_ns(cq) + 50'000'000, wall_before);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 64u);
  EXPECT_EQ(ibv_wc_read_qp_num(cq), client.qp->qp_num);
  ASSERT_EQ(ibv_next_poll(cq), 0);
  EXPECT_GE(ibv_wc_read_completion_ts(cq), first);
  EXPECT_LE(ibv_wc_read_completion_ts(cq), static_cast<std::uint64_t>(after.raw_clock.tv_nsec));
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  client.qp.reset();
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/// A QP with every builder that the device has.
Owned<ibv_qp> make_building_qp(End& end) {
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = end.send_cq.get();
  attr.recv_cq = end.recv_cq.get();
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {16, 16, 3, 3, 64};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = end.pd.get();
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                        IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                        IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                        IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
  return Owned<ibv_qp>(ibv_create_qp_ex(end.context.get(), &attr));
}

/// Two ends, one with that QP, and a list of its requests.
class SoftnicVerbsBuilders : public testing::Test {
 protected:
  SoftnicVerbsBuilders() : client_(options()), server_(options()) {}
  static EndOptions options() {
    EndOptions open;
    open.buffer_access = kAllAccess | IBV_ACCESS_MW_BIND;
    return open;
  }
  void SetUp() override {
    client_.qp = make_building_qp(client_);
    ASSERT_NE(client_.qp, nullptr);
    ASSERT_EQ(client_.to_init(), 0);
    ASSERT_EQ(server_.connect(client_.address()), 0);
    ASSERT_EQ(client_.connect(server_.address()), 0);
    client_.memory->fill(8);
    qp_ = ibv_qp_to_qp_ex(client_.qp.get());
    rkey_ = server_.memory->mr()->rkey;
    there_ = server_.memory->address();
  }
  void next(ibv_wc_opcode opcode) {
    qp_->wr_id = expected_.size();
    qp_->wr_flags = IBV_SEND_SIGNALED;
    expected_.push_back(opcode);
  }
  void sge(std::uint64_t offset, std::uint32_t length) {
    ibv_wr_set_sge(qp_, client_.memory->mr()->lkey, client_.memory->address(offset), length);
  }
  void expect_completions() {
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const auto done = next_completion(client_.send_cq.get());
      ASSERT_TRUE(done) << i;
      EXPECT_EQ(done->status, IBV_WC_SUCCESS) << i;
      EXPECT_EQ(done->wr_id, i);
      EXPECT_EQ(done->opcode, expected_[i]) << i;
    }
  }

  End client_;
  End server_;
  ibv_qp_ex* qp_ = nullptr;
  std::uint32_t rkey_ = 0;
  std::uint64_t there_ = 0;
  std::vector<ibv_wc_opcode> expected_;
};

TEST_F(SoftnicVerbsBuilders, WritesAndSendsDoWhatTheySay) {
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(server_.post_recv(65536 + i * 4096, 4096, 10 + i), 0);
  ibv_mw* theirs = ibv_alloc_mw(server_.pd.get(), IBV_MW_TYPE_2);
  const std::uint32_t their_key = ibv_inc_rkey(theirs->rkey);
  ibv_send_wr bind{};
  bind.opcode = IBV_WR_BIND_MW;
  bind.bind_mw.mw = theirs;
  bind.bind_mw.rkey = their_key;
  bind.bind_mw.bind_info = {server_.memory->mr(), there_, 4096, IBV_ACCESS_REMOTE_READ};
  ASSERT_EQ(server_.post(bind), 0);
  ASSERT_EQ(status_of(server_.send_cq.get()), IBV_WC_SUCCESS);

  ibv_wr_start(qp_);
  next(IBV_WC_RDMA_WRITE);
  ibv_wr_rdma_write(qp_, rkey_, there_);
  const ibv_sge three[3] = {client_.memory->sge(0, 100), client_.memory->sge(100, 200), client_.memory->sge(300, 700)};
  ibv_wr_set_sge_list(qp_, 3, three);
  next(IBV_WC_RDMA_WRITE);
  ibv_wr_rdma_write_imm(qp_, rkey_, there_ + 1000, 0x11223344);
  sge(1000, 1000);
  next(IBV_WC_SEND);
  ibv_wr_send_imm(qp_, 0x55667788);
  sge(0, 4096);
  next(IBV_WC_SEND);
  ibv_wr_send_inv(qp_, their_key);
  char text[] = "two parts";
  const ibv_data_buf parts[2] = {{text, 4}, {text + 4, 6}};
  ibv_wr_set_inline_data_list(qp_, 2, parts);
  ASSERT_EQ(ibv_wr_complete(qp_), 0);

  expect_completions();
  EXPECT_TRUE(server_.memory->holds(8, 0, 2000));
  auto received = next_completion(server_.recv_cq.get());
  EXPECT_EQ(received->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received->imm_data, 0x11223344u);
  received = next_completion(server_.recv_cq.get());
  EXPECT_EQ(received->imm_data, 0x55667788u);
  EXPECT_EQ(received->byte_len, 4096u);
  received = next_completion(server_.recv_cq.get());
  EXPECT_EQ(received->invalidated_rkey, their_key);
  EXPECT_STREQ(reinterpret_cast<char*>(server_.memory->data()) + 65536 + 8192, "two parts");
  EXPECT_EQ(ibv_dealloc_mw(theirs), 0);
}

TEST_F(SoftnicVerbsBuilders, ReadsAtomicsAndWindowsDoWhatTheySay) {
  auto* word = reinterpret_cast<std::uint64_t*>(server_.memory->data() + 32768);
  *word = 5;
  ibv_mw* mw = ibv_alloc_mw(client_.pd.get(), IBV_MW_TYPE_2);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ibv_wr_start(qp_);
  next(IBV_WC_RDMA_READ);
  ibv_wr_rdma_read(qp_, rkey_, there_ + 32768);
  sge(32768, 8);
  next(IBV_WC_FETCH_ADD);
  ibv_wr_atomic_fetch_add(qp_, rkey_, there_ + 32768, 3);
  sge(32776, 8);
  next(IBV_WC_COMP_SWAP);
  ibv_wr_atomic_cmp_swp(qp_, rkey_, there_ + 32768, 8, 21);
  sge(32784, 8);
  next(IBV_WC_BIND_MW);
  const ibv_mw_bind_info info{client_.memory->mr(), client_.memory->address(), 64, IBV_ACCESS_REMOTE_READ};
  ibv_wr_bind_mw(qp_, mw, key, &info);
  next(IBV_WC_LOCAL_INV);
  ibv_wr_local_inv(qp_, key);
  ASSERT_EQ(ibv_wr_complete(qp_), 0);

  expect_completions();
  const auto* words = reinterpret_cast<std::uint64_t*>(client_.memory->data() + 32768);
  EXPECT_EQ(words[0], 5u);
  EXPECT_EQ(words[1], 5u);
  EXPECT_EQ(words[2], 8u);
  EXPECT_EQ(*word, 21u);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(SoftnicVerbsBuilders, WhatIsAbortedIsNotSent) {
  ibv_wr_start(qp_);
  next(IBV_WC_RDMA_WRITE);
  ibv_wr_rdma_write(qp_, rkey_, there_);
  sge(0, 8);
  ibv_wr_abort(qp_);
  EXPECT_TRUE(stays_empty(client_.send_cq.get()));
}

TEST(SoftnicVerbs, RegionsMayHaveAddressesOfTheirOwn) {
  Pair pair;
  Memory memory(nullptr, 16384);
  constexpr std::uint64_t kIova = 0x7000000;
  Owned<ibv_mr> mr(ibv_reg_mr_iova(pair.server.pd.get(), memory.data(), memory.size(), kIova, kAllAccess));
  ASSERT_NE(mr, nullptr);
  pair.client.memory->fill(2);
  Address target;
  target.buffer = kIova;
  target.rkey = mr->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 100, 8000), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(memory.holds(2, 100, 8000));
  // The offset in the page has to be the same.
  EXPECT_EQ(ibv_reg_mr_iova(pair.server.pd.get(), memory.data(), 4096, kIova + 8, kAllAccess), nullptr);
  EXPECT_EQ(errno, EINVAL);
  Owned<ibv_mr> second(ibv_reg_mr_iova2(pair.server.pd.get(), memory.data(), 4096, 0, kAllAccess));
  EXPECT_NE(second, nullptr);
}

TEST(SoftnicVerbs, ReregisteringChangesWhatItIsTold) {
  Pair pair;
  End& server = pair.server;
  ibv_mr* mr = server.memory->mr();
  const Address target = server.address();
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), 0);
  EXPECT_EQ(mr->rkey, target.rkey);  // peers go on
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 0, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  Memory fresh(nullptr, 8192);
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, fresh.data(), fresh.size(), 0), 0);
  EXPECT_NE(mr->rkey, target.rkey);
  EXPECT_EQ(mr->addr, fresh.data());
  pair.client.memory->fill(9);
  Address moved;
  moved.buffer = fresh.address();
  moved.rkey = mr->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, moved, 0, 8192), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(fresh.holds(9, 0, 8192));
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, moved, 0, 64), 0);  // the right was taken away
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
  for (const int flags : {0, 8, int{IBV_REREG_MR_CHANGE_PD}}) {
    EXPECT_EQ(ibv_rereg_mr(mr, flags, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  }
  server.memory->deregister();  // before `fresh` goes
}

TEST(SoftnicVerbs, WhatIsNotThereIsRefused) {
  End end;
  const auto refused = [](const void* made) {
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    errno = 0;
  };
  ibv_context* context = end.context.get();
  ibv_pd* pd = end.pd.get();
  const int copy = ::dup(context->cmd_fd);
  ASSERT_GE(copy, 0);
  refused(ibv_import_device(copy));
  ::close(copy);
  refused(ibv_import_pd(context, pd->handle));
  refused(ibv_import_mr(pd, end.memory->mr()->handle));
  refused(later<ibv_dm*(ibv_context*, std::uint32_t)>("ibv_import_dm")(context, 1));
  EXPECT_EQ(reg_dmabuf_mr(pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EBADF);  // no dma-buf; those of GPU memory are taken
  ibv_wc wc{};
  ibv_ah_attr attr{};
  // No datagram came with a header.
  EXPECT_EQ(ibv_create_ah_from_wc(pd, &wc, nullptr, 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, nullptr, &attr), -1);
  EXPECT_EQ(errno, EINVAL);
  ibv_ece ece{};
  EXPECT_EQ(ibv_query_ece(end.qp.get(), &ece), EOPNOTSUPP);
  errno = 0;
  ibv_modify_cq_attr moderation{};
  EXPECT_EQ(ibv_modify_cq(end.send_cq.get(), &moderation), EOPNOTSUPP);
  ibv_srq_init_attr srq_attr{};
  srq_attr.attr = {8, 1, 0};
  Owned<ibv_srq> srq(ibv_create_srq(pd, &srq_attr));
  ibv_srq_attr larger{16, 1, 0};
  EXPECT_EQ(ibv_modify_srq(srq.get(), &larger, IBV_SRQ_MAX_WR), EOPNOTSUPP);
  EXPECT_EQ(ibv_alloc_mw(pd, static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

/// In libraries later than these headers, so looked up by name.
TEST(SoftnicVerbs, NewerFunctionsAreThere) {
  End end;
  struct Request {
    std::size_t length;
    int access;
    std::uint64_t comp_mask;
    std::uint64_t iova;
    void* addr;
    int fd;
    std::uint64_t fd_offset;
    void* dmah;
    void* buffer;
  } request{4096, kAllAccess, 2, 0, end.memory->data(), -1, 0, nullptr, nullptr};
  const auto reg = reinterpret_cast<ibv_mr* (*)(ibv_pd*, Request*)>(::dlsym(RTLD_DEFAULT, "ibv_reg_mr_ex"));
  ASSERT_NE(reg, nullptr);
  Owned<ibv_mr> mr(reg(end.pd.get(), &request));
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, end.memory->data());
  request.comp_mask = 4 | 1;  // a dma-buf, at some address
  EXPECT_EQ(reg(end.pd.get(), &request), nullptr);
  EXPECT_EQ(errno, EBADF);
  request.comp_mask = 1u << 20;
  EXPECT_EQ(reg(end.pd.get(), &request), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  const auto speed = reinterpret_cast<int (*)(ibv_context*, std::uint32_t, std::uint64_t*)>(
      ::dlsym(RTLD_DEFAULT, "ibv_query_port_speed"));
  ASSERT_NE(speed, nullptr);
  std::uint64_t units = 0;
  ASSERT_EQ(speed(end.context.get(), 1, &units), 0);
  EXPECT_EQ(units, 2000u);  // 200 Gb/s
  EXPECT_EQ(speed(end.context.get(), 2, &units), EINVAL);
}

TEST(SoftnicErrors, WhatASenderCannotSend) {
  {
    Pair pair;
    // An atomic's result is 8 bytes.
    ibv_sge sge = pair.client.memory->sge(0, 16);
    ibv_send_wr wr = pair.client.request(IBV_WR_ATOMIC_FETCH_AND_ADD, {}, sge);
    wr.wr.atomic.remote_addr = pair.server.memory->address();
    wr.wr.atomic.rkey = pair.server.memory->mr()->rkey;
    ASSERT_EQ(pair.client.post(wr), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(pair.server.state(), IBV_QPS_RTS);
  }
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    // No read may be under way at all.
    EndOptions none;
    none.rd_atomic = 0;
    Pair pair(none);
    ibv_sge sge = pair.client.memory->sge(0, 8);
    ASSERT_EQ(pair.client.post(pair.client.request(opcode, pair.server.address(), sge)), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_LOC_QP_OP_ERR);
  }
  {
    // The responder has no room for reads.
    EndOptions none;
    none.rd_atomic = 0;
    Pair pair({}, none);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, pair.server.address(), 0, 8), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_INV_REQ_ERR);
  }
  {
    Pair pair;
    // Not aligned to 8 bytes.
    ibv_sge sge = pair.client.memory->sge(0, 8);
    ibv_send_wr wr = pair.client.request(IBV_WR_ATOMIC_CMP_AND_SWP, {}, sge);
    wr.wr.atomic.remote_addr = pair.server.memory->address() + 4;
    wr.wr.atomic.rkey = pair.server.memory->mr()->rkey;
    ASSERT_EQ(pair.client.post(wr), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_INV_REQ_ERR);
  }
}

}  // namespace
}  // namespace softnic_test
