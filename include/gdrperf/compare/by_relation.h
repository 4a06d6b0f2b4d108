#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gdrperf::compare {

/// Test and bytes per message.
using Work = std::pair<std::string, std::uint64_t>;

/// A GPU and a NIC, wherever they are plugged in.
struct CardPair {
  std::string label;     ///< "GPU0/mlx5_1", as that document calls it
  std::string relation;  ///< "PIX"
  bool by_name = false;  ///< one of them has no UUID or GUID: told by its name
  std::map<Work, std::vector<double>> values;
};

/// The figures of one document by relation and by pair; Gb/s or ns.
struct PlacementFigures {
  std::string path;
  bool simulated = false;
  std::map<Work, std::map<std::string, std::vector<double>>> relations;
  std::map<std::string, CardPair> pairs;  ///< by identity of the cards
};

/// Reads a result document. Throws usage_error as read_session() does.
PlacementFigures read_placement_figures(const std::string& path);
PlacementFigures parse_placement_figures(std::string_view text, const std::string& path);

/// Two layouts of a machine, or two machines, side by side for people: relation
/// by relation, size by size, and the pairs whose relation has changed, with
/// what that gained.
std::string placement_report(const PlacementFigures& before, const PlacementFigures& after);

/// The same as JSON.
std::string placement_json(const PlacementFigures& before, const PlacementFigures& after);

}  // namespace gdrperf::compare
