#include "gdrperf/topo/matrix.h"

#include <fmt/format.h>


namespace gdrperf::topo {

std::optional<Relation> pair_relation(const Matrix& matrix, std::string_view gpu,
                                      std::string_view nic) {
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    if (matrix.gpus[g] != gpu) continue;
    for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
      if (matrix.nics[n].name == nic) return relation_from_token(matrix.gpu_nic[g][n]);
    }
    for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
      if (matrix.nics[n].label == nic) return relation_from_token(matrix.gpu_nic[g][n]);
    }
  }
  return std::nullopt;
}

std::map<std::string, Relation> pair_relations(const Matrix& matrix) {
  std::map<std::string, Relation> pairs;
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
      if (const auto relation = relation_from_token(matrix.gpu_nic[g][n])) {
        pairs.emplace(fmt::format("{}/{}", matrix.gpus[g], matrix.nics[n].name.raw()), *relation);
      }
    }
  }
  return pairs;
}

}  // namespace gdrperf::topo
