#include "cluster/output/export.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/export/exposition.h"

namespace gdrperf::app {
namespace {

// Hosts and devices name themselves; what a shell or a label would take for more than a name goes, and what kubectl
// and scontrol would take for all nodes ("--all", "ALL").
std::string plain(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    text += good ? c : '_';
  }
  if (text.starts_with('-')) text[0] = '_';
  constexpr std::string_view kAll = "all";
  const bool all = std::equal(text.begin(), text.end(), kAll.begin(), kAll.end(),
                              [](char one, char other) { return (one | 0x20) == other; });
  return text.empty() ? "unknown" : all ? "_" + text
                                        : text;
}

// Inside double quotes of a shell, or behind its '#'.
std::string shell_text(const std::string& words) {
  std::string text;
  for (const char c : printable(words)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view(" .,:+-_/()").find(c) != std::string_view::npos;
    text += good ? c : '_';
  }
  return text;
}

// One of several in a line.
std::string short_reason(const std::string& words) { return shell_text(words.substr(0, 100)); }

// As the scheduler knows it.
std::string host_of(const ClusterFile& file, int rank) {
  const FileRank* found = file.rank(rank);
  if (found == nullptr) return {};
  return found->node.empty() ? found->host : found->node;
}

// The same part in other series is one part.
bool same_part(const FileSuspect& one, const FileSuspect& other) {
  return one.part == other.part && one.rank == other.rank && one.nic == other.nic && one.peer == other.peer &&
         one.rail == other.rail && one.leaf == other.leaf && one.pod == other.pod && one.other == other.other;
}

std::vector<FileSuspect> slow_parts(const ClusterFile& file) {
  std::vector<FileSuspect> slow;
  for (const FileSuspect& suspect : file.suspects) {
    const auto same = [&](const FileSuspect& one) { return same_part(one, suspect); };
    if (suspect.verdict == "slow" && std::none_of(slow.begin(), slow.end(), same)) slow.push_back(suspect);
  }
  return slow;
}

// "-20.0 %", "+25.0 % latency"; or how often.
std::string amount(const FileSuspect& suspect) {
  if (suspect.when != "always")
    return fmt::format("far below its rate in {:.0f} % of its runs", 100 * suspect.bad_share);
  const bool latency = suspect.series.find("latency") != std::string::npos;
  const double percent = latency ? 100 * (1 / (1 + suspect.percent / 100) - 1) : suspect.percent;
  return fmt::format("{:+.1f} %{}", percent,
                     suspect.series == "bandwidth" ? ""
                     : latency                     ? " latency"
                                                   : " with small messages");
}

using AddReason = std::function<void(const std::string& host, const std::string& reason)>;

void add_failed(const ClusterFile& file, const AddReason& add) {
  std::set<int> said;
  std::map<int, std::size_t> nics_of;
  std::map<int, std::size_t> failed_of;
  for (const FileNic& nic : file.nics) ++nics_of[nic.rank];
  for (const auto& [id, why] : file.failed) ++failed_of[file.nics[static_cast<std::size_t>(id)].rank];
  for (const auto& [id, why] : file.failed) {
    // A node whose NICs all failed is one reason.
    const int rank = file.nics[static_cast<std::size_t>(id)].rank;
    const std::size_t failed = failed_of[rank];
    if (failed < nics_of[rank] || failed == 1) {
      const FileNic& nic = file.nics[static_cast<std::size_t>(id)];
      add(host_of(file, rank), fmt::format("NIC {} none of its runs worked: {}", plain(nic.device), short_reason(why)));
    } else if (said.insert(rank).second) {
      add(host_of(file, rank), fmt::format("none of the runs of its {} NICs worked: {}", failed, short_reason(why)));
    }
  }
}

// Problems of a host as one short text, by host; those that belong to no single host go to `rest`.
std::map<std::string, std::string> reasons(const ClusterFile& file, std::vector<std::string>& rest) {
  std::map<std::string, std::string> of_host;
  const auto add = [&](const std::string& host, const std::string& reason) {
    std::string& text = of_host[plain(host)];
    text += (text.empty() ? "" : ", ") + reason;
  };
  for (const FileSuspect& suspect : slow_parts(file)) {
    if (suspect.part == "nic" && suspect.nic >= 0) {
      const FileNic& nic = file.nics[static_cast<std::size_t>(suspect.nic)];
      add(host_of(file, nic.rank), fmt::format("NIC {} {}", plain(nic.device), amount(suspect)));
    } else if (suspect.part == "node") {
      add(host_of(file, suspect.rank), "node " + amount(suspect));
    } else {
      rest.push_back(fmt::format("{} is slow: {}", describe(file, suspect), amount(suspect)));
    }
  }
  for (const int id : file.losing) {
    const FileNic& nic = file.nics[static_cast<std::size_t>(id)];
    add(host_of(file, nic.rank), fmt::format("NIC {} loses messages or packets", plain(nic.device)));
  }
  add_failed(file, add);
  for (const auto& [rank, what] : file.unexpected) {
    if (const std::string host = host_of(file, rank); !host.empty()) add(host, shell_text(what));
  }
  for (const FileRank& rank : file.ranks) {
    if (rank.lost.empty()) continue;
    if (rank.host.empty()) rest.push_back(fmt::format("rank {} never came: {}", rank.rank, rank.lost));
    else add(host_of(file, rank.rank), "lost: " + short_reason(rank.lost));
  }
  return of_host;
}

void head(const ClusterFile& file, const char* use, std::string& out) {
  out += fmt::format("# gdrperf cluster, {}: {}{}. Read before use; {}\n", printable(file.started),
                     printable(file.verdict), file.partial ? " (partial)" : "", use);
}

void comments(const std::vector<std::string>& rest, std::string& out) {
  for (const std::string& line : rest) out += "# " + printable(line) + "\n";
}

std::string to_slurm(const ClusterFile& file) {
  std::string out;
  head(file, "'scontrol update NodeName=... State=RESUME' undoes it.", out);
  std::vector<std::string> rest;
  for (const auto& [host, reason] : reasons(file, rest)) {
    out += fmt::format("scontrol update NodeName={} State=DRAIN Reason=\"gdrperf: {}\"\n", host, reason);
  }
  comments(rest, out);
  return out;
}

std::string to_kubernetes(const ClusterFile& file) {
  std::string out;
  head(file, "'kubectl taint nodes NODE gdrperf/slow-; kubectl label nodes NODE gdrperf/slow-' undoes it.", out);
  std::vector<std::string> rest;
  for (const auto& [host, reason] : reasons(file, rest)) {
    out += fmt::format("kubectl label nodes {} gdrperf/slow=true --overwrite  # {}\n", host, reason);
    out += fmt::format("kubectl taint nodes {} gdrperf/slow=true:NoSchedule --overwrite\n", host);
  }
  comments(rest, out);
  return out;
}

std::string to_prometheus(const ClusterFile& file) {
  using report::MetricType;
  report::Exposition out;
  out.declare("gdrperf_cluster_verdict", MetricType::kGauge, "1 for the verdict of the last run");
  for (const char* verdict : {"fine", "slow", "inconclusive"})
    out.sample({{"verdict", verdict}}, file.verdict == verdict ? 1 : 0);
  out.metric("gdrperf_cluster_typical_bytes_per_second", MetricType::kGauge, "median rate of all pairs", {},
             file.typical_gbytes * 1e9);
  out.declare("gdrperf_cluster_nic_shift_ratio", MetricType::kGauge,
              "rate of a NIC against the others, 0 is as they are");
  for (const FileNic& nic : file.nics) {
    for (const auto& [way, effect] : {std::pair("sends", nic.sends), std::pair("receives", nic.receives)}) {
      if (!effect.known) continue;
      out.sample({{"host", nic.host}, {"device", nic.device}, {"rank", std::to_string(nic.rank)}, {"way", way}},
                 effect.shift_percent / 100);
    }
  }
  out.declare("gdrperf_cluster_slow", MetricType::kGauge, "1 for each part that retests found slow");
  for (const FileSuspect& suspect : slow_parts(file))
    out.sample({{"part", suspect.part}, {"what", describe(file, suspect)}}, 1);
  out.declare("gdrperf_cluster_nic_sick", MetricType::kGauge,
              "1 for each NIC that loses messages, or none of whose runs worked");
  const auto sick = [&](int id, const char* why, const std::string& reason) {
    const FileNic& nic = file.nics[static_cast<std::size_t>(id)];
    out.sample({{"host", nic.host}, {"device", nic.device}, {"why", why}, {"reason", reason}}, 1);
  };
  for (const int id : file.losing) sick(id, "losses", "");
  for (const auto& [id, why] : file.failed) sick(id, "failed", why);
  out.declare("gdrperf_cluster_unexpected", MetricType::kGauge, "1 for each thing that a host lacks of --expect");
  for (const auto& [rank, what] : file.unexpected) out.sample({{"host", host_of(file, rank)}, {"what", what}}, 1);
  out.declare("gdrperf_cluster_rank_lost", MetricType::kGauge, "1 for each rank that was lost or never came");
  for (const FileRank& rank : file.ranks) {
    if (!rank.lost.empty())
      out.sample({{"rank", std::to_string(rank.rank)}, {"host", rank.host}, {"why", rank.lost}}, 1);
  }
  return out.take();
}

std::string to_markdown(const ClusterFile& file) {
  std::string out = fmt::format(
      "# Cluster: {}{}\n\n{} ranks, {} NICs, {} of {} rounds; {} bytes a message; typical {} GB/s; {}\n",
      markdown_text(file.verdict), file.partial ? " (partial)" : "", file.ranks.size(), file.nics.size(),
      file.rounds_done, file.rounds, file.size_bytes, plain_digits(file.typical_gbytes), markdown_text(file.started));
  if (!file.suspects.empty())
    out += "\n| part | verdict | rate | when | retests |\n| --- | --- | ---: | --- | ---: |\n";
  for (std::size_t i = 0; i < file.suspects.size(); ++i) {
    const FileSuspect& suspect = file.suspects[i];
    const auto same = [&](const FileSuspect& one) {
      return one.verdict == suspect.verdict && same_part(one, suspect);
    };
    const auto here = file.suspects.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(file.suspects.begin(), here, same)) continue;
    std::string amounts = amount(suspect);
    std::for_each(here + 1, file.suspects.end(), [&](const FileSuspect& one) {
      if (same(one)) amounts += ", " + amount(one);
    });
    out += fmt::format("| {} | {} | {} | {} | {} |\n", markdown_text(describe(file, suspect)),
                       markdown_text(suspect.verdict), markdown_text(amounts),
                       suspect.way == "both" ? "sends and receives" : markdown_text(suspect.way), suspect.retests);
  }
  const auto lost =
      std::count_if(file.ranks.begin(), file.ranks.end(), [](const FileRank& rank) { return !rank.lost.empty(); });
  if (lost > 0) out += "\n| lost rank | host | why |\n| ---: | --- | --- |\n";
  for (const FileRank& rank : file.ranks) {
    if (!rank.lost.empty())
      out += fmt::format("| {} | {} | {} |\n", rank.rank, markdown_text(rank.host), markdown_text(rank.lost));
  }
  return out;
}

}  // namespace

ClusterFormat parse_cluster_format(const std::string& text) {
  if (text == "prometheus") return ClusterFormat::kPrometheus;
  if (text == "slurm") return ClusterFormat::kSlurm;
  if (text == "kubernetes") return ClusterFormat::kKubernetes;
  if (text == "markdown") return ClusterFormat::kMarkdown;
  throw usage_error(fmt::format("--format '{:.40}': there are prometheus, slurm, kubernetes and markdown", text));
}

std::string describe(const ClusterFile& file, const FileSuspect& suspect) {
  const auto nic = [&](int id) {
    if (id < 0) return std::string("?");
    const FileNic& found = file.nics[static_cast<std::size_t>(id)];
    return fmt::format("{} of {} (rank {})", found.device, found.host, found.rank);
  };
  if (suspect.part == "rail") return fmt::format("rail {}", suspect.rail);
  if (suspect.part == "leaf") return fmt::format("leaf {}, rail {}", suspect.leaf, suspect.rail);
  if (suspect.part == "uplink") return fmt::format("uplinks of leaf {}, rail {}", suspect.leaf, suspect.rail);
  if (suspect.part == "pod uplink") return fmt::format("uplinks of pod {}, rail {}", suspect.pod, suspect.rail);
  if (suspect.part == "path") {
    return fmt::format("path between {} and {}{}", suspect.pod.empty() ? suspect.leaf : suspect.pod, suspect.other,
                       suspect.rail < 0 ? "" : fmt::format(", rail {}", suspect.rail));
  }
  if (suspect.part == "node") return fmt::format("node {} (rank {})", host_of(file, suspect.rank), suspect.rank);
  if (suspect.part == "nic") return "NIC " + nic(suspect.nic);
  return fmt::format("pair {} and {}", nic(suspect.nic), nic(suspect.peer));
}

std::string export_cluster(const ClusterFile& file, ClusterFormat format) {
  switch (format) {
    case ClusterFormat::kPrometheus: return to_prometheus(file);
    case ClusterFormat::kSlurm: return to_slurm(file);
    case ClusterFormat::kKubernetes: return to_kubernetes(file);
    case ClusterFormat::kMarkdown: return to_markdown(file);
  }
  return {};
}

}  // namespace gdrperf::app
