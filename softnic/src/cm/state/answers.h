#pragma once

#include <rdma/ib_user_sa.h>
#include <rdma/rdma_user_cm.h>

#include <cstdint>

#include "cm/state/id.h"

/// Answers of the kernel's file to questions about an id.
namespace gdrperf::softnic {

/// QUERY_PATH with the one path that there is.
struct CmPathAnswer {
  std::uint32_t num_paths;  ///< rdma_ucm_query_path_resp
  std::uint32_t reserved;
  ib_path_rec_data path;
};

rdma_ucm_query_addr_resp answer_addresses(const CmId& id);
/// The same with GIDs in the place of addresses.
rdma_ucm_query_addr_resp answer_gids(const CmId& id);
CmPathAnswer answer_path(const CmId& id);
/// All three, as older libraries ask.
rdma_ucm_query_route_resp answer_route(const CmId& id);

/// Attributes that a QP needs to go to `state` (ibv_qp_state). Returns 0 or a negative errno.
int answer_qp_attributes(const CmId& id, std::uint32_t state, ib_uverbs_qp_attr& attr);

}  // namespace gdrperf::softnic
