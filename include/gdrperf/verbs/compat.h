#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "verbs_headers.h"

// What newer libraries have, for headers from rdma-core 28 on. src/meson.build asks the headers for each.

#ifndef GDRPERF_HAS_IBV_ECE_VENDOR_ID  // rdma-core 31
struct ibv_ece {
  std::uint32_t vendor_id;
  std::uint32_t options;
  std::uint32_t comp_mask;
};
extern "C" {
int ibv_set_ece(ibv_qp* qp, ibv_ece* ece);
int ibv_query_ece(ibv_qp* qp, ibv_ece* ece);
}
#endif

#ifndef GDRPERF_HAS_IBV_GID_ENTRY_GID_INDEX  // rdma-core 33
enum ibv_gid_type { IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2 };
struct ibv_gid_entry {
  ibv_gid gid;
  std::uint32_t gid_index;
  std::uint32_t port_num;
  std::uint32_t gid_type;
  std::uint32_t ndev_ifindex;
};
extern "C" ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max_entries,
                                        std::uint32_t flags, std::size_t entry_size);
inline ssize_t ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max_entries,
                                   std::uint32_t flags) {
  return _ibv_query_gid_table(context, entries, max_entries, flags, sizeof *entries);
}
#endif

#ifndef GDRPERF_HAS_IBV_REG_DMABUF_MR  // rdma-core 34
extern "C" ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                                     int access);
#endif
