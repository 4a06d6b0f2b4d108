#include "app/plan/pairs.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "app/options/lists.h"

namespace gdrperf::app {
namespace {

std::vector<std::string> relations_of(const std::vector<topo::Pair>& pairs) {
  std::vector<std::string> words;
  for (const topo::Pair& pair : pairs) {
    const std::string word(to_string(*pair.relation));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

/// Indices of the pairs one word of the list names.
std::set<std::size_t> named(const topo::Topology& topology, const std::vector<topo::Pair>& pairs,
                            const std::string& word) {
  std::set<std::size_t> chosen;
  if (word == "best") {
    for (const topo::Pair& pair : pairs) chosen.insert(*best_of_gpu(topology, pairs, pair.gpu));
    return chosen;
  }
  const auto relation = topo::relation_from_token(word);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const bool by_name = word == pairs[i].gpu + ":" + pairs[i].nic.raw();
    if (word == "all" || by_name || (relation && pairs[i].relation == *relation)) chosen.insert(i);
  }
  if (chosen.empty() && relation) {
    throw usage_error(fmt::format("--pairs '{}': no pair has that relation; there are {}", word,
                                  fmt::join(relations_of(pairs), ", ")));
  }
  if (chosen.empty()) {
    throw usage_error(fmt::format("--pairs '{:.60}': no such pair of GPU and NIC", word),
                      fmt::format("give all, best, relations (PIX,SYS) or pairs ({}:{})",
                                  pairs.front().gpu, printable(pairs.front().nic)));
  }
  return chosen;
}

}  // namespace

std::vector<topo::Pair> choose_pairs(const topo::Topology& topology, const std::string& text) {
  std::vector<topo::Pair> pairs = pairs_of(topology);
  std::erase_if(pairs, [](const topo::Pair& pair) { return !pair.relation; });
  if (pairs.empty()) {
    throw usage_error("--pairs: there is no pair of GPU and NIC",
                      "'gdrperf topo' shows what is known of this machine");
  }
  std::set<std::size_t> chosen;
  for (const std::string& word : split_list(text, "--pairs")) {
    chosen.merge(named(topology, pairs, word));
  }
  std::vector<topo::Pair> result;
  for (const std::size_t i : chosen) result.push_back(pairs[i]);
  std::stable_sort(result.begin(), result.end(), [](const topo::Pair& one, const topo::Pair& other) {
    return *one.relation < *other.relation;
  });
  return result;
}

}  // namespace gdrperf::app
