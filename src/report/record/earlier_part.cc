#include "gdrperf/report/earlier_part.h"

#include <cstddef>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/report/document.h"
#include "report/record/json_text.h"

namespace gdrperf::report {
namespace {

constexpr std::size_t kLargestDocument = std::size_t{128} << 20;

Error no_document(const std::string& path, const std::string& why) {
  return usage_error(fmt::format("{}: {}", path, why), "give the file of a sweep's --json");
}

EndRecord end_of(const Json& json) {
  EndRecord end;
  end.device = json.at("device").get<std::string>();
  end.buffer = json.at("buffer");
  if (json.contains("gpu")) end.gpu.emplace();
  return end;
}

RunRecord facts_of(const Json& json, const std::string& relation) {
  RunRecord facts;
  const std::string op = json.at("op");
  const std::optional<Test> test = parse_test(op);
  if (!test) throw usage_error(fmt::format("there is no test '{}'", op));
  facts.spec.test = *test;
  facts.spec.size_bytes = json.at("size_bytes");
  facts.spec.consume = json.value("consume", false);
  if (json.value("path", "direct") == "staged") facts.spec.path = Path::kStaged;
  const std::string initiator = json.value("initiator", "cpu");
  for (const Initiator each : {Initiator::kGpuProxy, Initiator::kGpu, Initiator::kCpuRings}) {
    if (to_text(setting<&TestSpec::initiator>(), static_cast<std::int64_t>(each)) == initiator)
      facts.spec.initiator = each;
  }
  if (json.contains("relaxed_ordering")) {
    facts.spec.ordering = json.at("relaxed_ordering") == "on" ? Ordering::kRelaxed : Ordering::kStrict;
  }
  facts.client = end_of(json.at("client"));
  facts.server = end_of(json.at("server"));
  facts.relation = relation;
  facts.device_kind = json.at("device_kind");
  facts.measured.unstable = json.at("unstable");
  if (const Json& bw = json.at("bw"); !bw.is_null() && bw.at("median_gbps").is_number()) {
    Bandwidth& bandwidth = facts.measured.bandwidth.emplace();
    bandwidth.median_gbytes = bw.at("median_gbps").get<double>() / gigabits_from_gigabytes(1);
    if (const Json interval = bw.value("ci95_gbps", Json()); interval.is_array()) {
      bandwidth.ci95_low_gbytes = interval.at(0).get<double>() / gigabits_from_gigabytes(1);
      bandwidth.ci95_high_gbytes = interval.at(1).get<double>() / gigabits_from_gigabytes(1);
    }
  }
  if (const Json& latency = json.at("latency"); !latency.is_null() && latency.at("p50_ns").is_number()) {
    Latency& known = facts.measured.latency.emplace();
    known.p50_ns = latency.at("p50_ns").get<double>();
    if (const Json interval = latency.value("ci95_p50_ns", Json()); interval.is_array()) {
      known.ci95_p50_low_ns = interval.at(0).get<double>();
      known.ci95_p50_high_ns = interval.at(1).get<double>();
    }
  }
  return facts;
}

EarlierPart part_of(const Json& json) {
  EarlierPart part;
  const Json& tool = json.at("tool");
  part.argv = tool.at("argv").get<std::vector<std::string>>();
  part.version = fmt::format("{} ({})", tool.at("version").get<std::string>(), tool.at("git").get<std::string>());
  part.started = json.at("started");
  part.host = json.at("hosts").at("client").at("hostname");
  if (json.contains("missing")) part.missing = json.at("missing").get<std::set<std::string>>();
  for (const auto& [relation, tests] : json.at("relations").items()) {
    for (const auto& [test, runs] : tests.items()) {
      for (const Json& run : runs) part.runs.push_back({facts_of(run, relation), pretty(run, Document::kRunIndent)});
    }
  }
  return part;
}

}  // namespace

EarlierPart read_earlier_part(const std::string& path) {
  const Json json = Json::parse(read_file(path, kLargestDocument), nullptr, false);
  if (json.is_discarded()) throw no_document(path, "not JSON, or cut off");
  if (!json.is_object() || json.value("schema", Json()) != Json(kSchemaName)) {
    throw no_document(path, fmt::format("no document of schema {}", kSchemaName));
  }
  if (json.contains("imported"))
    throw usage_error(path + ": imported from another program: there is no sweep to go on with");
  EarlierPart part;
  try {
    part = part_of(json);
  } catch (const Json::exception& error) {
    throw no_document(path, error.what());
  } catch (const Error& error) {
    throw no_document(path, error.what());
  }
  if (part.missing.empty()) throw usage_error(path + ": has all its runs: there is nothing to go on with");
  return part;
}

}  // namespace gdrperf::report
