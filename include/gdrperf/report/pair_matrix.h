#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Gathers runs and shows GPU (or kind of memory) against NIC: the relations once, then for each test the best rate
/// over the sizes, or p50 at the smallest size; below each the pairs that stand out. As many NICs side by side as fit.
class PairMatrix {
 public:
  void add(const RunRecord& record);
  /// Nothing without runs.
  void print(std::ostream& out, const ConsoleOptions& options) const;

 private:
  struct Cell {
    double value = 0;            ///< GB/s, or ns
    std::uint64_t size_bytes = 0;
    std::optional<double> share;  ///< of the ceiling
    bool unstable = false;
  };
  using Place = std::pair<std::string, std::string>;  ///< row, column
  struct TestCells {
    std::string name;
    Metric metric;
    std::map<Place, Cell> cells;
  };
  struct Warning {
    std::string text;  ///< of the first run
    std::size_t runs = 0;
  };
  struct Drawn;

  void note(const std::string& warning);
  std::string words(const TestCells& test, const ConsoleOptions& options) const;
  void print_warnings(std::ostream& out, const ConsoleOptions& options) const;
  void draw(std::ostream& out, const Drawn& drawn, const ConsoleOptions& options) const;

  std::vector<std::string> rows_;     ///< in the order of their first run
  std::vector<std::string> columns_;
  std::map<Place, std::string> relations_;
  std::vector<TestCells> tests_;
  std::map<std::string, Warning> warnings_;  ///< by their text without figures
  std::string kind_;                             ///< sentence on devices that are no hardware
};

/// Row and column of a run: {"GPU0", "mlx5_0"}, {"host", "soft0"}, {"host to cuda:0", "soft0"}.
std::pair<std::string, std::string> matrix_place(const std::string& pair, const EndSpec& client, const EndSpec& server);

}  // namespace gdrperf::report
