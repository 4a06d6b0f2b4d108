#pragma once

#include <span>
#include <string_view>

#include "gdrperf/proto/spec.h"

namespace gdrperf {

/// What can be said of an operation without libibverbs: a row of the table of
/// operations. engine/op_traits.h has the rest.
struct OperationFacts {
  Operation operation;
  std::string_view name;     ///< "write": of its tests "write_bw", "write_lat"
  std::string_view title;    ///< "Bandwidth of ..."
  std::string_view request;  ///< "... failed"
  bool carries_data;         ///< in the request itself, so that it can be inlined
  bool receives;             ///< the peer posts receives
  bool round_in_memory;      ///< a latency round ends with a byte in memory, not with a completion
};

/// All of them, in the order in which tests are listed.
std::span<const OperationFacts> operations();
const OperationFacts& facts_of(Operation operation);

}  // namespace gdrperf
