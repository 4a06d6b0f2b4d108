#include "gdrperf/cluster/patterns.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

namespace gdrperf::cluster {
namespace {

constexpr int kMostSenders = 32;
constexpr std::pair<Pattern, std::string_view> kPatterns[] = {
    {Pattern::kBisection, "bisection"},
    {Pattern::kRing, "ring"},
    {Pattern::kIncast, "incast"},
    {Pattern::kAll, "all"},
    {Pattern::kNccl, "nccl"}};

// All rails that both have.
void add_flows(const NicIndex& index, int from, int to, Step& step) {
  const auto& a = index.of(from);
  const auto& b = index.of(to);
  for (std::size_t rail = 0; rail < std::min(a.size(), b.size()); ++rail) {
    if (a[rail] >= 0 && b[rail] >= 0) step.flows.push_back({a[rail], b[rail]});
  }
}

int first_nic(const NicIndex& index, int node) {
  const auto& nics = index.of(node);
  const auto at = std::find_if(nics.begin(), nics.end(), [](int nic) { return nic >= 0; });
  return at == nics.end() ? -1 : *at;
}

Step bisection(const NicIndex& index, const std::vector<int>& nodes) {
  Step step{"both halves", {}};
  const std::size_t half = nodes.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    add_flows(index, nodes[i], nodes[i + half], step);
    add_flows(index, nodes[i + half], nodes[i], step);
  }
  return step;
}

Step to_the_next(const NicIndex& index, const std::vector<int>& nodes, int others, const char* label) {
  Step step{label, {}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (int by = 1; by <= others; ++by)
      add_flows(index, nodes[i], nodes[(i + static_cast<std::size_t>(by)) % nodes.size()], step);
  }
  return step;
}

// Receiver, victim's two ends, senders: in that order.
std::vector<Step> incast(const NicIndex& index, std::vector<int> nodes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random() % i]);
  std::vector<int> nics;
  for (const int node : nodes) {
    if (const int nic = first_nic(index, node); nic >= 0) nics.push_back(nic);
  }
  std::vector<Step> steps;
  if (nics.size() < 5) return steps;
  const Link victim{nics[1], nics[2]};
  steps.push_back({"the victim alone", {victim}, 0});
  const std::size_t senders = nics.size() - 3;
  for (std::size_t count = 2; count <= std::min<std::size_t>(senders, kMostSenders); count *= 2) {
    Step step{fmt::format("{} to one", count), {victim}, 0};
    for (std::size_t i = 0; i < count; ++i) step.flows.push_back({nics[3 + i], nics[0]});
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

std::string_view to_string(Pattern pattern) {
  for (const auto& [known, name] : kPatterns) {
    if (known == pattern) return name;
  }
  return "?";
}

std::optional<Pattern> parse_pattern(std::string_view name) {
  for (const auto& [pattern, known] : kPatterns) {
    if (known == name) return pattern;
  }
  return std::nullopt;
}

std::vector<Step> make_pattern(const Fabric& fabric, Pattern pattern, std::uint64_t seed) {
  const NicIndex index(fabric);
  std::vector<int> nodes(static_cast<std::size_t>(index.nodes()));
  std::iota(nodes.begin(), nodes.end(), 0);
  std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) { return index.leaf(a) < index.leaf(b); });
  if (nodes.size() < 2) return {};
  switch (pattern) {
    case Pattern::kBisection: return {bisection(index, nodes)};
    case Pattern::kRing: return {to_the_next(index, nodes, 1, "each to the next")};
    case Pattern::kIncast: return incast(index, nodes, seed);
    case Pattern::kAll: {
      const int others = std::min(index.nodes() - 1, kMostSenders);
      return {to_the_next(index, nodes, others, "each to all others")};
    }
    case Pattern::kNccl: return {};
  }
  return {};
}

std::vector<int> most_incoming(const Fabric& fabric, const std::vector<Step>& steps) {
  std::vector<int> most(fabric.nics.size(), 0);
  for (const Step& step : steps) {
    std::vector<int> now(fabric.nics.size(), 0);
    for (const Link& flow : step.flows) {
      const auto nic = static_cast<std::size_t>(flow.b);
      most[nic] = std::max(most[nic], ++now[nic]);
    }
  }
  return most;
}

}  // namespace gdrperf::cluster
