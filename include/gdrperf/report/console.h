#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "gdrperf/base/terminal.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

enum class RateUnit { kGigabytes, kGigabits };  ///< GB/s (1e9 bytes), Gb/s (1e9 bits)
/// Signs that a table may be drawn with.
enum class Charset { kAscii, kUtf8 };
/// kAll: lines below each row say how it was measured.
enum class Detail { kBrief, kAll };

struct ConsoleOptions {
  RateUnit rate_unit = RateUnit::kGigabytes;
  Colour colour = Colour::kOff;
  std::size_t columns = 0;  ///< of the terminal; 0: no terminal, all columns and no line broken
  Charset charset = Charset::kAscii;
  Detail detail = Detail::kBrief;
};

/// Marks that the rows of a table have used.
struct Marks {
  bool unstable = false;
  bool few_batches = false;
  bool few_samples = false;
};

/// The table a person reads, printed row by row as runs end: a heading per
/// relation, test and pair of ends, one row per run, and below each table the
/// notes its marks stand for, and a sparkline where there are four sizes or more. Columns have
/// fixed widths, so rows that come later line up. `out` is borrowed and must outlive the table.
class ConsoleTable {
 public:
  ConsoleTable(std::ostream& out, ConsoleOptions options) : out_(out), options_(options) {}

  /// A row, after a new heading where anything of the heading has changed.
  void add(const RunRecord& record);
  /// Notes of the last table. Call once all runs are in.
  void finish();

 private:
  /// Warnings that differ in numbers only.
  struct GroupedWarning {
    std::string reason;  ///< without digits
    std::string first;   ///< as it was for the first size
    bool numbers_differ = false;
    std::vector<std::string> sizes;
  };
  struct Notes {
    Marks marks;
    Metric metric = Metric::kBandwidth;
    std::map<std::uint64_t, double> points;  ///< by size: median GB/s, or p50 in ns
    std::vector<GroupedWarning> warnings;
    double best_gbytes = 0;  ///< of a large message between GPU and NIC
    std::string standing;    ///< of that among published figures
    std::string cpu;         ///< CPU time of the last run
  };

  void print_heading(const RunRecord& record, const std::string& heading);
  void print_line(const std::string& text, std::optional<Style> style = std::nullopt);
  void note_warnings(const RunRecord& record);
  void note_best(const RunRecord& record);
  void note_point(const RunRecord& record);

  std::ostream& out_;
  ConsoleOptions options_;
  std::string heading_;  ///< of the open table; "" before the first
  Notes notes_;
};

/// What warnings of one kind have in common: the text without its numbers; of an unstable run only the reason, without
/// the levels and the interval before it.
std::string warning_kind(const std::string& warning);

}  // namespace gdrperf::report
