#include "app/topo/expected.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/text.h"
#include "gdrperf/topo/pci_tree.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::app {
namespace {

constexpr const char* kExpectHint = "like --expect gpus=8,nics=8,rate=400; gpus=4+4: four on each of two NUMA nodes";
constexpr int kMostOfAKind = 1024;

[[noreturn]] void refuse_expectation(std::string_view word, const char* why) {
  throw usage_error(fmt::format("--expect '{}': {}", printable(std::string(word.substr(0, 40))), why), kExpectHint);
}

std::vector<int> parse_counts(std::string_view text, std::string_view word) {
  std::vector<int> counts;
  for (const std::string_view each : split(text, '+')) {
    int count = 0;
    const auto [rest, error] = std::from_chars(each.data(), each.data() + each.size(), count);
    const bool whole = error == std::errc() && rest == each.data() + each.size();
    if (!whole || count < 0 || count > kMostOfAKind) refuse_expectation(word, "the number is none from 0 to 1024");
    counts.push_back(count);
  }
  return counts;
}

double parse_port_rate(std::string_view text, std::string_view word) {
  double gbps = 0;
  const auto [rest, error] = real_from_chars(text.data(), text.data() + text.size(), gbps);
  if (error != std::errc() || rest != text.data() + text.size() || !std::isfinite(gbps) || gbps <= 0)
    refuse_expectation(word, "the rate is no number of Gb/s");
  return gbps;
}

// By node, ascending; those without one are no node's.
std::vector<int> by_node(const std::vector<int>& nodes) {
  std::map<int, int> counts;
  for (const int node : nodes) ++counts[node];
  std::vector<int> list;
  for (const auto& [node, count] : counts) list.push_back(count);
  return list;
}

// `what`: "NIC", with `more` behind it.
void compare_counts(const std::vector<int>& expected, const std::vector<int>& nodes, const char* what, const char* more,
                    std::vector<std::string>& found) {
  if (expected.empty()) return;
  const auto named = [&](int count) { return fmt::format("{} {}{}{}", count, what, count == 1 ? "" : "s", more); };
  const int wanted = std::accumulate(expected.begin(), expected.end(), 0);
  const auto there = static_cast<int>(nodes.size());
  if (there != wanted) {
    found.push_back(fmt::format("{}, {} expected", named(there), wanted));
    return;
  }
  if (expected.size() < 2) return;
  if (std::count(nodes.begin(), nodes.end(), -1) > 0) {
    found.push_back(fmt::format("{}, of unknown NUMA nodes, {} expected", named(there), fmt::join(expected, "+")));
    return;
  }
  std::vector<int> wanted_by_node = expected;
  std::erase(wanted_by_node, 0);
  if (const std::vector<int> counts = by_node(nodes); counts != wanted_by_node)
    found.push_back(fmt::format("{} by NUMA node: {}, {} expected", named(there), fmt::join(counts, "+"),
                                fmt::join(expected, "+")));
}

}  // namespace

Expected parse_expected(const std::string& text) {
  Expected expected;
  for (const std::string_view word : split(text, ',')) {
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) refuse_expectation(word, "there is no '='");
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "gpus" && expected.gpus.empty()) expected.gpus = parse_counts(value, word);
    else if (key == "nics" && expected.nics.empty()) expected.nics = parse_counts(value, word);
    else if (key == "rate" && expected.rate_gbps == 0) expected.rate_gbps = parse_port_rate(value, word);
    else refuse_expectation(word, "there are gpus, nics and rate (Gb/s), each once");
  }
  return expected;
}

std::vector<int> gpu_nodes(const std::string& sys) {
  std::vector<int> nodes;
  const std::string folder = sys + "/bus/pci/devices";
  std::error_code failed;
  const auto hex = [](const std::string& path) { return std::strtoul(read_line_or_empty(path).c_str(), nullptr, 16); };
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string at = entry.path().string();
    const auto class_code = static_cast<std::uint16_t>(hex(at + "/class") >> 8);
    if (!topo::is_gpu_function(class_code, static_cast<std::uint16_t>(hex(at + "/vendor")))) continue;
    const std::string driver = std::filesystem::read_symlink(at + "/driver", failed).filename().string();
    if (driver != "nvidia" && driver != "amdgpu") continue;
    const std::string node = read_line_or_empty(at + "/numa_node");
    nodes.push_back(node.empty() ? -1 : std::atoi(node.c_str()));
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

Equipment own_equipment() {
  Equipment equipment;
  equipment.gpu_nodes = gpu_nodes();
  for (const verbs::DeviceInfo& device : verbs::list_devices()) {
    const auto active = std::find_if(device.ports.begin(), device.ports.end(),
                                     [](const verbs::PortDetails& one) { return one.port.active(); });
    if (active != device.ports.end())
      equipment.nics.push_back({device.name, device.numa_node, active->port.rate_gbps});
  }
  return equipment;
}

std::vector<std::string> unmet(const Expected& expected, const Equipment& equipment) {
  std::vector<std::string> found;
  compare_counts(expected.gpus, equipment.gpu_nodes, "GPU", " with a driver", found);
  std::vector<int> nodes;
  for (const Equipment::Nic& nic : equipment.nics) nodes.push_back(nic.numa_node);
  compare_counts(expected.nics, nodes, "NIC", " with an active port", found);
  constexpr double kAsFast = 0.99;
  for (const Equipment::Nic& nic : equipment.nics) {
    if (expected.rate_gbps > 0 && nic.rate_gbps < kAsFast * expected.rate_gbps)
      found.push_back(
          fmt::format("port of {} at {:g} Gb/s, {:g} expected", nic.name, nic.rate_gbps, expected.rate_gbps));
  }
  return found;
}

CLI::Option* add_expect_option(CLI::App& command, Expected& expected) {
  return command
      .add_option_function<std::string>(
          "--expect", [&expected](const std::string& text) { expected = parse_expected(text); },
          "what each machine should have, like gpus=8,nics=8,rate=400 (Gb/s of each port); gpus=4+4: by NUMA node")
      ->type_name("WHAT");
}

}  // namespace gdrperf::app
