#include "engine/figures/bandwidth_figures.h"

#include <algorithm>
#include <limits>

#include "gdrperf/base/error.h"
#include "gdrperf/stats/steady.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::engine {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Rates rates_of(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  Rates result;
  for (const Batch& batch : run.series.batches()) {
    double gbytes = static_cast<double>(batch.messages) * static_cast<double>(spec.size_bytes) / batch.seconds * 1e-9;
    if (peer != nullptr) {
      const double start_ns = run.first_batch_ns + batch.start_s * 1e9 + peer->clock.ahead_ns;
      const std::optional<double> back = rate_over(peer->series, start_ns, start_ns + batch.seconds * 1e9);
      if (!back) continue;
      result.own.values.push_back(gbytes);
      result.back.values.push_back(*back);
      gbytes += *back;
    }
    result.gbytes.values.push_back(gbytes);
    result.gbytes.seconds.push_back(batch.seconds);
    result.batches.push_back(batch);
  }
  return result;
}

Whole whole_of(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  double bytes = static_cast<double>(run.messages) * static_cast<double>(spec.size_bytes);
  double back = 0;
  Whole whole{run.seconds, 0, 0};
  if (peer != nullptr) {
    back = static_cast<double>(peer->series.back().second) - static_cast<double>(peer->series.front().second);
    bytes += back;
    whole.seconds = longest_s(spans_of(run, peer));
  }
  whole.gbytes = bytes / whole.seconds * 1e-9;
  whole.back = back / whole.seconds * 1e-9;
  return whole;
}

void fill_from_batches(report::Measurement& measured, const Samples& steady, const stats::Summary& summary) {
  report::Bandwidth& bw = *measured.bandwidth;
  bw.batches_gbytes = steady.values;
  bw.median_gbytes = summary.median;
  bw.mean_gbytes = summary.mean;
  bw.min_gbytes = summary.min;
  bw.max_gbytes = summary.max;
  bw.ci95_low_gbytes = summary.median_ci->low;
  bw.ci95_high_gbytes = summary.median_ci->high;
}

void fill_from_whole(report::Measurement& measured, const Whole& whole) {
  report::Bandwidth& bw = *measured.bandwidth;
  bw.batches_gbytes = {whole.gbytes};
  bw.median_gbytes = bw.mean_gbytes = bw.min_gbytes = bw.max_gbytes = whole.gbytes;
  bw.ci95_low_gbytes = bw.ci95_high_gbytes = kNone;
}

std::vector<report::RunLevel> levels_of(const stats::Beginning& beginning, const Rates& all, double ramp_s) {
  std::vector<report::RunLevel> levels;
  double total_s = 0;
  for (const stats::Level& level : beginning.levels) {
    const Batch& first = all.batches[level.first];
    const Batch& last = all.batches[level.first + level.count - 1];
    const double seconds = last.start_s + last.seconds - first.start_s;
    levels.push_back({level.value, ramp_s + first.start_s, seconds, 0});
    total_s += seconds;
  }
  for (report::RunLevel& level : levels) level.share = level.seconds / total_s;
  return levels;
}

}  // namespace

double longest_s(const std::vector<Span>& spans) {
  double longest_ns = 0;
  for (const Span& first : spans) {
    for (const Span& last : spans) {
      const double unsure_ns = first.clock == last.clock ? 0 : first.clock.unsure_ns + last.clock.unsure_ns;
      longest_ns = std::max(longest_ns, last.to_ns - first.from_ns + unsure_ns);
    }
  }
  return longest_ns * 1e-9;
}

std::vector<Span> spans_of(const BandwidthRun& run, const PeerBytes* peer) {
  std::vector<Span> spans = {{run.start_ns, run.end_ns, run.clock}};
  if (peer != nullptr) {
    const double ahead_ns = peer->clock.ahead_ns;
    spans.push_back({peer->series.front().first - ahead_ns, peer->series.back().first - ahead_ns, peer->clock});
  }
  return spans;
}

report::Measurement figures_of(const Rates& all, const Whole& whole, const BandwidthRun& run, const TestSpec& spec) {
  report::Measurement measured;
  measured.stop = run.stop;
  measured.bandwidth.emplace();
  const stats::Beginning beginning = beginning_of(all.gbytes, spec.stop.precision, stats::Better::kHigher);
  // A run of N messages shows the figure of N messages. At a rate, what is late is made up for: without the beginning
  // the rest would be above what was asked for.
  const bool paced = paced_rate_of(spec) > 0;
  const bool both_ways = !all.own.values.empty() || whole.back > 0;
  const bool whole_run = spec.stop.iterations || (paced && spec.parts == 1 && !both_ways);
  const std::size_t cut = spec.stop.iterations || paced ? 0 : beginning.warmup;
  const Samples steady = all.gbytes.from(cut);
  const stats::Summary summary = summary_of(steady);
  if (whole_run || !summary.median_ci) {
    measured.iterations = run.sent;
    measured.duration_s = whole.seconds;
  } else {
    measured.warmup_cut_s = run.ramp_s + all.batches[cut].start_s - all.batches.front().start_s;
    std::uint64_t messages = 0;
    for (std::size_t i = cut; i < all.batches.size(); ++i) {
      messages += all.batches[i].messages;
      measured.duration_s += all.batches[i].seconds;
    }
    measured.iterations = run.sent == run.messages ? messages : messages / 2;
  }
  if (summary.median_ci) {
    fill_from_batches(measured, steady, summary);
  } else {
    fill_from_whole(measured, whole);
  }
  if (both_ways) {
    const auto part = [&](Samples samples, double otherwise) {
      samples.seconds = all.gbytes.seconds;
      return summary.median_ci ? known_of(samples.from(cut)).median : otherwise;
    };
    measured.client_sent_gbytes = part(all.own, whole.gbytes - whole.back);
    measured.server_sent_gbytes = part(all.back, whole.back);
  }
  if (whole_run) measured.bandwidth->mean_gbytes = whole.gbytes;
  measured.bandwidth->msg_rate_mpps =
      measured.bandwidth->median_gbytes * 1e3 / static_cast<double>(spec.size_bytes);
  if (beginning.levels.size() > 1) measured.levels = levels_of(beginning, all, run.ramp_s);
  judge_figure(measured, {steady, "", spec.stop.precision, spec.stop});
  return measured;
}

report::Measurement bandwidth_figures(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  if (peer != nullptr && peer->series.empty()) throw peer_error("the server did not report what it sent");
  return figures_of(rates_of(run, spec, peer), whole_of(run, spec, peer), run, spec);
}

}  // namespace gdrperf::engine
