// Rates of `gdrperf compare`'s false alarms and of what it sees: the
// gate's own code over made-up sessions of known truth.
//
// usage: gate_simulation [TIMES]: TIMES as many rounds as by default (1).
// Exit status 1 when a rate misses what docs/how-to/compare.md promises.
//
// A value is truth * exp(time + place + session + run): `time` moves all cells measured
// at one time together, `place` each of them by itself, `session` each cell of an
// invocation, `run` each run within an invocation.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gdrperf/compare/judge.h"
#include "gdrperf/compare/noise.h"
#include "gdrperf/stats/summary.h"

namespace {

using namespace gdrperf::compare;

enum class Shape { kNormal, kOutliers, kTwoModes, kBadTimes, kHeavy, kFollowing, kDrifting };

/// Spreads are standard deviations as shares of the value.
struct World {
  const char* name;
  double time = 0;
  double place = 0;
  double session = 0;
  double run = 0;
  Shape shape = Shape::kNormal;
};

/// Simulated sessions: `baseline` of them far apart, then `rounds` times
/// `per_round` candidates; the value of a session is the median of `runs`.
struct Plan {
  const char* name;
  int baseline = 20;
  int rounds = 3;
  int per_round = 1;
  int runs = 1;
};

class Simulation {
 public:
  Simulation(const World& world, const Plan& plan, std::size_t cells)
      : world_(world), plan_(plan), baseline_(cells), candidates_(cells), levels_(cells) {}

  /// Draws all anew; the first `dropped` cells lose `drop` in the candidates.
  std::vector<CellResult> round(std::size_t dropped, double drop) {
    for (auto* side : {&baseline_, &candidates_}) {
      for (auto& cell : *side) cell.clear();
    }
    step_ = 0;
    for (double& level : levels_) level = normal(world_.session);
    for (int i = 0; i < plan_.baseline; ++i) measure(baseline_, 1, 0, 0);
    for (int i = 0; i < plan_.rounds; ++i) measure(candidates_, plan_.per_round, dropped, drop);
    std::vector<Pairing> pairings;
    for (std::size_t i = 0; i < baseline_.size(); ++i) {
      const Series series{key_, baseline_[i], {}, {}, {}};
      const Allowance allowed = allowance(*measure_noise(series), series, candidates_[i].size());
      pairings.push_back({&key_, baseline_[i], candidates_[i], allowed.noise, allowed.error});
    }
    return judge_cells(pairings, {});
  }

 private:
  double normal(double deviation) { return deviation * normal_(random_); }

  double of_session(double& level) {
    constexpr double kCorrelation = 0.6;
    constexpr double kDriftPerSession = 0.002;
    double value = normal(world_.session);
    if (world_.shape == Shape::kHeavy) value = world_.session * heavy_(random_);
    if (world_.shape == Shape::kFollowing) {
      value = level = kCorrelation * level + std::sqrt(1 - kCorrelation * kCorrelation) * value;
    }
    if (world_.shape == Shape::kDrifting) value -= kDriftPerSession * step_;
    if (world_.shape == Shape::kOutliers && uniform_(random_) < 0.05) value -= 0.15;
    if (world_.shape == Shape::kTwoModes && uniform_(random_) < 0.3) value -= 0.04;
    return value;
  }

  double of_time() {
    double value = normal(world_.place);
    if (world_.shape == Shape::kBadTimes && uniform_(random_) < 0.05) value -= 0.15;
    return value;
  }

  /// Sessions at one time: what belongs to the time is common to them.
  void measure(std::vector<std::vector<double>>& side, int sessions, std::size_t dropped, double drop) {
    const double common = normal(world_.time);
    std::vector<double> shared(side.size());
    for (double& value : shared) value = common + of_time();
    for (int session = 0; session < sessions; ++session, ++step_) {
      for (std::size_t i = 0; i < side.size(); ++i) {
        const double own = shared[i] + of_session(levels_[i]);
        std::vector<double> runs(static_cast<std::size_t>(plan_.runs));
        for (double& run : runs) run = normal(world_.run);
        const double truth = i < dropped ? 100 * (1 - drop) : 100;
        side[i].push_back(truth * std::exp(own + gdrperf::stats::median(runs)));
      }
    }
  }

  World world_;
  Plan plan_;
  CellKey key_{"cell", {}, Better::kHigher};
  std::vector<std::vector<double>> baseline_;
  std::vector<std::vector<double>> candidates_;
  std::vector<double> levels_;  ///< of cells whose sessions follow one another
  int step_ = 0;
  std::student_t_distribution<double> heavy_{3};
  std::mt19937_64 random_{20250131};
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0, 1};
};

/// Shares of cells, in percent.
struct Rates {
  double regression = 0;
  double inconclusive = 0;
  double improvement = 0;
  double ok = 0;
  std::size_t decided = 0;
};

/// Of the cells that dropped, or of all when none did.
Rates rates(const World& world, const Plan& plan, std::size_t cells, std::size_t dropped, double drop,
            std::size_t decisions) {
  Simulation simulation(world, plan, cells);
  const std::size_t watched = dropped > 0 ? dropped : cells;
  const std::size_t rounds = (decisions + watched - 1) / watched;
  Rates result;
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::vector<CellResult> results = simulation.round(dropped, drop);
    for (std::size_t j = 0; j < watched; ++j) {
      result.regression += results[j].verdict == Verdict::kRegression;
      result.inconclusive += results[j].verdict == Verdict::kInconclusive;
      result.ok += results[j].verdict == Verdict::kOk;
      result.improvement += results[j].verdict == Verdict::kImprovement;
    }
  }
  result.decided = rounds * watched;
  for (double* rate : {&result.regression, &result.inconclusive, &result.improvement, &result.ok}) {
    *rate *= 100.0 / static_cast<double>(result.decided);
  }
  return result;
}

// Difference of one session from another, far away in time: the root of the sum of squares.
constexpr World kCalm{"0.8 %", 0.003, 0.003, 0.005, 0.005, Shape::kNormal};
constexpr World kNoisy{"2.4 %", 0.01, 0.01, 0.014, 0.014, Shape::kNormal};
constexpr World kOutliers{"0.8 %; 1 session in 20 is 15 % low", 0.003, 0.003, 0.005, 0.005, Shape::kOutliers};
constexpr World kModes{"0.8 %; 3 sessions in 10 are 4 % low", 0.003, 0.003, 0.005, 0.005, Shape::kTwoModes};
constexpr World kBadTimes{"0.8 %; 1 time in 20 is 15 % low", 0.003, 0.003, 0.005, 0.005, Shape::kBadTimes};

constexpr World kHeavyTails{"0.5 %, Student's t with 3 degrees", 0, 0, 0.005, 0, Shape::kHeavy};
constexpr World kFollowing{"1 %, each 0.6 like the one before", 0, 0, 0.01, 0, Shape::kFollowing};
constexpr World kDrifting{"0.5 %, and 0.2 % less each session", 0, 0, 0.005, 0, Shape::kDrifting};
constexpr World kWide{"4 %", 0, 0, 0.04, 0, Shape::kNormal};

constexpr Plan kNine{"9 documents, 3 at each of 3 times", 20, 3, 3, 1};
constexpr Plan kThree{"3 documents, each cell run 3 times", 20, 3, 1, 3};

/// Percent.
struct Promise {
  double at_least = 0;
  double at_most = 100;
  double ok_at_most = 100;
};

bool line(const World& world, const Plan& plan, std::size_t cells, std::size_t dropped, double drop,
          std::size_t decisions, Promise promise) {
  const Rates got = rates(world, plan, cells, dropped, drop, decisions);
  const bool kept = got.regression >= promise.at_least && got.regression <= promise.at_most &&
                    got.ok <= promise.ok_at_most;
  const std::string what = dropped == 0 ? std::to_string(cells) + " cells, none dropped"
                                        : std::to_string(dropped) + " of " + std::to_string(cells) + " dropped " +
                                              std::to_string(static_cast<int>(drop * 100 + 0.5)) + " %";
  std::string wanted;
  if (promise.at_least > 0) wanted = ">= " + std::to_string(static_cast<int>(promise.at_least)) + " %";
  if (promise.ok_at_most < 100) wanted = "ok <= 1 %";
  if (promise.at_most < 100) wanted = "<= 0.1 %";
  std::printf("%-36s  %-34s  %-26s %9.4f %9.4f %9.4f %9.4f  %8zu  %-9s %s\n", world.name, plan.name, what.c_str(),
              got.regression, got.inconclusive, got.improvement, got.ok, got.decided, wanted.c_str(),
              kept ? "" : "MISSED");
  std::fflush(stdout);
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const double times = argc > 1 ? std::atof(argv[1]) : 1;
  if (!(times > 0)) {
    std::fputs("usage: gate_simulation [TIMES]\n", stderr);
    return 2;
  }
  const auto scaled = [&](double count) { return static_cast<std::size_t>(count * times); };
  const std::size_t quiet = scaled(20'000);
  const std::size_t found = scaled(2'000);
  std::printf("threshold 2 %%, alpha 0.01, 20 sessions of baseline, no rerun; percent of cells\n\n");
  std::printf("%-36s  %-34s  %-26s %9s %9s %9s %9s  %8s  %s\n", "spread of sessions", "candidates", "truth",
              "regress.", "inconcl.", "improv.", "ok", "decided", "promised");
  bool kept = true;
  const Promise no_alarm{0, 0.1};
  for (const Plan& plan : {kNine, kThree}) {
    for (const World& world : {kCalm, kNoisy, kOutliers, kModes}) {
      kept &= line(world, plan, 100, 0, 0, quiet, no_alarm);
    }
    for (const World& world : {kCalm, kNoisy}) kept &= line(world, plan, 1, 0, 0, quiet, no_alarm);
    // Sessions one after another share a bad time; only another time tells.
    line(kBadTimes, plan, 100, 0, 0, quiet, {});
    for (const double drop : {0.05, 0.03}) {
      const Promise promise{drop > 0.04 ? 99.0 : 90.0, 100};
      // Three sessions cannot tell one cell among many; nine can.
      const Promise alone = plan.per_round > 1 ? promise : Promise{};
      kept &= line(kCalm, plan, 1, 1, drop, found, promise);
      kept &= line(kCalm, plan, 100, 100, drop, found * 2, promise);
      kept &= line(kCalm, plan, 100, 1, drop, found / 4, alone);
      line(kOutliers, plan, 100, 10, drop, found / 2, {});
      line(kNoisy, plan, 100, 10, drop, found / 2, {});
    }
  }
  for (const World& world : {kCalm, kNoisy, kWide, kHeavyTails, kModes, kFollowing, kDrifting}) {
    kept &= line(world, kNine, 100, 0, 0, quiet, no_alarm);
    kept &= line(world, kNine, 100, 100, 0.10, quiet, {0, 100, 1});
  }
  return kept ? 0 : 1;
}
