#include "gdrperf/report/spread.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/proto/flow.h"

namespace gdrperf::report {

bool PortShare::uneven() const {
  // Of paths that are alike, with the noise of arbitration among QPs; half of one or a slower link lies beyond.
  constexpr double kLeast = 0.8;
  constexpr double kMost = 1.25;
  return share < kLeast * even || share > kMost * even;
}

std::vector<PortShare> Spread::uneven() const {
  std::vector<PortShare> found;
  std::copy_if(ports.begin(), ports.end(), std::back_inserter(found),
               [](const PortShare& each) { return each.uneven(); });
  return found;
}

std::optional<Spread> spread_of(const Measurement& measured) {
  if (measured.qp_shares.empty()) return std::nullopt;
  Spread spread;
  spread.least = 1;
  for (const QpShare& qp : measured.qp_shares) {
    spread.least = std::min(spread.least, qp.share);
    spread.most = std::max(spread.most, qp.share);
    const int port = udp_source_port(qp.flow_label);
    auto found = std::find_if(spread.ports.begin(), spread.ports.end(),
                              [&](const PortShare& each) { return each.port == port; });
    if (found == spread.ports.end()) found = spread.ports.insert(spread.ports.end(), {port, qp.flow_label, 0, 0, 0});
    found->share += qp.share;
    ++found->qps;
  }
  // Against the middle one: a slow port leaves more to all others.
  std::vector<double> of_a_qp;
  for (const PortShare& each : spread.ports) of_a_qp.push_back(each.share / static_cast<double>(each.qps));
  // The upper one of two: that the other is slow is more likely than that it is fast.
  std::nth_element(of_a_qp.begin(), of_a_qp.begin() + static_cast<std::ptrdiff_t>(of_a_qp.size() / 2), of_a_qp.end());
  const double middle = of_a_qp[of_a_qp.size() / 2];
  for (PortShare& each : spread.ports) each.even = middle * static_cast<double>(each.qps);
  return spread;
}

std::string uneven_text(const Spread& spread) {
  std::vector<std::string> named;
  for (const PortShare& each : spread.uneven()) {
    named.push_back(fmt::format("{} (flow label {}) has {:.2f} of the middle one's share", each.port, each.flow_label,
                                each.share / each.even));
  }
  if (named.empty()) return {};
  return fmt::format("uneven paths: UDP source port {}", fmt::join(named, ", "));
}

std::string spread_text(const RunRecord& record) {
  const auto spread = spread_of(record.measured);
  if (!spread) return {};
  const std::vector<QpShare>& qps = record.measured.qp_shares;
  std::string text = fmt::format("  {:>5}{:>13}{:>12}{:>10}\n", "QP", "source port", "flow label", "share %");
  for (std::size_t q = 0; q < qps.size(); ++q) {
    text += fmt::format("  {:>5}{:>13}{:>12}{:>10.2f}\n", q, udp_source_port(qps[q].flow_label), qps[q].flow_label,
                        100 * qps[q].share);
  }
  const std::string uneven = uneven_text(*spread);
  text += fmt::format(
      "  spread over {} source ports: {:.2f} to {:.2f} % of the rate for each QP, {:.2f} % if all were equal; {}\n",
      spread->ports.size(), 100 * spread->least, 100 * spread->most, 100.0 / static_cast<double>(qps.size()),
      uneven.empty() ? "no port is uneven" : uneven);
  return text;
}

}  // namespace gdrperf::report
