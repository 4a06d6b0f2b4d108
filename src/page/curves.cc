#include "gdrperf/page/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "gdrperf/report/relations.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::page {
namespace {

std::size_t relation_rank(const std::string& relation) {
  const auto& order = report::kRelationOrder;
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), relation) - order.begin());
}

/// The order in which people read them.
std::size_t op_rank(const std::string& op) {
  constexpr std::array<std::string_view, 6> kOrder = {"write_bw",  "read_bw",  "send_bw",
                                                      "write_lat", "read_lat", "send_lat"};
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), op) - kOrder.begin());
}

}  // namespace

std::vector<Curve> curves_of(const RunTable& runs) {
  struct Gathered {
    Curve curve;
    std::map<std::uint64_t, std::vector<double>> sizes;
  };
  std::map<std::tuple<std::size_t, std::string, std::size_t, bool>, Gathered> all;
  for (std::size_t row = 0; row < runs.rows(); ++row) {
    if (runs.text(row, "direction") == "bidirectional") continue;
    const std::string& op = runs.text(row, "op");
    const bool staged = runs.text(row, "path") == "staged";
    const std::string& relation = runs.text(row, "relation");
    const double size = runs.number(row, "size_bytes");
    const double value = runs.number(row, op.ends_with("_bw") ? "median_gbps" : "p50_ns");
    if (!(value > 0) || !(size >= 1) || size > 1e15) continue;
    Gathered& found = all[{op_rank(op), op, relation_rank(relation), staged}];
    found.curve.op = op;
    found.curve.relation = relation;
    found.curve.staged = staged;
    found.sizes[static_cast<std::uint64_t>(size)].push_back(value);
    const double ceiling = runs.number(row, "ceiling_gbps");
    if (!op.ends_with("_bw") || !(ceiling > 0)) continue;
    found.curve.ceiling_gbps = std::max(found.curve.ceiling_gbps, ceiling);
    found.curve.share = std::max(found.curve.share, value / ceiling);
  }
  std::vector<Curve> result;
  for (auto& [key, found] : all) {
    for (auto& [bytes, values] : found.sizes) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      found.curve.points.push_back({bytes, stats::median(values), *low, *high});
    }
    result.push_back(std::move(found.curve));
  }
  return result;
}

}  // namespace gdrperf::page
