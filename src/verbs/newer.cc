// What IBVERBS_1.1 lacks, looked up when it is called: a program that links these does not start with an older
// libibverbs, which has all that most runs need.

#include "gdrperf/verbs/compat.h"
#include "gdrperf/verbs/lookup.h"

using gdrperf::verbs::From;

// IBVERBS_1.6, of rdma-core 24
GDRPERF_FORWARD(From::kVerbs, ibv_qp_ex*, ibv_qp_to_qp_ex, (ibv_qp * qp), qp)
// IBVERBS_1.8, of rdma-core 28
GDRPERF_FORWARD(From::kVerbs, ibv_mr*, ibv_reg_mr_iova2,
                (ibv_pd * pd, void* at, std::size_t bytes, std::uint64_t iova, unsigned int access), pd, at, bytes,
                iova, access)
// IBVERBS_1.10, of 31
GDRPERF_FORWARD(From::kVerbs, int, ibv_query_ece, (ibv_qp * qp, ibv_ece* ece), qp, ece)
GDRPERF_FORWARD(From::kVerbs, int, ibv_set_ece, (ibv_qp * qp, ibv_ece* ece), qp, ece)
// IBVERBS_1.11, of 33
GDRPERF_FORWARD(From::kVerbs, ssize_t, _ibv_query_gid_table,
                (ibv_context * context, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                 std::size_t bytes),
                context, entries, most, flags, bytes)
// IBVERBS_1.12, of 34
GDRPERF_FORWARD(From::kVerbs, ibv_mr*, ibv_reg_dmabuf_mr,
                (ibv_pd * pd, std::uint64_t offset, std::size_t bytes, std::uint64_t iova, int fd, int access), pd,
                offset, bytes, iova, fd, access)
