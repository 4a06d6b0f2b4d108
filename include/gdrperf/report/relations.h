#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// The relations in the order in which they are shown: nearest first, host last.
inline constexpr std::array<const char*, 6> kRelationOrder = {"PIX",  "PXB", "PHB",
                                                              "NODE", "SYS", "HOST"};

/// kTelling: of rates the largest size alone, of latencies the smallest.
enum class Sizes { kAll, kTelling };

/// Gathers runs and compares the relations between GPU and NIC: for each test
/// and size the median over a relation's pairs, their spread, and the ratio to
/// the best relation. Rows that stand on an unstable run carry the tables' mark.
class RelationComparison {
 public:
  void add(const RunRecord& record);
  /// Nothing where no run was between a GPU and a NIC.
  void print(std::ostream& out, const ConsoleOptions& options, Sizes sizes) const;

 private:
  struct Pairs {
    std::vector<double> values;  ///< GB/s, or ns; one for each pair
    bool unstable = false;       ///< any of them
  };
  using ByRelation = std::map<std::string, Pairs>;
  std::map<std::string, std::map<std::uint64_t, ByRelation>> tests_;  ///< by test, by size
  std::vector<std::string> order_;                                    ///< of tests
  bool any_pair_ = false;
  bool simulated_ = false;
};

}  // namespace gdrperf::report
