#include "gdrperf/cluster/judge.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "cluster/judge/coarse.h"
#include "cluster/judge/robust.h"
#include "gdrperf/stats/shift.h"

namespace gdrperf::cluster {
namespace {

constexpr int kSweeps = 3;

// Indexes of the samples that each NIC sends, or receives.
class ByNic {
 public:
  template <typename NicOf>
  ByNic(std::size_t nics, std::span<const Sample> samples, NicOf nic_of) : first_(nics + 1, 0) {
    for (const Sample& sample : samples) ++first_[nic_of(sample) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    index_.resize(samples.size());
    for (std::uint32_t i = 0; i < samples.size(); ++i) index_[next[nic_of(samples[i])]++] = i;
  }
  std::span<const std::uint32_t> of(std::size_t nic) const {
    return std::span(index_).subspan(first_[nic], first_[nic + 1] - first_[nic]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> index_;
};

// Rank interval of the upper quartile, by the normal approximation of the
// binomial distribution; of ascending values.
std::pair<float, float> quartile_interval(std::span<const float> values) {
  const double n = static_cast<double>(values.size());
  const double half = 1.96 * std::sqrt(kUpperQuartile * (1 - kUpperQuartile) / n);
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(std::clamp(q, 0.0, 1.0) * (n - 1))];
  };
  return {at(kUpperQuartile - half), at(kUpperQuartile + half)};
}

// One way of all NICs: the upper quartile of what the partners' other way leaves
// unexplained, around the NICs' median.
template <typename PartnerOf>
double fit(const ByNic& by_nic, const Residuals& residuals, const std::vector<NicEffect>& partners,
           PartnerOf partner_of, std::vector<NicEffect>& effects) {
  std::vector<float> values;
  std::vector<float> known;
  for (std::size_t nic = 0; nic < effects.size(); ++nic) {
    values.clear();
    for (const std::uint32_t i : by_nic.of(nic)) {
      values.push_back(residuals.left[i] - partners[partner_of(residuals.samples[i])].shift);
    }
    NicEffect& effect = effects[nic];
    effect = {};
    effect.samples = static_cast<std::uint32_t>(values.size());
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    effect.shift = quantile(values, kUpperQuartile);
    std::tie(effect.low, effect.high) = quartile_interval(values);
    known.push_back(effect.shift);
  }
  const double center = robust_center(std::move(known)).median;
  for (NicEffect& effect : effects) {
    if (effect.samples == 0) continue;
    effect.shift -= static_cast<float>(center);
    effect.low -= static_cast<float>(center);
    effect.high -= static_cast<float>(center);
  }
  return center;
}

double sigma_of(const std::vector<NicEffect>& effects) {
  std::vector<float> known;
  for (const NicEffect& effect : effects) {
    if (effect.samples > 0) known.push_back(effect.shift);
  }
  return robust_center(std::move(known)).sigma;
}

void fit_nics(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals, Judgement& judgement) {
  const auto from = [](const Sample& sample) { return sample.from; };
  const auto to = [](const Sample& sample) { return sample.to; };
  const std::size_t nics = fabric.nics.size();
  const ByNic sent(nics, residuals.samples, from);
  const ByNic received(nics, residuals.samples, to);
  judgement.sends.resize(nics);
  judgement.receives.resize(nics);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    judgement.sends_center = fit(sent, residuals, judgement.receives, to, judgement.sends);
    judgement.receives_center = fit(received, residuals, judgement.sends, from, judgement.receives);
    if (!judgement.moments.empty() && sweep + 1 < kSweeps) take_out_moments(residuals, judgement);
  }
  measure_scatter(residuals, options, judgement);
}

// NICs that are alike still differ by what single measurements scatter.
double floor_of(const NicEffect& effect, const Judgement& judgement) {
  const double error =
      kErrorOfQuartile * judgement.pair_sigma / std::sqrt(static_cast<double>(std::max(effect.samples, 1U)));
  return stats::judging_scatter(error, judgement.step);
}

void judge_nics(const Fabric& fabric, const JudgeOptions& options, Judgement& judgement) {
  const double sends_spread = sigma_of(judgement.sends);
  const double receives_spread = sigma_of(judgement.receives);
  judgement.nic_sigma = std::max(sends_spread, receives_spread);
  const std::size_t nics = fabric.nics.size();
  for (std::size_t nic = 0; nic < nics; ++nic) {
    const NicEffect& sends = judgement.sends[nic];
    const NicEffect& receives = judgement.receives[nic];
    const auto least = static_cast<std::uint32_t>(options.least_partners);
    if (sends.samples < least && receives.samples < least) continue;
    ++judgement.judged;
    const double sends_sigma = std::max(sends_spread, floor_of(sends, judgement));
    const double receives_sigma = std::max(receives_spread, floor_of(receives, judgement));
    const bool slow_sends = sends.samples >= least && is_suspect(sends.shift, sends_sigma, options);
    const bool slow_receives =
        receives.samples >= least && is_suspect(receives.shift, receives_sigma, options);
    if (!slow_sends && !slow_receives) continue;
    Suspect suspect;
    suspect.part = Part::kNic;
    suspect.nic = static_cast<int>(nic);
    suspect.node = fabric.nics[nic].node;
    suspect.rail = fabric.nics[nic].rail;
    suspect.way = slow_sends && slow_receives ? Way::kBoth : slow_sends ? Way::kSends : Way::kReceives;
    const bool by_sends = slow_sends && (!slow_receives || sends.shift <= receives.shift);
    suspect.shift = by_sends ? sends.shift : receives.shift;
    suspect.sigmas = suspect.shift / std::max(by_sends ? sends_sigma : receives_sigma, kLeastSigma);
    suspect.samples = sends.samples + receives.samples;
    judgement.suspects.push_back(suspect);
  }
}

// A pair is one that is slow both ways: a collision hits one. NICs that are
// under suspicion explain their pairs.
void judge_pairs(const Fabric& fabric, const JudgeOptions& options, const Residuals& residuals,
                 Judgement& judgement) {
  const double sigma = stats::judging_scatter(judgement.pair_sigma, judgement.step);
  struct Slow {
    std::uint32_t low, high;
    Way way;
    float shift;
    bool operator<(const Slow& other) const {
      return std::tie(low, high, way, shift) < std::tie(other.low, other.high, other.way, other.shift);
    }
  };
  std::vector<Slow> slow;
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    const double shift = unexplained(residuals, i, judgement) - judgement.pair_center;
    if (!is_suspect(shift, sigma, options)) continue;
    const auto [low, high] = std::minmax(residuals.samples[i].from, residuals.samples[i].to);
    slow.push_back({low, high, low == residuals.samples[i].from ? Way::kSends : Way::kReceives,
                    static_cast<float>(shift)});
  }
  std::sort(slow.begin(), slow.end());
  std::vector<Suspect> pairs;
  for (std::size_t i = 0; i + 1 < slow.size(); ++i) {
    if (slow[i].low != slow[i + 1].low || slow[i].high != slow[i + 1].high ||
        slow[i].way == slow[i + 1].way) {
      continue;
    }
    Suspect suspect;
    suspect.part = Part::kPair;
    suspect.nic = static_cast<int>(slow[i].low);
    suspect.peer = static_cast<int>(slow[i].high);
    suspect.rail = fabric.nics[slow[i].low].rail;
    suspect.shift = std::max(slow[i].shift, slow[i + 1].shift);
    suspect.sigmas = suspect.shift / std::max(sigma, kLeastSigma);
    suspect.samples = 2;
    pairs.push_back(suspect);
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const Suspect& a, const Suspect& b) { return a.shift < b.shift; });
  pairs.resize(std::min(pairs.size(), static_cast<std::size_t>(options.most_pairs)));
  judgement.suspects.insert(judgement.suspects.end(), pairs.begin(), pairs.end());
}

}  // namespace

std::string_view to_string(Part part) {
  switch (part) {
    case Part::kRail: return "rail";
    case Part::kLeafRail: return "leaf";
    case Part::kPodUplink: return "pod uplink";
    case Part::kUplink: return "uplink";
    case Part::kPath: return "path";
    case Part::kNode: return "node";
    case Part::kNic: return "nic";
    case Part::kPair: return "pair";
  }
  return "?";
}

std::string_view to_string(Way way) {
  switch (way) {
    case Way::kBoth: return "both";
    case Way::kSends: return "sends";
    case Way::kReceives: return "receives";
  }
  return "?";
}

std::string_view to_string(When when) { return when == When::kAlways ? "always" : "at times"; }

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSuspect: return "suspect";
    case Verdict::kSlow: return "slow";
    case Verdict::kCleared: return "cleared";
    case Verdict::kUndecided: return "undecided";
  }
  return "?";
}

Judgement judge(const Fabric& fabric, std::span<const Sample> samples, const JudgeOptions& options) {
  Judgement judgement;
  Residuals residuals{samples, {}};
  residuals.left.reserve(samples.size());
  for (const Sample& sample : samples) residuals.left.push_back(std::log(sample.gbytes));
  judgement.typical_gbytes = samples.empty() ? 0 : std::exp(robust_center(residuals.left).median);
  judgement.step = step_of(residuals.left);
  judge_rails(fabric, options, residuals, judgement);
  take_out_moments(residuals, judgement);
  judge_groups(fabric, options, residuals, judgement);
  fit_nics(fabric, options, residuals, judgement);
  judge_nics(fabric, options, judgement);
  judge_pairs(fabric, options, residuals, judgement);
  judge_at_times(fabric, options, residuals, judgement);
  std::stable_sort(judgement.suspects.begin(), judgement.suspects.end(),
                   [](const Suspect& a, const Suspect& b) {
                     return a.part != b.part ? a.part < b.part : a.shift < b.shift;
                   });
  return judgement;
}

double least_visible(const Judgement& judgement, const JudgeOptions& options) {
  return std::max(options.suspect_share,
                  1 - std::exp(-options.suspect_sigmas * stats::judging_scatter(judgement.nic_sigma, judgement.step)));
}

bool is_blind(const Judgement& judgement, const JudgeOptions& options) {
  return judgement.judged > 0 &&
         least_visible(judgement, options) > std::max(options.must_see, 2 * options.suspect_share);
}

}  // namespace gdrperf::cluster
