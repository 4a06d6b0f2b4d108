#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include "cluster/output/report.h"
#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

constexpr int kMostColumns = 64;
constexpr std::size_t kMostWidth = 80;

// Slower by less than 1 %, 3 %, 10 %, or more.
char heat_of(double shift) {
  const double share = 1 - std::exp(shift);
  if (share < 0.01) return '.';
  if (share < 0.03) return '-';
  return share < 0.1 ? 'o' : '#';
}

// As slow as the NIC is by itself, or as the slow part that it is in: a node's effect is not its NICs'.
double shown_shift(const ClusterResult& result, std::size_t id) {
  const cluster::NicEffect& sends = result.judgement.sends[id];
  const cluster::NicEffect& receives = result.judgement.receives[id];
  double shift = std::min(double{sends.shift}, double{receives.shift});
  for (const cluster::Suspect& suspect : result.judgement.suspects) {
    const bool it = suspect.nic == static_cast<int>(id) ||
                    (suspect.part == cluster::Part::kNode && suspect.node == result.fabric.nics[id].node);
    if (suspect.verdict != cluster::Verdict::kSlow || suspect.part == cluster::Part::kPair || !it) continue;
    shift = std::min(shift, suspect.when == cluster::When::kAlways ? suspect.retest_shift : -1);
  }
  return shift;
}

// "4-7,12" of ranks that count up.
std::string ranks_text(const std::vector<std::size_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] <= ranks[end] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (ranks[end] > ranks[i]) text += fmt::format("-{}", ranks[end]);
    i = end + 1;
  }
  return text;
}

// As many as fit; slow ones stand above the map, too.
std::string names_of_slowest(const std::vector<Member>& members, const ClusterResult& result, int rail,
                             std::size_t room) {
  constexpr std::string_view kMore = ", ...";
  std::string names;
  for (std::size_t id = 0; id < result.fabric.nics.size(); ++id) {
    if (result.fabric.nics[id].rail != rail) continue;
    if (heat_of(shown_shift(result, id)) != '#') continue;
    const Member& member = members[static_cast<std::size_t>(result.places[id].rank)];
    const std::string one = fmt::format("{} {} {}", names.empty() ? "  #" : ",", member.card.host,
                                        member.devices[result.places[id].device]);
    if (names.size() + one.size() + kMore.size() > room) return names.empty() ? names : names + std::string(kMore);
    names += one;
  }
  return names;
}

}  // namespace

std::string heat_map(const std::vector<Member>& members, const ClusterResult& result) {
  int nodes = 0;
  int rails = 0;
  for (const cluster::Nic& nic : result.fabric.nics) {
    nodes = std::max(nodes, nic.node + 1);
    rails = std::max(rails, nic.rail + 1);
  }
  if (nodes < 2 || result.judgement.judged == 0) return {};
  const int per_column = (nodes + kMostColumns - 1) / kMostColumns;
  const auto columns = static_cast<std::size_t>((nodes + per_column - 1) / per_column);
  std::vector<std::string> lines(static_cast<std::size_t>(rails), std::string(columns, ' '));
  std::vector<std::vector<double>> worst(lines.size(), std::vector<double>(columns, 1));
  for (std::size_t id = 0; id < result.fabric.nics.size(); ++id) {
    const cluster::Nic& nic = result.fabric.nics[id];
    const auto rail = static_cast<std::size_t>(nic.rail);
    const auto column = static_cast<std::size_t>(nic.node / per_column);
    const cluster::NicEffect& sends = result.judgement.sends[id];
    const cluster::NicEffect& receives = result.judgement.receives[id];
    if (sends.samples + receives.samples == 0) {
      if (lines[rail][column] == ' ') lines[rail][column] = '?';
      continue;
    }
    double& slowest = worst[rail][column];
    slowest = std::min(slowest, shown_shift(result, id));
    lines[rail][column] = heat_of(slowest);
  }
  std::string out =
      per_column > 1
          ? fmt::format("NICs, {} nodes in one place: . like others, - 1, o 3, # 10 % slower, ? unknown\n", per_column)
          : "NICs by node: . like others, - 1 %, o 3 %, # 10 % slower, ? not measured\n";
  constexpr std::size_t kMostRails = 8;
  for (std::size_t rail = 0; rail < std::min(lines.size(), kMostRails); ++rail) {
    const std::string line = fmt::format("  rail {} {}", rail, lines[rail]);
    out += line + names_of_slowest(members, result, static_cast<int>(rail), kMostWidth - line.size()) + "\n";
  }
  if (lines.size() > kMostRails)
    out += fmt::format("  ... and {} rail{} more (--json)\n", lines.size() - kMostRails,
                       lines.size() == kMostRails + 1 ? "" : "s");
  return out;
}

std::map<std::string, std::map<std::string, std::vector<std::size_t>>> differences(const std::vector<Member>& members) {
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> values;
  const auto note = [&](const std::string& what, const std::string& value, std::size_t rank) {
    values[what][value.empty() ? "-" : value].push_back(rank);
  };
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Member& member = members[rank];
    if (member.card.devices.empty()) continue;
    note("kernel", member.card.kernel, rank);
    note("gdrperf", member.card.version, rank);
    note("GPU driver", member.card.gpu_driver, rank);
    note("devices", std::to_string(member.devices.size()), rank);
    for (std::size_t i = 0; i < member.card.devices.size(); ++i) {
      const CardDevice& device = member.card.devices[i];
      const std::string nic = "NIC " + std::to_string(i) + " ";
      note(nic + "kind", device.kind, rank);
      note(nic + "driver", device.driver, rank);
      note(nic + "firmware", device.firmware, rank);
      note(nic + "MTU", std::to_string(device.mtu_bytes), rank);
      note(nic + "rate", fmt::format("{} Gb/s", plain_digits(device.rate_gbps)), rank);
      note(nic + "GID type", device.gid_type, rank);
      note(nic + "PCIe", device.pcie, rank);
      note(nic + "NUMA node", std::to_string(device.numa_node), rank);
      note(nic + "relation to a GPU", device.gpu_relation, rank);
    }
  }
  std::erase_if(values, [](const auto& one) { return one.second.size() < 2; });
  return values;
}

void print_differences(const std::vector<Member>& members, std::ostream& out) {
  constexpr std::size_t kMostDifferences = 3;
  std::size_t printed = 0;
  const auto all = differences(members);
  for (const auto& [what, by_value] : all) {
    if (++printed > kMostDifferences) break;
    const auto most = std::max_element(by_value.begin(), by_value.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    std::string odd;
    for (const auto& [value, ranks] : by_value) {
      if (value != most->first)
        odd += fmt::format("{}'{}' on rank {}", odd.empty() ? "" : ", ", value, ranks_text(ranks));
    }
    out << fmt::format("differs: {}: {}; '{}' on the {} others\n", what, odd, most->first, most->second.size());
  }
  if (all.size() > kMostDifferences)
    out << fmt::format("... and {} differences more (--json)\n", all.size() - kMostDifferences);
}

}  // namespace gdrperf::app
