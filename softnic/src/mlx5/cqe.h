#pragma once

#include <cstdint>

#include "mlx5/format.h"
#include "shared/sync/ring.h"

namespace gdrperf::softnic::mlx5 {

/// Writes the CQE of a completion; its owner bit comes last, behind all else. `of_ring`: its wr_id is a
/// completion_word(), or the place of its receive; else the program's.
void write_cqe(Cqe& cqe, const CqCell& cell, bool of_ring, std::uint8_t owner) noexcept;

/// As a CQ that nothing was written to.
void clear_cqes(Cqe* cqes, std::uint32_t count) noexcept;

}  // namespace gdrperf::softnic::mlx5
