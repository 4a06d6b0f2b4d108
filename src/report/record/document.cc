#include "gdrperf/report/document.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/units.h"
#include "gdrperf/base/version.h"
#include "gdrperf/report/relations.h"
#include "report/record/environment_json.h"
#include "report/record/json_text.h"
#include "report/record/record_json.h"

namespace gdrperf::report {
namespace {

Json topology_json(const Topology& topology) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json gpus = Json::array();
  for (const TopologyGpu& gpu : topology.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"model", text_or_null(gpu.model)},
                    {"pci_address", text_or_null(gpu.pci_address)},
                    {"numa_node", or_null(gpu.numa_node)},
                    {"uuid", text_or_null(gpu.uuid)}});
  }
  Json nics = Json::array();
  for (const TopologyNic& nic : topology.nics) {
    nics.push_back({{"name", nic.name},
                    {"pci_address", text_or_null(nic.pci_address)},
                    {"netdev", text_or_null(nic.netdev)},
                    {"numa_node", or_null(nic.numa_node)},
                    {"firmware", text_or_null(nic.firmware)},
                    {"driver", text_or_null(nic.driver)},
                    {"guid", text_or_null(nic.guid)}});
  }
  Json pairs = Json::object();
  for (const auto& [name, pair] : topology.pairs) {
    Json hops = Json::array();
    for (const TopologyHop& hop : pair.hops) {
      hops.push_back({{"bdf", hop.bdf},
                      {"gen", or_null(hop.gen)},
                      {"width", or_null(hop.width)},
                      {"gen_max", or_null(hop.gen_max)},
                      {"width_max", or_null(hop.width_max)},
                      {"max_payload_bytes", or_null(hop.max_payload_bytes)}});
    }
    pairs[name.raw()] = {
        {"relation", pair.relation},
        {"nvidia_smi", text_or_null(pair.nvidia_smi)},
        {"pci", text_or_null(pair.pci)},
        {"common_ancestor", text_or_null(pair.common_ancestor)},
        {"hops", std::move(hops)},
        {"acs_redirect", or_null(pair.acs_redirect)},
        {"ceiling_gbps", pair.ceiling_gbps ? number(*pair.ceiling_gbps) : Json(nullptr)},
        {"limited_by", text_or_null(pair.limited_by)},
        {"difference", text_or_null(pair.difference)}};
  }
  return {{"source", topology.source},
          {"gpus", std::move(gpus)},
          {"nics", std::move(nics)},
          {"pairs", std::move(pairs)}};
}

Json paths_json(const std::vector<PathVerdict>& verdicts) {
  Json list = Json::array();
  for (const PathVerdict& verdict : verdicts) {
    const bool latency = verdict.test.metric == Metric::kLatency;
    const auto value = [&](double figure) {
      return number(latency ? figure * 1e3 : gigabits_from_gigabytes(figure));
    };
    Json sizes = Json::array();
    for (const auto& [size, point] : verdict.points) {
      if (!point.both()) continue;
      sizes.push_back({{"size_bytes", size},
                       {latency ? "direct_p50_ns" : "direct_gbps", value(point.direct)},
                       {latency ? "staged_p50_ns" : "staged_gbps", value(point.staged)},
                       {"staged_over_direct", number(verdict.ratio(point))},
                       {"unstable", point.unstable}});
    }
    const std::uint64_t crossover = verdict.crossover_bytes();
    list.push_back({{"op", to_string(verdict.test)},
                    {"client", verdict.client},
                    {"server", verdict.server},
                    {"relation", verdict.relation},
                    {"better", verdict.words()},
                    {"crossover_bytes", crossover == 0 ? Json(nullptr) : Json(crossover)},
                    {"sizes", std::move(sizes)}});
  }
  return list;
}

Json paired_json(const Pairing& pairing, const std::vector<PairedVerdict>& verdicts) {
  Json list = Json::array();
  const std::string first = pairing.first_key, second = pairing.second_key;
  for (const PairedVerdict& verdict : verdicts) {
    if (verdict.pairing != &pairing) continue;
    const bool latency = verdict.test.metric == Metric::kLatency;
    const auto value = [&](double figure) { return number(latency ? figure * 1e3 : gigabits_from_gigabytes(figure)); };
    Json sizes = Json::array();
    for (const auto& [size, point] : verdict.points) {
      if (!point.both()) continue;
      sizes.push_back({{"size_bytes", size},
                       {first + (latency ? "_p50_ns" : "_gbps"), value(point.first.value)},
                       {second + (latency ? "_p50_ns" : "_gbps"), value(point.second.value)},
                       {first + "_over_" + second, number(verdict.ratio(point))},
                       {"differ", point.differ()},
                       {"unstable", point.unstable}});
    }
    list.push_back({{"op", to_string(verdict.test)},
                    {"client", verdict.client},
                    {"server", verdict.server},
                    {"relation", verdict.relation},
                    {"worth", verdict.words()},
                    {"sizes", std::move(sizes)}});
  }
  return list;
}

Json imported_json(const std::vector<ImportedFile>& files) {
  Json list = Json::array();
  for (const ImportedFile& each : files)
    list.push_back({{"file", each.file}, {"format", each.format}, {"runs", each.runs}});
  return list;
}

void append_list(std::string& out, const std::vector<std::string>& runs) {
  const char* separator = "";
  for (const std::string& run : runs) {
    out += separator;
    out += "\n" + std::string(Document::kRunIndent, ' ') + run;
    separator = ",";
  }
}

}  // namespace

Tool this_tool(std::vector<std::string> argv) {
  return {tool_version(), tool_git(), std::move(argv)};
}

std::string rfc3339_utc(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void Document::add(const RunRecord& record) { add(record, pretty(record_json(record), kRunIndent)); }

void Document::go_on_from(const EarlierPart& part) {
  started_ = part.started;
  for (const EarlierRun& run : part.runs) add(run.facts, run.text);
}

void Document::add(const RunRecord& record, std::string text) {
  const auto known = [&](const char* relation) { return record.relation == relation; };
  if (std::none_of(std::begin(kRelationOrder), std::end(kRelationOrder), known)) {
    throw usage_error("no such relation: '" + record.relation + "'");
  }
  if (record.device_kind == "simulated") simulated_ = true;
  relations_[record.relation][to_string(record.spec.test)].push_back(std::move(text));
  paths_.add(record);
  paired_.add(record);
  ++runs_;
}

std::string Document::to_json() const {
  const auto host = [](const auto& value) {
    return value ? environment_json(*value) : Json(nullptr);
  };
  const Json head = {
      {"schema", kSchemaName},
      {"tool", {{"version", tool_.version}, {"git", tool_.git}, {"argv", tool_.argv}}},
      {"started", started_},
      {"simulated", simulated_},
      {"hosts", {{"client", host(client_)}, {"server", host(server_)}}},
      {"topology", topology_json(topology_)}};
  std::string out = "{";
  for (const auto& [key, value] : head.items()) {
    out += "\n  \"" + key + "\": " + pretty(value, 2) + ",";
  }
  out += "\n  \"relations\": {";
  const char* relation_separator = "";
  for (const char* relation : kRelationOrder) {
    const auto found = relations_.find(relation);
    if (found == relations_.end()) continue;
    out += std::string(relation_separator) + "\n    \"" + relation + "\": {";
    relation_separator = ",";
    const char* test_separator = "";
    for (const Test test : all_tests()) {
      const auto runs = found->second.find(to_string(test));
      if (runs == found->second.end()) continue;
      out += std::string(test_separator) + "\n      \"" + runs->first + "\": [";
      test_separator = ",";
      append_list(out, runs->second);
      out += "\n      ]";
    }
    out += "\n    }";
  }
  out += relations_.empty() ? "},\n" : "\n  },\n";
  if (const auto verdicts = path_verdicts(); !verdicts.empty()) {
    out += "  \"paths\": " + pretty(paths_json(verdicts), 2) + ",\n";
  }
  for (const Pairing& pairing : pairings()) {
    const Json list = paired_json(pairing, paired_verdicts());
    if (!list.empty()) out += fmt::format("  \"{}\": {},\n", pairing.list, pretty(list, 2));
  }
  if (!imported_.empty()) out += "  \"imported\": " + pretty(imported_json(imported_), 2) + ",\n";
  if (!missing_.empty()) out += "  \"partial\": true,\n  \"missing\": " + pretty(Json(missing_), 2) + ",\n";
  out += "  \"warnings\": " + pretty(Json(warnings_), 2) + "\n}\n";
  return out;
}

void Document::write(const std::string& path) const {
  const std::string text = to_json();
  if (path != "-") return write_file_atomic(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(ExitCode::kEnvironment,
                "cannot write standard output: " + std::generic_category().message(errno),
                "free space there or name a file");
  }
}

}  // namespace gdrperf::report
