#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/report/fields.h"

namespace gdrperf::report::field_samples {

/// A run on which every field has something to say.
inline RunRecord base_run(Metric metric) {
  RunRecord run;
  run.started = "2025-01-31T12:00:00Z";
  run.spec.test = {Operation::kWrite, metric};
  run.spec.tx_depth = 128;
  run.spec.cq_mod = 1;
  run.spec.inline_bytes = 0;
  run.spec.mtu_bytes = 4096;
  run.spec.footprint_bytes = 4194304;
  run.client = {"mlx5_0", "hardware", 1, 3, "10.0.0.1", "RoCE v2/IPv4", "first", "cuda:0", 4, 0};
  run.client.firmware = "28.39";
  run.client.driver = "mlx5_core";
  run.client.registration = "dmabuf";
  run.client.gpu = GpuInfo{};
  run.client.host = "left";
  run.server = run.client;
  run.server.host = "right";
  run.device_kind = "hardware";
  run.relation = "PIX";
  run.path.pair = "GPU0/mlx5_0";
  if (metric == Metric::kBandwidth) {
    run.measured.bandwidth = Bandwidth{10, 9, 11, 10, 8, 12, {10, 10}, 0.15};
  } else {
    run.measured.latency = Latency{1, 2, 3, 4, 5, 6, 7, 2, 1000, true, 1.9, 2.1, 0.5, {2, 2}};
  }
  return run;
}

using Change = std::function<void(RunRecord&)>;

/// One other value for every field that identifies a run. A field that is no setting and has
/// none fails the tests: add it here.
inline const std::map<std::string, Change>& changes() {
  static const std::map<std::string, Change> all = {
      {"client_host", [](RunRecord& run) { run.client.host = "third"; }},
      {"server_host", [](RunRecord& run) { run.server.host = "fourth"; }},
      {"relation", [](RunRecord& run) { run.relation = "SYS"; }},
      {"op", [](RunRecord& run) { run.spec.test.operation = Operation::kRead; }},
      {"size_bytes", [](RunRecord& run) { run.spec.size_bytes = 4096; }},
      {"pair", [](RunRecord& run) { run.path.pair = "GPU1/mlx5_0"; }},
      {"client_program", [](RunRecord& run) { run.client.program = "perftest 6.06"; }},
      {"server_program", [](RunRecord& run) { run.server.program = "perftest 6.29"; }},
      {"client_device", [](RunRecord& run) { run.client.device = "mlx5_1"; }},
      {"client_firmware", [](RunRecord& run) { run.client.firmware = "28.40"; }},
      {"client_driver", [](RunRecord& run) { run.client.driver = "mlx4_core"; }},
      {"client_port", [](RunRecord& run) { run.client.port = 2; }},
      {"client_gid_type", [](RunRecord& run) { run.client.gid_type = "RoCE v2/IPv6"; }},
      {"client_buffer", [](RunRecord& run) { run.client.buffer = "cuda-vmm:0"; }},
      {"client_doorbells", [](RunRecord& run) { run.client.doorbells = "cpu"; }},
      {"client_registration", [](RunRecord& run) { run.client.registration = "peermem"; }},
      {"server_device", [](RunRecord& run) { run.server.device = "mlx5_1"; }},
      {"server_firmware", [](RunRecord& run) { run.server.firmware = "28.41"; }},
      {"server_driver", [](RunRecord& run) { run.server.driver = "irdma"; }},
      {"server_port", [](RunRecord& run) { run.server.port = 2; }},
      {"server_gid_type", [](RunRecord& run) { run.server.gid_type = "IB"; }},
      {"server_buffer", [](RunRecord& run) { run.server.buffer = "host"; }},
      {"server_doorbells", [](RunRecord& run) { run.server.doorbells = "memory"; }},
      {"server_registration", [](RunRecord& run) { run.server.registration = "host"; }},
      {"rate_per_s", [](RunRecord& run) { run.spec.rate_per_s = 10'000'001; }},
      {"rate_bytes_per_s", [](RunRecord& run) { run.spec.rate_bytes_per_s = 1.25e9; }},
      {"path", [](RunRecord& run) { run.spec.path = Path::kStaged; }},
      {"consume", [](RunRecord& run) { run.spec.consume = true; }},
      {"host_node", [](RunRecord& run) { run.path.host_node = "remote"; }},
      {"device_kind", [](RunRecord& run) { run.device_kind = "rxe"; }},
      {"tx_depth", [](RunRecord& run) { run.spec.tx_depth = 64; }},
      {"cq_mod", [](RunRecord& run) { run.spec.cq_mod = 8; }},
      {"inline_bytes", [](RunRecord& run) { run.spec.inline_bytes = 64; }},
      {"footprint_bytes", [](RunRecord& run) { run.spec.footprint_bytes = 65536; }},
      {"mtu_bytes", [](RunRecord& run) { run.spec.mtu_bytes = 1024; }},
      {"verified", [](RunRecord& run) { run.spec.verify_seed = 1; }},
      {"chunk_asked_bytes", [](RunRecord& run) { run.spec.chunk_bytes = 65536; }},
  };
  return all;
}

/// Settings have theirs in the option table, unless it is one above.
inline Change change_of(const Field& each) {
  const auto known = changes().find(std::string(each.name));
  if (known != changes().end()) return known->second;
  if (each.setting == nullptr) return nullptr;
  return [setting = each.setting](RunRecord& run) {
    SettingValue other = setting->choices.empty() ? setting->range.low + 1 : setting->choices.back().value;
    if (setting->type == SettingType::kName) other = "1";
    setting->access.set(run.spec, other);
  };
}

/// The base, one run for each identifying field that differs from it in nothing
/// else, and one that differs in all.
inline std::vector<RunRecord> all_runs(Metric metric) {
  std::vector<RunRecord> runs = {base_run(metric)};
  RunRecord in_all = base_run(metric);
  for (const Field& each : fields()) {
    if (each.identity == Identity::kNo) continue;
    const Change change = change_of(each);
    if (!change) {
      ADD_FAILURE() << each.name << " identifies a run: give it another value in field_samples.h";
      continue;
    }
    RunRecord run = base_run(metric);
    change(run);
    change(in_all);
    EXPECT_NE(to_text(each.get(run)), to_text(each.get(runs.front()))) << each.name << " was not changed";
    runs.push_back(run);
  }
  runs.push_back(in_all);
  return runs;
}

}  // namespace gdrperf::report::field_samples
