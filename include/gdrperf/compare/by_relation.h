#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrperf/compare/judge.h"

namespace gdrperf::compare {

/// Test and bytes per message.
using Work = std::pair<std::string, std::uint64_t>;

/// A run's figure.
struct PlacedFigure {
  double value = 0;    ///< Gb/s or ns
  std::string doubt;   ///< why it cannot be trusted; "": nothing speaks against it
};

/// A GPU and a NIC, wherever they are plugged in.
struct CardPair {
  Outside label;         ///< "GPU0/mlx5_1", as that document calls it
  std::string relation;  ///< "PIX"
  bool by_name = false;  ///< one of them has no UUID or GUID: told by its name
  std::map<Work, std::vector<PlacedFigure>> values;
};

/// The figures of one document by relation and by pair: one session.
struct PlacementFigures {
  Outside path;
  std::string started;       ///< RFC 3339
  std::uint64_t digest = 0;  ///< of the bytes: tells the same document twice
  bool simulated = false;
  bool partial = false;      ///< planned runs are missing
  std::map<Work, std::map<std::string, std::vector<PlacedFigure>>> relations;
  std::map<std::string, CardPair> pairs;  ///< by identity of the cards
};

/// Reads a result document. Throws usage_error as read_session() does.
PlacementFigures read_placement_figures(const std::string& path);
PlacementFigures parse_placement_figures(std::string_view text, const std::string& path);

/// Two layouts of a machine, or two machines, side by side: relation by relation, size by size, and the pairs whose
/// relation has changed. Each document is a session; each row has its difference, how far that may be off, and a
/// verdict by judge_cells(): better, worse, the same within N %, or that it cannot be told. No side is empty; throws
/// usage_error beyond kMostSessions.
class PlacementComparison {
 public:
  PlacementComparison(std::span<const PlacementFigures> before, std::span<const PlacementFigures> after,
                      const Settings& settings);

  /// For people, and the same as JSON.
  std::string text() const;
  std::string json() const;

  struct Row {
    Work work;
    CellResult cell;
    std::string verdict;  ///< in words
  };
  /// By relation, nearest first within a test and size.
  struct RelationRow : Row {
    std::string relation;
  };
  const std::vector<RelationRow>& rows() const { return rows_; }

 private:
  struct Move {
    CardPair before;
    CardPair after;
    std::vector<Row> rows;
  };
  std::vector<Outside> before_;  ///< paths
  std::vector<Outside> after_;
  bool simulated_ = false;
  std::vector<std::string> notes_;
  std::vector<RelationRow> rows_;
  std::vector<Move> moves_;
};

}  // namespace gdrperf::compare
