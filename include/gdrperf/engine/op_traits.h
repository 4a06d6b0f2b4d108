#pragma once

#include <infiniband/verbs.h>

#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// What a latency round waits for.
enum class RoundEnd { kMemory, kReceive, kOwnCompletion };

/// All that differs between write, send and read.
struct OpTraits {
  ibv_wr_opcode opcode;
  bool has_remote_address;   ///< needs the peer's rkey and an address
  bool consumes_receives;    ///< the peer posts receives
  int initiator_access;      ///< rights of the initiator's region, ibv_access_flags
  int target_access;         ///< rights of the region the peer reaches
  int qp_access;             ///< rights its QP grants
  bool limited_by_rd_atomic;
  bool can_inline;
  RoundEnd round_end;
  bool halved;               ///< latency is half a round trip
};

const OpTraits& traits_of(Operation operation);
/// What this run does: as its operation, but write_lat with an end in GPU
/// memory, whose last byte no CPU can poll, ends a round by write with
/// immediate.
const OpTraits& traits_of(const TestSpec& spec);
/// Whether that is so.
bool ends_by_immediate(const TestSpec& spec);

}  // namespace gdrperf::engine
