#include "engine/figures/stop_rule.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/stats/pattern.h"
#include "gdrperf/stats/steady.h"
#include "gdrperf/stats/summary.h"
#include "engine/watch/standstill.h"

namespace gdrperf::engine {
namespace {

/// Fewer have no 95 % interval.
constexpr std::size_t kIntervalBatches = 6;

/// The option and value that make a run longer.
std::string longer(const StopRule& rule) {
  const std::string duration = stop_flag<&StopRule::duration>();
  if (rule.forever) return "end it later";
  if (rule.iterations) return fmt::format("{} 2s instead of {}", duration, stop_flag<&StopRule::iterations>());
  return "a larger " + (rule.duration ? duration : stop_flag<&StopRule::cap>());
}

std::string pin_both_ends() {
  return fmt::format("pin client and server ({}, {})", own_flag<&EndSpec::cpu>(), peer_flag<&EndSpec::cpu>());
}

std::string words_for(stats::Pattern pattern, const StopRule& rule) {
  switch (pattern) {
    case stats::Pattern::kSteps:
      return "it changes in steps, as when another job starts or a thread moves to another CPU; " + pin_both_ends();
    case stats::Pattern::kDrift:
      return fmt::format("it drifts, as clock frequency and temperature do; fix the frequency governor, or run "
                         "longer ({})", longer(rule));
    case stats::Pattern::kBimodal:
      return "the rate alternates between two levels, as with two paths, CPUs or memory nodes; " + pin_both_ends();
    case stats::Pattern::kPeriodic:
      return "it goes up and down regularly, as with a timer or a periodic job; find and stop it";
    case stats::Pattern::kScatter: break;
  }
  return fmt::format(
      "it varies without a pattern, as with other work on the machine or the network; run longer ({}) or accept "
      "less ({})",
      longer(rule), stop_flag<&StopRule::precision>());
}

void mark(report::Measurement& measured, std::string reason, std::string warning) {
  measured.unstable = true;
  measured.unstable_reason = std::move(reason);
  measured.warnings.push_back(std::move(warning));
}

}  // namespace

Samples Samples::from(std::size_t count) const {
  const auto tail = [count](const std::vector<double>& all) {
    return all.empty() ? all : std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  };
  return {tail(values), tail(seconds)};
}

stats::Summary summary_of(const Samples& samples) { return stats::summarize_series(samples.values, samples.seconds); }

Known known_of(const Samples& samples) {
  const stats::Summary summary = summary_of(samples);
  const double half_width = stats::stop_decision(summary, samples.values.size(), 0, 0).relative_half_width;
  return {summary.median, half_width, std::abs(summary.mean - summary.median) / std::abs(summary.median)};
}

stats::Beginning beginning_of(const Samples& all, double precision, stats::Better better) {
  return stats::find_beginning(all.values, kLevelsApart * precision, better);
}

double StopJudge::growth_needed(const Samples& all) const {
  const stats::Beginning beginning = beginning_of(all, precision_, better_);
  const Samples steady = all.from(beginning.warmup);
  const auto batches = static_cast<double>(std::max<std::size_t>(steady.values.size(), 1));
  constexpr double kLeastGrowth = 1.01;  // a level that is there is not gone yet
  const double outgrown = stats::growth_to_one_level(beginning.levels, steady.values.size());
  if (beginning.levels.size() > 1) return std::max(outgrown, kLeastGrowth);
  if (batches < kMinBatches) return kMinBatches / batches;
  const Known known = known_of(steady);
  const double width = std::max(known.half_width, known.lopsided) / precision_;
  return width <= 1 ? 1 : width * width;
}

bool StopJudge::hopeless(double growth, double elapsed_s) const {
  constexpr double kGuess = 1.2;  // a growth is one
  return rule_.share.count() > 0 && elapsed_s >= seconds(rule_.share) &&
         growth * elapsed_s > kGuess * seconds(rule_.cap);
}

bool StopJudge::at_limit(std::uint64_t done, double elapsed_s) {
  if (ended_ || (stop_ != nullptr && stop_->load(std::memory_order_relaxed)))
    return end_if(true, report::StopReason::kSignal);
  if (rule_.forever) return end_if(false, report::StopReason::kSignal);
  if (rule_.iterations) return end_if(done >= *rule_.iterations, report::StopReason::kIterations);
  return end_if(elapsed_s >= seconds(rule_.duration.value_or(rule_.cap)),
                rule_.duration ? report::StopReason::kDuration : report::StopReason::kCap);
}

std::uint64_t StopJudge::left(std::uint64_t done) const {
  if (!rule_.iterations) return ~std::uint64_t{0};
  return *rule_.iterations - std::min(done, *rule_.iterations);
}

void judge_figure(report::Measurement& measured, const Evidence& evidence) {
  const std::size_t batches = evidence.steady.values.size();
  const auto [median, width, lopsided] = known_of(evidence.steady);
  if (width <= evidence.precision && lopsided <= evidence.precision && measured.levels.empty()) return;
  if (batches < kIntervalBatches) {
    mark(measured, "short",
         fmt::format("{}too short for an interval ({} batch{} in {} s); run longer ({})", evidence.what, batches,
                     batches == 1 ? "" : "es", plain_digits(measured.duration_s, 3), longer(evidence.rule)));
    return;
  }
  stats::Pattern pattern = stats::find_pattern(evidence.steady.values).pattern;
  // What drifts passes through levels; the rest is one level after another.
  std::string known = report::levels_text(measured.levels, measured.latency.has_value());
  if (!known.empty() && pattern != stats::Pattern::kDrift) pattern = stats::Pattern::kSteps;
  if (width > evidence.precision) {
    known += fmt::format("{}{}, not +-{:g} %, after {} s", known.empty() ? "" : "; ",
                         width > 1 ? std::string("not known (the interval is wider than the value)")
                                   : fmt::format("known within +-{} %", plain_digits(width * 100, 2)),
                         evidence.precision * 100, plain_digits(measured.duration_s, 3));
  } else if (known.empty()) {
    known =
        fmt::format("mean and median differ by {} %, more than +-{:g} %: part of the time was much slower or faster",
                    plain_digits(lopsided * 100, 2), evidence.precision * 100);
  }
  mark(measured, std::string(stats::to_string(pattern)),
       fmt::format("{}{}: {}", evidence.what, known, words_for(pattern, evidence.rule)));
}

void judge_standstill(report::Measurement& measured, const Standstill& standstill) {
  const auto note = [&measured](const std::string& who, double seconds) {
    mark(
        measured, "suspended",
        fmt::format(
            "{} for {} s in the middle of the run (the process or its machine was stopped or suspended): measure again",
            who, plain_digits(seconds, 3)));
  };
  const bool client = standstill.client_s >= StandstillWatch::kLeastSeconds;
  const bool server = standstill.server_s >= StandstillWatch::kLeastSeconds;
  if (client) note("the client stood still", standstill.client_s);
  if (server) note("the server stood still", standstill.server_s);
  // A batch of this end's may have waited for a CPU: more than turns of others add up to.
  constexpr double kTimesTypical = 20;
  constexpr double kLeastDataSeconds = 2;
  if (client || server || standstill.typical_s <= 0 || standstill.data_s < kLeastDataSeconds) return;
  if (standstill.data_s < kTimesTypical * standstill.typical_s) return;
  mark(measured, "suspended",
       fmt::format("almost no data moved for {} s in the middle of the run, although both hosts were running: "
                   "look for other work on these CPUs and, behind a NIC, for lost packets and link failures ('gdrperf "
                   "doctor'), and "
                   "measure again",
                   plain_digits(standstill.data_s, 3)));
}

}  // namespace gdrperf::engine
