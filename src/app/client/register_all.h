#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// One way of giving GPU memory to the NIC, tried.
struct RegistrationRow {
  Registration way = Registration::kDmabuf;
  bool registered = false;
  std::string why_not;
  double gbytes = 0;      ///< 1e9 bytes per second; 0: not measured
  double latency_us = 0;  ///< median; 0: not measured
};

using RunOne = std::function<report::RunRecord(const TestSpec&)>;

/// Runs `spec`, and the latency of its operation, once for each way. A way that is refused (Error::kEnvironment) is a
/// row that says why; other errors are thrown.
std::vector<RegistrationRow> try_registrations(const TestSpec& spec, const RunOne& run);

/// Throws usage_error where neither end is in GPU memory, Error(kEnvironment) where this end has none.
void check_register_all(const TestSpec& spec);

/// The table, and which one is taken without --register.
void print_registrations(const std::vector<RegistrationRow>& rows, const TestSpec& spec, std::ostream& out);

}  // namespace gdrperf::app
