#include "engine/figures/part_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "gdrperf/stats/summary.h"
#include "engine/figures/bandwidth_figures.h"

namespace gdrperf::engine {
namespace {

constexpr auto before = [](const Curve::value_type& point, double at) { return point.first < at; };

/// The time that all curves cover.
struct Window {
  double from_ns = 0;
  double to_ns = std::numeric_limits<double>::infinity();
  bool any() const { return to_ns > from_ns; }
};

Window common_to(const std::vector<PartCurve>& parts) {
  Window window;
  const auto narrow = [&](const Curve& curve) {
    window.from_ns =
        std::max(window.from_ns, curve.empty() ? std::numeric_limits<double>::infinity() : curve.front().first);
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

/// Bytes that completed between both moments for certain: those behind the first edge of that time. A run that waited
/// for a CPU sees late what had completed long before; an edge does not.
double certain_bytes(const PartCurve& part, double from_ns, double to_ns) {
  const auto after = [](double at, const auto& point) { return at < point.first; };
  const auto most = std::lower_bound(part.edges.begin(), part.edges.end(), from_ns, before);
  const auto least = std::upper_bound(part.own.begin(), part.own.end(), to_ns, after);
  if (most == part.edges.end() || least == part.own.begin()) return 0;
  return std::max((least - 1)->second - most->second, 0.0);
}

/// Bytes of which nobody knows whether they had completed by `at_ns`: those between the last note by then and the
/// first edge from then on. The way back has no edges: up to the next note or, where that ends a pause, the one behind.
double unsure_at(const PartCurve& part, double at_ns) {
  double unsure = 0;
  const auto edge = std::lower_bound(part.edges.begin(), part.edges.end(), at_ns, before);
  const auto note = std::upper_bound(part.own.begin(), part.own.end(), at_ns,
                                     [](double at, const auto& point) { return at < point.first; });
  if (edge != part.edges.end() && note != part.own.begin()) unsure += std::max(edge->second - (note - 1)->second, 0.0);
  const auto next = std::lower_bound(part.back.begin(), part.back.end(), at_ns, before);
  if (next == part.back.begin() || next == part.back.end() || next->first == at_ns) return unsure;
  const double known = (next - 1)->second;
  const bool pause = next->second == known && next + 1 != part.back.end();
  return unsure + (pause ? next + 1 : next)->second - known;
}

double unsure_at(const std::vector<PartCurve>& parts, double at_ns) {
  double bytes = 0;
  for (const PartCurve& part : parts) bytes += unsure_at(part, at_ns);
  return bytes;
}

/// Half of a usual batch of the part whose are longest: so much lies across a border as a rule.
double half_batch_of(const std::vector<PartCurve>& parts) {
  double most_s = 0;
  for (const PartCurve& part : parts) {
    std::vector<double> seconds;
    for (const Batch& batch : part.run.series.batches()) seconds.push_back(batch.seconds);
    if (!seconds.empty()) most_s = std::max(most_s, stats::median(seconds));
  }
  return most_s * 1e9 / 2;
}

/// The moment from `from_ns` to `to_ns` at which most is known of all parts; `at_ns`, which is one of them, unless
/// another is better by a tenth.
double surest_moment(const std::vector<PartCurve>& parts, double from_ns, double to_ns, double at_ns) {
  constexpr double kBetter = 0.9;
  double least = unsure_at(parts, at_ns);
  for (const PartCurve& part : parts) {
      for (auto it = std::lower_bound(part.own.begin(), part.own.end(), from_ns, before);
         it != part.own.end() && it->first <= to_ns; ++it) {
      const double moment_ns = it->first;
      const double here = unsure_at(parts, moment_ns);
      if (here >= kBetter * least) continue;
      least = here;
      at_ns = moment_ns;
    }
  }
  return at_ns;
}

/// A part that waits for a CPU at the border of the common time would bring in what belongs to neither side. Where that
/// is much, a surer border may lie farther inside.
Window with_sure_borders(const std::vector<PartCurve>& parts, const Window& common) {
  constexpr double kMuch = 0.01;
  if (!common.any()) return common;
  double bytes = 0;
  for (const PartCurve& part : parts) {
    bytes += bytes_between(part.own, common.from_ns, common.to_ns);
    bytes += bytes_between(part.back, common.from_ns, common.to_ns);
  }
  const double whole_ns = common.to_ns - common.from_ns;
  // A batch, as some parts have just begun one.
  const double much = std::max(kMuch, 2 * half_batch_of(parts) / whole_ns);
  const auto border = [&](double outer_ns, double inward_ns) {
    double at_ns = outer_ns;
    for (const double share : {0.05, 0.2}) {
      const double inner_ns = outer_ns + share * inward_ns;
      at_ns = surest_moment(parts, std::min(outer_ns, inner_ns), std::max(outer_ns, inner_ns), at_ns);
      if (unsure_at(parts, at_ns) <= much * bytes) break;
    }
    return at_ns;
  };
  return {border(common.from_ns, whole_ns), border(common.to_ns, -whole_ns)};
}

/// Largest rate of what completed for certain in `cells` equal stretches of `window`, in 2, 4, ... of them: the longer,
/// the less is unsure at its borders.
double certain_most(const std::vector<PartCurve>& parts, const Window& window, double cells) {
  const double cell_ns = (window.to_ns - window.from_ns) / cells;
  double most = 0;
  for (double width = 1; width <= cells; width *= 2) {
    for (double cell = 0; cell + width <= cells; cell += std::max(1.0, width / 4)) {
      const double from_ns = window.from_ns + cell * cell_ns;
      const double to_ns = from_ns + width * cell_ns;
      double bytes = 0;
      for (const PartCurve& part : parts)
        bytes += certain_bytes(part, from_ns, to_ns) + bytes_between(part.back, from_ns, to_ns);
      most = std::max(most, bytes / (to_ns - from_ns));
    }
  }
  return most;
}

/// What bounds the figures of a sum.
struct Certain {
  double most_gbytes = 0;   ///< certain_most()
  double whole_gbytes = 0;  ///< all bytes over all time, from the first post of all to the last completion
  double half_batch = 0;    ///< as a share of the common time
};

/// A message that lies across a border counts with a share of it: more than crossed the link then, it may be. No rate
/// is above the mean but what completed for certain. The mean is at most the larger of that and the whole run's rate,
/// and half a batch more.
void keep_to_certain(report::Measurement& measured, const Certain& known) {
  report::Bandwidth& bandwidth = *measured.bandwidth;
  if (known.most_gbytes <= 0) return;
  bandwidth.mean_gbytes =
      std::min(bandwidth.mean_gbytes, std::max(known.most_gbytes, known.whole_gbytes) * (1 + known.half_batch));
  const double most = std::max(known.most_gbytes, bandwidth.mean_gbytes);
  const double median = bandwidth.median_gbytes;
  const auto keep = [most](double& gbytes) { gbytes = std::min(gbytes, most); };
  for (double* figure : {&bandwidth.median_gbytes, &bandwidth.max_gbytes, &bandwidth.min_gbytes}) keep(*figure);
  if (std::isfinite(bandwidth.ci95_low_gbytes)) keep(bandwidth.ci95_low_gbytes);
  if (std::isfinite(bandwidth.ci95_high_gbytes)) keep(bandwidth.ci95_high_gbytes);
  for (double& batch : bandwidth.batches_gbytes) keep(batch);
  for (report::RunLevel& level : measured.levels) keep(level.value);
  if (median <= 0) return;
  const double kept = bandwidth.median_gbytes / median;
  bandwidth.msg_rate_mpps *= kept;
  for (std::optional<double>* way : {&measured.client_sent_gbytes, &measured.server_sent_gbytes})
    if (*way) **way *= kept;
}

/// Stretches into which the common time is divided: as long as the longest batches, and long enough for messages of
/// each run that lie across a border not to matter.
double stretches_of(const std::vector<PartCurve>& parts, double whole_ns) {
  constexpr double kMessages = 20;
  double least_ns = 0;
  for (const PartCurve& part : parts) {
    const double run_ns = part.run.series.total_seconds() * 1e9;
    const double batches = static_cast<double>(std::max<std::size_t>(part.run.series.size(), 1));
    const double messages = static_cast<double>(std::max<std::uint64_t>(part.run.series.total_messages(), 1));
    least_ns = std::max({least_ns, run_ns / batches, run_ns / messages * kMessages});
  }
  // As many as fit where products that are added in one step (Arm) fall short by a rounding.
  return std::clamp(std::floor(whole_ns / least_ns * (1 + 1e-9)), 1.0, static_cast<double>(BatchSeries::kMax));
}

Rates rates_over(const std::vector<PartCurve>& parts, const Window& window, std::uint64_t size_bytes) {
  Rates rates;
  if (!window.any()) return rates;
  const bool both_ways =
      std::any_of(parts.begin(), parts.end(), [](const PartCurve& part) { return !part.back.empty(); });
  const double whole_ns = window.to_ns - window.from_ns;
  const double cells = stretches_of(parts, whole_ns);
  const double cell_ns = whole_ns / cells;
  for (double cell = 0; cell < cells; ++cell) {
    const double from_ns = window.from_ns + cell * cell_ns;
    double own = 0;
    double back = 0;
    for (const PartCurve& part : parts) {
      own += bytes_between(part.own, from_ns, from_ns + cell_ns);
      back += bytes_between(part.back, from_ns, from_ns + cell_ns);
    }
    rates.gbytes.values.push_back((own + back) / cell_ns);
    rates.gbytes.seconds.push_back(cell_ns * 1e-9);
    if (both_ways) {
      rates.own.values.push_back(own / cell_ns);
      rates.back.values.push_back(back / cell_ns);
    }
    rates.batches.push_back({cell * cell_ns * 1e-9, cell_ns * 1e-9,
                             static_cast<std::uint64_t>(std::llround(own / static_cast<double>(size_bytes)))});
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

double seconds_of(const std::vector<PartCurve>& parts) {
  std::vector<Span> spans;
  for (const PartCurve& part : parts) spans.insert(spans.end(), part.spans.begin(), part.spans.end());
  return longest_s(spans);
}

Whole whole_of(const std::vector<PartCurve>& parts, const BandwidthRun& all, std::uint64_t size_bytes) {
  double back = 0;
  for (const PartCurve& part : parts) {
    if (!part.back.empty()) back += part.back.back().second - part.back.front().second;
  }
  const double seconds = seconds_of(parts);
  const double bytes = static_cast<double>(all.messages) * static_cast<double>(size_bytes) + back;
  return {seconds, bytes / seconds * 1e-9, back / seconds * 1e-9};
}

/// How far apart the parts may have begun.
double start_spread_s(const std::vector<PartCurve>& parts) {
  std::vector<Span> starts;
  for (const PartCurve& part : parts) starts.push_back({part.run.start_ns, part.run.start_ns, part.run.clock});
  return longest_s(starts);
}

Curve batch_curve(const BandwidthRun& run, double size_bytes) {
  Curve curve;
  double bytes = 0;
  for (const Batch& batch : run.series.batches()) {
    curve.emplace_back(run.first_batch_ns + batch.start_s * 1e9, bytes);
    bytes += static_cast<double>(batch.messages) * size_bytes;
  }
  if (!curve.empty()) curve.emplace_back(run.first_batch_ns + run.series.total_seconds() * 1e9, bytes);
  return curve;
}

/// By the run's notes; of one that another end measured there are batches alone.
Curve own_curve(const BandwidthRun& run, double size_bytes) {
  const auto& notes = run.progress.points();
  if (notes.size() < 2) return batch_curve(run, size_bytes);
  Curve curve;
  for (const auto& [at_ns, messages] : notes) {
    curve.emplace_back(at_ns, static_cast<double>(messages - notes.front().second) * size_bytes);
  }
  return curve;
}

}  // namespace

PartCurve curve_of(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  PartCurve part{run, {}, {}};
  part.own = own_curve(run, static_cast<double>(spec.size_bytes));
  part.edges = batch_curve(run, static_cast<double>(spec.size_bytes));
  const bool both_ways = peer != nullptr && !peer->series.empty();
  part.spans = spans_of(run, both_ways ? peer : nullptr);
  if (!both_ways) return part;
  for (const auto& [at_ns, sent] : peer->series)
    part.back.emplace_back(at_ns - peer->clock.ahead_ns, static_cast<double>(sent));
  return part;
}

double bytes_at(const Curve& curve, double at_ns) {
  const auto next = std::lower_bound(curve.begin(), curve.end(), at_ns, before);
  if (next == curve.begin()) return curve.front().second;
  if (next == curve.end()) return curve.back().second;
  const auto& [from_ns, from] = *(next - 1);
  const auto& [to_ns, to] = *next;
  return from + (to - from) * (at_ns - from_ns) / (to_ns - from_ns);
}

Together::Sum sum_of(const std::vector<PartCurve>& parts, const TestSpec& spec) {
  const Window window = with_sure_borders(parts, common_to(parts));
  BandwidthRun all = all_of(parts);
  if (window.any()) all.ramp_s = (window.from_ns - all.start_ns) * 1e-9;
  const Rates rates = rates_over(parts, window, spec.size_bytes);
  Together::Sum sum;
  const Whole whole = whole_of(parts, all, spec.size_bytes);
  sum.measured = figures_of(rates, whole, all, spec);
  const double seen_gbytes = sum.measured.bandwidth->mean_gbytes;
  if (!rates.batches.empty()) {
    keep_to_certain(sum.measured, {certain_most(parts, window, static_cast<double>(rates.batches.size())), whole.gbytes,
                                   half_batch_of(parts) / (window.to_ns - window.from_ns)});
  }
  // Without an interval the figure is of the whole time.
  const bool windowed = window.any() && !spec.stop.iterations && std::isfinite(sum.measured.bandwidth->ci95_low_gbytes);
  const double from_ns = windowed ? all.start_ns + sum.measured.warmup_cut_s * 1e9 : 0;
  const double to_ns = windowed ? window.to_ns : seconds_of(parts) * 1e9;
  // Where the sum was lowered, nobody knows which part was seen too high: all are lowered alike.
  const double kept = windowed && seen_gbytes > 0 ? sum.measured.bandwidth->mean_gbytes / seen_gbytes : 1;
  for (const PartCurve& part : parts) {
    const double bytes = windowed ? bytes_between(part.own, from_ns, to_ns) + bytes_between(part.back, from_ns, to_ns)
                                  : static_cast<double>(part.run.messages) * static_cast<double>(spec.size_bytes) +
                                        (part.back.empty() ? 0 : part.back.back().second - part.back.front().second);
    sum.gbytes.push_back(kept * bytes / (to_ns - from_ns));
  }
  sum.start_spread_s = start_spread_s(parts);
  return sum;
}

}  // namespace gdrperf::engine
