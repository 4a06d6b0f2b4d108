#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gdrperf/import/import.h"
#include "import/lines.h"

namespace gdrperf::report {

/// What perftest says above a table, or in "test_info": settings of all runs that follow.
class PerftestSettings {
 public:
  /// "RDMA_Write Bidirectional BW Test"; nullopt where `title` is none. Throws for a test that gdrperf has not.
  static std::optional<PerftestSettings> of_title(std::string_view title, const ImportPlace& place);

  /// A setting by perftest's name for it ("TX depth", "TX_depth"); one that is not known says nothing. Throws for what
  /// gdrperf has not.
  void take(std::string_view name, std::string_view value, const ImportPlace& place);
  void wait_for_events();
  /// Memory of an accelerator: "cuda", "rocm", ...; "" is some accelerator's, of which more may be said elsewhere.
  void use_memory(std::string_view kind, std::optional<std::uint64_t> index);

  bool bandwidth() const { return run_.spec.test.metric == Metric::kBandwidth; }
  bool halved() const;
  /// Without figures.
  const RunRecord& run() const { return run_; }

 private:
  RunRecord run_;
};

/// Figures of one row, as printed: MiB/s (or Gb/s) and us. Nothing: not printed.
struct PerftestFigures {
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> iterations;
  std::optional<double> peak, average, rate_mpps;
  std::optional<double> min, max, typical, mean, stdev, p99, p999;
};

/// perftest's "MB/sec" and "MiB/sec" are 2^20 bytes per second, its "Gb/sec" 10^9 bits.
enum class PerftestUnit { kMebibytes, kGigabits };

/// Whether an average in `unit` is what messages of that size make at their rate, both being rounded; true where one of
/// them was not printed.
bool fits(const PerftestFigures& figures, PerftestUnit unit);
/// Throws where the average does not fit the unit that its heading names.
void check_unit(const PerftestFigures& figures, PerftestUnit unit, const ImportPlace& place);

/// The figures as a run. Throws where there is no size or no figure.
RunRecord perftest_run(const PerftestSettings& settings, const PerftestFigures& figures, PerftestUnit unit,
                       const ImportPlace& place);

/// The formats.
bool is_perftest_text(std::string_view text);
void read_perftest_text(std::string_view text, const std::string& file, Imported& into);
bool is_perftest_json(std::string_view text);
void read_perftest_json(std::string_view text, const std::string& file, Imported& into);

}  // namespace gdrperf::report
