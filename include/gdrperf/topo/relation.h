#pragma once

#include <optional>
#include <string_view>

namespace gdrperf::topo {

/// Distance between two PCIe devices, in the words of `nvidia-smi topo -m`;
/// nearest first.
enum class Relation {
  kPix,   ///< at most one PCIe bridge between them
  kPxb,   ///< several bridges, no host bridge
  kPhb,   ///< through the host bridge both share
  kNode,  ///< through several host bridges of one NUMA node
  kSys,   ///< through the link between NUMA nodes
};

/// "PIX", "PXB", "PHB", "NODE" or "SYS": the key under `relations` of a result.
std::string_view to_string(Relation relation);

/// The relation a matrix cell stands for; SOC is what drivers before 384 called
/// SYS. Nothing for "X", for NVLink ("NV4") and for anything else.
std::optional<Relation> relation_from_token(std::string_view token);

}  // namespace gdrperf::topo
