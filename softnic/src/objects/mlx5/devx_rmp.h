#pragma once

#include <cstdint>
#include <memory>

#include "mlx5/command.h"
#include "objects/queues/srq.h"

/// Receive memory pools, which verbs call SRQs, in memory of the program's.
namespace gdrperf::softnic {

/// Null: refused, `out` says why. A linked list of receives, or a ring of them.
std::unique_ptr<Srq> create_rmp(Context& context, const mlx5::Words& in, mlx5::Words& out);

}  // namespace gdrperf::softnic
