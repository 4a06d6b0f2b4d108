#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Call sequence of NCCL's IB transport between two of its communicators;
/// with the stand-in libibverbs.so.1 in front. (With NCCL itself: tests/gpu.)
namespace {

struct Side {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_gid gid{};
};

constexpr int kRequests = 32 * 8;
constexpr int kGidIndex = 2;

ibv_qp* make_qp(Side& side, unsigned access) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = side.cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = 2 * kRequests;
  init.cap.max_recv_wr = kRequests;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  ibv_qp* qp = ibv_create_qp(side.pd, &init);
  EXPECT_NE(qp, nullptr);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = access;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  return qp;
}

void connect(ibv_qp* qp, std::uint32_t destination, const ibv_gid& gid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = destination;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.sgid_index = kGidIndex;
  attr.ah_attr.grh.hop_limit = 255;
  attr.ah_attr.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 20;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC),
            0);
}

class NcclReplay : public testing::Test {
 protected:
  void SetUp() override {
    ibv_device** list = ibv_get_device_list(nullptr);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NE(list[i], nullptr);
      Side& side = sides_[i];
      side.context = ibv_open_device(list[i]);
      ASSERT_NE(side.context, nullptr);
      side.pd = ibv_alloc_pd(side.context);
      side.cq = ibv_create_cq(side.context, 2 * kRequests, nullptr, nullptr, 0);
      ASSERT_EQ(ibv_query_gid(side.context, 1, kGidIndex, &side.gid), 0);
      side.qp = make_qp(side, IBV_ACCESS_REMOTE_WRITE);
    }
    ibv_free_device_list(list);
    connect(sides_[0].qp, sides_[1].qp->qp_num, sides_[1].gid);
    connect(sides_[1].qp, sides_[0].qp->qp_num, sides_[0].gid);
  }
  void TearDown() override {
    for (Side& side : sides_) {
      EXPECT_EQ(ibv_destroy_qp(side.qp), 0);
      EXPECT_EQ(ibv_destroy_cq(side.cq), 0);
      EXPECT_EQ(ibv_dealloc_pd(side.pd), 0);
      EXPECT_EQ(ibv_close_device(side.context), 0);
    }
  }
  static ibv_wc wait(ibv_cq* cq) {
    ibv_wc completion{};
    while (ibv_poll_cq(cq, 1, &completion) == 0) {
    }
    return completion;
  }
  ibv_mr* reg(Side& side, void* memory, std::size_t bytes) {
    return ibv_reg_mr_iova2(side.pd, memory, bytes, reinterpret_cast<std::uint64_t>(memory),
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                IBV_ACCESS_RELAXED_ORDERING);
  }
  Side sides_[2];
};

TEST_F(NcclReplay, ItFindsThePlaceAndTheKindOfGid) {
  for (const std::string device : {"soft0", "soft1"}) {
    char place[PATH_MAX];
    ASSERT_NE(::realpath(("/sys/class/infiniband/" + device + "/device").c_str(), place), nullptr)
        << std::strerror(errno);
    std::string path = place;
    // It takes the ports and virtual functions of one adapter together like this.
    path[path.size() - 1] = path[path.size() - 3] = path[path.size() - 4] = '0';
    EXPECT_EQ(path, place);
    EXPECT_NE(path.find(device), std::string::npos);
    // No function of a PCI bus: it takes the first CPU.
    EXPECT_EQ(::realpath((path + "/subsystem").c_str(), nullptr), nullptr);
    const char* kinds[] = {"IB/RoCE v1", "RoCE v2", "RoCE v2"};
    for (int i = 0; i < 3; ++i) {
      const int fd = ::open(
          ("/sys/class/infiniband/" + device + "/ports/1/gid_attrs/types/" + std::to_string(i)).c_str(), O_RDONLY);
      char text[16] = {};
      ASSERT_GT(::read(fd, text, 15), 0) << i;
      ::close(fd);
      EXPECT_EQ(std::string(text), std::string(kinds[i]) + "\n");
    }
  }
}

TEST_F(NcclReplay, ItAsksWhatThereIsWithoutHarm) {
  EXPECT_EQ(ibv_fork_init(), 0);
  // Of rdma-core 34, as NCCL finds it.
  using Function = ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  const auto reg_dmabuf_mr = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr"));
  ASSERT_NE(reg_dmabuf_mr, nullptr);
  errno = 0;
  EXPECT_EQ(reg_dmabuf_mr(sides_[0].pd, 0, 0, 0, -1, 0), nullptr);
  EXPECT_EQ(errno, EBADF) << "it takes EOPNOTSUPP for a kernel without dma-buf";
  ibv_ece ece{};
  EXPECT_EQ(ibv_query_ece(sides_[0].qp, &ece), EOPNOTSUPP);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(sides_[0].qp, &attr, IBV_QP_AV, &init), 0);
}

/// A request of one piece of memory to or from another.
ibv_send_wr transfer(ibv_wr_opcode opcode, ibv_sge* here, const void* there, const ibv_mr* mr) {
  ibv_send_wr request{};
  request.sg_list = here;
  request.num_sge = here != nullptr ? 1 : 0;
  request.opcode = opcode;
  if (mr != nullptr) request.wr.rdma = {reinterpret_cast<std::uint64_t>(there), mr->rkey};
  return request;
}

TEST_F(NcclReplay, AMessageItsSizeAndAFlush) {
  std::vector<char> from(1 << 20, 'x'), to(1 << 20, '-');
  std::uint64_t fifo[8] = {};
  std::uint64_t elements[8] = {7, 7, 7, 7};
  int flushed = 0;
  ibv_mr* from_mr = reg(sides_[0], from.data(), from.size());
  ibv_mr* fifo_mr = reg(sides_[0], fifo, sizeof fifo);
  ibv_mr* to_mr = reg(sides_[1], to.data(), to.size());
  ibv_mr* elements_mr = reg(sides_[1], elements, sizeof elements);
  ASSERT_TRUE(from_mr != nullptr && fifo_mr != nullptr && to_mr != nullptr && elements_mr != nullptr);
  // The receiver: a receive without a buffer, and the place for the data, written to the sender.
  ibv_recv_wr receive{};
  receive.wr_id = 5;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(sides_[1].qp, &receive, &bad_receive), 0);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(elements), 32, elements_mr->lkey};
  ibv_send_wr offer = transfer(IBV_WR_RDMA_WRITE, &sge, fifo, fifo_mr);
  offer.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(sides_[1].qp, &offer, &bad), 0);
  EXPECT_EQ(wait(sides_[1].cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(static_cast<volatile std::uint64_t*>(fifo)[3], 7u);
  // The sender: data not signalled, and an empty write whose immediate is the size.
  ibv_sge data{reinterpret_cast<std::uint64_t>(from.data()), static_cast<std::uint32_t>(from.size()), from_mr->lkey};
  ibv_send_wr last = transfer(IBV_WR_RDMA_WRITE_WITH_IMM, nullptr, nullptr, nullptr);
  last.wr_id = 9;
  last.send_flags = IBV_SEND_SIGNALED;
  last.imm_data = 1 << 20;
  ibv_send_wr first = transfer(IBV_WR_RDMA_WRITE, &data, to.data(), to_mr);
  first.next = &last;
  ASSERT_EQ(ibv_post_send(sides_[0].qp, &first, &bad), 0);
  EXPECT_EQ(wait(sides_[0].cq).wr_id, 9u);
  const ibv_wc arrived = wait(sides_[1].cq);
  EXPECT_EQ(arrived.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(arrived.imm_data, 1u << 20);
  EXPECT_EQ(to, from);
  // The flush: a READ by a QP that is connected to itself.
  ibv_mr* host_mr = reg(sides_[1], &flushed, sizeof flushed);
  ibv_qp* own = make_qp(sides_[1], IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  connect(own, own->qp_num, sides_[1].gid);
  ibv_sge host{reinterpret_cast<std::uint64_t>(&flushed), 1, host_mr->lkey};
  ibv_send_wr flush = transfer(IBV_WR_RDMA_READ, &host, to.data(), to_mr);
  flush.wr_id = 11;
  flush.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(ibv_post_send(own, &flush, &bad), 0);
  const ibv_wc done = wait(sides_[1].cq);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.wr_id, 11u);
  EXPECT_EQ(flushed & 0xff, 'x');
  EXPECT_EQ(ibv_destroy_qp(own), 0);
  for (ibv_mr* mr : {from_mr, fifo_mr, to_mr, elements_mr, host_mr}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
