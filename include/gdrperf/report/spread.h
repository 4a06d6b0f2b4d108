#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// QPs that went over one UDP source port, together.
struct PortShare {
  int port = 0;
  int flow_label = 0;
  double share = 0;  ///< of the rate
  std::size_t qps = 0;
  double even = 0;   ///< what as many QPs of the middle port have
  bool uneven() const;
};

/// How a run's rate is spread over the paths that its QPs took.
struct Spread {
  std::vector<PortShare> ports;  ///< in the order of the first QP of each
  double least = 0;  ///< share of a QP
  double most = 0;
  std::vector<PortShare> uneven() const;
};

/// Nothing where the QPs took one path.
std::optional<Spread> spread_of(const Measurement& measured);

/// A line for each QP, and one on the spread; "" where they took one path.
std::string spread_text(const RunRecord& record);

/// Names the uneven ports; "" where there are none.
std::string uneven_text(const Spread& spread);

}  // namespace gdrperf::report
