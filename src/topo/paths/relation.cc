#include "gdrperf/topo/relation.h"

namespace gdrperf::topo {

std::string_view to_string(Relation relation) {
  switch (relation) {
    case Relation::kPix: return "PIX";
    case Relation::kPxb: return "PXB";
    case Relation::kPhb: return "PHB";
    case Relation::kNode: return "NODE";
    case Relation::kSys: return "SYS";
  }
  return "unknown";
}

std::optional<Relation> relation_from_token(std::string_view token) {
  if (token == "PIX") return Relation::kPix;
  if (token == "PXB") return Relation::kPxb;
  if (token == "PHB") return Relation::kPhb;
  if (token == "NODE") return Relation::kNode;
  if (token == "SYS" || token == "SOC") return Relation::kSys;
  return std::nullopt;
}

}  // namespace gdrperf::topo
