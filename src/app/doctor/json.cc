#include <nlohmann/json.hpp>
#include <ostream>

#include "app/doctor/text.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;
using doctor::Finding;
using doctor::Verdict;

Json finding_json(const Finding& finding) {
  return {{"check", finding.check},
          {"group", doctor::group_of(finding.check)},
          {"subject", finding.subject},
          {"verdict", doctor::to_string(finding.verdict)},
          {"found", finding.found},
          {"why", finding.why},
          {"fix", finding.fix},
          {"for_good", finding.for_good},
          {"undo", finding.undo},
          {"holds", finding.holds},
          {"evidence", finding.evidence}};
}

}  // namespace

void print_examination_json(const doctor::Examination& examination, std::ostream& out) {
  Json counts = Json::object();
  for (const Verdict verdict : {Verdict::kOk, Verdict::kWarn, Verdict::kFail, Verdict::kSkip}) {
    counts[doctor::to_string(verdict)] = count_of(examination.findings, verdict);
  }
  Json checks = Json::array();
  for (const Finding& finding : examination.findings) checks.push_back(finding_json(finding));
  Json pairs = Json::array();
  for (const doctor::PairVerdict& pair : examination.pairs) {
    pairs.push_back({{"gpu", pair.gpu.raw()},
                     {"nic", pair.nic.raw()},
                     {"relation", pair.relation},
                     {"ready", pair.ready},
                     {"expected_gbytes", pair.expected_gbytes},
                     {"words", pair.words}});
  }
  // Names come from drivers: whatever bytes they hold, the output is JSON.
  out << Json{{"counts", std::move(counts)}, {"checks", std::move(checks)}, {"pairs", std::move(pairs)}}.dump(
             2, ' ', false, Json::error_handler_t::replace)
      << '\n';
}

void print_check_list_json(std::ostream& out) {
  Json checks = Json::array();
  for (const doctor::CheckInfo& check : doctor::checks()) {
    checks.push_back({{"check", check.id},
                      {"group", check.group},
                      {"looks_at", check.looks_at},
                      {"bad_when", check.bad_when}});
  }
  out << checks.dump(2) << '\n';
}

}  // namespace gdrperf::app
