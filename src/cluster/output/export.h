#pragma once

#include <string>

#include "cluster/output/file.h"

namespace gdrperf::app {

enum class ClusterFormat { kPrometheus, kSlurm, kKubernetes, kMarkdown };

/// "prometheus", "slurm", "kubernetes" or "markdown"; throws usage_error that lists them.
ClusterFormat parse_cluster_format(const std::string& text);

/// A result for others: metrics; lines that drain Slurm's nodes, or label and taint Kubernetes' (to be read by
/// a person first, never run here); a page.
std::string export_cluster(const ClusterFile& file, ClusterFormat format);

/// "NIC mlx5_1 of n3 (rank 3)", "node n3 (rank 3)", "rail 2", ...
std::string describe(const ClusterFile& file, const FileSuspect& suspect);

}  // namespace gdrperf::app
