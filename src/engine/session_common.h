#pragma once

#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/report/record.h"

namespace gdrperf::engine {

/// Tells the peer why this end gives up; silent where it is gone already.
void tell_failure(proto::Channel& channel, const Error& error) noexcept;

report::EndRecord end_record(const proto::Endpoint& endpoint);

}  // namespace gdrperf::engine
