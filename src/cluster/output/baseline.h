#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/output/file.h"
#include "gdrperf/compare/store.h"

namespace gdrperf::app {

/// Whether the file is a result of `gdrperf cluster`; not for standard input. Throws usage_error where it cannot be
/// read.
bool is_cluster_file(const std::string& path);

/// Puts results of `gdrperf cluster` into `store`/clusters/KEY/; hosts and NICs make the key. What is stored has the
/// effects of all NICs and no single measurements. All are read before any is stored. Throws as
/// compare::store_documents().
std::vector<compare::Stored> store_clusters(const std::vector<std::string>& paths, const std::string& store);

struct StoredCluster {
  std::string name;  ///< "clusters/KEY"
  std::vector<ClusterFile> results;
};
/// By name; none where the store has none.
std::vector<StoredCluster> clusters_of(const std::string& store);

/// Results at `path` to compare with: one, or all whole ones of such a test in a folder or store, as one. Throws
/// usage_error where there is none.
ClusterFile read_cluster_baseline(const std::string& path, std::uint64_t size_bytes, std::string_view buffer);

}  // namespace gdrperf::app
