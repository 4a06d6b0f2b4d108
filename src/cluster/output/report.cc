#include "cluster/output/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/output/findings.h"
#include "cluster/output/patterns.h"
#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

constexpr std::size_t kMostLines = 6;

std::size_t lost_count(const Star& star) {
  return static_cast<std::size_t>(std::count_if(star.members().begin(), star.members().end(),
                                                [](const Member& m) { return !m.lost.empty(); }));
}

void print_head(const Star& star, const ClusterTest& test, const ClusterResult& result, std::ostream& out) {
  std::set<std::string> hosts;
  std::set<std::string> kinds;
  for (const Member& member : star.members()) {
    if (!member.card.host.empty()) hosts.insert(member.card.host);
    for (const CardDevice& device : member.card.devices) kinds.insert(device.kind);
  }
  out << fmt::format("{} ranks on {} host{}, {} NICs ({}); write_bw {}{}, {} rounds both ways, {:.1f} s, the first {:.1f} s after rank 0 began\n",
                     star.members().size(), hosts.size(), hosts.size() == 1 ? "" : "s",
                     result.fabric.nics.size(), fmt::join(kinds, ", "), format_size(test.size_bytes),
                     test.buffer == ClusterBuffer::kHost ? "" : test.buffer == ClusterBuffer::kGpu ? " between GPUs" : " between GPUs, staged",
                     result.rounds, result.seconds, result.start_seconds);
  out << fmt::format("typical {:.4g} GB/s; NICs scatter by {:.1f} %, measurements by {:.1f} %; {:.1f} % of {} "
                     "measurements are far below what their NICs do else\n",
                     result.judgement.typical_gbytes, 100 * result.judgement.nic_sigma,
                     100 * result.judgement.pair_sigma, 100 * result.judgement.slow_share,
                     result.samples.size());
  for (const Series& series : result.more) {
    const double typical = series.judgement.typical_gbytes;
    if (!(typical > 0)) continue;
    out << fmt::format("{} of {}: typical {}; NICs scatter by {:.1f} %\n", series.latency ? "latency" : "bandwidth",
                       format_size(series.size_bytes),
                       series.latency ? fmt::format("{:.4g} us", 1 / typical) : fmt::format("{:.4g} GB/s", typical),
                       100 * series.judgement.nic_sigma);
  }
}

// Evidence that tells a NIC from its cable, if any does.
void print_inspections(const Star& star, const ClusterResult& result, std::ostream& out) {
  constexpr double kAsFast = 0.97;
  for (const Inspection& one : result.inspections) {
    std::string text;
    if (one.loopback_gbytes > 0 && one.other_gbytes > 0) {
      const bool slow = one.loopback_gbytes < kAsFast * one.other_gbytes;
      text = fmt::format("to itself it does {:.4g} GB/s, {} {:.4g}: {}", one.loopback_gbytes,
                         name_of_nic(star, result, one.other), one.other_gbytes,
                         slow ? "the NIC, its PCIe or its host, without any cable"
                              : "cable, switch port, or what shows on the wire alone");
    } else {
      text = "to itself it could not be measured";
    }
    std::vector<std::string> rose;
    for (const auto& [name, by] : one.rose) rose.push_back(fmt::format("{} +{}", name, by));
    text += one.rose.empty() ? one.has_counters ? "; no counter of errors rose" : "; it has no counters of errors"
                             : fmt::format("; counters rose: {}", fmt::join(rose, ", "));
    out << fmt::format("{}: {}\n", name_of_nic(star, result, one.nic), text);
  }
}

void print_losses(const Star& star, const ClusterResult& result, std::ostream& out) {
  std::vector<std::string> lost;
  for (std::size_t rank = 0; rank < star.members().size(); ++rank) {
    const Member& member = star.members()[rank];
    if (member.lost.empty()) continue;
    lost.push_back(fmt::format("rank {}{} ({})", rank,
                               member.card.host.empty() ? "" : " on " + member.card.host, member.lost));
  }
  const std::size_t more = lost.size() > 3 ? lost.size() - 3 : 0;
  lost.resize(lost.size() - more);
  if (!lost.empty()) {
    out << fmt::format("lost: {}{}\n", fmt::join(lost, "; "), more > 0 ? fmt::format("; {} more", more) : "");
  }
  if (!result.failed.empty()) {
    const FailedRun& first = result.failed.front();
      out << fmt::format("{} runs failed, the first from {} to {}: {}\n", result.failed.size(),
                       name_of_nic(star, result, first.from), name_of_nic(star, result, first.to), first.why);
  }
}

// A NIC whose runs all failed is nowhere else: it has no rate.
std::vector<int> nics_without_a_run(const Star& star, const ClusterResult& result) {
  std::vector<int> nics;
  for (std::size_t nic = 0; nic < result.places.size(); ++nic) {
    const auto is_it = [&](const FailedRun& run) {
      return run.from == static_cast<int>(nic) || run.to == static_cast<int>(nic);
    };
    const bool measured = result.judgement.sends.empty() ||
                          result.judgement.sends[nic].samples + result.judgement.receives[nic].samples > 0;
    if (!measured && star.there(result.places[nic].rank) &&
        std::any_of(result.failed.begin(), result.failed.end(), is_it))
      nics.push_back(static_cast<int>(nic));
  }
  return nics;
}

void print_sick(const Star& star, const ClusterResult& result, std::ostream& out) {
  for (std::size_t i = 0; i < std::min(result.losses.size(), kMostLines); ++i) {
    const Losses& one = result.losses[i];
    std::vector<std::string> rose;
    for (const auto& [name, by] : one.rose) rose.push_back(fmt::format("{} +{}", name, by));
    out << fmt::format("LOSES NIC {}: {}; half of the NICs: +{} or less\n", name_of_nic(star, result, one.nic),
                       fmt::join(rose, ", "), one.others);
  }
  const std::vector<int> failed = nics_without_a_run(star, result);
  for (std::size_t i = 0; i < std::min(failed.size(), kMostLines); ++i) {
    const auto first = std::find_if(result.failed.begin(), result.failed.end(),
                                    [&](const FailedRun& run) { return run.from == failed[i] || run.to == failed[i]; });
    out << fmt::format("FAILED NIC {}: none of its runs worked: {}\n", name_of_nic(star, result, failed[i]),
                       first->why);
  }
  if (failed.size() > kMostLines) out << fmt::format("... and {} more\n", failed.size() - kMostLines);
}

}  // namespace

ExitCode verdict_of(const Star& star, const ClusterTest& test, const ClusterResult& result) {
  if (!findings(test, result, cluster::Verdict::kSlow).empty() || !result.losses.empty()) return ExitCode::kRegression;
  const bool known = result.judgement.judged > 0 && blind_series(test, result).empty() &&
                     findings(test, result, cluster::Verdict::kUndecided).empty() && lost_count(star) == 0 &&
                     result.failed.empty() && !result.stopped;
  return known ? ExitCode::kOk : ExitCode::kInconclusive;
}

void print_cluster(const Star& star, const ClusterTest& test, const ClusterResult& result,
                   std::ostream& out) {
  print_head(star, test, result, out);
  const auto slow = findings(test, result, cluster::Verdict::kSlow);
  for (std::size_t i = 0; i < std::min(slow.size(), kMostLines); ++i)
    out << slow_line(star, test, result, slow[i]) << "\n";
  if (slow.size() > kMostLines) out << fmt::format("... and {} more\n", slow.size() - kMostLines);
  print_sick(star, result, out);
  const auto undecided = findings(test, result, cluster::Verdict::kUndecided);
  for (std::size_t i = 0; i < std::min(undecided.size(), kMostLines); ++i)
    out << undecided_line(star, test, result, undecided[i]) << "\n";
  if (undecided.size() > kMostLines) out << fmt::format("... and {} more undecided\n", undecided.size() - kMostLines);
  if (const auto cleared = findings(test, result, cluster::Verdict::kCleared); !cleared.empty()) {
    out << fmt::format("cleared by retests: {}{}\n", name_of_part(star, result, cleared.front().suspect),
                       cleared.size() > 1 ? fmt::format(" and {} more", cleared.size() - 1) : "");
  }
  if (result.stopped)
    out << fmt::format("stopped by a signal after {} of {} rounds: what these show, not retested\n", result.rounds_done,
                       result.rounds);
  out << pattern_lines(result);
  print_losses(star, result, out);
  print_differences(star.members(), out);
  out << heat_map(star.members(), result);
  if (std::any_of(slow.begin(), slow.end(),
                  [](const SlowPart& one) { return one.suspect.part == cluster::Part::kNic; })) {
    out << "rates between nodes do not tell a NIC from its cable or its switch port\n";
    print_inspections(star, result, out);
  }
  for (const Series* series : blind_series(test, result)) {
    const cluster::Judgement& judgement = series == nullptr ? result.judgement : series->judgement;
    out << fmt::format(
        "not judged: {}: one part that is less than {:.0f} % slow would not show ({}): measure again when nothing else runs, or longer (-D){}\n",
        name_of_series(test, series),
        100 * cluster::least_visible(judgement, series == nullptr ? test.judge : judge_options_for(*series, test)),
        judgement.step > judgement.nic_sigma ? "values come in steps" : "NICs scatter",
        series == nullptr ? "" : ", or without it (--small 0)");
  }
  switch (verdict_of(star, test, result)) {
    case ExitCode::kOk: out << "nothing is slow\n"; break;
    case ExitCode::kRegression:
      if (!slow.empty()) out << fmt::format("{} part{} slow\n", slow.size(), slow.size() == 1 ? " is" : "s are");
      if (!result.losses.empty())
        out << fmt::format("{} NIC{} messages or packets\n", result.losses.size(),
                           result.losses.size() == 1 ? " loses" : "s lose");
      break;
    default:
      out << (result.judgement.judged == 0
                  ? "undecided: each NIC needs three partners at least to be judged\n"
                  : "undecided (above)\n");
  }
}

}  // namespace gdrperf::app
