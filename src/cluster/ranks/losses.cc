#include <algorithm>
#include <string_view>

#include "cluster/ranks/job.h"

namespace gdrperf::app {
namespace {

// Fewer in a whole run are no reason to send somebody.
constexpr std::uint64_t kLeastLosses = 50;
// So many times as many as the median NIC has.
constexpr std::uint64_t kTimesOthers = 10;

// What says that messages, packets or symbols were lost or came damaged; congestion is no fault of a NIC.
bool counts_losses(std::string_view name) {
  for (const std::string_view no : {"xmit_wait", "cnp", "ecn", "pause", "adp_ret", "xmit_discards", "rnr"}) {
    if (name.find(no) != std::string_view::npos) return false;
  }
  for (const std::string_view word : {"err", "retrans", "out_of_sequence", "timeout", "symbol", "downed", "retry",
                                      "integrity", "overrun", "drop", "discard", "duplicate", "nak", "aer_"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::vector<Losses> find_losses(const std::vector<NicPlace>& places, const std::map<int, Counters>& before,
                                const std::map<int, Counters>& after) {
  std::vector<Losses> all;
  for (std::size_t nic = 0; nic < places.size(); ++nic) {
    const auto old = before.find(places[nic].rank);
    const auto now = after.find(places[nic].rank);
    if (old == before.end() || now == after.end()) continue;
    const auto& first = old->second.devices[places[nic].device];
    Losses one{static_cast<int>(nic)};
    for (const auto& [name, value] : now->second.devices[places[nic].device]) {
      const auto at = first.find(name);
      if (at == first.end() || value <= at->second || !counts_losses(name)) continue;
      one.rose[name] = value - at->second;
      one.sum += value - at->second;
    }
    all.push_back(std::move(one));
  }
  if (all.size() < 3) return {};
  std::vector<std::uint64_t> sums;
  for (const Losses& one : all) sums.push_back(one.sum);
  std::nth_element(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(sums.size() / 2), sums.end());
  const std::uint64_t median = sums[sums.size() / 2];
  std::erase_if(all,
                [&](const Losses& one) { return one.sum < kLeastLosses || one.sum < kTimesOthers * (median + 1); });
  for (Losses& one : all) one.others = median;
  std::stable_sort(all.begin(), all.end(), [](const Losses& a, const Losses& b) { return a.sum > b.sum; });
  return all;
}

}  // namespace gdrperf::app
