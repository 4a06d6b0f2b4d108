#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "app/plan/sweep.h"

namespace gdrperf::app {

/// Least rates by pair ("GPU0:mlx5_1"), relation ("PIX", "HOST") or "all", and maybe for one test alone.
class Floors {
 public:
  /// Lines of a name, a rate ("22GB/s") and maybe a test ("read_bw"); '#' begins a comment. Throws
  /// usage_error("NAME:LINE: ...").
  static Floors parse(const std::string& text, const std::string& name);

  /// In Gb/s: the line that says most of this run; nothing where none does.
  std::optional<double> least_gbps(const PlannedRun& run) const;
  /// Sets it as what is required of each run. Throws usage_error naming a line that no run is meant by.
  void ask(std::vector<PlannedRun>& runs) const;

 private:
  struct Line {
    std::string place;
    std::optional<Test> test;
    double gbps = 0;
    std::string where;  ///< "floors.txt:3"
  };
  const Line* line_for(const PlannedRun& run) const;

  std::vector<Line> lines_;
};

/// Time that each of `runs` may measure so that all are done `within` that, set-up included; between a tenth of a
/// second and one.
std::chrono::nanoseconds time_of_each(std::size_t runs, std::chrono::nanoseconds within);

}  // namespace gdrperf::app
