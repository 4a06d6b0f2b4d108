#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/compare/judge.h"

namespace gdrperf::compare {

/// One run of a made-up document; JSON where a test wants to spoil it.
struct MadeRun {
  std::string relation = "HOST";
  std::string op = "write_bw";
  std::string size = "65536";
  std::string figure = "100";  ///< bw.median_gbps or latency.p50_ns
  std::string buffer = "host";
  std::string more = "";       ///< members in front, like "\"qps\": 4,"
  std::string warnings = "";   ///< like "\"no clock\""
};

struct MadeDocument {
  std::string schema = "gdrperf-results/1";
  std::string started = "2025-01-31T12:00:00Z";
  std::string host = "left";
  std::string kernel = "Linux 6.1.0";
  std::string firmware = "28.39";
  std::vector<MadeRun> runs = {MadeRun{}};
};

inline std::string text_of(const MadeRun& run) {
  const bool bandwidth = run.op.ends_with("_bw");
  const std::string end =
      fmt::format(R"({{"device": "mlx5_0", "kind": "hardware", "port": 1, "buffer": "{}"}})", run.buffer);
  return fmt::format(
      R"({{{}"op": "{}", "size_bytes": {}, "client": {}, "server": {}, "device_kind": "hardware",
 "direction": "unidirectional", "wait": "poll", "qps": 1, "tx_depth": 128,
 "bw": {}, "latency": {}, "warnings": [{}]}})",
      run.more, run.op, run.size, end, end,
      bandwidth ? fmt::format(R"({{"median_gbps": {}, "batches_gbps": [1.5, null, [2]]}})", run.figure) : "null",
      bandwidth ? "null" : fmt::format(R"({{"p50_ns": {}, "samples_beyond": {{"p50": 3}}}})", run.figure),
      run.warnings);
}

inline std::string text_of(const MadeDocument& document) {
  std::vector<std::string> runs;
  for (const MadeRun& run : document.runs) {
    runs.push_back(fmt::format(R"("{}": {{"{}": [{}]}})", run.relation, run.op, text_of(run)));
  }
  const std::string host =
      fmt::format(R"({{"hostname": "{}", "kernel": "{}", "cpu_model": "CPU", "gpu_driver": "580"}})", document.host,
                  document.kernel);
  return fmt::format(
      R"({{"schema": "{}", "tool": {{"version": "0.1.0", "git": "abc", "argv": ["a", "b"]}}, "started": "{}",
 "hosts": {{"client": {}, "server": null}},
 "topology": {{"source": "none", "gpus": [{{"name": "GPU0", "model": "H"}}],
  "nics": [{{"name": "mlx5_0", "firmware": "{}", "driver": "mlx5_core"}}], "pairs": {{}}}},
 "relations": {{{}}}, "warnings": []}})",
      document.schema, document.started, host, document.firmware, fmt::join(runs, ", "));
}

/// What came of these cells, of 20 sessions before and 9 now.
inline Comparison comparison_of(std::vector<CellResult> cells) {
  Comparison comparison;
  comparison.cells = std::move(cells);
  comparison.baseline_documents = 20;
  comparison.candidate_documents = 9;
  return comparison;
}

}  // namespace gdrperf::compare
