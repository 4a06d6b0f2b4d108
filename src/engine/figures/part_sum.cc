#include "engine/figures/part_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "engine/figures/bandwidth_figures.h"

namespace gdrperf::engine {
namespace {

/// The time that all curves cover.
struct Window {
  double from_ns = 0;
  double to_ns = std::numeric_limits<double>::infinity();
  bool any() const { return to_ns > from_ns; }
};

Window common_to(const std::vector<PartCurve>& parts) {
  Window window;
  const auto narrow = [&](const Curve& curve) {
    window.from_ns = std::max(window.from_ns, curve.empty() ? std::numeric_limits<double>::infinity() : curve.front().first);
    window.to_ns = std::min(window.to_ns, curve.empty() ? 0 : curve.back().first);
  };
  for (const PartCurve& part : parts) {
    narrow(part.own);
    if (!part.back.empty()) narrow(part.back);
  }
  return window;
}

double bytes_between(const Curve& curve, double from_ns, double to_ns) {
  return curve.empty() ? 0 : bytes_at(curve, to_ns) - bytes_at(curve, from_ns);
}

/// Bytes that completed between both moments for certain. A curve of edges is of pairs, just before some messages
/// complete and just after: what came until a moment is at least the last point, and at most the next first of a pair.
double certain_bytes(const Curve& curve, double from_ns, double to_ns) {
  const auto before = [](const auto& point, double at) { return point.first < at; };
  const auto after = [](double at, const auto& point) { return at < point.first; };
  auto most = std::lower_bound(curve.begin(), curve.end(), from_ns, before);
  if ((most - curve.begin()) % 2 == 1) ++most;
  const auto least = std::upper_bound(curve.begin(), curve.end(), to_ns, after);
  if (most == curve.end() || least == curve.begin()) return 0;
  return std::max((least - 1)->second - most->second, 0.0);
}

/// Runs that share a link, and the moments at which one of them is known exactly.
struct LinkParts {
  std::vector<const PartCurve*> parts = {};
  std::vector<ExactMoment> exact = {};

  /// Rate from one moment to another: what was on the wire before, or completes later, does not count.
  double rate(const ExactMoment& from, const ExactMoment& to) const {
    double bytes = -from.bytes;
    for (const PartCurve* part : parts) bytes += bytes_between(part->own, from.before_ns, to.after_ns);
    return bytes / (to.after_ns - from.before_ns);
  }

  /// The same where only what is certain counts: never above the link.
  double certain_rate(const ExactMoment& from, const ExactMoment& to) const {
    double bytes = -from.bytes;
    for (const PartCurve* part : parts) bytes += certain_bytes(part->own, from.before_ns, to.after_ns);
    return std::max(bytes, 0.0) / (to.after_ns - from.before_ns);
  }

  /// Bytes that the others' curves may be wrong by: how much came between the points next to the moment.
  double doubt(const ExactMoment& at) const {
    double sum = 0;
    for (const PartCurve* part : parts) sum += doubt_of(part->own, at.before_ns);
    return sum;
  }

  /// Of the exact moments within `reach_ns` that at which the least is in doubt; `at_ns` itself where there is none.
  ExactMoment border(double at_ns, double reach_ns) const {
    const auto before = [](const ExactMoment& moment, double ns) { return moment.before_ns < ns; };
    ExactMoment best{at_ns, at_ns, 0};
    double least = std::numeric_limits<double>::infinity();
    for (auto each = std::lower_bound(exact.begin(), exact.end(), at_ns - reach_ns, before);
         each != exact.end() && each->after_ns <= at_ns + reach_ns; ++each) {
      const double found = doubt(*each);
      if (found < least) least = found, best = *each;
    }
    return best;
  }

 private:
  static double doubt_of(const Curve& curve, double at_ns) {
    const auto before = [](const auto& point, double at) { return point.first < at; };
    const auto next = std::lower_bound(curve.begin(), curve.end(), at_ns, before);
    if (next == curve.begin() || next == curve.end() || next->first == at_ns) return 0;
    return next->second - (next - 1)->second;
  }
};

std::vector<LinkParts> links_of(const std::vector<PartCurve>& parts) {
  std::map<std::string, LinkParts> by_name;
  for (const PartCurve& part : parts) {
    LinkParts& link = by_name[part.link];
    link.parts.push_back(&part);
    link.exact.insert(link.exact.end(), part.exact.begin(), part.exact.end());
  }
  std::vector<LinkParts> links;
  for (auto& [name, link] : by_name) {
    std::sort(link.exact.begin(), link.exact.end(), [](const ExactMoment& a, const ExactMoment& b) { return a.before_ns < b.before_ns; });
    links.push_back(std::move(link));
  }
  return links;
}

/// How far a link's border may be from that of a stretch.
constexpr double kReach = 0.25;

/// Borders of `cells` stretches of one link.
std::vector<ExactMoment> borders_of(const LinkParts& link, const Window& window, double cells) {
  const double cell_ns = (window.to_ns - window.from_ns) / cells;
  const double reach_ns = kReach * cell_ns;
  std::vector<ExactMoment> borders;
  for (double cell = 0; cell <= cells; ++cell) {
    // Outside the window there is no border.
    borders.push_back(link.border(std::clamp(window.from_ns + cell * cell_ns, window.from_ns + reach_ns, window.to_ns - reach_ns), reach_ns));
  }
  return borders;
}

/// Rate of one run from border to border of its link.
double rate_of(const PartCurve& part, const std::vector<LinkParts>& links, const Window& window) {
  const auto has = [&](const LinkParts& link) { return std::find(link.parts.begin(), link.parts.end(), &part) != link.parts.end(); };
  const LinkParts& link = *std::find_if(links.begin(), links.end(), has);
  constexpr double kReachNs = 20e6;
  const double reach_ns = std::min(kReachNs, kReach * (window.to_ns - window.from_ns));
  const ExactMoment from = link.border(window.from_ns + reach_ns, reach_ns);
  const ExactMoment to = link.border(window.to_ns - reach_ns, reach_ns);
  const double whole_ns = to.after_ns - from.before_ns;
  if (part.exact.empty()) return bytes_between(part.own, from.before_ns, to.after_ns) / whole_ns;
  return certain_bytes(part.own, from.after_ns, to.after_ns) / whole_ns;
}

double cells_of(const std::vector<PartCurve>& parts, const std::vector<LinkParts>& links, const Window& window) {
  double batch_ns = 0;
  for (const PartCurve& part : parts) {
    batch_ns = std::max(batch_ns, part.run.series.total_seconds() * 1e9 / static_cast<double>(std::max<std::size_t>(part.run.series.size(), 1)));
  }
  double most = std::min(std::floor((window.to_ns - window.from_ns) / batch_ns), static_cast<double>(BatchSeries::kMax));
  // So long that exact moments lie about their borders.
  constexpr std::size_t kMomentsOfACell = 6;
  for (const LinkParts& link : links) {
    if (!link.exact.empty()) most = std::min(most, static_cast<double>(link.exact.size() / kMomentsOfACell));
  }
  return std::max(most, 1.0);
}

Rates rates_over(const std::vector<PartCurve>& parts, const Window& window, std::uint64_t size_bytes) {
  Rates rates;
  if (!window.any()) return rates;
  const bool both_ways = std::any_of(parts.begin(), parts.end(), [](const PartCurve& part) { return !part.back.empty(); });
  const std::vector<LinkParts> links = links_of(parts);
  const double cells = cells_of(parts, links, window);
  const double cell_ns = (window.to_ns - window.from_ns) / cells;
  const auto count = static_cast<std::size_t>(cells);
  std::vector<double> own(count, 0.0);  // bytes per nanosecond
  std::vector<double> most(count, 0.0);
  for (const LinkParts& link : links) {
    const std::vector<ExactMoment> borders = borders_of(link, window, cells);
    for (std::size_t cell = 0; cell < count; ++cell) {
      own[cell] += link.rate(borders[cell], borders[cell + 1]);
      most[cell] += link.exact.empty() ? link.rate(borders[cell], borders[cell + 1]) : link.certain_rate(borders[cell], borders[cell + 1]);
    }
  }
  for (std::size_t cell = 0; cell < count; ++cell) {
    const double from_ns = window.from_ns + static_cast<double>(cell) * cell_ns;
    double back = 0;
    for (const PartCurve& part : parts) back += bytes_between(part.back, from_ns, from_ns + cell_ns) / cell_ns;
    rates.gbytes.values.push_back(own[cell] + back);
    rates.certain_most = std::max(rates.certain_most, most[cell] + back);
    rates.gbytes.seconds.push_back(cell_ns * 1e-9);
    if (both_ways) {
      rates.own.values.push_back(own[cell]);
      rates.back.values.push_back(back);
    }
    rates.batches.push_back({static_cast<double>(cell) * cell_ns * 1e-9, cell_ns * 1e-9,
                             static_cast<std::uint64_t>(std::llround(own[cell] * cell_ns / static_cast<double>(size_bytes)))});
  }
  return rates;
}

/// What does not depend on the window: reasons, counts and the time of all.
BandwidthRun all_of(const std::vector<PartCurve>& parts) {
  BandwidthRun all{BatchSeries(kBatchSeconds)};
  all.start_ns = std::numeric_limits<double>::infinity();
  for (const PartCurve& part : parts) {
    all.stop = std::max(all.stop, part.run.stop);
    all.start_ns = std::min(all.start_ns, part.run.start_ns);
    all.end_ns = std::max(all.end_ns, part.run.end_ns);
    all.sent += part.run.sent;
    all.messages += part.run.messages;
  }
  all.seconds = (all.end_ns - all.start_ns) * 1e-9;
  return all;
}

Whole whole_of(const std::vector<PartCurve>& parts, const BandwidthRun& all, std::uint64_t size_bytes) {
  double back = 0;
  for (const PartCurve& part : parts) {
    if (!part.back.empty()) back += part.back.back().second - part.back.front().second;
  }
  const double bytes = static_cast<double>(all.messages) * static_cast<double>(size_bytes) + back;
  return {all.seconds, bytes / all.seconds * 1e-9, back / all.seconds * 1e-9};
}

}  // namespace

PartCurve curve_of(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  PartCurve part{run, {}, {}};
  part.link = spec.reverse ? spec.server.device : spec.client.device;
  const double size = static_cast<double>(spec.size_bytes);
  for (const Edge& edge : run.edges.edges()) {
    if (!edge.before_sent) continue;
    const double origin = static_cast<double>(run.edges.edges().front().sent);
    part.own.emplace_back(edge.before_ns, (static_cast<double>(*edge.before_sent) - origin) * size);
    part.own.emplace_back(edge.after_ns, (static_cast<double>(edge.sent) - origin) * size);
    part.exact.push_back({edge.before_ns, edge.after_ns, static_cast<double>(edge.sent - *edge.before_sent) * size});
  }
  // Of a queue that was never found empty, and of a run that another end measured, there are batches alone.
  constexpr std::size_t kEnoughExact = 16;
  if (part.exact.size() < kEnoughExact) part.own.clear(), part.exact.clear();
  double bytes = 0;
  for (const Batch& batch : run.series.batches()) {
    if (!part.exact.empty()) break;
    part.own.emplace_back(run.first_batch_ns + batch.start_s * 1e9, bytes);
    bytes += static_cast<double>(batch.messages) * static_cast<double>(spec.size_bytes);
  }
  if (!part.own.empty() && part.exact.empty()) part.own.emplace_back(run.first_batch_ns + run.series.total_seconds() * 1e9, bytes);
  if (peer == nullptr) return part;
  for (const auto& [at_ns, sent] : peer->series) part.back.emplace_back(at_ns - peer->clock_ahead_ns, static_cast<double>(sent));
  return part;
}

double bytes_at(const Curve& curve, double at_ns) {
  const auto before = [](const auto& point, double at) { return point.first < at; };
  const auto next = std::lower_bound(curve.begin(), curve.end(), at_ns, before);
  if (next == curve.begin()) return curve.front().second;
  if (next == curve.end()) return curve.back().second;
  const auto& [from_ns, from] = *(next - 1);
  const auto& [to_ns, to] = *next;
  return from + (to - from) * (at_ns - from_ns) / (to_ns - from_ns);
}

Together::Sum sum_of(const std::vector<PartCurve>& parts, const TestSpec& spec) {
  const Window window = common_to(parts);
  BandwidthRun all = all_of(parts);
  if (window.any()) all.ramp_s = (window.from_ns - all.start_ns) * 1e-9;
  const Rates rates = rates_over(parts, window, spec.size_bytes);
  Together::Sum sum;
  sum.measured = figures_of(rates, whole_of(parts, all, spec.size_bytes), all, spec);
  // Without an interval the figure is of the whole time.
  // Of stretches in which one part is not known, more may have been counted than crossed the link.
  report::Bandwidth& bandwidth = *sum.measured.bandwidth;
  if (rates.certain_most > 0) bandwidth.max_gbytes = std::min(bandwidth.max_gbytes, std::max(rates.certain_most, bandwidth.median_gbytes));
  const bool windowed = window.any() && !spec.stop.iterations && std::isfinite(sum.measured.bandwidth->ci95_low_gbytes);
  const double from_ns = windowed ? all.start_ns + sum.measured.warmup_cut_s * 1e9 : all.start_ns;
  const double to_ns = windowed ? window.to_ns : all.end_ns;
  const std::vector<LinkParts> links = links_of(parts);
  double first_ns = std::numeric_limits<double>::infinity();
  double last_ns = 0;
  for (const PartCurve& part : parts) {
    if (windowed) {
      sum.gbytes.push_back(rate_of(part, links, {from_ns, to_ns}) + bytes_between(part.back, from_ns, to_ns) / (to_ns - from_ns));
    } else {
      const double back = part.back.empty() ? 0 : part.back.back().second - part.back.front().second;
      sum.gbytes.push_back((static_cast<double>(part.run.messages) * static_cast<double>(spec.size_bytes) + back) / (to_ns - from_ns));
    }
    first_ns = std::min(first_ns, part.run.start_ns);
    last_ns = std::max(last_ns, part.run.start_ns);
  }
  sum.start_spread_s = (last_ns - first_ns) * 1e-9;
  return sum;
}

}  // namespace gdrperf::engine
