#include "report/record/record_json.h"

#include <algorithm>
#include <iterator>

#include "gdrperf/base/units.h"
#include "gdrperf/proto/flow.h"
#include "gdrperf/report/fields.h"
#include "report/console/parts.h"
#include "gdrperf/report/spread.h"

namespace gdrperf::report {
namespace {

Json gbps(double gbytes) { return number(gigabits_from_gigabytes(gbytes)); }

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

/// What is known of an end that does not tell.
bool told(const EndRecord& end, const Field& field) {
  if (end.device != kUnknown) return true;
  return field.json.ends_with(".program") || field.json.ends_with(".device") || field.json.ends_with(".buffer");
}

/// What a run that another program made tells, or had a part in.
bool told(const RunRecord& record, const Field& field) {
  if (field.json.starts_with("client.") && !told(record.client, field)) return false;
  if (field.json.starts_with("server.") && !told(record.server, field)) return false;
  if (!record.told || record.told->contains(field.name)) return true;
  constexpr std::string_view kAlways[] = {"op", "size_bytes", "device_kind", "msg_rate_mpps"};
  return std::find(std::begin(kAlways), std::end(kAlways), field.name) != std::end(kAlways) ||
         field.json.starts_with("bw.") || field.json.starts_with("latency.") || field.json.ends_with(".device") ||
         field.json.ends_with(".buffer");
}

/// A field's value where its path says, making the object around it where there is none.
void put(Json& json, const Field& each, const RunRecord& record) {
  const FieldValue value = each.get(record);
  const bool missing = std::holds_alternative<std::monostate>(value);
  if (each.json.empty() || (missing && each.missing == Missing::kOmitted)) return;
  const std::size_t dot = each.json.find('.');
  Json& object = dot == std::string_view::npos ? json : json[std::string(each.json.substr(0, dot))];
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(double quantity) const { return number(quantity); }
    Json operator()(bool yes) const { return yes; }
    Json operator()(std::uint64_t count) const { return count; }
    Json operator()(const std::string& text) const { return text; }
  };
  object[std::string(dot == std::string_view::npos ? each.json : each.json.substr(dot + 1))] =
      std::visit(Visitor(), value);
}

/// Lists and intervals of a bandwidth run.
void add_series(Json& json, const Bandwidth& bandwidth) {
  json["ci95_gbps"] = interval(gbps(bandwidth.ci95_low_gbytes), gbps(bandwidth.ci95_high_gbytes));
  Json batches = Json::array();
  for (const double batch : bandwidth.batches_gbytes) batches.push_back(gbps(batch));
  json["batches_gbps"] = std::move(batches);
}

void add_series(Json& json, const Latency& latency) {
  const auto beyond = [&](double percent) { return samples_beyond(percent, latency.samples); };
  json["samples_beyond"] = {{"p50", beyond(50)},
                            {"p90", beyond(90)},
                            {"p99", beyond(99)},
                            {"p999", beyond(99.9)},
                            {"p9999", beyond(99.99)}};
  json["ci95_p50_ns"] = interval(number(latency.ci95_p50_low_ns), number(latency.ci95_p50_high_ns));
  Json batches = Json::array();
  for (const double batch : latency.batches_p50_ns) batches.push_back(number(batch));
  json["batches_p50_ns"] = std::move(batches);
}

Json spread_json(const RunRecord& record, const Spread& spread) {
  Json qps = Json::array();
  for (const QpShare& each : record.measured.qp_shares) {
    qps.push_back({{"udp_sport", udp_source_port(each.flow_label)},
                   {"flow_label", each.flow_label},
                   {"share", number(each.share)}});
  }
  Json uneven = Json::array();
  for (const PortShare& each : spread.uneven()) uneven.push_back(each.port);
  return {{"ports", spread.ports.size()}, {"least_share", number(spread.least)}, {"most_share", number(spread.most)},
          {"uneven", std::move(uneven)}, {"qps", std::move(qps)}};
}

Json part_json(const RunRecord& record, const Part& part) {
  Json json = {{"name", part.name},
               {"device", part.device},
               {"server_device", part.peer_device},
               {"qps", part.qps},
               {"mean_gbps", gbps(part.gbytes)},
               {"msg_rate_mpps", number(part.gbytes * 1e3 / static_cast<double>(record.spec.size_bytes))}};
  if (!part.buffer.empty()) json["buffer"] = part.buffer;
  if (!part.peer_buffer.empty()) json["server_buffer"] = part.peer_buffer;
  if (part.cpu >= 0) json["cpu"] = part.cpu;
  if (part.peer_cpu >= 0) json["server_cpu"] = part.peer_cpu;
  return json;
}

Json parts_json(const RunRecord& record) {
  const std::vector<Part> rails = rails_of(record.measured);
  Json json = {{"start_spread_us", number(record.measured.start_spread_s * 1e6)},
               {"slowest", slowest_of(record.measured).name},
               {"each", Json::array()}};
  for (const Part& part : record.measured.parts) json["each"].push_back(part_json(record, part));
  for (const Part& rail : rails) json["rails"].push_back(part_json(record, rail));
  return json;
}

Json levels_json(const Measurement& measured) {
  Json levels = Json::array();
  for (const RunLevel& level : measured.levels) {
    Json json = {{"from_s", number(level.from_s)}, {"seconds", number(level.seconds)}, {"share", number(level.share)}};
    if (measured.bandwidth) json["median_gbps"] = gbps(level.value);
    if (measured.latency) json["p50_ns"] = number(level.value);
    levels.push_back(std::move(json));
  }
  return levels;
}

Json warnings_json(const RunRecord& record) {
  Json warnings = Json::array();
  for (const std::string& warning : record.measured.warnings) warnings.push_back(warning);
  for (const std::string& warning : record.warnings) warnings.push_back(warning);
  return warnings;
}

}  // namespace

Json record_json(const RunRecord& record) {
  const Measurement& measured = record.measured;
  Json json = Json::object();
  for (const Field& each : fields()) {
    const bool other = (each.json.starts_with("bw.") && !measured.bandwidth) ||
                       (each.json.starts_with("latency.") && !measured.latency);
    if (!other && told(record, each)) put(json, each, record);
  }
  if (record.client.gpu) json["client"]["gpu"] = gpu_json(*record.client.gpu);
  if (record.server.gpu) json["server"]["gpu"] = gpu_json(*record.server.gpu);
  if (!measured.client_counters.empty()) json["client"]["counters"] = measured.client_counters;
  if (!measured.server_counters.empty()) json["server"]["counters"] = measured.server_counters;
  if (measured.bandwidth) add_series(json["bw"], *measured.bandwidth);
  if (measured.latency) add_series(json["latency"], *measured.latency);
  for (const char* metric : {"bw", "latency"}) {
    if (!json.contains(metric)) json[metric] = nullptr;
  }
  if (!measured.levels.empty()) json["levels"] = levels_json(measured);
  if (const auto spread = spread_of(measured)) json["shares"] = spread_json(record, *spread);
  if (!measured.parts.empty()) json["parts"] = parts_json(record);
  if (record.spec.verify_seed) json["checked_by"] = Json::array({record.client.checker, record.server.checker});
  json["warnings"] = warnings_json(record);
  return json;
}

}  // namespace gdrperf::report
