#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

enum class RateUnit { kGigabytes, kGigabits };  ///< GB/s (1e9 bytes), Gb/s (1e9 bits)
enum class Colour { kOff, kOn };

/// kOn when `fd` is a terminal that is not dumb and NO_COLOR is unset or empty.
Colour colour_for(int fd);

struct ConsoleOptions {
  RateUnit rate_unit = RateUnit::kGigabytes;
  Colour colour = Colour::kOff;
};

/// The table a person reads, printed row by row as runs end: a heading per
/// relation, test and pair of ends, one row per run, and below each table the
/// notes its marks stand for. Columns have fixed widths, so rows that come
/// later line up. `out` is borrowed and must outlive the table.
class ConsoleTable {
 public:
  ConsoleTable(std::ostream& out, ConsoleOptions options) : out_(out), options_(options) {}

  /// A row, after a new heading where anything of the heading has changed.
  void add(const RunRecord& record);
  /// Notes of the last table. Call once all runs are in.
  void finish();

 private:
  struct Notes {
    bool unstable = false;
    bool few_batches = false;
    bool few_samples = false;
    std::map<std::string, std::vector<std::string>> warnings;  ///< text -> sizes
    std::vector<std::string> warning_order;
    double best_gbytes = 0;  ///< of a large message between GPU and NIC
    std::string standing;    ///< of that among published figures
  };

  void print_heading(const RunRecord& record, const std::string& heading);
  std::string bandwidth_row(const RunRecord& record);
  std::string latency_row(const RunRecord& record);
  void note_warnings(const RunRecord& record);
  void note_best(const RunRecord& record);
  std::string styled(const char* code, const std::string& text) const;

  std::ostream& out_;
  ConsoleOptions options_;
  std::string heading_;  ///< of the open table; "" before the first
  bool with_ceiling_ = false;
  Notes notes_;
};

}  // namespace gdrperf::report
