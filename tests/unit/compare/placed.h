#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/compare/by_relation.h"

namespace gdrperf::compare {

/// One run of a made-up document.
struct PlacedRun {
  std::string relation;
  std::string members;  ///< of the run, JSON
};

inline std::string bandwidth_run(const std::string& figure, const std::string& size = "65536",
                                 const std::string& more = "") {
  return fmt::format(R"({}"op": "write_bw", "size_bytes": {}, "bw": {{"median_gbps": {}}})", more, size, figure);
}

/// A document of these runs, with members of its topology and of its head.
inline std::string document_of(const std::vector<PlacedRun>& runs, const std::string& cards = "",
                               const std::string& head = "") {
  std::vector<std::string> relations;
  for (const PlacedRun& run : runs)
    relations.push_back(fmt::format(R"("{}": {{"test": [{{{}}}]}})", run.relation, run.members));
  return fmt::format(R"({{"schema": "gdrperf-results/1", {}"topology": {{{}}}, "relations": {{{}}}}})", head, cards,
                     fmt::join(relations, ", "));
}

inline PlacementFigures figures_of(const std::vector<PlacedRun>& runs, const std::string& cards = "",
                                   const std::string& head = "") {
  return parse_placement_figures(document_of(runs, cards, head), "x.json");
}

/// Two GPUs, one without a UUID; NICs of which two share a GUID and one has none.
inline constexpr const char* kCards =
    R"("gpus": [{"name": "GPU0", "uuid": "gpu-a"}, {"name": "GPU1", "uuid": ""}],
       "nics": [{"name": "mlx5_0", "guid": "0x11"}, {"name": "mlx5_1", "guid": "0x22"},
                {"name": "mlx5_2", "guid": "0x22"}, {"name": "mlx5_3", "uuid": "0x33"}])";

}  // namespace gdrperf::compare
