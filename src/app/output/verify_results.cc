#include "app/output/verify_results.h"

#include <nlohmann/json.hpp>

#include "gdrperf/report/environment.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;

Json verify_text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json end_json(const EndSpec& end) {
  return {{"device", verify_text_or_null(end.device)}, {"buffer", end.buffer}};
}

const char* verdict_text(VerifyVerdict verdict) {
  switch (verdict) {
    case VerifyVerdict::kPassed: return "passed";
    case VerifyVerdict::kFailed: return "failed";
    case VerifyVerdict::kImpossible: break;
  }
  return "impossible";
}

}  // namespace

std::string verify_json(const std::vector<VerifyRow>& rows, const report::Tool& tool, const std::string& started,
                        const std::optional<report::Environment>& server, ExitCode exit_code) {
  Json counts = {{"passed", 0}, {"failed", 0}, {"impossible", 0}};
  Json list = Json::array();
  for (const VerifyRow& row : rows) {
    Json& count = counts[verdict_text(row.verdict)];
    count = count.get<int>() + 1;
    list.push_back({{"title", row.title},
                    {"client", end_json(row.client)},
                    {"server", end_json(row.server)},
                    {"op", to_string(row.test)},
                    {"verdict", verdict_text(row.verdict)},
                    {"sizes_bytes", row.sizes_bytes},
                    {"messages", row.messages},
                    {"failed_size_bytes", row.failed_size_bytes == 0 ? Json(nullptr) : Json(row.failed_size_bytes)},
                    {"reason", verify_text_or_null(row.reason)},
                    {"hint", verify_text_or_null(row.hint)}});
  }
  const auto host = [](const report::Environment& environment) { return Json::parse(report::to_json(environment)); };
  const Json document = {
      {"schema", "gdrperf-verify/1"},
      {"tool", {{"version", tool.version}, {"git", tool.git}, {"argv", tool.argv}}},
      {"started", started},
      {"hosts", {{"client", host(report::collect_environment())}, {"server", server ? host(*server) : Json(nullptr)}}},
      {"exit_code", static_cast<int>(exit_code)},
      {"counts", std::move(counts)},
      {"results", std::move(list)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gdrperf::app
