#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gdrperf::report {

struct RunRecord;

/// Demands on figures, whatever a baseline says.
struct Required {
  std::optional<double> min_gbps;        ///< median bandwidth in Gb/s (1e9 bits)
  std::optional<double> max_p99_us;      ///< latency
  std::optional<double> min_efficiency;  ///< median bandwidth as a share of the ceiling
  bool any() const { return min_gbps || max_p99_us || min_efficiency; }
};

/// A demand that a run misses, or that nobody can judge.
struct Miss {
  bool known = true;  ///< false: there is no figure, or no ceiling
  std::string text;   ///< "83.2 Gb/s (10.4 GB/s) is below --min-gbps 100"
};

/// Of what concerns the test of the run; empty: all met, or nothing is asked.
std::vector<Miss> misses(const RunRecord& record);

/// "yes", "no", "unknown"; "" where nothing is asked of such a run.
std::string met(const RunRecord& record);

}  // namespace gdrperf::report
