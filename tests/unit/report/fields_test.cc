#include "gdrperf/report/fields.h"

#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../field_samples.h"
#include "gdrperf/export/csv.h"
#include "gdrperf/report/document.h"
#include "gdrperf/export/formats.h"

namespace gdrperf::report {
namespace {

using field_samples::all_runs;
using field_samples::base_run;
using Json = nlohmann::json;

constexpr Metric kMetrics[] = {Metric::kBandwidth, Metric::kLatency};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

template <typename Range>
std::size_t distinct(const Range& range) {
  return std::set<typename Range::value_type>(range.begin(), range.end()).size();
}

TEST(Fields, AreNamedOnceEach) {
  std::vector<std::string_view> names, places;
  for (const Field& each : fields()) {
    names.push_back(each.name);
    if (!each.json.empty()) places.push_back(each.json);
    EXPECT_EQ(&field(each.name), &each);
    EXPECT_EQ(!each.condition.empty(), each.identity == Identity::kCondition) << each.name;
  }
  EXPECT_EQ(distinct(names), names.size());
  EXPECT_EQ(distinct(places), places.size());
}

TEST(Fields, HaveTheirUnitInTheirName) {
  const std::pair<const char*, const char*> kEnds[] = {
      {"_bytes", "B"},        {"_s", "s"},       {"_ns", "ns"},          {"_us", "us"},
      {"_gbps", "Gb/s"},      {"_per_s", "1/s"}, {"_mpps", "million/s"}, {"_gigabytes_per_s", "GB/s"},
      {"_bytes_per_s", "B/s"}};
  for (const Field& each : fields()) {
    std::string unit, longest;
    for (const auto& [end, says] : kEnds) {
      if (each.name.ends_with(end) && std::string_view(end).size() > longest.size()) unit = says, longest = end;
    }
    EXPECT_EQ(each.unit, unit) << each.name;
  }
}

std::string exported(std::string_view format, const std::vector<RunRecord>& runs) {
  return parse_format(format).value().render(runs, {});
}

TEST(Fields, CsvHasARowForEachAndNoTwoAlike) {
  for (const Metric metric : kMetrics) {
    const std::vector<RunRecord> runs = all_runs(metric);
    const std::vector<std::string> lines = lines_of(exported("csv", runs));
    ASSERT_EQ(lines.size(), runs.size() + 1);
    EXPECT_EQ(distinct(lines), lines.size());
  }
}

TEST(Fields, DocumentsSayEachOne) {
  const std::vector<RunRecord> runs = all_runs(Metric::kBandwidth);
  for (const RunRecord& run : runs) {
    Document document(this_tool({}), "2025-01-31T12:00:00Z");
    document.add(run);
    const Json whole = Json::parse(document.to_json());
    const Json& written = whole["relations"][run.relation][to_string(run.spec.test)][0];
    for (const Field& each : fields()) {
      const std::string expected = to_text(each.get(run));
      if (each.json.empty() || expected.empty()) continue;
      std::string pointer = "/" + std::string(each.json);
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      const Json& value = written.at(Json::json_pointer(pointer));
      EXPECT_EQ(value.is_string() ? value.get<std::string>()
                : value.is_number_float() ? to_text(value.get<double>()) : value.dump(), expected) << each.name;
    }
  }
}

TEST(Fields, ADocumentKeepsEveryRun) {
  const std::vector<RunRecord> runs = all_runs(Metric::kLatency);
  Document document(this_tool({}), "2025-01-31T12:00:00Z");
  for (const RunRecord& run : runs) document.add(run);
  std::size_t count = 0;
  const Json whole = Json::parse(document.to_json());
  for (const auto& tests : whole["relations"]) {
    for (const auto& list : tests) count += list.size();
  }
  EXPECT_EQ(count, runs.size());
}

TEST(Fields, PrometheusHasASeriesForEach) {
  for (const Metric metric : kMetrics) {
    const std::vector<RunRecord> runs = all_runs(metric);
    std::vector<std::string> series;
    const char* name =
        metric == Metric::kBandwidth ? "gdrperf_bandwidth_bytes_per_second{" : "gdrperf_latency_min_seconds{";
    for (const std::string& line : lines_of(exported("prometheus", runs))) {
      if (line.starts_with(name)) series.push_back(line.substr(0, line.rfind(' ')));
    }
    EXPECT_EQ(series.size(), runs.size());
    EXPECT_EQ(distinct(series), runs.size());
  }
}

TEST(Fields, InfluxHasASeriesForEach) {
  for (const Metric metric : kMetrics) {
    const std::vector<RunRecord> runs = all_runs(metric);
    std::vector<std::string> series;
    for (const std::string& line : lines_of(exported("influx", runs))) {
      // Up to the first blank that no backslash stands before.
      std::size_t end = line.find(' ');
      while (line[end - 1] == '\\') end = line.find(' ', end + 1);
      series.push_back(line.substr(0, end));
      EXPECT_TRUE(line.starts_with("gdrperf,")) << line;
    }
    EXPECT_EQ(series.size(), runs.size());
    EXPECT_EQ(distinct(series), runs.size());
  }
}

TEST(Fields, NamesInOtherFormatsAreOneForEach) {
  for (const Metric metric : kMetrics) {
    const std::vector<RunRecord> runs = all_runs(metric);
    const std::vector<std::string> names = run_names(runs);
    EXPECT_EQ(distinct(names), runs.size());
    std::vector<std::string> found;
    const Json benchmarks = Json::parse(exported("google-benchmark", runs))["benchmarks"];
    for (const auto& each : benchmarks) {
      EXPECT_EQ(each["repetitions"], 1) << each["name"];
      found.push_back(each["name"]);
    }
    EXPECT_EQ(found, names);
    EXPECT_EQ(Json::parse(exported("bmf", runs)).size(), runs.size());
    const bool bandwidth = metric == Metric::kBandwidth;
    const char* custom = bandwidth ? "custom-bigger-is-better" : "custom-smaller-is-better";
    found.clear();
    const Json list = Json::parse(exported(custom, runs));
    for (const auto& each : list) found.push_back(each["name"]);
    EXPECT_EQ(found, names);
    found.clear();
    for (const std::string& line : lines_of(exported("jsonl", runs))) found.push_back(Json::parse(line)["name"]);
    EXPECT_EQ(found, names);
  }
}

TEST(Fields, ARunTwiceIsARepetition) {
  const std::vector<RunRecord> runs(2, base_run(Metric::kBandwidth));
  EXPECT_EQ(distinct(run_names(runs)), 1u);
}

TEST(RunName, SaysTestRelationMemoryNicAndSize) {
  RunRecord run = base_run(Metric::kBandwidth);
  run.path.pair = {};
  EXPECT_EQ(run_name(run), "write_bw/PIX/GPU0:mlx5_0/65536");
  run.server.buffer = "host";
  run.server.device = "mlx5_1";
  run.server.port = 2;
  EXPECT_EQ(run_name(run), "write_bw/PIX/GPU0:mlx5_0>host:mlx5_1.2/65536");
}

TEST(RunName, CallsGpusWhatTopologyCallsThem) {
  RunRecord run = base_run(Metric::kBandwidth);
  run.path.pair = "GPU3/mlx5_0";
  run.client.buffer = run.server.buffer = "cuda:0000:3b:00.0";
  EXPECT_EQ(run_name(run), "write_bw/PIX/GPU3:mlx5_0/65536");
  run.server.buffer = "cuda:1";  // another one: the pair says nothing of it
  EXPECT_EQ(run_name(run), "write_bw/PIX/GPU3:mlx5_0>GPU1:mlx5_0/65536");
  run.client.buffer = run.server.buffer = "simulated:GPU3";
  EXPECT_EQ(run_name(run), "write_bw/PIX/GPU3:mlx5_0/65536");
}

TEST(RunName, TellsApartWhatIsNotTheSameTest) {
  RunRecord run = base_run(Metric::kBandwidth);
  run.spec.direction = Direction::kBidirectional;
  run.spec.wait = Wait::kEvent;
  run.spec.path = Path::kStaged;
  run.spec.consume = true;
  run.path.host_node = "remote";
  run.device_kind = "simulated";
  run.spec.qps = 4;
  run.spec.rate_per_s = 1000;
  EXPECT_EQ(run_name(run),
            "write_bw/PIX/GPU0:mlx5_0/65536/bidirectional/qps:4/event/rate:1000/staged/consume/remote/simulated");
}

TEST(RunName, SaysAConditionWhereOnlyThatDiffers) {
  std::vector<RunRecord> runs(2, base_run(Metric::kBandwidth));
  runs[1].spec.tx_depth = 16;
  EXPECT_THAT(run_names(runs), testing::ElementsAre("write_bw/PIX/GPU0:mlx5_0/65536/tx_depth:128",
                                                    "write_bw/PIX/GPU0:mlx5_0/65536/tx_depth:16"));
}

}  // namespace
}  // namespace gdrperf::report
