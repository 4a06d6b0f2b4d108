#include "app/doctor/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "app/output/table.h"
#include "gdrperf/base/printable.h"

namespace gdrperf::app {
namespace {

using doctor::Finding;
using doctor::PairVerdict;
using doctor::Verdict;

constexpr std::size_t kMostNames = 4;

/// Worst first.
int badness(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFail:
      return 0;
    case Verdict::kWarn:
      return 1;
    case Verdict::kOk:
      return 2;
    case Verdict::kSkip:
      return 3;
  }
  return 3;
}

bool is_bad(const Finding& finding) { return badness(finding.verdict) <= 1; }

/// Findings that say the same about several things.
struct Row {
  const Finding* finding;
  std::vector<std::string> subjects;
};

struct FindingGroup {
  std::string name;
  std::vector<Row> rows;
};

std::string without_subject(const Finding& finding, std::string text) {
  for (const std::string& name : {finding.subject, finding.subject.substr(0, finding.subject.find('/'))}) {
    if (name.empty()) continue;
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
      text.replace(at, name.size(), "*");
    }
  }
  return text;
}

bool same(const Finding& one, const Finding& other) {
  return one.check == other.check && one.verdict == other.verdict &&
         without_subject(one, one.found) == without_subject(other, other.found);
}

void add_row(FindingGroup& group, const Finding& finding, Detail detail) {
  if (detail == Detail::kBrief) {
    for (Row& row : group.rows) {
      if (!same(*row.finding, finding)) continue;
      row.subjects.push_back(finding.subject);
      return;
    }
  }
  group.rows.push_back({&finding, {finding.subject}});
}

/// In the order of the checks, then by how bad the worst of each is.
std::vector<FindingGroup> groups_of(const std::vector<Finding>& findings, Detail detail) {
  std::vector<FindingGroup> groups;
  for (const Finding& finding : findings) {
    const std::string name = doctor::group_of(finding.check);
    auto it = std::find_if(groups.begin(), groups.end(), [&](const FindingGroup& group) { return group.name == name; });
    if (it == groups.end()) it = groups.insert(groups.end(), {name, {}});
    add_row(*it, finding, detail);
  }
  const auto by_badness = [](const Row& one, const Row& other) {
    return badness(one.finding->verdict) < badness(other.finding->verdict);
  };
  for (FindingGroup& group : groups) std::stable_sort(group.rows.begin(), group.rows.end(), by_badness);
  std::stable_sort(groups.begin(), groups.end(), [&](const FindingGroup& one, const FindingGroup& other) {
    return by_badness(one.rows.front(), other.rows.front());
  });
  return groups;
}

std::string names_of(std::vector<std::string> subjects) {
  if (subjects.size() == 1 && subjects.front().empty()) return {};
  std::string more;
  if (subjects.size() > kMostNames) {
    more = fmt::format(" and {} more", subjects.size() - kMostNames);
    subjects.resize(kMostNames);
  }
  return fmt::format("{}{}", fmt::join(subjects, ", "), more);
}

void print_row(const Row& row, Detail detail, std::ostream& out) {
  const Finding& finding = *row.finding;
  const std::string where = names_of(row.subjects);
  print_line(out,
             fmt::format("  {:4}  {:<16}  {}{}{}", doctor::to_string(finding.verdict), finding.check, where,
                         where.empty() ? "" : ": ", finding.found),
             8);
  // Commands are copied: they are not broken.
  const auto more = [&](const char* name, const std::string& text) {
    if (!text.empty()) out << fmt::format("        {:>9}: {}\n", name, printable(text));
  };
  const bool explained = is_bad(finding) || detail == Detail::kAll;
  if (explained && !finding.why.empty()) print_line(out, fmt::format("        {:>9}: {}", "why", finding.why), 19);
  more("fix", finding.fix);
  more("permanent", finding.for_good);
  if (explained && !finding.holds.empty())
    print_line(out, fmt::format("        {:>9}: {}", "holds", finding.holds), 19);
  if (detail == Detail::kAll) {
    more("undo", finding.undo);
    for (const std::string& seen : finding.evidence) more("seen", seen);
  }
}

/// "OK    mtu, gid, port-state": what needs no row of its own.
void print_rest(const FindingGroup& group, Verdict verdict, std::ostream& out) {
  std::vector<std::string> names;
  for (const Row& row : group.rows) {
    const std::string& name = row.finding->check;
    if (row.finding->verdict != verdict || std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
  }
  if (!names.empty()) print_line(out, fmt::format("  {:4}  {}", doctor::to_string(verdict), fmt::join(names, ", ")), 8);
}

void print_group(const FindingGroup& group, Detail detail, std::ostream& out) {
  out << '\n'
      << group.name << '\n';
  for (const Row& row : group.rows) {
    if (detail == Detail::kAll || is_bad(*row.finding)) print_row(row, detail, out);
  }
  if (detail == Detail::kAll) return;
  print_rest(group, Verdict::kOk, out);
  print_rest(group, Verdict::kSkip, out);
}

int distance_of(const PairVerdict& pair) {
  static const std::map<std::string, int> kOrder = {{"PIX", 0}, {"PXB", 1}, {"PHB", 2}, {"NODE", 3}, {"SYS", 4}};
  const auto it = kOrder.find(pair.relation);
  return it == kOrder.end() ? 5 : it->second;
}

/// Those of the GPU of `pairs[begin]`, which are neighbours; with kBrief only its nearest.
std::vector<const PairVerdict*> pairs_of_gpu(const std::vector<PairVerdict>& pairs, std::size_t begin, Detail detail) {
  std::vector<const PairVerdict*> shown;
  for (std::size_t i = begin; i < pairs.size() && pairs[i].gpu == pairs[begin].gpu; ++i) {
    if (detail == Detail::kBrief && !shown.empty() && distance_of(pairs[i]) > distance_of(*shown.front())) continue;
    if (detail == Detail::kBrief && !shown.empty() && distance_of(pairs[i]) < distance_of(*shown.front()))
      shown.clear();
    shown.push_back(&pairs[i]);
  }
  return shown;
}

std::size_t next_gpu(const std::vector<PairVerdict>& pairs, std::size_t begin) {
  std::size_t end = begin;
  while (end < pairs.size() && pairs[end].gpu == pairs[begin].gpu) ++end;
  return end;
}

/// With kBrief the NICs of one GPU that have one verdict share a line.
void print_pairs(const std::vector<PairVerdict>& pairs, Detail detail, std::ostream& out) {
  if (pairs.empty()) return;
  out << "\nGPU <-> NIC\n";
  for (std::size_t i = 0; i < pairs.size(); i = next_gpu(pairs, i)) {
    std::vector<std::pair<const PairVerdict*, std::vector<std::string>>> lines;
    for (const PairVerdict* pair : pairs_of_gpu(pairs, i, detail)) {
      auto it = std::find_if(lines.begin(), lines.end(), [&](const auto& line) {
        return detail == Detail::kBrief && line.first->words == pair->words;
      });
      if (it == lines.end()) it = lines.insert(lines.end(), {pair, {}});
      it->second.push_back(printable(pair->nic));
    }
    for (const auto& [pair, nics] : lines) {
      print_line(
          out,
          fmt::format("  {} <-> {} {}: {}", printable(pair->gpu), fmt::join(nics, ", "), pair->relation, pair->words),
          4);
    }
  }
}

/// GPUs, and those of them that have a direct path to a nearest NIC.
std::pair<std::size_t, std::size_t> ready_gpus(const std::vector<PairVerdict>& pairs) {
  std::size_t gpus = 0;
  std::size_t ready = 0;
  for (std::size_t i = 0; i < pairs.size(); i = next_gpu(pairs, i)) {
    const auto nearest = pairs_of_gpu(pairs, i, Detail::kBrief);
    ++gpus;
    ready += std::any_of(nearest.begin(), nearest.end(), [](const PairVerdict* pair) { return pair->ready; });
  }
  return {gpus, ready};
}

/// "all is well: 42 checks ok, 7 skipped; ...", or the counts, failures first.
std::string headline(const doctor::Examination& examination) {
  const std::vector<Finding>& findings = examination.findings;
  const auto count = [&](Verdict verdict) { return count_of(findings, verdict); };
  const auto ok = count(Verdict::kOk);
  const auto skipped = count(Verdict::kSkip);
  const auto [gpus, ready] = ready_gpus(examination.pairs);
  if (count(Verdict::kFail) + count(Verdict::kWarn) > 0) {
    return fmt::format("{} failed, {} warning{}, {} ok, {} skipped", count(Verdict::kFail), count(Verdict::kWarn),
                       count(Verdict::kWarn) == 1 ? "" : "s", ok, skipped);
  }
  if (ok == 0) return fmt::format("no verdict: nothing could be checked, {} skipped", skipped);
  std::string text = fmt::format("all is well: {} ok, {} skipped", ok, skipped);
  if (gpus > 0 && ready == gpus) {
    text += gpus == 1 ? "; the GPU has a direct path to its nearest NIC"
                      : fmt::format("; all {} GPUs have a direct path to their nearest NIC", gpus);
  } else if (gpus > 0) {
    text += fmt::format("; {} of {} GPUs have a direct path to their nearest NIC", ready, gpus);
  }
  return text;
}

/// What to do first, for who reads no further: the checks are in the order of causes.
void print_first(const std::vector<Finding>& findings, std::ostream& out) {
  for (const Verdict verdict : {Verdict::kFail, Verdict::kWarn}) {
    const auto first =
        std::find_if(findings.begin(), findings.end(), [&](const Finding& each) { return each.verdict == verdict; });
    if (first == findings.end()) continue;
    print_line(out,
               fmt::format("{} {}{}{}: {}", doctor::to_string(verdict), first->check, first->subject.empty() ? "" : " ",
                           first->subject, first->found),
               5);
    if (!first->fix.empty()) out << fmt::format("  do: {}\n", printable(first->fix));
    if (!first->for_good.empty()) out << fmt::format("  permanent: {}\n", printable(first->for_good));
    return;
  }
}

}  // namespace

std::ptrdiff_t count_of(const std::vector<Finding>& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.verdict == verdict; });
}

void print_examination(const doctor::Examination& examination, Detail detail, std::ostream& out) {
  const std::vector<Finding>& findings = examination.findings;
  const bool well = std::none_of(findings.begin(), findings.end(), is_bad);
  const auto [gpus, ready] = ready_gpus(examination.pairs);
  print_first(findings, out);
  print_line(out, headline(examination) + (detail == Detail::kAll ? "" : " (-v: all of them)"), 2);
  const bool brief = detail == Detail::kBrief && well;
  if (!brief || ready < gpus) print_pairs(examination.pairs, detail, out);
  if (brief) return;
  for (const FindingGroup& group : groups_of(findings, detail)) print_group(group, detail, out);
}

void print_nothing_here(std::ostream& out) {
  out << R"(Nothing to check: this machine has no RDMA device, no adapter that could be one,
and no GPU (exit status 3). In a container that hides /sys, none can be found.

Searched: /sys/class/infiniband, the PCI bus, libibverbs.

On this machine you can run:
  gdrperf sweep --local --softnic      every test, over the software device
  sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe netdev NETDEV
                                       the kernel's Soft-RoCE, over an interface
  scripts/softroce-vm gdrperf doctor   Soft-RoCE in a virtual machine, no root

For another machine:
  gdrperf doctor --read FILE           check text copied from it (dmesg, lspci
                                       -vvv, NCCL logs, ...)
  gdrperf doctor --record FILE.tar.gz  record it there, then check it here:
                                       gdrperf doctor --root FILE.tar.gz
  gdrperf doctor HOST                  ask its 'gdrperf serve'

If there should be a NIC:
  lspci | grep -i -e mellanox -e infiniband -e ethernet
shows whether it is on the bus. A virtual machine has a NIC only if its host
passes it through, a container only if it was started with
--device=/dev/infiniband. To list all checks: -v.
)";
}

void print_check_list(std::ostream& out) {
  std::string group;
  for (const doctor::CheckInfo& check : doctor::checks()) {
    if (check.group != group) out << (group.empty() ? "" : "\n") << check.group << '\n';
    group = check.group;
    out << fmt::format("  {:<17} {}\n  {:<17} -> {}\n", check.id, check.looks_at, "", check.bad_when);
  }
}

}  // namespace gdrperf::app
