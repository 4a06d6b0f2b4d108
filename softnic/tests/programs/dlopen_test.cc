#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Programs that load libibverbs by themselves, as NCCL does: the functions are
/// asked for by name and version, and what they make works.
/// SOFTNIC_TEST_LIBRARY names the library, a path or a name for the loader.
namespace {

/// Symbols that NCCL asks for, each with the version at which it does.
constexpr const char* kAtOne[] = {
    "ibv_get_device_list", "ibv_free_device_list", "ibv_get_device_name", "ibv_open_device",    "ibv_close_device",
    "ibv_get_async_event", "ibv_ack_async_event",  "ibv_query_device",    "ibv_query_port",     "ibv_query_gid",
    "ibv_query_qp",        "ibv_alloc_pd",         "ibv_dealloc_pd",      "ibv_reg_mr",         "ibv_dereg_mr",
    "ibv_create_cq",       "ibv_destroy_cq",       "ibv_create_qp",       "ibv_modify_qp",      "ibv_destroy_qp",
    "ibv_fork_init",       "ibv_event_type_str"};
struct Later {
  const char* name;
  const char* version;
};
constexpr Later kLater[] = {{"ibv_reg_mr_iova2", "IBVERBS_1.8"},
                            {"ibv_query_ece", "IBVERBS_1.10"},
                            {"ibv_set_ece", "IBVERBS_1.10"},
                            {"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
                            {"ibv_query_port_speed", "IBVERBS_1.16"}};

/// Ways of loading the library.
class SoftnicDlopen : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const char* name = std::getenv("SOFTNIC_TEST_LIBRARY");
    ASSERT_NE(name, nullptr);
    library_ = ::dlopen(name, GetParam());
    ASSERT_NE(library_, nullptr) << ::dlerror();
  }
  template <typename F>
  F* at(const char* name, const char* version = "IBVERBS_1.1") {
    void* found = ::dlvsym(library_, name, version);
    EXPECT_NE(found, nullptr) << name << ": " << ::dlerror();
    return reinterpret_cast<F*>(found);
  }
  void* library_ = nullptr;
};

TEST_P(SoftnicDlopen, EveryFunctionThatNcclAsksForIsFoundAtItsVersion) {
  std::size_t found = 0;
  for (const char* name : kAtOne) found += at<void()>(name) != nullptr ? 1 : 0;
  for (const Later& it : kLater) found += at<void()>(it.name, it.version) != nullptr ? 1 : 0;
  EXPECT_EQ(found, 27u);
  std::printf("    %zu of 27 functions found\n", found);
  // And without a version, as ctypes and others ask.
  EXPECT_EQ(::dlsym(library_, "ibv_get_device_list"), ::dlvsym(library_, "ibv_get_device_list", "IBVERBS_1.1"));
  EXPECT_EQ(::dlvsym(library_, "ibv_get_device_list", "IBVERBS_9.9"), nullptr);
}

/// RESET to RTS, to a QP with that GID.
void connect(int (*modify)(ibv_qp*, ibv_qp_attr*, int), ibv_qp* qp, std::uint32_t number, const ibv_gid& gid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  ASSERT_EQ(modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = number;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.sgid_index = 1;
  ASSERT_EQ(modify(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  ASSERT_EQ(modify(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                  IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

TEST_P(SoftnicDlopen, ThereAreTwoDevicesAndAWriteArrives) {
  int count = 0;
  ibv_device** list = at<ibv_device**(int*)>("ibv_get_device_list")(&count);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(at<const char*(ibv_device*)>("ibv_get_device_name")(list[0]), "soft0");
  ibv_context* context = at<ibv_context*(ibv_device*)>("ibv_open_device")(list[0]);
  ASSERT_NE(context, nullptr);
  ibv_pd* pd = at<ibv_pd*(ibv_context*)>("ibv_alloc_pd")(context);
  ibv_cq* cq =
      at<ibv_cq*(ibv_context*, int, void*, ibv_comp_channel*, int)>("ibv_create_cq")(context, 8, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  std::vector<char> memory(8192, 'a');
  std::memset(memory.data(), 'b', 4096);
  ibv_mr* mr = at<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned)>("ibv_reg_mr_iova2", "IBVERBS_1.8")(
      pd, memory.data(), memory.size(), reinterpret_cast<std::uint64_t>(memory.data()),
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(mr, nullptr);
  ibv_qp* qps[2];
  ibv_gid gid;
  ASSERT_EQ((at<int(ibv_context*, std::uint8_t, int, ibv_gid*)>("ibv_query_gid")(context, 1, 1, &gid)), 0);
  for (ibv_qp*& qp : qps) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {4, 4, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    qp = at<ibv_qp*(ibv_pd*, ibv_qp_init_attr*)>("ibv_create_qp")(pd, &init);
    ASSERT_NE(qp, nullptr);
  }
  const auto modify = at<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp");
  for (int i = 0; i < 2; ++i) connect(modify, qps[i], qps[1 - i]->qp_num, gid);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory.data()), 4096, mr->lkey};
  ibv_send_wr request{};
  request.wr_id = 7;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {reinterpret_cast<std::uint64_t>(memory.data()) + 4096, mr->rkey};
  ibv_send_wr* bad = nullptr;
  // By the table of the context, without a function of any library.
  ASSERT_EQ(context->ops.post_send(qps[0], &request, &bad), 0);
  ibv_wc completion{};
  while (context->ops.poll_cq(cq, 1, &completion) == 0) {
  }
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_EQ(completion.wr_id, 7u);
  EXPECT_EQ(memory, std::vector<char>(8192, 'b'));
  EXPECT_STREQ(at<const char*(ibv_wc_status)>("ibv_wc_status_str")(IBV_WC_SUCCESS), "success");
  for (ibv_qp* qp : qps) EXPECT_EQ(at<int(ibv_qp*)>("ibv_destroy_qp")(qp), 0);
  EXPECT_EQ(at<int(ibv_cq*)>("ibv_destroy_cq")(cq), 0);
  EXPECT_EQ(at<int(ibv_mr*)>("ibv_dereg_mr")(mr), 0);
  EXPECT_EQ(at<int(ibv_pd*)>("ibv_dealloc_pd")(pd), 0);
  EXPECT_EQ(at<int(ibv_context*)>("ibv_close_device")(context), 0);
  at<void(ibv_device**)>("ibv_free_device_list")(list);
}

INSTANTIATE_TEST_SUITE_P(Flags, SoftnicDlopen,
                         testing::Values(RTLD_NOW, RTLD_LAZY | RTLD_GLOBAL, RTLD_NOW | RTLD_DEEPBIND));

}  // namespace
