#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "fixture.h"

/// Thread domains, parent domains, device memory, paging on demand, completion
/// vectors; and a peer of another version.
namespace softnic_test {
namespace {

TEST(SoftnicDomains, AParentDomainLeadsToItsDomain) {
  End end;
  ibv_context* context = end.context.get();
  ibv_td_init_attr td_attr{};
  ibv_td* td = ibv_alloc_td(context, &td_attr);
  ASSERT_NE(td, nullptr);
  ibv_parent_domain_init_attr attr{};
  attr.pd = end.pd.get();
  attr.td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(context, &attr);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  // A region of the one is used by a QP of the other.
  {
    Memory memory(parent, 4096);
    ASSERT_NE(memory.mr(), nullptr);
    ASSERT_EQ(end.connect(end.address()), 0);
    ibv_sge piece = memory.sge(0, 4096);
    memory.fill(9);
    ibv_send_wr request = end.request(IBV_WR_RDMA_WRITE, end.address(), piece);
    ASSERT_EQ(end.post(request), 0);
    EXPECT_EQ(next_completion(end.send_cq.get()).value().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(end.memory->data(), memory.data(), 4096), 0);
    EXPECT_EQ(ibv_dealloc_pd(end.pd.get()), EBUSY);
  }
  attr.pd = parent;
  EXPECT_EQ(ibv_alloc_parent_domain(context, &attr), nullptr) << "of a parent domain there is none";
  EXPECT_EQ(errno, EINVAL);
  ibv_cq_init_attr_ex cq_attr{};
  cq_attr.cqe = 16;
  cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  cq_attr.parent_domain = parent;
  ibv_cq_ex* cq = ibv_create_cq_ex(context, &cq_attr);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

TEST(SoftnicDomains, DeviceMemoryIsWrittenAndReadByOffset) {
  Pair pair;
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(pair.server.context.get(), nullptr, &attr), 0);
  ASSERT_GE(attr.max_dm_size, 8192u);
  ibv_alloc_dm_attr wanted{};
  wanted.length = 8192;
  ibv_dm* dm = ibv_alloc_dm(pair.server.context.get(), &wanted);
  ASSERT_NE(dm, nullptr);
  constexpr unsigned kAccess =
      IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(ibv_reg_dm_mr(pair.server.pd.get(), dm, 4, 8192, kAccess), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_dm_mr(pair.server.pd.get(), dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr) << "by offset only";
  ibv_mr* mr = ibv_reg_dm_mr(pair.server.pd.get(), dm, 4096, 4096, kAccess);
  ASSERT_NE(mr, nullptr);
  pair.client.memory->fill(3);
  Address target = pair.server.address();
  target.buffer = 0;
  target.rkey = mr->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 0, 4096), 0);
  EXPECT_EQ(next_completion(pair.client.send_cq.get()).value().status, IBV_WC_SUCCESS);
  std::string seen(4096, '-');
  ASSERT_EQ(ibv_memcpy_from_dm(seen.data(), dm, 4096, 4096), 0);
  EXPECT_EQ(std::memcmp(seen.data(), pair.client.memory->data(), 4096), 0);
  EXPECT_NE(ibv_memcpy_from_dm(seen.data(), dm, 8192 - 4, 8), 0);
  EXPECT_NE(ibv_memcpy_to_dm(dm, 2, seen.data(), 4), 0) << "words of four bytes";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  wanted.length = attr.max_dm_size + 1;
  EXPECT_EQ(ibv_alloc_dm(pair.server.context.get(), &wanted), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(SoftnicDomains, PagingOnDemandIsTakenAndMemoryIsThere) {
  EndOptions options;
  options.buffer_access = kAllAccess | IBV_ACCESS_ON_DEMAND;
  Pair pair(options, options);
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(pair.client.context.get(), nullptr, &attr), 0);
  EXPECT_EQ(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
  pair.client.memory->fill(5);
  ibv_sge piece = pair.client.memory->sge(0, 65536);
  EXPECT_EQ(
      ibv_advise_mr(pair.client.pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &piece, 1), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 65536), 0);
  EXPECT_EQ(next_completion(pair.client.send_cq.get()).value().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(pair.server.memory->holds(5, 0, 65536));
  piece.lkey += 256;
  EXPECT_EQ(ibv_advise_mr(pair.client.pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1), ENOENT);
  piece = pair.client.memory->sge(0, 65536);
  piece.addr += pair.client.memory->size();
  EXPECT_EQ(ibv_advise_mr(pair.client.pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1), EFAULT);
}

TEST(SoftnicDomains, AQueueOnEachCompletionVector) {
  auto context = open_device(default_device());
  ASSERT_GT(context->num_comp_vectors, 1);
  for (int vector = 0; vector < context->num_comp_vectors; ++vector) {
    Owned<ibv_cq> cq(ibv_create_cq(context.get(), 4, nullptr, nullptr, vector));
    EXPECT_NE(cq, nullptr) << vector;
  }
  EXPECT_EQ(ibv_create_cq(context.get(), 4, nullptr, nullptr, context->num_comp_vectors), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

/// A process whose library has another layout listens under a name of that one.
TEST(SoftnicVersions, APeerOfAnotherVersionIsRefusedInWords) {
  End end;
  // A block that nobody has: QP numbers have it in their upper bits.
  constexpr std::uint32_t kBlock = 0xabc;
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "gdrperf-softnic.8.abc";
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  Address peer = end.address();
  peer.qpn = kBlock << 12 | 5;
  testing::internal::CaptureStderr();
  ASSERT_EQ(end.connect(peer), 0);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0);
  EXPECT_EQ(next_completion(end.send_cq.get()).value().status, IBV_WC_RETRY_EXC_ERR);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("has another version of the software device"), std::string::npos) << said;
  EXPECT_NE(said.find("use the same build at both ends"), std::string::npos) << said;
  EXPECT_EQ(said.find("another version", said.find("another version") + 1), std::string::npos) << "said twice";
  ::close(listener);
}

TEST(SoftnicErrors, ErrnoSaysWhyAQpCouldNotBeModified) {
  End end;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  errno = EFAULT;
  const int error = ibv_modify_qp(end.qp.get(), &attr, IBV_QP_STATE);
  EXPECT_NE(error, 0);
  EXPECT_EQ(errno, error);
}

}  // namespace
}  // namespace softnic_test
