#include "record_json.h"

#include <cmath>

#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

Json gbps(double gbytes) { return number(gigabits_from_gigabytes(gbytes)); }

Json natural_or_null(int value) { return value < 0 ? Json(nullptr) : Json(value); }

/// Both ends or null: half an interval says nothing.
Json interval(const Json& low, const Json& high) {
  return low.is_null() || high.is_null() ? Json(nullptr) : Json::array({low, high});
}

Json gpu_json(const GpuInfo& gpu) {
  return {{"index", gpu.index},
          {"name", text_or_null(gpu.name)},
          {"uuid", text_or_null(gpu.uuid)},
          {"pci_address", text_or_null(gpu.pci_address)},
          {"bar1_bytes", gpu.bar1_bytes == 0 ? Json(nullptr) : Json(gpu.bar1_bytes)},
          {"driver", text_or_null(gpu.driver)},
          {"kernel_module", text_or_null(gpu.kernel_module)}};
}

Json end_json(const EndRecord& end) {
  Json json = {{"device", end.device},
          {"kind", end.kind},
          {"firmware", text_or_null(end.firmware)},
          {"driver", text_or_null(end.driver)},
          {"port", end.port},
          {"gid_index", natural_or_null(end.gid_index)},
          {"gid", text_or_null(end.gid)},
          {"gid_type", text_or_null(end.gid_type)},
          {"gid_why", text_or_null(end.gid_why)},
          {"buffer", end.buffer},
          {"cpu", natural_or_null(end.cpu)},
          {"numa", natural_or_null(end.numa)}};
  if (!end.registration.empty()) json["registration"] = end.registration;
  if (end.gpu) json["gpu"] = gpu_json(*end.gpu);
  return json;
}

Json bandwidth_json(const Bandwidth& bandwidth) {
  Json batches = Json::array();
  for (const double batch : bandwidth.batches_gbytes) batches.push_back(gbps(batch));
  return {
      {"median_gbps", gbps(bandwidth.median_gbytes)},
      {"ci95_gbps", interval(gbps(bandwidth.ci95_low_gbytes), gbps(bandwidth.ci95_high_gbytes))},
      {"mean_gbps", gbps(bandwidth.mean_gbytes)},
      {"min_gbps", gbps(bandwidth.min_gbytes)},
      {"max_gbps", gbps(bandwidth.max_gbytes)},
      {"batches_gbps", std::move(batches)}};
}

Json latency_json(const Latency& latency) {
  Json batches = Json::array();
  for (const double batch : latency.batches_p50_ns) batches.push_back(number(batch));
  const auto beyond = [&](double percent) { return samples_beyond(percent, latency.samples); };
  return {
      {"min_ns", number(latency.min_ns)},
      {"p50_ns", number(latency.p50_ns)},
      {"p90_ns", number(latency.p90_ns)},
      {"p99_ns", number(latency.p99_ns)},
      {"p999_ns", number(latency.p999_ns)},
      {"p9999_ns", number(latency.p9999_ns)},
      {"max_ns", number(latency.max_ns)},
      {"mean_ns", number(latency.mean_ns)},
      {"samples", latency.samples},
      {"samples_beyond",
       {{"p50", beyond(50)},
        {"p90", beyond(90)},
        {"p99", beyond(99)},
        {"p999", beyond(99.9)},
        {"p9999", beyond(99.99)}}},
      {"halved", latency.halved},
      {"ci95_p50_ns", interval(number(latency.ci95_p50_low_ns), number(latency.ci95_p50_high_ns))},
      {"batches_p50_ns", std::move(batches)}};
}

Json warnings_json(const RunRecord& record) {
  Json warnings = Json::array();
  for (const std::string& warning : record.measured.warnings) warnings.push_back(warning);
  for (const std::string& warning : record.warnings) warnings.push_back(warning);
  return warnings;
}

}  // namespace

Json record_json(const RunRecord& record) {
  const TestSpec& spec = record.spec;
  const Measurement& measured = record.measured;
  const bool both_ways = spec.direction == Direction::kBidirectional;
  Json json = {{"op", to_string(spec.test)},
               {"size_bytes", spec.size_bytes},
               {"client", end_json(record.client)},
               {"server", end_json(record.server)},
               {"device_kind", record.device_kind},
               {"direction", both_ways ? "bidirectional" : "unidirectional"},
               {"connection", to_string(spec.connector)},
               {"wait", spec.wait == Wait::kPoll ? "poll" : "event"},
               {"qps", spec.qps},
               {"rate_per_s", spec.rate_per_s == 0 ? Json(nullptr) : number(spec.rate_per_s)},
               {"tx_depth", spec.tx_depth},
               {"rx_depth", spec.rx_depth},
               {"cq_mod", spec.cq_mod},
               {"post_list", spec.post_list},
               {"inline_bytes", spec.inline_bytes},
               {"footprint_bytes", spec.footprint_bytes},
               {"mtu_bytes", spec.mtu_bytes},
               {"qp_timeout", spec.qp_timeout},
               {"service_level", spec.service_level},
               {"traffic_class", spec.traffic_class}};
  json["iterations"] = measured.iterations;
  json["duration_s"] = number(measured.duration_s);
  json["warmup_cut_s"] = number(measured.warmup_cut_s);
  json["stop"] = to_string(measured.stop);
  json["unstable"] = measured.unstable;
  json["unstable_reason"] = text_or_null(measured.unstable_reason);
  const auto& bandwidth = measured.bandwidth;
  json["bw"] = bandwidth ? bandwidth_json(*bandwidth) : Json(nullptr);
  json["msg_rate_mpps"] = bandwidth ? number(bandwidth->msg_rate_mpps) : Json(nullptr);
  json["latency"] = measured.latency ? latency_json(*measured.latency) : Json(nullptr);
  const RunPath& path = record.path;
  json["pair"] = text_or_null(path.pair);
  json["host_node"] = text_or_null(path.host_node);
  json["ceiling_gbps"] = path.ceiling_gbps > 0 ? number(path.ceiling_gbps) : Json(nullptr);
  json["limited_by"] = text_or_null(path.limited_by);
  const std::optional<double> share = efficiency(record);
  json["efficiency"] = share ? number(*share) : Json(nullptr);
  // A run whose data was wrong has no record.
  json["verified"] = spec.verify_seed ? Json(true) : Json(nullptr);
  // What only runs have whose data was compared, or lay in a GPU.
  if (spec.verify_seed) json["checked_by"] = Json::array({record.client.checker, record.server.checker});
  if (record.client.gpu || record.server.gpu) {
    json["path"] = to_string(spec.path);
    json["consume"] = spec.consume;
  }
  if (measured.chunk_bytes != 0) json["chunk_bytes"] = measured.chunk_bytes;
  json["warnings"] = warnings_json(record);
  return json;
}

}  // namespace gdrperf::report
