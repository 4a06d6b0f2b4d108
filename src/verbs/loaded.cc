// -Dverbs=loaded: libibverbs is loaded when it is first called, so that the program starts where there is none.
// newer.cc has the other functions, src/conn/loaded.cc those of librdmacm.

#include <cstdint>

#include <infiniband/verbs.h>

#include "gdrperf/verbs/lookup.h"

// Macros in front of the functions that they end in.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

using gdrperf::verbs::From;

#define GDRPERF_VERBS(...) GDRPERF_FORWARD(From::kVerbs, __VA_ARGS__)

GDRPERF_VERBS(void, ibv_ack_async_event, (ibv_async_event * event), event)
GDRPERF_VERBS(void, ibv_ack_cq_events, (ibv_cq * cq, unsigned int count), cq, count)
GDRPERF_VERBS(ibv_pd*, ibv_alloc_pd, (ibv_context * context), context)
GDRPERF_VERBS(int, ibv_attach_mcast, (ibv_qp * qp, const ibv_gid* group, std::uint16_t lid), qp, group, lid)
GDRPERF_VERBS(int, ibv_close_device, (ibv_context * context), context)
GDRPERF_VERBS(ibv_ah*, ibv_create_ah, (ibv_pd * pd, ibv_ah_attr* attr), pd, attr)
GDRPERF_VERBS(ibv_comp_channel*, ibv_create_comp_channel, (ibv_context * context), context)
GDRPERF_VERBS(ibv_cq*, ibv_create_cq,
              (ibv_context * context, int entries, void* own, ibv_comp_channel* channel, int vector), context, entries,
              own, channel, vector)
GDRPERF_VERBS(ibv_qp*, ibv_create_qp, (ibv_pd * pd, ibv_qp_init_attr* attr), pd, attr)
GDRPERF_VERBS(ibv_srq*, ibv_create_srq, (ibv_pd * pd, ibv_srq_init_attr* attr), pd, attr)
GDRPERF_VERBS(int, ibv_dealloc_pd, (ibv_pd * pd), pd)
GDRPERF_VERBS(int, ibv_dereg_mr, (ibv_mr * mr), mr)
GDRPERF_VERBS(int, ibv_destroy_ah, (ibv_ah * ah), ah)
GDRPERF_VERBS(int, ibv_destroy_comp_channel, (ibv_comp_channel * channel), channel)
GDRPERF_VERBS(int, ibv_destroy_cq, (ibv_cq * cq), cq)
GDRPERF_VERBS(int, ibv_destroy_qp, (ibv_qp * qp), qp)
GDRPERF_VERBS(int, ibv_destroy_srq, (ibv_srq * srq), srq)
GDRPERF_VERBS(int, ibv_detach_mcast, (ibv_qp * qp, const ibv_gid* group, std::uint16_t lid), qp, group, lid)
GDRPERF_VERBS(void, ibv_free_device_list, (ibv_device * *list), list)
GDRPERF_VERBS(int, ibv_get_async_event, (ibv_context * context, ibv_async_event* event), context, event)
GDRPERF_VERBS(int, ibv_get_cq_event, (ibv_comp_channel * channel, ibv_cq** cq, void** own), channel, cq, own)
GDRPERF_VERBS(__be64, ibv_get_device_guid, (ibv_device * device), device)
GDRPERF_VERBS(ibv_device**, ibv_get_device_list, (int* count), count)
GDRPERF_VERBS(const char*, ibv_get_device_name, (ibv_device * device), device)
GDRPERF_VERBS(int, ibv_modify_qp, (ibv_qp * qp, ibv_qp_attr* attr, int mask), qp, attr, mask)
GDRPERF_VERBS(ibv_context*, ibv_open_device, (ibv_device * device), device)
GDRPERF_VERBS(int, ibv_query_device, (ibv_context * context, ibv_device_attr* attr), context, attr)
// The macro in front of it fills in what this function, of older programs, leaves alone.
GDRPERF_VERBS(int, ibv_query_port, (ibv_context * context, std::uint8_t port, _compat_ibv_port_attr* attr), context,
              port, attr)
GDRPERF_VERBS(ibv_mr*, ibv_reg_mr, (ibv_pd * pd, void* at, std::size_t bytes, int access), pd, at, bytes, access)
GDRPERF_VERBS(const char*, ibv_wc_status_str, (ibv_wc_status status), status)

#undef GDRPERF_VERBS
