#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/page/finding.h"

namespace gdrperf::page {

/// A result of `gdrperf cluster`, ready to be shown. Nothing in it is trusted.
struct PageCluster {
  std::string path;
  std::string started;
  std::string verdict;  ///< "fine", "slow", "inconclusive"
  bool partial = false;
  std::size_t nics = 0;
  std::size_t slow = 0;       ///< suspects that are
  std::size_t undecided = 0;
  std::vector<Finding> findings;
  /// JSON for the page: nics, suspects, patterns, differences.
  std::string data;
};

/// Of a document of schema gdrperf-cluster/1 that app::parse_cluster() has taken.
PageCluster parse_cluster_page(std::string_view text, const std::string& path);

/// What it comes to, in a sentence.
std::string cluster_headline(const PageCluster& cluster);
Level level_of(const PageCluster& cluster);

}  // namespace gdrperf::page
