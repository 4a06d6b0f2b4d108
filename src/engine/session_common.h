#pragma once

#include <memory>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/report/record.h"
#include "local_end.h"
#include "mover.h"
#include "peer.h"

namespace gdrperf::engine {

/// How this run's messages are moved.
std::unique_ptr<Mover> make_mover(conn::Side side, LocalEnd& end, const ResolvedSpec& spec, Peer& peer);

/// Tells the peer why this end gives up; silent where it is gone already.
void tell_failure(proto::Channel& channel, const Error& error) noexcept;

report::EndRecord end_record(const proto::Endpoint& endpoint);

}  // namespace gdrperf::engine
