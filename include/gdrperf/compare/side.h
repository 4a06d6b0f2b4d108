#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gdrperf/compare/session.h"

namespace gdrperf::compare {

/// More documents on one side are refused; it bounds time and memory.
inline constexpr std::size_t kMostSessions = 1000;

/// The sessions of one cell under one set of conditions.
struct Series {
  CellKey key;
  std::vector<double> values;  ///< one per session, in the order added
  std::string last_started;
  std::vector<std::string> starts = {};  ///< RFC 3339, of each value; none: they are in order
  std::vector<std::string> doubts = {};  ///< of those values that cannot be trusted
};

/// One side of a comparison: sessions, gathered by cell. Only values are kept.
class Side {
 public:
  /// `across`: conditions that may differ within a cell (and between the sides),
  /// so that sessions of several kernels, say, form one series.
  explicit Side(std::set<std::string> across = {}) : across_(std::move(across)) {}

  /// Takes a session in; false when the same document is in already. Throws
  /// usage_error beyond kMostSessions.
  bool add(const Session& session);

  /// By name; under each the series by what their conditions are.
  const std::map<Outside, std::vector<Series>>& cells() const { return cells_; }
  bool has(std::uint64_t digest) const { return digests_.contains(digest); }
  std::size_t sessions() const { return digests_.size(); }
  /// Cells of a document without a usable figure, as "FILE: CELL", printable.
  const std::vector<std::string>& unusable() const { return unusable_; }
  /// Documents in which planned runs are missing.
  const std::vector<Outside>& partial() const { return partial_; }
  const std::set<Outside>& tools() const { return tools_; }

 private:
  std::set<std::string> across_;
  std::map<Outside, std::vector<Series>> cells_;
  std::set<std::uint64_t> digests_;
  std::vector<std::string> unusable_;
  std::vector<Outside> partial_;
  std::set<Outside> tools_;
};

/// Documents at `paths`: files; folders stand for the *.json files in them and
/// in their folders, but noise.json. Sorted within a folder. Throws usage_error
/// for what does not exist and for a folder without documents.
std::vector<std::string> documents_at(const std::vector<std::string>& paths);

/// Differences between conditions: "firmware: 28.39 -> 28.40".
struct Change {
  std::string name;
  Outside before;
  Outside now;
};
std::vector<Change> changes(const CellKey& before, const CellKey& now, const std::set<std::string>& across);

}  // namespace gdrperf::compare
