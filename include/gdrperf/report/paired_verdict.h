#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Two ways to run a test that are compared size by size.
struct Pairing {
  const char* list;     ///< of the document: "orderings"
  const char* title;    ///< "relaxed or strict ordering"
  const char* subject;  ///< of the sentence: "relaxed ordering"
  const char* first;    ///< heading of the first way's figures: "relaxed"
  const char* second;
  const char* first_key;  ///< of the document's figures
  const char* second_key;
  /// Whether a run is one of the first way; nullopt: it takes no part.
  std::optional<bool> (*is_first)(const TestSpec& spec);
};
/// Relaxed and strict ordering; a GPU that starts messages by way of a CPU or itself, and a CPU.
std::span<const Pairing> pairings();

/// A figure and the ends of its 95 % interval: GB/s, or microseconds of a latency test.
struct PairedFigure {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Both ways at one size.
struct PairedPoint {
  PairedFigure first;
  PairedFigure second;
  bool unstable = false;  ///< either of the two
  bool both() const { return first.value > 0 && second.value > 0; }
  /// Their intervals do not touch, and both are stable.
  bool differ() const;
};

/// One test between two ends, over the sizes that were run both ways.
struct PairedVerdict {
  const Pairing* pairing;
  Test test;
  Outside client;  ///< "mlx5_0 host"
  Outside server;
  std::string relation;
  std::map<std::uint64_t, PairedPoint> points;  ///< by size in bytes

  /// Above 1 the first way is the better one: of rates, or of inverse latencies.
  double ratio(const PairedPoint& point) const;
  /// "relaxed ordering is worth +84 % at 1 MiB of the rate"; sizes whose intervals touch have no say.
  std::string words() const;
};

/// Gathers runs that take part in a pairing.
class PairedVerdicts {
 public:
  void add(const RunRecord& record);
  /// Those of which both ways were run, in the order of their first run.
  std::vector<PairedVerdict> all() const;

 private:
  std::vector<PairedVerdict> verdicts_;
};

/// Tables and verdicts, for people; "" when there is none.
std::string to_text(const std::vector<PairedVerdict>& verdicts);

}  // namespace gdrperf::report
