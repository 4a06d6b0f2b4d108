#pragma once

#include <cstdint>

#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// `spec` with every default that needs no device put in: depths, cq_mod (a
/// multiple of post_list), footprint. Pure, idempotent, the same on both ends.
TestSpec resolve(TestSpec spec);

/// Where messages lie in a region: each QP has `slots` of `stride` bytes.
struct Layout {
  std::uint64_t stride = 0;  ///< bytes, a multiple of 64
  std::uint64_t slots = 1;   ///< per QP, a power of two
  std::uint64_t qp_bytes() const { return stride * slots; }
};
Layout layout_of(const TestSpec& resolved);

}  // namespace gdrperf::engine
