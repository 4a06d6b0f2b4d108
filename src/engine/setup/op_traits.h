#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "gdrperf/proto/spec.h"
#include "gdrperf/verbs/driver_qp.h"

namespace gdrperf::engine {

/// Event that a latency round waits for.
enum class RoundEnd { kMemory, kReceive, kOwnCompletion };

/// All that differs between operations.
struct OpTraits {
  ibv_wr_opcode opcode;
  bool has_remote_address = false;   ///< needs the peer's rkey and an address
  bool consumes_receives = false;    ///< the peer posts receives
  int initiator_access = 0;      ///< rights of the initiator's region, ibv_access_flags
  int target_access = 0;         ///< rights of the region the peer reaches
  int qp_access = 0;             ///< rights its QP grants
  bool can_inline = false;
  bool carries_operands = false;     ///< an atomic: the request says what to add, or to compare and put in
  bool flag = false;             ///< a second request follows each, which says that the message is there
  ibv_wr_opcode flag_opcode = IBV_WR_RDMA_WRITE;
  RoundEnd round_end;
  bool halved = false;               ///< latency is half a round trip
};

const OpTraits& traits_of(Operation operation);
/// Event that ends the rounds of write_lat where no CPU can poll the last byte.
const OpTraits& write_with_immediate();
const OpTraits& compare_and_swap();
/// write_lat with `signal`, which is not kNone.
const OpTraits& signalled_write(Signal signal);

/// Whose QPs a transport takes; none: those of every device.
std::optional<verbs::DriverKind> driver_kind(Transport transport);

}  // namespace gdrperf::engine
