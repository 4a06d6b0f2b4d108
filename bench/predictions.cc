// Predictions of GPUDirect RDMA against published figures: for each figure whose machine and placement are named, what
// the other figures predict. Exit status 1 when fewer than 80 % lie within.
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/report/prediction.h"

namespace {

using namespace gdrperf;

/// Of several relations that a source leaves open, the farthest.
std::optional<topo::Relation> placement_of(const report::PublishedFigure& figure) {
  std::optional<topo::Relation> farthest;
  for (const std::string& word : figure.relations) {
    const auto relation = topo::relation_from_token(word);
    if (relation && (!farthest || *relation > *farthest)) farthest = relation;
  }
  return farthest;
}

report::MemoryAccess access_of(const report::PublishedFigure& figure) {
  if (figure.direction.empty()) return report::MemoryAccess::kEither;
  return figure.direction == "read" ? report::MemoryAccess::kNicReads : report::MemoryAccess::kNicWrites;
}

}  // namespace

int main() {
  constexpr double kWanted = 0.8;
  int judged = 0;
  int within = 0;
  fmt::print("{:<24} {:<14} {:<16} {:>6} {:>15} {:>7}  {}\n", "machine", "GPU", "placement", "GB/s", "predicted",
             "middle", "");
  for (const report::PublishedFigure& figure : report::published_figures()) {
    const auto relation = placement_of(figure);
    if (!figure.gpudirect_rdma || figure.gbytes <= 0 || !relation) continue;
    const auto predicted = report::predict(*relation, report::ceiling_of(figure), access_of(figure), &figure);
    if (!predicted || predicted->figures == 0) continue;
    const double least = predicted->least_gbps / 8;
    const double most = predicted->ceiling.gbps / 8;
    const bool inside = figure.gbytes >= least && figure.gbytes <= most;
    ++judged;
    within += inside ? 1 : 0;
    fmt::print("{:<24.24} {:<14.14} {:<16} {:>6.2f} {:>6.2f} to {:>5.2f} {:>7.2f}  {}{}\n", figure.machine, figure.gpu,
               fmt::format("{}", fmt::join(figure.relations, ",")), figure.gbytes, least, most,
               predicted->median_gbps / 8, inside ? "within" : "OUTSIDE",
               predicted->bound ? "; " + report::range_text(*predicted) : "");
  }
  const double share = judged == 0 ? 0 : static_cast<double>(within) / judged;
  fmt::print("{} of {} figures lie within what the others predict: {:.0f} % (wanted: {:.0f} %)\n", within, judged,
             100 * share, 100 * kWanted);
  return share >= kWanted ? 0 : 1;
}
