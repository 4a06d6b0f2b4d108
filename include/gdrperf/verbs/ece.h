#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <string_view>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/messages.h"

namespace gdrperf::verbs {

/// Before RTR: what the QP's device offers; in RTR and RTS: what it took of what it was given (ibv_query_ece(3)). None
/// where device, driver or libibverbs has no ECE.
proto::Ece query_ece(ibv_qp* qp);

/// For a QP in RESET or INIT: what the other end offered, or took. Returns 0, or errno (EINVAL: options of another
/// maker).
int set_ece(ibv_qp* qp, proto::Ece ece);

/// "vendor 0x15b3, options 0x3"; "" for none.
std::string to_text(proto::Ece ece);

/// An end was asked for ECE, and `device` has none.
Error no_ece(std::string_view device);

}  // namespace gdrperf::verbs
