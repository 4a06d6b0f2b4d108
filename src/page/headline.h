#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gdrperf/page/page.h"
#include "page/places.h"

namespace gdrperf::page {

/// How far below others one pair of memory and NIC is.
struct SlowPlace {
  std::string place;     ///< "GPU5/mlx5_5"
  std::string relation;  ///< "PIX"
  double share = 0;      ///< of the other pairs' median, or of the path's theoretical maximum
  bool against_others = false;
};

/// What the headline says of a document's pairs.
struct Tally {
  std::size_t places = 0;
  std::size_t fine = 0;     ///< with a known maximum, and near it
  std::size_t noisy = 0;    ///< not slow, but with unstable runs
  std::size_t bad = 0;
  std::size_t unknown = 0;  ///< no maximum known
  std::vector<SlowPlace> slow;
};

/// Adds one pair: `finding` is judge_place()'s, with the same `alike`.
void count_place(const std::string& place, const PlaceFacts& facts, const std::map<std::string, double>& alike,
                 const Finding& finding, Tally& tally);

/// Regressions, then the worst pair by name and how many others are slow or too noisy to judge, then the
/// outcome of other comparisons; it claims nothing where nothing could be compared.
std::string headline_of(const Page& page, const Tally& tally);

/// Machine and date of what is shown, "left, 2025-01-31 12:00"; file names where the document has neither.
std::string title_of(const Page& page);

}  // namespace gdrperf::page
