#include "model/faults.h"

namespace gdrperf::softnic {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): a good 64-bit value from a counter.
std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

}  // namespace

FaultPlan::FaultPlan(const std::vector<FaultRule>& rules, const Clock& clock)
    : count_(rules.size()), rules_(new Rule[rules.size()]) {
  for (std::size_t i = 0; i < count_; ++i) {
    rules_[i].rule = rules[i];
    rules_[i].time = from_ns(clock, rules[i].time_ns);
  }
}

bool FaultPlan::hits(Rule& rule, std::uint64_t seen, std::uint64_t random) noexcept {
  const FaultRule& what = rule.rule;
  const bool chosen = what.probability >= 0
                          ? static_cast<double>(random >> 11) * 0x1p-53 < what.probability
                          : (seen + 1) % what.every == 0;
  return chosen && rule.hits.fetch_add(1, std::memory_order_relaxed) < what.count;
}

Fault FaultPlan::pick(std::uint8_t op) noexcept {
  if (count_ == 0) return {};
  const std::uint64_t message = messages_.fetch_add(1, std::memory_order_relaxed);
  Fault fault;
  for (std::size_t i = 0; i < count_; ++i) {
    Rule& rule = rules_[i];
    if ((rule.rule.ops & op) == 0 || message < rule.rule.from) continue;
    const std::uint64_t seen = rule.seen.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t random = mix(mix(rule.rule.seed) ^ seen);
    if (fault.kind == FaultKind::kNone && hits(rule, seen, random)) {
      fault = {rule.rule.kind, rule.time, mix(random)};
    }
  }
  return fault;
}

}  // namespace gdrperf::softnic
