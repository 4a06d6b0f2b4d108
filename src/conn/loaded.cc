// -Dverbs=loaded: librdmacm is loaded when it is first called, as libibverbs is (src/verbs/loaded.cc).

#include <cstdint>

#include <rdma/rdma_cma.h>

#include "gdrperf/verbs/lookup.h"

using gdrperf::verbs::From;

#define GDRPERF_RDMA_CM(...) GDRPERF_FORWARD(From::kRdmaCm, __VA_ARGS__)

GDRPERF_RDMA_CM(int, rdma_accept, (rdma_cm_id * id, rdma_conn_param* with), id, with)
GDRPERF_RDMA_CM(int, rdma_ack_cm_event, (rdma_cm_event * event), event)
GDRPERF_RDMA_CM(int, rdma_bind_addr, (rdma_cm_id * id, sockaddr* address), id, address)
GDRPERF_RDMA_CM(int, rdma_connect, (rdma_cm_id * id, rdma_conn_param* with), id, with)
GDRPERF_RDMA_CM(rdma_event_channel*, rdma_create_event_channel, (void))
GDRPERF_RDMA_CM(int, rdma_create_id, (rdma_event_channel * channel, rdma_cm_id** id, void* own, rdma_port_space space),
                channel, id, own, space)
GDRPERF_RDMA_CM(int, rdma_create_qp, (rdma_cm_id * id, ibv_pd* pd, ibv_qp_init_attr* attr), id, pd, attr)
GDRPERF_RDMA_CM(void, rdma_destroy_event_channel, (rdma_event_channel * channel), channel)
GDRPERF_RDMA_CM(int, rdma_destroy_id, (rdma_cm_id * id), id)
GDRPERF_RDMA_CM(void, rdma_destroy_qp, (rdma_cm_id * id), id)
GDRPERF_RDMA_CM(int, rdma_disconnect, (rdma_cm_id * id), id)
GDRPERF_RDMA_CM(const char*, rdma_event_str, (rdma_cm_event_type event), event)
GDRPERF_RDMA_CM(int, rdma_get_cm_event, (rdma_event_channel * channel, rdma_cm_event** event), channel, event)
GDRPERF_RDMA_CM(__be16, rdma_get_src_port, (rdma_cm_id * id), id)
GDRPERF_RDMA_CM(int, rdma_listen, (rdma_cm_id * id, int backlog), id, backlog)
GDRPERF_RDMA_CM(int, rdma_reject, (rdma_cm_id * id, const void* data, std::uint8_t bytes), id, data, bytes)
GDRPERF_RDMA_CM(int, rdma_resolve_addr, (rdma_cm_id * id, sockaddr* from, sockaddr* to, int timeout_ms), id, from, to,
                timeout_ms)
GDRPERF_RDMA_CM(int, rdma_resolve_route, (rdma_cm_id * id, int timeout_ms), id, timeout_ms)
GDRPERF_RDMA_CM(int, rdma_set_option, (rdma_cm_id * id, int level, int name, void* value, std::size_t bytes), id, level,
                name, value, bytes)

#undef GDRPERF_RDMA_CM
