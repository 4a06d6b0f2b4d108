#include "gdrperf/cluster/topology_file.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "cluster/plan/topology_text.h"
#include "gdrperf/base/error.h"

namespace gdrperf::cluster {
namespace {

constexpr std::size_t kMostHosts = 1u << 20;

Error bad_list(std::string_view list, const char* why) {
  return usage_error(fmt::format("the list of nodes '{}' {}", list.substr(0, 100), why));
}

// "003-016": the width of the first number holds for all.
void expand_range(std::string_view range, const std::vector<std::string>& heads, std::string_view list,
                  std::vector<std::string>& out) {
  const auto dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  unsigned low = 0;
  unsigned high = 0;
  const auto number = [&](std::string_view text, unsigned& value) {
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || at != text.data() + text.size())
      throw bad_list(list, "has a range that is none");
  };
  number(first, low);
  number(last, high);
  if (high < low || high - low >= kMostHosts || (high - low + 1) * heads.size() + out.size() > kMostHosts) {
    throw bad_list(list, "has a range that is none, or too many nodes");
  }
  for (const std::string& head : heads) {
    for (unsigned value = low; value <= high; ++value)
      out.push_back(fmt::format("{}{:0{}}", head, value, first.size()));
  }
}

// One name with its brackets.
std::vector<std::string> expand_name(std::string_view name, std::string_view list) {
  std::vector<std::string> heads = {""};
  while (!name.empty()) {
    const auto open = std::min(name.find('['), name.size());
    for (std::string& head : heads) head += name.substr(0, open);
    name.remove_prefix(open);
    if (name.empty()) break;
    const auto close = name.find(']');
    if (close == std::string_view::npos) throw bad_list(list, "has a '[' without ']'");
    std::vector<std::string> longer;
    for (std::string_view inside = name.substr(1, close - 1);;) {
      const auto comma = std::min(inside.find(','), inside.size());
      expand_range(inside.substr(0, comma), heads, list, longer);
      if (comma == inside.size()) break;
      inside.remove_prefix(comma + 1);
    }
    heads = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return heads;
}

Pods pods_of_slurm(std::string_view text) {
  Pods above;
  std::set<std::string> leaves;
  for_each_line(text, [&](std::string_view line, int) {
    line = line.substr(0, line.find('#'));
    const std::string name(value_of(line, "SwitchName"));
    if (!value_of(line, "Nodes").empty()) leaves.insert(name);
    if (const std::string_view below = value_of(line, "Switches"); !below.empty()) {
      for (const std::string& each : expand_hosts(below)) above.try_emplace(each, name);
    }
  });
  Pods pods;
  for (const std::string& leaf : leaves) {
    const auto pod = above.find(leaf);
    if (pod != above.end() && above.contains(pod->second)) pods[leaf] = pod->second;
  }
  return pods;
}

Pods pods_of_ibnetdiscover(std::string_view text) {
  std::map<std::string, std::set<std::string>> upper;  // switches beside a leaf, by its name
  std::set<std::string> leaves;
  std::set<std::string> with_hosts;  // by GUID
  std::string leaf;
  std::string guid;
  for_each_line(text, [&](std::string_view line, int) {
    const auto comment = line.find("# \"");
    if (line.starts_with("Switch")) {
      guid = first_quoted(line);
      leaf = comment == std::string_view::npos ? guid : std::string(first_quoted(line.substr(comment)));
    } else if (line.starts_with("Ca")) {
      leaf.clear();
    } else if (line.starts_with('[') && !leaf.empty()) {
      const std::string_view other = first_quoted(line);
      if (other.starts_with("S-")) upper[leaf].insert(std::string(other));
      if (other.starts_with("H-")) leaves.insert(leaf), with_hosts.insert(guid);
    }
  });
  std::map<std::set<std::string>, std::string> names;
  std::set<std::string> seen;
  Pods pods;
  for (const std::string& each : leaves) {
    std::set<std::string> switches = upper[each];
    std::erase_if(switches, [&](const std::string& one) { return with_hosts.contains(one); });
    const auto [at, fresh] = names.try_emplace(switches, "with " + each);
    for (const std::string& one : switches) {
      // Groups that share a switch are no pods.
      if (!seen.insert(one).second && fresh) return {};
    }
    pods[each] = at->second;
  }
  return names.size() < 2 || names.contains({}) ? Pods() : pods;
}

}  // namespace

Pods parse_pods(std::string_view text) {
  return is_ibnetdiscover(text) ? pods_of_ibnetdiscover(text) : pods_of_slurm(text);
}

std::vector<std::string> expand_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  std::string_view rest = list;
  while (!rest.empty()) {
    int depth = 0;
    std::size_t end = 0;
    for (; end < rest.size() && (rest[end] != ',' || depth > 0); ++end)
      depth += int{rest[end] == '['} - int{rest[end] == ']'};
    for (std::string& host : expand_name(rest.substr(0, end), list)) {
      if (host.empty()) throw bad_list(list, "has an empty name");
      hosts.push_back(std::move(host));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (hosts.empty()) throw bad_list(list, "names no node");
  if (hosts.size() > kMostHosts) throw bad_list(list, "has too many nodes");
  return hosts;
}

Leaves parse_slurm_topology(std::string_view text, const std::string& path) {
  Leaves leaves;
  for_each_line(text, [&](std::string_view line, int number) {
    line = line.substr(0, line.find('#'));
    const std::string_view name = value_of(line, "SwitchName");
    const std::string_view nodes = value_of(line, "Nodes");
    if (name.empty() && line.find_first_not_of(" \t\r") != std::string_view::npos) {
      throw usage_error(fmt::format("{}:{}: no SwitchName in '{}'", path, number, line.substr(0, 60)),
                        "this reads Slurm's topology.conf, ibnetdiscover's output, or JSON "
                        "{\"leaf1\": [\"n1\", \"n2\"]}");
    }
    if (nodes.empty()) return;
    try {
      for (const std::string& host : expand_hosts(nodes)) leaves[host] = std::string(name);
    } catch (const Error& error) {
      throw error.in(fmt::format("{}:{}", path, number));
    }
  });
  return leaves;
}

}  // namespace gdrperf::cluster
