#pragma once

#include <map>
#include <string>
#include <vector>

#include "gdrperf/report/document.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report::samples {

/// Made-up runs, the same on every machine.
RunRecord bandwidth_run(Operation operation, std::uint64_t size_bytes, double median_gbytes);
RunRecord latency_run(Operation operation, std::uint64_t size_bytes, double p50_ns);

/// A sweep over the software device with an unstable run, one of too few
/// batches, latencies with few samples, and warnings.
std::vector<RunRecord> sweep();
/// Bidirectional, rdma_cm, completion events, Soft-RoCE.
RunRecord soft_roce_run();
/// Two mlx5 ports and a GPU buffer under PIX.
RunRecord gpu_run();
/// Nothing in it is a number.
RunRecord nan_run();

Document empty_document();
/// By name; each is to agree with the schema.
std::map<std::string, Document> documents();

}  // namespace gdrperf::report::samples
