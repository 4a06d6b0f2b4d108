#include "gdrperf/report/document.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../temporary_folder.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/base/version.h"
#include "gdrperf/export/csv.h"
#include "gdrperf/report/scenario_document.h"

namespace gdrperf::report {
namespace {

using testing::HasSubstr;

RunRecord bandwidth_record() {
  RunRecord record;
  record.device_kind = "software";
  record.measured.bandwidth = Bandwidth{};
  return record;
}

Document document() { return Document(this_tool({"gdrperf"}), "2025-01-31T12:00:00Z"); }

TEST(Rfc3339, IsUtc) {
  using std::chrono::system_clock;
  EXPECT_EQ(rfc3339_utc(system_clock::time_point{}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339_utc(system_clock::from_time_t(1'709'210'096)), "2024-02-29T12:34:56Z");
}

TEST(Tool, IsThisBuild) {
  const Tool tool = this_tool({"gdrperf", "sweep"});
  EXPECT_EQ(tool.version, tool_version());
  EXPECT_EQ(tool.git, tool_git());
  EXPECT_EQ(tool.argv.size(), 2u);
}

TEST(Document, GigabytesBecomeGigabits) {
  RunRecord record = bandwidth_record();
  record.measured.bandwidth->median_gbytes = 12.5;
  Document out = document();
  out.add(record);
  EXPECT_EQ(out.runs(), 1u);
  EXPECT_THAT(out.to_json(), HasSubstr("\"median_gbps\": 100.0,"));
}

TEST(Document, RefusesARelationThatDoesNotExist) {
  RunRecord record = bandwidth_record();
  record.relation = "NVL";
  EXPECT_THROW(document().add(record), Error);
}

TEST(Document, ReplacesTheFileAndSaysWhyItCannot) {
  const TemporaryFolder folder;
  const std::string path = folder.path("out.json");
  Document out = document();
  out.write(path);
  out.add(bandwidth_record());
  out.write(path);
  EXPECT_EQ(read_file(path, 1 << 20), out.to_json());
  std::filesystem::remove_all(folder.path());
  try {
    out.write(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST(Document, FullStandardOutputIsAnError) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) GTEST_SKIP() << "no /dev/full";
  std::fflush(stdout);
  const UniqueFd saved(::dup(STDOUT_FILENO));
  ::dup2(full.get(), STDOUT_FILENO);
  std::string message;
  try {
    document().write("-");
  } catch (const Error& error) {
    message = error.what();
  }
  ::dup2(saved.get(), STDOUT_FILENO);
  std::clearerr(stdout);
  EXPECT_THAT(message, HasSubstr("standard output: No space left"));
}

/// Document of one run, as a test of a scenario writes it.
std::string scenario_part(const std::string& relation, gdrperf::Test test, const std::string& host,
                          const char* kind = "software") {
  RunRecord record = bandwidth_record();
  record.spec.test = test;
  record.relation = relation;
  record.device_kind = kind;
  Document part(Tool{"1", "a", {"gdrperf"}}, "2025-01-31T12:00:00Z");
  part.add(record);
  Environment environment;
  environment.hostname = host;
  if (!host.empty()) part.set_client(environment);
  part.add_warning("slow");
  return part.to_json();
}

TEST(ScenarioDocument, IsTheDocumentsOfItsTestsAsOne) {
  ScenarioDocument scenario(Tool{"2", "b", {"gdrperf", "scenario"}}, "a.ini", "[first]",
                            {"first", "second", "third", "fourth"});
  EXPECT_FALSE(scenario.any());
  const gdrperf::Test read = {Operation::kRead, Metric::kBandwidth}, write = {Operation::kWrite, Metric::kBandwidth};
  scenario.add({"first", 1, {"read_bw"}, 0}, scenario_part("HOST", read, "", "simulated"));
  EXPECT_TRUE(scenario.any());
  scenario.add({"second", 5, {"write_bw", "-s", "64"}, 3}, "");
  scenario.add({"third", 9, {"write_bw"}, 0}, scenario_part("PIX", write, "left"));
  const auto json = nlohmann::ordered_json::parse(scenario.to_json());
  EXPECT_EQ(scenario.to_json().substr(0, 40), "{\n  \"schema\": \"gdrperf-results/1\",\n  \"to");
  EXPECT_EQ(json.at("tool").dump(), R"({"version":"2","git":"b","argv":["gdrperf","scenario"]})");
  EXPECT_EQ(json.at("scenario").dump(),
            R"({"file":"a.ini","text":"[first]","tests":[)"
            R"({"name":"first","line":1,"argv":["read_bw"],"exit_code":0,"runs":{"HOST":{"read_bw":[0]}}},)"
            R"({"name":"second","line":5,"argv":["write_bw","-s","64"],"exit_code":3,"runs":{}},)"
            R"({"name":"third","line":9,"argv":["write_bw"],"exit_code":0,"runs":{"PIX":{"write_bw":[0]}}}]})");
  EXPECT_EQ(json.at("simulated"), true) << "one of them is";
  EXPECT_EQ(json.at("hosts").at("client").at("hostname"), "left") << "of the first that has it";
  EXPECT_EQ(json.at("relations").size(), 2u);
  EXPECT_EQ(json.at("relations").begin().key(), "PIX") << "the nearest first";
  EXPECT_EQ(json.at("partial"), true);
  EXPECT_EQ(json.at("missing").dump(), R"(["second","fourth"])");
  EXPECT_EQ(json.at("warnings").dump(), R"(["first: slow","third: slow"])");
}

TEST(ScenarioDocument, WholeIsNotPartial) {
  ScenarioDocument scenario(Tool{"2", "b", {}}, "a.ini", "", {"first", "second"});
  const gdrperf::Test write = {Operation::kWrite, Metric::kBandwidth};
  scenario.add({"first", 1, {}, 0}, scenario_part("HOST", write, "left"));
  scenario.add({"second", 2, {}, 0}, scenario_part("HOST", write, "right"));
  const auto json = nlohmann::json::parse(scenario.to_json());
  EXPECT_EQ(json.at("simulated"), false);
  EXPECT_EQ(json.at("hosts").at("client").at("hostname"), "left");
  EXPECT_EQ(json.at("scenario").at("tests")[1].at("runs").dump(), R"({"HOST":{"write_bw":[1]}})");
  EXPECT_EQ(json.at("relations").at("HOST").at("write_bw").size(), 2u);
  EXPECT_FALSE(json.contains("partial") || json.contains("missing") || json.contains("paths"));
}

TEST(ScenarioDocument, RefusesWhatIsNoDocument) {
  ScenarioDocument scenario(Tool{"2", "b", {}}, "a.ini", "", {"first"});
  for (const char* text : {"{", "[]", "{}", R"({"schema": "gdrperf-results/2"})"}) {
    try {
      scenario.add({"first", 1, {}, 0}, text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "[first]: wrote no document of schema gdrperf-results/1");
    }
  }
}

TEST(Csv, QuotesAndLeavesOutWhatIsNotKnown) {
  RunRecord record = bandwidth_record();
  record.client.device = "a,\"b\"";
  const std::string header = csv_header();
  const std::string line = csv_line(record);
  EXPECT_THAT(line, HasSubstr("\"a,\"\"b\"\"\""));
  record.client.device = "plain";
  const std::string plain = csv_line(record);
  EXPECT_EQ(std::count(header.begin(), header.end(), ','),
            std::count(plain.begin(), plain.end(), ','));
  EXPECT_EQ(header.back(), '\n');
  EXPECT_EQ(plain.back(), '\n');
}

TEST(Csv, TextIsNoFormula) {
  EXPECT_EQ(csv_cell("=HYPERLINK(\"http://x\",A1)"), "\"'=HYPERLINK(\"\"http://x\"\",A1)\"");
  EXPECT_EQ(csv_cell("+1"), "'+1");
  EXPECT_EQ(csv_cell("-1"), "'-1");
  EXPECT_EQ(csv_cell("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_cell("\t=1"), "\"'\t=1\"");
  EXPECT_EQ(csv_cell("\r\n=1"), "\"'\r\n=1\"");
  EXPECT_EQ(csv_cell("mlx5_0=1"), "mlx5_0=1");
  EXPECT_EQ(csv_cell(""), "");

  RunRecord record = bandwidth_record();
  record.client.device = "=cmd|'/c calc'!A1";
  record.warnings = {"-1+1"};
  record.measured.parts = {};
  record.measured.client_cpu_per_message_ns = -1;  // a number, whatever its sign
  const std::string line = csv_line(record);
  EXPECT_THAT(line, HasSubstr(",'=cmd|'/c calc'!A1,"));
  EXPECT_THAT(line, HasSubstr("'-1+1"));
  EXPECT_THAT(line, Not(HasSubstr(",=")));
  EXPECT_THAT(line, HasSubstr(",-"));
}

}  // namespace
}  // namespace gdrperf::report
