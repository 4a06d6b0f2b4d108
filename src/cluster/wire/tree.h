#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gdrperf::app {

/// Up to so many ranks hang on rank 0 directly; more on a tree.
inline constexpr int kStarMost = 500;
inline constexpr int kTreeFanout = 32;

/// Parent of each of `count` places, the first of which is rank 0's (-1): place i hangs on (i - 1) / fanout.
std::vector<int> tree_parents(std::size_t count, int fanout);

/// A message to, or of, several ranks: the text for each, and how long whoever passes it on waits for answers.
struct Bundle {
  std::chrono::milliseconds patience{};
  std::vector<std::pair<int, std::string_view>> texts;  ///< rank; of the packed text
};
/// "many 500" of a bundle's start; texts are added by add_to_bundle().
std::string begin_bundle(std::chrono::milliseconds patience);
void add_to_bundle(int rank, std::string_view text, std::string& bundle);
bool is_bundle(std::string_view text);
/// Throws peer_error for what add_to_bundle() has not made.
Bundle read_bundle(std::string_view text);

}  // namespace gdrperf::app
