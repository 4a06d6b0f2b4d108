// In place of libibverbs and librdmacm in gdrperf-doctor: linked in, they keep the
// dynamic linker from asking for libraries that are not installed. None of them
// finds a device.

#include <cerrno>

namespace {

// A null pointer to those that return one; never asked for more than a list of
// devices, which is empty.
void* not_here() {
  errno = ENOSYS;
  return nullptr;
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): the name of a function cannot stand in parentheses
#define GDRPERF_NOT_HERE(name) \
  extern "C" void* name() { return not_here(); }
// NOLINTEND(bugprone-macro-parentheses)

GDRPERF_NOT_HERE(_ibv_query_gid_table)
GDRPERF_NOT_HERE(ibv_ack_async_event)
GDRPERF_NOT_HERE(ibv_ack_cq_events)
GDRPERF_NOT_HERE(ibv_alloc_pd)
GDRPERF_NOT_HERE(ibv_close_device)
GDRPERF_NOT_HERE(ibv_create_ah)
GDRPERF_NOT_HERE(ibv_create_comp_channel)
GDRPERF_NOT_HERE(ibv_create_cq)
GDRPERF_NOT_HERE(ibv_create_qp)
GDRPERF_NOT_HERE(ibv_create_srq)
GDRPERF_NOT_HERE(ibv_dealloc_pd)
GDRPERF_NOT_HERE(ibv_dereg_mr)
GDRPERF_NOT_HERE(ibv_destroy_ah)
GDRPERF_NOT_HERE(ibv_destroy_comp_channel)
GDRPERF_NOT_HERE(ibv_destroy_cq)
GDRPERF_NOT_HERE(ibv_destroy_qp)
GDRPERF_NOT_HERE(ibv_destroy_srq)
GDRPERF_NOT_HERE(ibv_free_device_list)
GDRPERF_NOT_HERE(ibv_get_async_event)
GDRPERF_NOT_HERE(ibv_get_cq_event)
GDRPERF_NOT_HERE(ibv_get_device_guid)
GDRPERF_NOT_HERE(ibv_get_device_list)
GDRPERF_NOT_HERE(ibv_get_device_name)
GDRPERF_NOT_HERE(ibv_modify_qp)
GDRPERF_NOT_HERE(ibv_open_device)
GDRPERF_NOT_HERE(ibv_query_device)
GDRPERF_NOT_HERE(ibv_query_ece)
GDRPERF_NOT_HERE(ibv_query_port)
GDRPERF_NOT_HERE(ibv_reg_dmabuf_mr)
GDRPERF_NOT_HERE(ibv_reg_mr)
GDRPERF_NOT_HERE(ibv_reg_mr_iova2)
GDRPERF_NOT_HERE(ibv_set_ece)
GDRPERF_NOT_HERE(ibv_wc_status_str)
GDRPERF_NOT_HERE(rdma_accept)
GDRPERF_NOT_HERE(rdma_ack_cm_event)
GDRPERF_NOT_HERE(rdma_bind_addr)
GDRPERF_NOT_HERE(rdma_connect)
GDRPERF_NOT_HERE(rdma_create_event_channel)
GDRPERF_NOT_HERE(rdma_create_id)
GDRPERF_NOT_HERE(rdma_create_qp)
GDRPERF_NOT_HERE(rdma_destroy_event_channel)
GDRPERF_NOT_HERE(rdma_destroy_id)
GDRPERF_NOT_HERE(rdma_destroy_qp)
GDRPERF_NOT_HERE(rdma_disconnect)
GDRPERF_NOT_HERE(rdma_event_str)
GDRPERF_NOT_HERE(rdma_get_cm_event)
GDRPERF_NOT_HERE(rdma_get_src_port)
GDRPERF_NOT_HERE(rdma_listen)
GDRPERF_NOT_HERE(rdma_reject)
GDRPERF_NOT_HERE(rdma_resolve_addr)
GDRPERF_NOT_HERE(rdma_resolve_route)
GDRPERF_NOT_HERE(rdma_set_option)

#undef GDRPERF_NOT_HERE
