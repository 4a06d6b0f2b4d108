// Cells of comparisons against the table of fields.
#include <set>

#include <gtest/gtest.h>

#include "../field_samples.h"
#include "gdrperf/compare/session.h"
#include "gdrperf/compare/side.h"
#include "gdrperf/report/document.h"

namespace gdrperf::compare {
namespace {

using report::RunRecord;
using report::field_samples::all_runs;

/// A document of its own, with the hosts of the run.
Session session_of(const RunRecord& run) {
  report::Document document(report::this_tool({}), "2025-01-31T12:00:00Z");
  report::Environment client, server;
  client.hostname = run.client.host.raw();
  server.hostname = run.server.host.raw();
  document.set_client(client);
  document.set_server(server);
  document.add(run);
  return parse_session(document.to_json(), "x.json");
}

TEST(CompareFields, RunsThatDifferInAnIdentifyingFieldAreCellsOfTheirOwn) {
  for (const Metric metric : {Metric::kBandwidth, Metric::kLatency}) {
    const std::vector<RunRecord> runs = all_runs(metric);
    Side side;
    report::Document together(report::this_tool({}), "2025-01-31T12:00:00Z");
    std::size_t of_other_hosts = 0;
    for (const RunRecord& run : runs) {
      side.add(session_of(run));
      together.add(run);
      // Hosts are the document's, so those two are the base run in this one.
      of_other_hosts += run.client.host != runs[0].client.host && run.server.host == runs[0].server.host;
      of_other_hosts += run.client.host == runs[0].client.host && run.server.host != runs[0].server.host;
    }
    std::size_t series = 0;
    for (const auto& [name, all] : side.cells()) series += all.size();
    EXPECT_EQ(series, runs.size());
    EXPECT_EQ(of_other_hosts, 2u);
    EXPECT_EQ(parse_session(together.to_json(), "x.json").cells.size(), runs.size() - of_other_hosts);
  }
}

TEST(CompareFields, CellsAreCalledWhatRunsAreCalled) {
  for (const RunRecord& run : all_runs(Metric::kBandwidth)) {
    const Session session = session_of(run);
    ASSERT_EQ(session.cells.size(), 1u);
    EXPECT_EQ(session.cells[0].key.name, report::run_name(run));
  }
}

TEST(CompareFields, EveryConditionOfTheTableIsOneOfTheGate) {
  const auto& names = condition_names();
  const std::set<std::string_view> known(names.begin(), names.end());
  EXPECT_EQ(known.size(), names.size());
  for (const report::Field& each : report::fields()) {
    EXPECT_TRUE(each.condition.empty() || known.contains(each.condition)) << each.name;
  }
  const Session session = session_of(report::field_samples::base_run(Metric::kBandwidth));
  ASSERT_EQ(session.cells[0].key.conditions.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(session.cells[0].key.conditions[i].name, names[i]);
}

}  // namespace
}  // namespace gdrperf::compare
