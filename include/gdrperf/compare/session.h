#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/outside.h"

namespace gdrperf::compare {

/// Larger documents are refused: reading one takes its size in memory.
inline constexpr std::size_t kLargestDocument = std::size_t{128} << 20;

/// Something a figure depends on beside what is measured: the NIC's firmware,
/// the kernel, the depth of the queue. "-" where the document does not say.
struct Condition {
  std::string name;
  Outside value;
  bool operator==(const Condition&) const = default;
};

/// All conditions, in the order of CellKey::conditions: what of hosts and GPUs
/// figures depend on, then those of report::fields().
const std::vector<std::string_view>& condition_names();

enum class Better { kHigher, kLower };

/// One thing that is measured again and again: "write_bw/PIX/GPU0:mlx5_0/65536".
struct CellKey {
  /// report::run_name()
  Outside name;
  /// Only cells under the same conditions are compared.
  std::vector<Condition> conditions;
  Better better = Better::kHigher;
  std::string_view unit() const { return better == Better::kHigher ? "Gb/s" : "ns"; }
};

/// One session's value of a cell: the median (bandwidth) or p50 (latency); of
/// several runs of the cell in the session, their median.
struct CellValue {
  CellKey key;
  double value = 0;
  std::string doubt = {};  ///< why it cannot be trusted: "unstable (drift)"; "": nothing speaks against it
};

/// One document: one invocation of gdrperf, the unit of repetition.
struct Session {
  Outside path;
  std::string started;        ///< RFC 3339
  Outside tool;               ///< version and git revision
  std::uint64_t digest = 0;   ///< of the bytes: tells the same document twice
  std::string machine;        ///< hosts, NICs and firmware as a folder's name
  std::vector<CellValue> cells;
  bool partial = false;       ///< planned runs are missing: it was stopped, or they failed
  bool imported = false;      ///< another program's: its conditions are not known
  std::vector<Outside> unusable;  ///< cells whose figure is null, not positive or not there
};

/// Reads a result document ("-": standard input) in one pass, with memory in
/// proportion to its size and number of runs. Throws usage_error naming the file
/// and the place when it is larger than `largest`, not JSON, cut off, of another
/// schema, or a value in it has the wrong type.
Session read_session(const std::string& path, std::size_t largest = kLargestDocument);

/// The same from text; `path` is for messages.
Session parse_session(std::string_view text, const std::string& path);

}  // namespace gdrperf::compare
