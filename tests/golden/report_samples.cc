#include "report_samples.h"

#include <limits>

namespace gdrperf::report::samples {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

EndRecord software_end(int gid_index, const char* gid) {
  return {"softnic0", "software", 1, gid_index, gid, "RoCE v2/IPv4", "first RoCE v2 over IPv4",
          "host",     -1,         -1, "softnic 0.1.0", ""};
}

RunRecord run(Test test, std::uint64_t size_bytes) {
  RunRecord record;
  record.spec.test = test;
  record.spec.size_bytes = size_bytes;
  record.spec.tx_depth = size_bytes <= 131072 ? 128 : 16;
  record.spec.cq_mod = size_bytes <= 8192 ? 16 : 1;
  record.spec.inline_bytes = test.metric == Metric::kLatency && size_bytes <= 220 ? 220 : 0;
  record.spec.mtu_bytes = 4096;
  record.spec.footprint_bytes = 4194304;
  record.client = software_end(1, "127.0.0.1");
  record.server = software_end(1, "127.0.0.1");
  record.device_kind = "software";
  record.started = "2025-01-31T12:00:00Z";
  record.client.host = "left";
  record.server.host = "right";
  record.measured.duration_s = 0.5;
  record.measured.warmup_cut_s = 0.03125;
  record.measured.client_cpu_per_message_ns = 4000;
  if (test.operation == Operation::kSend) record.measured.server_cpu_per_message_ns = 3500.5;
  return record;
}

Environment environment(const char* hostname) {
  Environment result;
  result.hostname = hostname;
  result.kernel = "Linux 6.1.0-18-amd64 x86_64";
  result.os = "Debian GNU/Linux 12 (bookworm)";
  result.cpu_model = "Example CPU @ 2.00GHz";
  result.cpus_online = 64;
  result.cpus_allowed = 2;
  result.numa_nodes = 2;
  result.memory_bytes = 270000000000;
  result.governor = "performance";
  result.memlock_limit_bytes = 8388608;
  result.gpu_driver = "580.95.05";
  result.clock_source = "tsc";
  result.tool_version = "0.1.0";
  return result;
}

Topology topology() {
  Topology result;
  result.source = "nvidia-smi";
  result.gpus = {{"GPU0", "Example GPU", "0000:3b:00.0", 0}, {"GPU1", "", "", std::nullopt}};
  result.nics = {{"mlx5_0", "0000:3c:00.0", "ens1f0", 0, "28.39.1002", "mlx5_core"},
                 {"mlx5_1", "", "", std::nullopt}};
  result.pairs["GPU0/mlx5_0"] = {"PIX",
                                 "PIX",
                                 "PIX",
                                 "0000:3a:00.0",
                                 {{"0000:3b:00.0", 4, 16}, {"0000:3c:00.0", 4, std::nullopt}},
                                 false,
                                 200.5};
  result.pairs["GPU1/mlx5_1"] = {"SYS", "SYS", "", "", {}, std::nullopt, std::nullopt};
  return result;
}

}  // namespace

RunRecord bandwidth_run(Operation operation, std::uint64_t size_bytes, double median_gbytes) {
  RunRecord record = run({operation, Metric::kBandwidth}, size_bytes);
  Bandwidth bandwidth;
  bandwidth.median_gbytes = median_gbytes;
  bandwidth.ci95_low_gbytes = median_gbytes * 0.9975;
  bandwidth.ci95_high_gbytes = median_gbytes * 1.0025;
  bandwidth.mean_gbytes = median_gbytes * 0.999;
  bandwidth.min_gbytes = median_gbytes * 0.875;
  bandwidth.max_gbytes = median_gbytes * 1.0625;
  bandwidth.batches_gbytes = {median_gbytes * 0.875, median_gbytes, median_gbytes,
                              median_gbytes * 1.0625};
  bandwidth.msg_rate_mpps = median_gbytes * 1e3 / static_cast<double>(size_bytes);
  record.measured.iterations =
      static_cast<std::uint64_t>(record.measured.duration_s * bandwidth.msg_rate_mpps * 1e6);
  record.measured.bandwidth = bandwidth;
  return record;
}

RunRecord latency_run(Operation operation, std::uint64_t size_bytes, double p50_ns) {
  RunRecord record = run({operation, Metric::kLatency}, size_bytes);
  Latency latency;
  latency.min_ns = p50_ns * 0.75;
  latency.p50_ns = p50_ns;
  latency.p90_ns = p50_ns * 1.125;
  latency.p99_ns = p50_ns * 1.5;
  latency.p999_ns = p50_ns * 4;
  latency.p9999_ns = p50_ns * 16;
  latency.max_ns = p50_ns * 1024;
  latency.mean_ns = p50_ns * 1.0625;
  latency.samples = 250'000;
  latency.stdev_ns = p50_ns * 0.125;
  latency.halved = operation != Operation::kRead;
  latency.ci95_p50_low_ns = p50_ns * 0.996;
  latency.ci95_p50_high_ns = p50_ns * 1.004;
  latency.batches_p50_ns = {p50_ns * 1.01, p50_ns, p50_ns * 0.99};
  record.measured.iterations = latency.samples;
  record.measured.latency = latency;
  return record;
}

std::vector<RunRecord> sweep() {
  std::vector<RunRecord> runs;
  runs.push_back(bandwidth_run(Operation::kWrite, 2, 0.0401));
  runs.push_back(bandwidth_run(Operation::kWrite, 4096, 9.87654321));
  runs.push_back(bandwidth_run(Operation::kWrite, 65536, 46.6));
  runs.back().measured.unstable = true;
  runs.back().measured.unstable_reason = "bimodal";
  runs.back().measured.stop = StopReason::kCap;
  runs.push_back(bandwidth_run(Operation::kWrite, 8388608, 14.2));
  runs.back().measured.stop = StopReason::kIterations;
  runs.back().measured.bandwidth->ci95_low_gbytes = kNan;
  runs.back().measured.bandwidth->ci95_high_gbytes = kNan;
  for (RunRecord& record : runs) record.warnings = {"client and server share CPU 0; give each its own"};
  runs[1].measured.warnings = {"receiver not ready 3 times; raise -r"};
  runs.push_back(bandwidth_run(Operation::kSend, 1000, 3.5));
  runs.push_back(latency_run(Operation::kWrite, 8, 180.25));
  runs.push_back(latency_run(Operation::kWrite, 65536, 2'400));
  runs.back().measured.latency->samples = 1'000;
  runs.back().measured.iterations = 1'000;
  runs.back().measured.stop = StopReason::kIterations;
  runs.push_back(latency_run(Operation::kRead, 8388608, 1'234'567));
  runs.back().measured.latency->samples = 15;
  runs.back().measured.iterations = 15;
  runs.back().measured.stop = StopReason::kCap;
  runs.back().measured.unstable = true;
  runs.back().measured.unstable_reason = "scatter";
  runs.push_back(latency_run(Operation::kSend, 64, 2'500));
  runs.back().spec.rate_per_s = 10'000;
  return runs;
}

RunRecord soft_roce_run() {
  RunRecord record = bandwidth_run(Operation::kSend, 65536, 0.048);
  record.spec.direction = Direction::kBidirectional;
  record.measured.client_sent_gbytes = 0.030;
  record.measured.server_sent_gbytes = 0.018;
  record.spec.connector = Connector::kRdmaCm;
  record.spec.wait = Wait::kEvent;
  record.spec.qps = 4;
  record.spec.post_list = 8;
  record.spec.mtu_bytes = 1024;
  record.measured.stop = StopReason::kDuration;
  record.client = {"rxe0", "rxe", 1, 1, "10.0.0.1", "RoCE v2/IPv4", "asked for with -x 1",
                   "host", 0,     0};
  record.server = record.client;
  record.server.gid = "10.0.0.2";
  record.device_kind = "rxe";
  return record;
}

RunRecord gpu_run() {
  RunRecord record = bandwidth_run(Operation::kWrite, 1048576, 24.5);
  record.client = {
      "mlx5_0", "hardware", 1, 3, "192.168.1.1", "RoCE v2/IPv4", "first RoCE v2 over IPv4",
      "cuda:0", 4,          0, "28.39.1002", "mlx5_core"};
  record.server = {"mlx5_1",
                   "hardware",
                   2,
                   5,
                   "fe80::1",
                   "RoCE v2/IPv6 link-local",
                   "asked for with --peer-gid-index 5",
                   "host",
                   -1,
                   1};
  record.device_kind = "hardware";
  record.relation = "PIX";
  return record;
}

RunRecord nan_run() {
  RunRecord record = bandwidth_run(Operation::kRead, 64, 1);
  const double infinity = std::numeric_limits<double>::infinity();
  record.measured.bandwidth =
      Bandwidth{kNan, kNan, kNan, kNan, -infinity, infinity, {kNan, infinity}, kNan};
  record.measured.iterations = 0;
  record.measured.duration_s = kNan;
  record.client.gid = {};
  record.client.gid_index = -1;
  record.client.gid_type = {};
  record.client.gid_why = {};
  record.server = record.client;
  return record;
}

Document empty_document() {
  Document document({"0.1.0", "v0.1.0-1-gabcdef0", {"gdrperf", "sweep", "--local"}},
                    "2025-01-31T12:00:00Z");
  return document;
}

std::map<std::string, Document> documents() {
  std::map<std::string, Document> result;
  const auto make = [&](const char* name) -> Document& {
    return result.emplace(name, empty_document()).first->second;
  };
  make("empty");
  Document& all = make("all");
  all.set_client(environment("left"));
  all.set_server(environment("right"));
  all.set_topology(topology());
  for (const RunRecord& record : sweep()) all.add(record);
  all.add(soft_roce_run());
  all.add(nan_run());
  all.add(gpu_run());
  all.add_warning("nvidia-smi: the matrix has a column no row answers to");
  Document& odd = make("odd");
  odd.set_client(Environment{});
  RunRecord record = nan_run();
  record.warnings = {"not UTF-8: \xff\xfe", "quotes \" and \\ and\nnewlines"};
  odd.add(record);
  Document& here = make("here");
  here.set_client(collect_environment());
  here.set_server(environment_from_json(to_json(collect_environment())));
  here.add(gpu_run());
  return result;
}

}  // namespace gdrperf::report::samples
