#pragma once

#include <string>

#include "gdrperf/engine/resolve.h"
#include "gdrperf/proto/messages.h"
#include "engine/transfer/transfer.h"
#include "gdrperf/report/record.h"

namespace gdrperf::engine {

/// A run's record without its figures. `inline_bytes`: that the client was granted.
report::RunRecord record_of(const ResolvedSpec& spec, const proto::Endpoint& client, const proto::Endpoint& server,
                            int inline_bytes);

/// Warning that the server's end is as somebody there typed, where the client made no choice.
std::string typed_there(const EndSpec& asked, const EndSpec& taken);

/// What the poster's clock said, where there is one: it ends.
void note_clock(report::Measurement& measured, Transfer& transfer);

/// A warning where fewer messages left than were asked for, of both directions together.
void note_rate(report::Measurement& measured, const ResolvedSpec& spec);

}  // namespace gdrperf::engine
