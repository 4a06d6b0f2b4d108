#include "gdrperf/report/scenario_document.h"

#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/report/relations.h"
#include "report/record/json_text.h"

namespace gdrperf::report {

struct ScenarioDocument::State {
  Tool tool;
  std::string file;
  std::string text;
  std::vector<std::string> names;
  Json whole;                    ///< null before the first document
  Json tests = Json::array();
  Json warnings = Json::array();
  Json missing = Json::array();
};

namespace {

void append(Json& list, const Json& more) {
  for (const Json& each : more) list.push_back(each);
}

/// Nearest relation first, as in every document.
Json in_order(const Json& relations) {
  Json ordered = Json::object();
  for (const char* relation : kRelationOrder) {
    if (!relations.contains(relation)) continue;
    Json& tests = ordered[relation] = Json::object();
    for (const Test test : all_tests()) {
      const std::string name = to_string(test);
      if (relations.at(relation).contains(name)) tests[name] = relations.at(relation).at(name);
    }
  }
  return ordered;
}

/// Where they stand then: by relation and test.
Json add_runs(Json& relations, const Json& more) {
  Json places = Json::object();
  for (const auto& [relation, tests] : more.items()) {
    for (const auto& [test, runs] : tests.items()) {
      Json& list = relations[relation][test];
      if (list.is_null()) list = Json::array();
      for (const Json& each : runs) {
        places[relation][test].push_back(list.size());
        list.push_back(each);
      }
    }
  }
  return places;
}

}  // namespace

ScenarioDocument::ScenarioDocument(Tool tool, std::string file, std::string text, std::vector<std::string> names)
    : state_(std::make_unique<State>()) {
  state_->tool = std::move(tool);
  state_->file = std::move(file);
  state_->text = std::move(text);
  state_->names = std::move(names);
}

ScenarioDocument::~ScenarioDocument() = default;

bool ScenarioDocument::any() const { return !state_->whole.is_null(); }

void ScenarioDocument::add(const ScenarioPart& part, const std::string& document) {
  State& state = *state_;
  state.tests.push_back({{"name", part.name},
                         {"line", part.line},
                         {"argv", part.words},
                         {"exit_code", part.exit_code},
                         {"runs", Json::object()}});
  if (document.empty()) {
    state.missing.push_back(part.name);
    return;
  }
  const Json json = Json::parse(document, nullptr, false);
  if (!json.is_object() || json.value("schema", Json()) != Json(kSchemaName)) {
    throw usage_error(fmt::format("[{}]: wrote no document of schema {}", part.name, kSchemaName));
  }
  if (state.whole.is_null()) {
    state.whole = json;
    state.whole["relations"] = Json::object();
  } else {
    state.whole["simulated"] = state.whole.at("simulated").get<bool>() || json.at("simulated").get<bool>();
    for (const char* end : {"client", "server"}) {
      Json& host = state.whole["hosts"][end];
      if (host.is_null()) host = json.at("hosts").at(end);
    }
    if (json.contains("paths")) {
      Json& paths = state.whole["paths"];
      if (paths.is_null()) paths = Json::array();
      append(paths, json.at("paths"));
    }
  }
  state.tests.back()["runs"] = add_runs(state.whole["relations"], json.at("relations"));
  for (const Json& each : json.at("warnings")) state.warnings.push_back(part.name + ": " + each.get<std::string>());
  if (json.contains("missing")) {
    for (const Json& each : json.at("missing")) state.missing.push_back(part.name + ": " + each.get<std::string>());
  }
}

std::string ScenarioDocument::to_json() const {
  const State& state = *state_;
  Json missing = state.missing;
  for (std::size_t at = state.tests.size(); at < state.names.size(); ++at) missing.push_back(state.names[at]);
  Json json = Json::object();
  json["schema"] = kSchemaName;
  json["tool"] = {{"version", state.tool.version}, {"git", state.tool.git}, {"argv", state.tool.argv}};
  json["scenario"] = {{"file", state.file}, {"text", state.text}, {"tests", state.tests}};
  for (const char* key : {"started", "simulated", "hosts", "topology"}) json[key] = state.whole.at(key);
  json["relations"] = in_order(state.whole.at("relations"));
  if (state.whole.contains("paths")) json["paths"] = state.whole.at("paths");
  if (!missing.empty()) {
    json["partial"] = true;
    json["missing"] = std::move(missing);
  }
  json["warnings"] = state.warnings;
  return pretty(json, 0) + "\n";
}

}  // namespace gdrperf::report
