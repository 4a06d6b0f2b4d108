#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "gdrperf/verbs/resources.h"

namespace gdrperf::verbs {

/// Functions of libmlx5 that are looked for when the program runs: it needs neither the library nor a NIC that uses it.

/// PCI address of the DMA function by which this device reaches GPU memory (Data Direct), as its driver tells it
/// (mlx5dv_get_data_direct_sysfs_path); "" and why in `why_not` where there is none.
std::string data_direct_function(ibv_context* context, std::string& why_not);

/// mlx5dv_reg_dmabuf_mr() for Data Direct; null and why in `why_not` where that fails.
Mr register_data_direct(ibv_pd* pd, std::size_t bytes, std::uint64_t iova, int fd, int access, std::string& why_not);

/// mlx5dv_modify_qp_udp_sport() of a QP in RTS. False: not such a device or library, or it refuses; the address
/// vector's flow label counts then.
bool set_udp_source_port(ibv_qp* qp, int port);

/// mlx5dv_modify_qp_lag_port() of a QP in RTS: its messages leave by that port (1, 2, ...) of a bonded device. Throws
/// Error, naming the device, where it has no such choice.
void set_lag_port(ibv_qp* qp, int port);

/// Receives that a QP of this type may have where it places packets out of order (mlx5dv_query_device()); 0, and why in
/// `why_not`, where the device has no such QPs.
std::uint32_t out_of_order_receives(ibv_context* context, ibv_qp_type type, std::string& why_not);

/// make_qp() of such a QP (MLX5DV_QP_CREATE_OOO_DP). The other end's has to be one, too.
Qp make_out_of_order_qp(ibv_pd* pd, ibv_qp_init_attr& attr, Inlining inlining);

}  // namespace gdrperf::verbs
