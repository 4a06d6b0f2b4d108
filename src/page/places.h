#pragma once

#include <map>
#include <string>
#include <vector>

#include "gdrperf/page/page.h"
#include "gdrperf/page/verdict.h"

namespace gdrperf::page {

/// One pair of memory and NIC over all tests of a document.
struct PlaceFacts {
  std::string relation;
  std::string limited_by;
  bool simulated = false;
  std::map<std::string, double> peak_gbps;  ///< by test, direct path; the best size
  double worst_share = 0;  ///< of the ceiling, among the tests' peaks; 0: no ceiling known
  std::string worst_op;
  std::size_t runs = 0;
  std::map<std::string, std::size_t> unstable;  ///< runs by reason
};

/// By place_of().
std::map<std::string, PlaceFacts> places_of(const RunTable& runs);

/// Verdict on a pair's figures; kGood and no text where there is nothing to say.
/// `alike`: median peak of pairs with the same relation, by test, where there are three or more.
Finding judge_place(const std::string& place, const PlaceFacts& facts, const std::map<std::string, double>& alike);

/// Median peak by relation and test; only of relations with at least `fewest` pairs.
std::map<std::string, std::map<std::string, double>> typical_peaks(const std::map<std::string, PlaceFacts>& places,
                                                                   std::size_t fewest);

}  // namespace gdrperf::page
