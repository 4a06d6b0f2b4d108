#include "cluster/output/findings.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

using cluster::Suspect;
using cluster::When;

double percent_of(double shift) { return 100 * (std::exp(shift) - 1); }

std::string name_of_rank(const Star& star, int rank) {
  return fmt::format("rank {} ({})", rank, star.members()[static_cast<std::size_t>(rank)].card.host);
}

std::string name_of_node(const Star& star, const ClusterResult& result, int node) {
  for (std::size_t id = 0; id < result.fabric.nics.size(); ++id) {
    if (result.fabric.nics[id].node == node) return name_of_rank(star, result.places[id].rank);
  }
  return fmt::format("node {}", node);
}

const char* way_text(const Suspect& suspect) {
  switch (suspect.way) {
    case cluster::Way::kBoth: return "";
    case cluster::Way::kSends: return " when it sends";
    case cluster::Way::kReceives: return " when it receives";
  }
  return "";
}

// "-12.5 %", or "+14.3 % latency of 8 B": of what was measured.
std::string change(double shift, const Series* series) {
  if (series == nullptr) return fmt::format("{:+.1f} %", percent_of(shift));
  if (!series->latency) return fmt::format("{:+.1f} % with {}", percent_of(shift), format_size(series->size_bytes));
  return fmt::format("{:+.1f} % latency of {}", percent_of(-shift), format_size(series->size_bytes));
}

// In the unit of change(), without its name.
double plain_percent(double shift, const Series* series) {
  return percent_of(series != nullptr && series->latency ? -shift : shift);
}

std::string of_series(const Series* series) {
  if (series == nullptr) return "";
  return fmt::format(" {} {}", series->latency ? "in latency of" : "with", format_size(series->size_bytes));
}

std::string name_of_path(const ClusterResult& result, const Suspect& suspect) {
  const bool pods = suspect.pod >= 0;
  const std::vector<std::string>& names = pods ? result.pods : result.leaves;
  return fmt::format("path between {} {} and {}{}", pods ? "pods" : "leaves",
                     names[static_cast<std::size_t>(pods ? suspect.pod : suspect.leaf)],
                     names[static_cast<std::size_t>(suspect.other)],
                     suspect.rail < 0 ? "" : fmt::format(", rail {}", suspect.rail));
}

auto key_of(const Suspect& suspect) {
  return std::tuple(suspect.part, suspect.rail, suspect.leaf, suspect.node, suspect.nic, suspect.peer, suspect.pod,
                    suspect.other);
}

const cluster::Judgement& judgement_of(const ClusterResult& result, const Series* series) {
  return series == nullptr ? result.judgement : series->judgement;
}

cluster::JudgeOptions options_of(const ClusterTest& test, const Series* series) {
  return series == nullptr ? test.judge : judge_options_for(*series, test);
}

std::vector<const Series*> all_series(const ClusterResult& result) {
  std::vector<const Series*> all = {nullptr};
  for (const Series& series : result.more) all.push_back(&series);
  return all;
}

std::string measured_before(const Suspect& suspect, const Series* series) {
  if (suspect.shift == 0) return "";
  return fmt::format("; {:+.1f} % in {} measurements before", plain_percent(suspect.shift, series), suspect.samples);
}

}  // namespace

std::vector<SlowPart> findings(const ClusterTest& test, const ClusterResult& result, cluster::Verdict verdict) {
  std::vector<SlowPart> found;
  for (const Series* series : all_series(result)) {
    const cluster::Judgement& judgement = judgement_of(result, series);
    if (cluster::is_blind(judgement, options_of(test, series))) continue;
    for (const Suspect& suspect : judgement.suspects) {
      if (suspect.verdict != verdict) continue;
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](const SlowPart& one) { return key_of(one.suspect) == key_of(suspect); });
      if (same == found.end()) found.push_back({suspect, series});
      else same->also.push_back({suspect, series});
    }
  }
  return found;
}

std::vector<const Series*> blind_series(const ClusterTest& test, const ClusterResult& result) {
  std::vector<const Series*> blind = all_series(result);
  std::erase_if(blind, [&](const Series* series) {
    return !cluster::is_blind(judgement_of(result, series), options_of(test, series));
  });
  return blind;
}

std::string name_of_series(const ClusterTest& test, const Series* series) {
  if (series == nullptr) return fmt::format("bandwidth of {}", format_size(test.size_bytes));
  return fmt::format("{} of {}", series->latency ? "latency" : "bandwidth", format_size(series->size_bytes));
}

std::string name_of_nic(const Star& star, const ClusterResult& result, int nic) {
  const NicPlace& place = result.places[static_cast<std::size_t>(nic)];
  const Member& member = star.members()[static_cast<std::size_t>(place.rank)];
  return fmt::format("{} of {}", member.devices[place.device], name_of_rank(star, place.rank));
}

std::string name_of_part(const Star& star, const ClusterResult& result, const Suspect& suspect) {
  const auto leaf = [&] { return result.leaves[static_cast<std::size_t>(suspect.leaf)]; };
  switch (suspect.part) {
    case cluster::Part::kRail: return fmt::format("rail {}", suspect.rail);
    case cluster::Part::kLeafRail: return fmt::format("leaf {}, rail {}", leaf(), suspect.rail);
    case cluster::Part::kUplink:
      return fmt::format("{} of leaf {}, rail {}", suspect.when == When::kAtTimes ? "some uplinks or paths" : "uplinks",
                         leaf(), suspect.rail);
    case cluster::Part::kPodUplink:
      return fmt::format("uplinks of pod {}, rail {}", result.pods[static_cast<std::size_t>(suspect.pod)],
                         suspect.rail);
    case cluster::Part::kPath: return name_of_path(result, suspect);
    case cluster::Part::kNode: return "node " + name_of_node(star, result, suspect.node);
    case cluster::Part::kNic: return "NIC " + name_of_nic(star, result, suspect.nic);
    case cluster::Part::kPair:
      return fmt::format("pair {} and {}", name_of_nic(star, result, suspect.nic),
                         name_of_nic(star, result, suspect.peer));
  }
  return {};
}

std::string slow_text(const ClusterTest& test, const SlowPart& finding) {
  const Suspect& suspect = finding.suspect;
  std::string line;
  if (suspect.when == When::kAtTimes) {
    line = fmt::format("far below its rate in {:.0f} % of {} retests{}{}; others in {:.0f} % of theirs",
                       100 * suspect.retest_bad_share, suspect.retests, of_series(finding.series), way_text(suspect),
                       100 * suspect.others_share);
  } else {
    line = fmt::format("{}{} ({} retests{})", change(suspect.retest_shift, finding.series), way_text(suspect),
                       suspect.retests, measured_before(suspect, finding.series));
  }
  for (const SlowPart::Also& also : finding.also) {
    line += also.suspect.when == When::kAtTimes ? fmt::format("; also in {}", name_of_series(test, also.series))
                                                : "; also " + change(also.suspect.retest_shift, also.series);
  }
  return line;
}

std::string slow_line(const Star& star, const ClusterTest& test, const ClusterResult& result, const SlowPart& finding) {
  const Suspect& suspect = finding.suspect;
  const std::string line =
      fmt::format("SLOW {}: {}", name_of_part(star, result, suspect), slow_text(test, finding));
  if (suspect.part != cluster::Part::kPair) return line;
  const int hops = result.hops.of(static_cast<std::size_t>(suspect.nic), static_cast<std::size_t>(suspect.peer));
  return hops == 0 ? line : fmt::format("{}; {} switch{} between them", line, hops, hops == 1 ? "" : "es");
}

std::string undecided_line(const Star& star, const ClusterTest&, const ClusterResult& result, const SlowPart& finding) {
  const Suspect& suspect = finding.suspect;
  if (suspect.when == When::kAtTimes && suspect.retests > 0) {
    return fmt::format("undecided: {}: far below its rate in {:.0f} % of {} retests{}",
                       name_of_part(star, result, suspect), 100 * suspect.retest_bad_share, suspect.retests,
                       of_series(finding.series));
  }
  if (suspect.retests == 0) {
    return fmt::format("undecided: {}: {} in {} measurements, not retested", name_of_part(star, result, suspect),
                       change(suspect.shift, finding.series), suspect.samples);
  }
  return fmt::format("undecided: {}: {} in {} measurements, {:+.1f} % in {} retests",
                     name_of_part(star, result, suspect), change(suspect.shift, finding.series), suspect.samples,
                     plain_percent(suspect.retest_shift, finding.series), suspect.retests);
}

}  // namespace gdrperf::app
