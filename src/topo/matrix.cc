#include "gdrperf/topo/matrix.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/topo/nvidia_smi.h"

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
        pairs.emplace(fmt::format("{}/{}", matrix.gpus[g], matrix.nics[n].name), *relation);
      }
    }
  }
  return pairs;
}

Topology load_topology(const std::string& nvidia_smi_file) {
  Topology topology;
  if (!nvidia_smi_file.empty()) {
    topology.matrix = read_nvidia_smi_file(nvidia_smi_file);
    topology.source = "file";
    return topology;
  }
  try {
    if (const auto text = run_nvidia_smi()) {
      topology.matrix = parse_nvidia_smi(*text, "nvidia-smi topo -m");
      topology.source = "nvidia-smi";
    }
  } catch (const Error& error) {
    topology.warnings.push_back(
        fmt::format("the relation between GPUs and NICs is unknown: {}; give a capture with "
                    "--nvidia-smi FILE",
                    error.what()));
  }
  return topology;
}

}  // namespace gdrperf::topo
