#include "app/options/suggest.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace gdrperf::app {
namespace {

std::string normal(std::string_view word) {
  std::string result;
  for (const char c : word) {
    result += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// Edits, with a swap of neighbours as one (optimal string alignment).
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replaced, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

bool one_begins_with_the_other(const std::string& a, const std::string& b) {
  constexpr std::size_t kEnough = 4;  // "--" and two letters
  return std::min(a.size(), b.size()) >= kEnough && (a.starts_with(b) || b.starts_with(a));
}

}  // namespace

std::vector<std::string> suggestions(std::string_view word,
                                     const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 64;
  const std::string wanted = normal(word.substr(0, kLongestWord));
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& candidate : candidates) {
    const std::string known = normal(candidate);
    const std::size_t edits = distance(wanted, known);
    const std::size_t allowed = known.size() <= 2 ? 0 : known.size() <= 5 ? 1 : 2;
    if (edits <= allowed) near.emplace_back(edits, candidate);
    else if (one_begins_with_the_other(wanted, known)) near.emplace_back(allowed + 1, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (near.size() > 3) near.resize(3);
  std::vector<std::string> result;
  for (auto& [edits, candidate] : near) result.push_back(std::move(candidate));
  return result;
}

}  // namespace gdrperf::app
