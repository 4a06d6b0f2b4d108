#include <cmath>
#include <cstdint>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gdrperf/base/error.h"
#include "gdrperf/page/page.h"
#include "gdrperf/report/fields.h"

namespace gdrperf::page {
namespace {

using DocJson = nlohmann::ordered_json;

/// Value at "client.device"; nullptr where there is none.
const DocJson* at_path(const DocJson& value, std::string_view path) {
  const DocJson* here = &value;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string name(path.substr(0, dot));
    if (!here->is_object()) return nullptr;
    const auto found = here->find(name);
    if (found == here->end()) return nullptr;
    here = &*found;
    path = dot == path.npos ? std::string_view() : path.substr(dot + 1);
  }
  return here;
}

std::string text_of(const DocJson* value) {
  if (!value || value->is_null()) return {};
  if (value->is_string()) return value->get<std::string>();
  if (value->is_boolean()) return value->get<bool>() ? "true" : "false";
  if (value->is_number_unsigned()) return std::to_string(value->get<std::uint64_t>());
  if (value->is_number_integer()) return std::to_string(value->get<std::int64_t>());
  if (value->is_number_float()) return fmt::format("{}", value->get<double>());
  return {};
}

std::string text_at(const DocJson& value, std::string_view path) { return text_of(at_path(value, path)); }

std::string end_of_interval(const DocJson& run, std::string_view path, std::size_t which) {
  const DocJson* list = at_path(run, path);
  return list && list->is_array() && list->size() == 2 ? text_of(&(*list)[which]) : std::string();
}

std::string joined_texts(const DocJson* list) {
  std::string all;
  if (!list || !list->is_array()) return all;
  for (const DocJson& each : *list) {
    if (each.is_string()) all += (all.empty() ? "" : "; ") + each.get<std::string>();
  }
  return all;
}

std::vector<double> numbers_of(const DocJson* list) {
  std::vector<double> all;
  if (!list || !list->is_array()) return all;
  for (const DocJson& each : *list) {
    if (each.is_number()) all.push_back(each.get<double>());
  }
  return all;
}

/// Gathers runs while the document is parsed, so that they need not all be there as JSON.
class Gatherer {
 public:
  explicit Gatherer(PageDocument& document) : document_(document) {}

  /// Whether the parser keeps what it has just read.
  bool take(int depth, DocJson::parse_event_t event, DocJson& parsed) {
    if (event == DocJson::parse_event_t::key && depth <= 3) {
      keys_[depth - 1] = parsed.get<std::string>();
      return true;
    }
    if (event != DocJson::parse_event_t::object_end || depth != 4 || keys_[0] != "relations") return true;
    add(parsed);
    return false;
  }

 private:
  void add(const DocJson& run) {
    std::vector<std::string> row(RunTable::columns().size());
    for (const report::Field& each : report::fields()) {
      if (!each.json.empty()) set(row, each.name, text_at(run, each.json));
    }
    set(row, "relation", keys_[1]);
    set(row, "ci95_low_gbps", end_of_interval(run, "bw.ci95_gbps", 0));
    set(row, "ci95_high_gbps", end_of_interval(run, "bw.ci95_gbps", 1));
    set(row, "ci95_p50_low_ns", end_of_interval(run, "latency.ci95_p50_ns", 0));
    set(row, "ci95_p50_high_ns", end_of_interval(run, "latency.ci95_p50_ns", 1));
    set(row, "warnings", joined_texts(at_path(run, "warnings")));
    for (const char* each : {"p50", "p90", "p99", "p999", "p9999"}) {
      set(row, std::string("beyond_") + each, text_at(run, std::string("latency.samples_beyond.") + each));
    }
    set(row, "name", report::run_name([&](std::string_view name) { return row[RunTable::place(name)]; }));
    std::vector<double> series = numbers_of(at_path(run, "bw.batches_gbps"));
    if (series.empty()) series = numbers_of(at_path(run, "latency.batches_p50_ns"));
    document_.runs.add(std::move(row), std::move(series));
    for (const char* side : {"client", "server"}) add_counters(side, run);
  }

  void add_counters(const std::string& side, const DocJson& run) {
    const DocJson* counters = at_path(run, side + ".counters");
    if (!counters || !counters->is_object()) return;
    const std::string device = text_at(run, side + ".device");
    for (const auto& [name, values] : counters->items()) {
      if (!values.is_number_unsigned() || places_.size() >= kMostCounters) continue;
      const auto [found, fresh] = places_.try_emplace(side + "/" + device + "/" + name, document_.counters.size());
      if (fresh) document_.counters.push_back({side, device, name, 0, 0});
      PageCounter& counter = document_.counters[found->second];
      counter.rise += values.get<std::uint64_t>();
      ++counter.runs;
    }
  }

  static void set(std::vector<std::string>& row, std::string_view column, std::string text) {
    row[RunTable::place(column)] = std::move(text);
  }

  /// More different ones are no port's.
  static constexpr std::size_t kMostCounters = 10000;

  PageDocument& document_;
  std::string keys_[3];
  std::map<std::string, std::size_t> places_;  ///< of counters
};

std::vector<PathWords> paths_of(const DocJson& document) {
  std::vector<PathWords> all;
  const DocJson* list = at_path(document, "paths");
  if (!list || !list->is_array()) return all;
  for (const DocJson& each : *list) {
    all.push_back({text_at(each, "op"), text_at(each, "client"), text_at(each, "server"), text_at(each, "better")});
  }
  return all;
}

}  // namespace

PageDocument parse_document(std::string_view text, const std::string& path) {
  compare::parse_session(text, path);  // says what is wrong with it, and where
  PageDocument page;
  page.path = path;
  Gatherer gatherer(page);
  DocJson document = DocJson::parse(
      text.begin(), text.end(),
      [&](int depth, DocJson::parse_event_t event, DocJson& parsed) { return gatherer.take(depth, event, parsed); });
  page.started = text_at(document, "started");
  page.simulated = text_at(document, "simulated") == "true";
  page.paths = paths_of(document);
  if (const DocJson* list = at_path(document, "warnings"); list && list->is_array()) {
    for (const DocJson& each : *list) {
      if (each.is_string()) page.warnings.push_back(each.get<std::string>());
    }
  }
  document.erase("relations");
  page.head = document.dump(-1, ' ', false, DocJson::error_handler_t::replace);
  // Hosts stand above the runs in a document, and are columns of a table.
  page.runs.set_all("client_host", text_at(document, "hosts.client.hostname"));
  page.runs.set_all("server_host", text_at(document, "hosts.server.hostname"));
  return page;
}

}  // namespace gdrperf::page
