#pragma once

#include <string>

#include "gdrperf/proto/messages.h"
#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Whether a row has the rate of each port behind that of both: perftest's --report-per-port.
enum class PortColumns { kSum, kEach };

/// perftest's tables, a run at a time, for who shows them while others are measured.
class PerftestColumns {
 public:
  explicit PerftestColumns(RateUnit unit, PortColumns ports = PortColumns::kSum) : unit_(unit), ports_(ports) {}
  /// The run's row, in front of it the settings and the heading where they are not those of the run before.
  std::string add(const RunRecord& record);
  /// The line below the last row; "" where there was none.
  std::string end() const;

 private:
  RateUnit unit_;
  PortColumns ports_;
  std::string block_;
};

/// One run as perftest's --out_json has it: its keys, its units.
std::string perftest_json(const RunRecord& record, RateUnit unit);

/// What a server that prints results, too, is told of a run.
proto::Result result_of(const RunRecord& record);
/// The record that a server makes its table of: `client` is its own end, which perftest's tables are about.
RunRecord record_of(const proto::Result& result);

}  // namespace gdrperf::report
