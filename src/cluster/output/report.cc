#include "cluster/output/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/output/table.h"
#include "cluster/output/findings.h"
#include "cluster/output/patterns.h"
#include "cluster/ranks/collective.h"
#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

constexpr std::size_t kMostLines = 6;

std::size_t lost_count(const Star& star) {
  return static_cast<std::size_t>(std::count_if(star.members().begin(), star.members().end(),
                                                [](const Member& m) { return !m.lost.empty(); }));
}

/// Typical values and how far they vary.
void print_typical(const ClusterResult& result, std::ostream& out) {
  print_line(out,
             fmt::format("typical {} GB/s; NICs vary by {:.1f} %, measurements by {:.1f} %; {:.1f} % of {} "
                         "measurements were far below their NIC's usual rate",
                         plain_digits(result.judgement.typical_gbytes), 100 * result.judgement.nic_sigma,
                         100 * result.judgement.pair_sigma, 100 * result.judgement.slow_share, result.samples.size()),
             2);
  for (const Series& series : result.more) {
    const double typical = series.judgement.typical_gbytes;
    if (!(typical > 0)) continue;
    out << fmt::format("{} of {}: typical {}; NICs vary by {:.1f} %\n", series.latency ? "latency" : "bandwidth",
                       format_size(series.size_bytes),
                       series.latency ? plain_digits(1 / typical) + " us" : plain_digits(typical) + " GB/s",
                       100 * series.judgement.nic_sigma);
  }
}

// What the wiring says, and what was measured over that distance: no verdict.
void print_hops(const ClusterResult& result, std::ostream& out) {
  std::map<int, std::string> parts;
  for (const HopGroup& group : by_hops(result.hops, result.samples))
    parts[group.hops] = fmt::format("{}: {} GB/s", group.hops, plain_digits(group.median));
  for (const Series& series : result.more) {
    if (!series.latency) continue;
    for (const HopGroup& group : by_hops(result.hops, series.samples))
      parts[group.hops] +=
          fmt::format(", {} us with {}", plain_digits(1 / group.median), format_size(series.size_bytes));
  }
  std::string text;
  for (const auto& [hops, part] : parts) text += (text.empty() ? "" : "; ") + part;
  if (!text.empty()) print_line(out, "by switches between the NICs (medians): " + text, 2);
}

void print_job(const Star& star, const ClusterTest& test, const ClusterResult& result, std::ostream& out) {
  std::set<std::string> hosts;
  std::set<std::string> kinds;
  for (const Member& member : star.members()) {
    if (!member.card.host.empty()) hosts.insert(member.card.host);
    for (const CardDevice& device : member.card.devices) kinds.insert(device.kind);
  }
  print_line(out,
             fmt::format("{} ranks on {} host{}, {} NICs ({}); write_bw {}{}; {} rounds both ways in {:.1f} s, the "
                         "first {:.1f} s after rank 0 began",
                         star.members().size(), hosts.size(), hosts.size() == 1 ? "" : "s", result.fabric.nics.size(),
                         fmt::join(kinds, ", "), format_size(test.size_bytes),
                         test.buffer == ClusterBuffer::kHost  ? ""
                         : test.buffer == ClusterBuffer::kGpu ? " between GPUs"
                                                              : " between GPUs, staged",
                         result.rounds, result.seconds, result.start_seconds),
             2);
}

// Evidence that separates a NIC from its cable, if there is any.
void print_inspections(const Star& star, const ClusterResult& result, std::ostream& out) {
  constexpr double kAsFast = 0.97;
  print_line(out, "note: node-to-node rates cannot separate a NIC from its cable or switch port", 2);
  for (const Inspection& one : result.inspections) {
    std::string text = "loopback (no cable) could not be measured";
    if (one.loopback_gbytes > 0 && one.other_gbytes > 0) {
      const bool slow = one.loopback_gbytes < kAsFast * one.other_gbytes;
      text = fmt::format("loopback (no cable) {} GB/s, against {} GB/s of {}: suspect {}",
                         plain_digits(one.loopback_gbytes), plain_digits(one.other_gbytes),
                         name_of_nic(star, result, one.other),
                         slow ? "the NIC, its PCIe link or its host"
                              : "the cable, the switch port, or what the NIC does on the wire only");
    }
    std::vector<std::string> rose;
    for (const auto& [name, by] : one.rose) rose.push_back(fmt::format("{} +{}", name, by));
    text += !one.rose.empty() ? fmt::format("; error counters rose: {}", fmt::join(rose, ", "))
            : one.has_counters ? "; no error counter rose" : "; the device has no error counters";
    print_line(out, fmt::format("{}: {}", name_of_nic(star, result, one.nic), text), 2);
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
    print_line(out, fmt::format("lost: {}{}", fmt::join(lost, "; "), more > 0 ? fmt::format("; {} more", more) : ""),
               2);
  }
  if (!result.failed.empty()) {
    const FailedRun& first = result.failed.front();
    print_line(out,
               fmt::format("{} run{} failed, the first from {} to {}: {}", result.failed.size(),
                           result.failed.size() == 1 ? "" : "s", name_of_nic(star, result, first.from),
                           name_of_nic(star, result, first.to), first.why),
               2);
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

// A node whose NICs all failed is one line.
std::vector<std::string> failed_lines(const Star& star, const ClusterResult& result) {
  std::map<int, std::vector<int>> by_rank;
  for (const int nic : nics_without_a_run(star, result))
    by_rank[result.places[static_cast<std::size_t>(nic)].rank].push_back(nic);
  const auto why = [&](int nic) {
    return std::find_if(result.failed.begin(), result.failed.end(),
                        [&](const FailedRun& run) { return run.from == nic || run.to == nic; })->why;
  };
  std::vector<std::string> lines;
  for (const auto& [rank, nics] : by_rank) {
    const Member& member = star.members()[static_cast<std::size_t>(rank)];
    if (nics.size() > 1 && nics.size() == member.devices.size()) {
      lines.push_back(fmt::format("FAILED node rank {} ({}): none of the runs of its {} NICs worked: {}", rank,
                                  member.card.host, nics.size(), why(nics.front())));
      continue;
    }
    for (const int nic : nics)
      lines.push_back(
          fmt::format("FAILED NIC {}: none of its runs worked: {}", name_of_nic(star, result, nic), why(nic)));
  }
  return lines;
}

void print_sick(const Star& star, const ClusterResult& result, std::ostream& out) {
  for (std::size_t i = 0; i < std::min(result.losses.size(), kMostLines); ++i) {
    const Losses& one = result.losses[i];
    std::vector<std::string> rose;
    for (const auto& [name, by] : one.rose) rose.push_back(fmt::format("{} +{}", name, by));
    print_line(out,
               fmt::format("LOSES NIC {}: {}; half of the NICs: +{} or less", name_of_nic(star, result, one.nic),
                           fmt::join(rose, ", "), one.others),
               2);
  }
  const std::vector<std::string> failed = failed_lines(star, result);
  for (std::size_t i = 0; i < std::min(failed.size(), kMostLines); ++i) print_line(out, failed[i], 2);
  if (failed.size() > kMostLines) out << fmt::format("... and {} more\n", failed.size() - kMostLines);
}

void print_unexpected(const Star& star, const ClusterResult& result, std::ostream& out) {
  for (std::size_t i = 0; i < std::min(result.unexpected.size(), kMostLines); ++i) {
    const Unexpected& one = result.unexpected[i];
    const Card& card = star.members()[static_cast<std::size_t>(one.rank)].card;
    print_line(out, fmt::format("MISSING on {} (rank {}): {}", card.host, one.rank, one.what), 2);
  }
  if (result.unexpected.size() > kMostLines)
    out << fmt::format("... and {} more\n", result.unexpected.size() - kMostLines);
}

/// The slow parts, with the evidence against each.
void print_suspects(const Star& star, const ClusterTest& test, const ClusterResult& result, std::ostream& out) {
  const auto slow = findings(test, result, cluster::Verdict::kSlow);
  for (std::size_t i = 0; i < std::min(slow.size(), kMostLines); ++i)
    print_line(out, slow_line(star, test, result, slow[i]), 2);
  if (slow.size() > kMostLines) out << fmt::format("... and {} more\n", slow.size() - kMostLines);
  print_sick(star, result, out);
  print_unexpected(star, result, out);
  const auto undecided = findings(test, result, cluster::Verdict::kUndecided);
  for (std::size_t i = 0; i < std::min(undecided.size(), kMostLines); ++i)
    print_line(out, undecided_line(star, test, result, undecided[i]), 2);
  if (undecided.size() > kMostLines) out << fmt::format("... and {} more undecided\n", undecided.size() - kMostLines);
  if (const auto cleared = findings(test, result, cluster::Verdict::kCleared); !cleared.empty()) {
    print_line(out, fmt::format("cleared by retests: {}{}", name_of_part(star, result, cleared.front().suspect),
                                cleared.size() > 1 ? fmt::format(" and {} more", cleared.size() - 1) : ""), 2);
  }
  if (std::any_of(slow.begin(), slow.end(),
                  [](const SlowPart& one) { return one.suspect.part == cluster::Part::kNic; })) {
    print_inspections(star, result, out);
  }
}

void print_blind(const ClusterTest& test, const ClusterResult& result, std::ostream& out) {
  for (const Series* series : blind_series(test, result)) {
    const cluster::Judgement& judgement = series == nullptr ? result.judgement : series->judgement;
    const double visible =
        cluster::least_visible(judgement, series == nullptr ? test.judge : judge_options_for(*series, test));
    print_line(out,
               fmt::format("not judged: {}: a part that is less than {:.0f} % slow would not show ({}): measure again "
                           "when nothing else runs, or longer (-D){}",
                           name_of_series(test, series), 100 * visible,
                           judgement.step > judgement.nic_sigma ? "values come in steps" : "NICs vary",
                           series == nullptr ? "" : ", or without it (--small 0)"),
               2);
  }
}

std::string verdict_text(ExitCode code, const ClusterTest& test, const ClusterResult& result) {
  const std::size_t slow = findings(test, result, cluster::Verdict::kSlow).size();
  switch (code) {
    case ExitCode::kOk: return "nothing is slow";
    case ExitCode::kRegression: {
      std::string text = slow == 0 ? "" : fmt::format("{} part{} slow", slow, slow == 1 ? " is" : "s are");
      const std::size_t losing = result.losses.size();
      if (losing > 0)
        text += fmt::format("{}{} NIC{} messages or packets", text.empty() ? "" : "; ", losing,
                            losing == 1 ? " loses" : "s lose");
      if (!result.unexpected.empty())
        text += std::string(text.empty() ? "" : "; ") + "not all that is expected is there";
      return text;
    }
    default: break;
  }
  return result.judgement.judged == 0 ? "undecided: each NIC needs at least three partners to be judged"
                                      : "undecided, for the reasons below";
}

}  // namespace

ExitCode verdict_of(const Star& star, const ClusterTest& test, const ClusterResult& result) {
  if (!findings(test, result, cluster::Verdict::kSlow).empty() || !result.losses.empty() ||
      !result.unexpected.empty())
    return ExitCode::kRegression;
  const bool known = result.judgement.judged > 0 && blind_series(test, result).empty() &&
                     findings(test, result, cluster::Verdict::kUndecided).empty() && lost_count(star) == 0 &&
                     result.failed.empty() && !result.stopped;
  return known ? ExitCode::kOk : ExitCode::kInconclusive;
}

void print_cluster(const Star& star, const ClusterTest& test, const ClusterResult& result, std::ostream& out) {
  print_line(out, verdict_text(verdict_of(star, test, result), test, result), 2);
  print_suspects(star, test, result, out);
  print_blind(test, result, out);
  if (result.stopped) {
    print_line(out,
               fmt::format("stopped by a signal after {} of {} rounds: results of these, without {}retests",
                           result.rounds_done, result.rounds, result.rounds_done < result.rounds ? "" : "all "),
               2);
  }
  print_losses(star, result, out);
  out << heat_map(star.members(), result);
  print_differences(star.members(), out);
  out << pattern_lines(star, result) << collective_lines(result);
  print_typical(result, out);
  print_hops(result, out);
  print_job(star, test, result, out);
}

}  // namespace gdrperf::app
