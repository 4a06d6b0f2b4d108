#pragma once

#include <chrono>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/report/record.h"

namespace gdrperf::engine {

/// Registering gigabytes and connecting hundreds of QPs take their time.
inline constexpr std::chrono::seconds kSetupTimeout{60};
/// A peer that is there answers at once.
inline constexpr std::chrono::seconds kReplyTimeout{20};

/// Tells the peer why this end gives up; silent where it is gone already.
void tell_failure(proto::Channel& channel, const Error& error) noexcept;

report::EndRecord end_record(const proto::Endpoint& endpoint);

}  // namespace gdrperf::engine
