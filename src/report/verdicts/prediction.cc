#include "gdrperf/report/prediction.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace gdrperf::report {
namespace {

using topo::Ceiling;
using topo::Relation;

/// Relations that one share describes: below one switch, through the root complex of a node, across nodes.
enum class PathClass { kSwitch,
                       kRootComplex,
                       kSockets };

PathClass class_of(Relation relation) {
  if (relation <= Relation::kPxb) return PathClass::kSwitch;
  return relation <= Relation::kNode ? PathClass::kRootComplex : PathClass::kSockets;
}

bool is_of(const PublishedFigure& figure, PathClass wanted) {
  return std::any_of(figure.relations.begin(), figure.relations.end(), [&](const std::string& word) {
    const auto relation = topo::relation_from_token(word);
    return relation && class_of(*relation) == wanted;
  });
}

bool tells(const PublishedFigure& figure, MemoryAccess access) {
  if (access == MemoryAccess::kEither || figure.direction.empty()) return true;
  return figure.direction == (access == MemoryAccess::kNicReads ? "read" : "write");
}

/// Shares of their own ceilings that the figures of a class reached, ascending.
std::vector<double> shares_of(PathClass wanted, MemoryAccess access, const PublishedFigure* leave_out) {
  std::vector<double> shares;
  for (const PublishedFigure& figure : published_figures()) {
    if (&figure == leave_out || figure.fault || !figure.gpudirect_rdma || figure.gbytes <= 0) continue;
    const auto ceiling = ceiling_of(figure);
    if (ceiling && is_of(figure, wanted) && tells(figure, access)) shares.push_back(figure.gbytes * 8 / ceiling->gbps);
  }
  std::sort(shares.begin(), shares.end());
  return shares;
}

}  // namespace

std::optional<Ceiling> ceiling_of(const PublishedFigure& figure) {
  constexpr double kGtPerSecond[] = {0, 2.5, 5, 8, 16, 32, 64};
  topo::TreeNic nic;
  nic.rate_gbps = figure.link_gbps;
  nic.infiniband = figure.infiniband;
  const auto port = topo::port_ceiling(nic);
  if (!port || figure.gpu_pcie_gen < 1 || figure.gpu_pcie_gen > 6) return port;
  topo::PathHop hop;
  hop.now = hop.max = {kGtPerSecond[figure.gpu_pcie_gen], 16};
  return topo::lesser(port, Ceiling{topo::hop_payload_gbps(hop), fmt::format("gen{} x16", figure.gpu_pcie_gen)});
}

std::optional<Prediction> predict(Relation relation, const std::optional<Ceiling>& ceiling, MemoryAccess access,
                                  const PublishedFigure* leave_out) {
  // Machines differ a little more than those that were published.
  constexpr double kMargin = 0.95;
  if (!ceiling) return std::nullopt;
  Prediction prediction;
  prediction.ceiling = *ceiling;
  prediction.bound = class_of(relation) != PathClass::kSwitch;
  const std::vector<double> shares = shares_of(class_of(relation), access, leave_out);
  prediction.figures = shares.size();
  if (shares.empty()) return prediction;
  prediction.least_gbps = ceiling->gbps * std::min(1.0, shares.front() * kMargin);
  prediction.lowest_gbps = ceiling->gbps * shares.front();
  prediction.highest_gbps = ceiling->gbps * shares.back();
  prediction.median_gbps = ceiling->gbps * std::min(1.0, shares[shares.size() / 2]);
  return prediction;
}

std::optional<Prediction> predict(const topo::PciTree& tree, const topo::PciPath& path, const topo::TreeNic& nic,
                                  Relation relation, MemoryAccess access) {
  return predict(relation, topo::pair_ceiling(tree, path, nic), access);
}

std::string range_text(const Prediction& prediction) {
  const double most = prediction.ceiling.gbps / 8;
  if (prediction.bound && prediction.figures == 0) return fmt::format("at most {:.1f}", most);
  if (prediction.bound) {
    return fmt::format("at most {:.1f}, published {:.1f} to {:.1f}", most, prediction.lowest_gbps / 8,
                       prediction.highest_gbps / 8);
  }
  return fmt::format("{:.1f} to {:.1f}", prediction.least_gbps / 8, most);
}

std::string sureness_text(const Prediction& prediction, Relation relation) {
  const std::string_view word = to_string(relation);
  if (prediction.figures == 0) {
    return fmt::format("no results are published for {}", word);
  }
  const double median = prediction.median_gbps / 8;
  if (!prediction.bound) {
    return fmt::format("likely: {} results published for one PCIe switch reached at least {:.0f} % of their maximum "
                       "(a margin of 5 % included), half of them {:.0f} % or more",
                       prediction.figures, 100 * prediction.least_gbps / prediction.ceiling.gbps,
                       100 * prediction.median_gbps / prediction.ceiling.gbps);
  }
  return fmt::format("links do not predict {}: {} published results reached {:.0f} to {:.0f} % of their maximum; "
                     "their median would be {:.1f} GB/s here",
                     word, prediction.figures, 100 * prediction.lowest_gbps / prediction.ceiling.gbps,
                     100 * prediction.highest_gbps / prediction.ceiling.gbps, median);
}

}  // namespace gdrperf::report
