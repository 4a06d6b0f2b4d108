#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <tuple>
#include <utility>

#include "fixture.h"

/// Extended reliable connected QPs: requests name the SRQ that they are for.
namespace softnic_test {
namespace {

/// One end: a domain, an SRQ in it, a QP that receives and one that sends.
struct XrcEnd {
  explicit XrcEnd(int fd = -1) : context(open_device(default_device())), pd(ibv_alloc_pd(context.get())) {
    ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, O_CREAT};
    domain = ibv_open_xrcd(context.get(), &attr);
    EXPECT_NE(domain, nullptr);
    send_cq.reset(ibv_create_cq(context.get(), 64, nullptr, nullptr, 0));
    recv_cq.reset(ibv_create_cq(context.get(), 64, nullptr, nullptr, 0));
    memory = std::make_unique<Memory>(pd.get(), 1u << 20);
    srq = make_srq();
    receiver.reset(make_qp(IBV_QPT_XRC_RECV));
    sender.reset(make_qp(IBV_QPT_XRC_SEND));
    for (ibv_qp* qp : {receiver.get(), sender.get()}) {
      ibv_qp_attr init{};
      init.qp_state = IBV_QPS_INIT;
      init.port_num = 1;
      init.qp_access_flags = kAllAccess;
      EXPECT_EQ(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    }
    EXPECT_EQ(ibv_query_gid(context.get(), 1, kGidIndex, &gid), 0);
  }
  ~XrcEnd() {
    sender.reset();
    receiver.reset();
    srq.reset();
    EXPECT_EQ(ibv_close_xrcd(domain), 0);
  }

  Owned<ibv_srq> make_srq() {
    ibv_srq_init_attr_ex attr{};
    attr.attr = {16, 2, 0};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = pd.get();
    attr.xrcd = domain;
    attr.cq = recv_cq.get();
    Owned<ibv_srq> made(ibv_create_srq_ex(context.get(), &attr));
    EXPECT_NE(made, nullptr);
    return made;
  }
  ibv_qp* make_qp(ibv_qp_type type) {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = type;
    attr.sq_sig_all = 1;
    attr.cap = {16, 0, 2, 0, 64};
    attr.comp_mask = type == IBV_QPT_XRC_SEND ? IBV_QP_INIT_ATTR_PD : IBV_QP_INIT_ATTR_XRCD;
    attr.pd = type == IBV_QPT_XRC_SEND ? pd.get() : nullptr;
    attr.send_cq = type == IBV_QPT_XRC_SEND ? send_cq.get() : nullptr;
    attr.xrcd = domain;
    ibv_qp* made = ibv_create_qp_ex(context.get(), &attr);
    EXPECT_NE(made, nullptr);
    return made;
  }
  std::uint32_t srq_number() const {
    std::uint32_t number = 0;
    EXPECT_EQ(ibv_get_srq_num(srq.get(), &number), 0);
    return number;
  }

  /// All that the other end needs.
  struct Address {
    std::uint32_t receiver, sender, srq;
    ibv_gid gid;
    std::uint64_t buffer;
    std::uint32_t rkey;
  };
  Address address() const {
    return {receiver->qp_num, sender->qp_num, srq_number(), gid, memory->address(), memory->mr()->rkey};
  }
  void connect(const Address& peer) {
    for (ibv_qp* qp : {receiver.get(), sender.get()}) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RTR;
      attr.path_mtu = IBV_MTU_4096;
      attr.dest_qp_num = qp == sender.get() ? peer.receiver : peer.sender;
      attr.max_dest_rd_atomic = 4;
      attr.min_rnr_timer = 1;
      attr.ah_attr.is_global = 1;
      attr.ah_attr.port_num = 1;
      attr.ah_attr.grh.dgid = peer.gid;
      attr.ah_attr.grh.sgid_index = kGidIndex;
      // Attributes that are not of a kind's own are left out by the device, as the kernel does.
      EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
      attr.qp_state = IBV_QPS_RTS;
      attr.timeout = 10;
      attr.retry_cnt = 3;
      attr.rnr_retry = 7;
      attr.max_rd_atomic = 4;
      EXPECT_EQ(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                  IBV_QP_MAX_QP_RD_ATOMIC),
                0);
    }
  }
  int post_recv(ibv_srq* queue, std::size_t offset, std::uint64_t id) {
    ibv_sge sge = memory->sge(offset, 4096);
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = &sge;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_srq_recv(queue, &request, &bad);
  }
  int post(ibv_wr_opcode opcode, const Address& peer, std::uint32_t length, std::uint64_t add = 0) {
    ibv_sge sge = memory->sge(0, length);
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = opcode;
    request.imm_data = 77;
    request.wr.rdma = {peer.buffer, peer.rkey};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) request.wr.atomic = {peer.buffer, add, 0, peer.rkey};
    request.qp_type.xrc.remote_srqn = peer.srq;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(sender.get(), &request, &bad);
  }

  Owned<ibv_context> context;
  Owned<ibv_pd> pd;
  ibv_xrcd* domain = nullptr;
  Owned<ibv_cq> send_cq;
  Owned<ibv_cq> recv_cq;
  std::unique_ptr<Memory> memory;
  Owned<ibv_srq> srq;
  Owned<ibv_qp> receiver;
  Owned<ibv_qp> sender;
  ibv_gid gid{};
};

struct XrcPair {
  XrcPair() {
    client.connect(server.address());
    server.connect(client.address());
  }
  XrcEnd client;
  XrcEnd server;
};

TEST(SoftnicXrc, ARequestTakesTheReceiveOfTheSrqThatItNames) {
  XrcPair pair;
  const Owned<ibv_srq> second = pair.server.make_srq();
  XrcEnd::Address other = pair.server.address();
  ASSERT_EQ(ibv_get_srq_num(second.get(), &other.srq), 0);
  EXPECT_NE(other.srq, pair.server.srq_number());
  ASSERT_EQ(pair.server.post_recv(pair.server.srq.get(), 8192, 1), 0);
  ASSERT_EQ(pair.server.post_recv(second.get(), 16384, 2), 0);
  pair.client.memory->fill(3);
  for (const auto& [peer, id, offset] : {std::tuple(other, 2u, 16384u), std::tuple(pair.server.address(), 1u, 8192u)}) {
    ASSERT_EQ(pair.client.post(IBV_WR_SEND_WITH_IMM, peer, 64), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    const auto received = next_completion(pair.server.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->wr_id, id);
    EXPECT_EQ(received->qp_num, pair.server.receiver->qp_num);
    EXPECT_EQ(received->imm_data, 77u);
    EXPECT_EQ(pair.server.memory->data()[offset + 1], pair.client.memory->data()[1]);
  }
}

TEST(SoftnicXrc, WritesReadsAndAtomicsReachTheMemoryOfTheSrqsDomain) {
  XrcPair pair;
  const XrcEnd::Address there = pair.server.address();
  pair.client.memory->fill(9);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, there, 70000), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(pair.server.memory->holds(9, 0, 70000));
  pair.server.memory->fill(4);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, there, 5000), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(pair.client.memory->holds(4, 0, 5000));
  auto* const word = reinterpret_cast<std::uint64_t*>(pair.server.memory->data());
  *word = 40;
  ASSERT_EQ(pair.client.post(IBV_WR_ATOMIC_FETCH_AND_ADD, there, 8, 2), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(*word, 42u);
}

TEST(SoftnicXrc, AnSrqThatIsNotThereIsRefusedAndOneOfAnotherDomainToo) {
  for (const bool exists : {false, true}) {
    XrcPair pair;
    XrcEnd stranger;
    XrcEnd::Address wrong = pair.server.address();
    wrong.srq = exists ? stranger.srq_number() : wrong.srq ^ 0x3f;
    ASSERT_EQ(pair.client.post(IBV_WR_SEND, wrong, 8), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_INV_REQ_ERR);
  }
  // Nor one that was destroyed, with QPs connected.
  XrcPair pair;
  const XrcEnd::Address gone = pair.server.address();
  pair.server.srq.reset();
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, gone, 8), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_INV_REQ_ERR);
}

TEST(SoftnicXrc, ADomainIsSharedByItsFileAndBusyWhileItIsUsed) {
  const int fd = ::open("/tmp", O_RDONLY | O_CLOEXEC);
  XrcEnd end(fd);
  ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, 0};
  ibv_xrcd* const again = ibv_open_xrcd(end.context.get(), &attr);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(ibv_close_xrcd(again), 0);
  attr.oflags = O_CREAT | O_EXCL;
  EXPECT_EQ(ibv_open_xrcd(end.context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_close_xrcd(end.domain), EBUSY);
  const int other = ::open("/", O_RDONLY | O_CLOEXEC);
  attr.fd = other;
  attr.oflags = 0;
  EXPECT_EQ(ibv_open_xrcd(end.context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ::close(other);
  ::close(fd);
}

TEST(SoftnicXrc, AReceivingQpIsOpenedOnceMore) {
  XrcEnd end;
  ibv_qp_open_attr attr{};
  attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  attr.qp_num = end.receiver->qp_num;
  attr.xrcd = end.domain;
  attr.qp_type = IBV_QPT_XRC_RECV;
  ibv_qp* const again = ibv_open_qp(end.context.get(), &attr);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->qp_num, end.receiver->qp_num);
  EXPECT_EQ(ibv_destroy_qp(again), 0);
  attr.qp_num = end.sender->qp_num;
  EXPECT_EQ(ibv_open_qp(end.context.get(), &attr), nullptr);
  // It receives nothing of its own.
  ibv_recv_wr request{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_NE(ibv_post_recv(end.receiver.get(), &request, &bad), 0);
}

TEST(SoftnicXrc, BetweenProcessesAndAKilledSenderLeavesTheSrqToOthers) {
  SecondProcess other([](int socket) {
    XrcEnd end;
    const auto peer = hear<XrcEnd::Address>(socket);
    tell(socket, end.address());
    end.connect(peer);
    tell(socket, 1);
    hear<int>(socket);
    end.memory->fill(6);
    EXPECT_EQ(end.post(IBV_WR_SEND, peer, 100), 0);
    EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
    tell(socket, 1);
    hear<int>(socket);
  });
  XrcPair here;
  XrcEnd& end = here.server;
  Owned<ibv_qp> for_other(end.make_qp(IBV_QPT_XRC_RECV));
  std::swap(for_other, end.receiver);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = 1;
  init.qp_access_flags = kAllAccess;
  ASSERT_EQ(
      ibv_modify_qp(end.receiver.get(), &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
      0);
  tell(other.socket(), end.address());
  const auto peer = hear<XrcEnd::Address>(other.socket());
  ibv_qp_attr ready{};
  ready.qp_state = IBV_QPS_RTR;
  ready.path_mtu = IBV_MTU_4096;
  ready.dest_qp_num = peer.sender;
  ready.ah_attr.is_global = 1;
  ready.ah_attr.port_num = 1;
  ready.ah_attr.grh.dgid = peer.gid;
  ready.ah_attr.grh.sgid_index = kGidIndex;
  ASSERT_EQ(ibv_modify_qp(end.receiver.get(), &ready,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  EXPECT_EQ(hear<int>(other.socket()), 1);
  ASSERT_EQ(end.post_recv(end.srq.get(), 0, 1), 0);
  tell(other.socket(), 1);
  const auto received = next_completion(end.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_TRUE(end.memory->holds(6, 0, 100));
  EXPECT_EQ(hear<int>(other.socket()), 1);
  other.kill();
  other.wait();
  ASSERT_EQ(end.post_recv(end.srq.get(), 4096, 2), 0);
  XrcEnd::Address address = end.address();
  ASSERT_EQ(here.client.post(IBV_WR_SEND, address, 8), 0);
  EXPECT_EQ(status_of(here.client.send_cq.get()), IBV_WC_SUCCESS);
  const auto next = next_completion(end.recv_cq.get());
  ASSERT_TRUE(next);
  EXPECT_EQ(next->wr_id, 2u);
}

}  // namespace
}  // namespace softnic_test
