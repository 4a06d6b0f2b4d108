#include "gdrperf/compare/session.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "samples.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"

namespace gdrperf::compare {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_session(text, "x.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 200);
  return {};
}

std::string condition(const CellKey& key, const std::string& name) {
  for (const Condition& each : key.conditions) {
    if (each.name == name) return each.value.raw();
  }
  return "(none)";
}

TEST(Session, CellsWithTheirNamesAndFigures) {
  MadeDocument document;
  document.runs = {{"HOST", "write_bw", "65536", "98.5", "host", ""},
                   {"PIX", "read_lat", "8", "2100", "cuda:0", "\"x\": {\"bw\": {}},"}};
  const Session session = parse_session(text_of(document), "x.json");
  EXPECT_EQ(session.started, "2025-01-31T12:00:00Z");
  EXPECT_EQ(session.tool, "0.1.0 (abc)");
  ASSERT_EQ(session.cells.size(), 2u);
  const CellValue& latency = session.cells[0];
  EXPECT_EQ(latency.key.name, "read_lat/PIX/GPU0:mlx5_0/8");
  EXPECT_EQ(latency.value, 2100);
  EXPECT_EQ(latency.key.better, Better::kLower);
  EXPECT_EQ(condition(latency.key, "gpu"), "H");
  EXPECT_EQ(condition(latency.key, "gpu_driver"), "580");
  const CellValue& bandwidth = session.cells[1];
  EXPECT_EQ(bandwidth.key.name, "write_bw/HOST/host:mlx5_0/65536");
  EXPECT_EQ(bandwidth.value, 98.5);
  EXPECT_EQ(bandwidth.key.better, Better::kHigher);
  EXPECT_EQ(condition(bandwidth.key, "firmware"), "28.39");
  EXPECT_EQ(condition(bandwidth.key, "driver"), "mlx5_core");
  EXPECT_EQ(condition(bandwidth.key, "kernel"), "Linux 6.1.0");
  EXPECT_EQ(condition(bandwidth.key, "tx_depth"), "128");
  EXPECT_EQ(condition(bandwidth.key, "mtu_bytes"), "-");
  EXPECT_EQ(condition(bandwidth.key, "gpu"), "-");
  EXPECT_EQ(condition(bandwidth.key, "gpu_driver"), "-");
}

TEST(Session, WhatMakesAnotherCell) {
  const auto name = [](const std::string& more) {
    MadeDocument document;
    document.runs[0].more = more;
    std::string text = text_of(document);
    // The member in front wins over the later one only when that is renamed.
    for (const char* key : {"direction", "wait", "qps"}) {
      if (more.find(key) == std::string::npos) continue;
      text.replace(text.rfind("\"" + std::string(key) + "\""), std::string(key).size() + 2,
                   "\"was_" + std::string(key) + "\"");
    }
    return parse_session(text, "x").cells.at(0).key.name;
  };
  EXPECT_EQ(name("\"qps\": 4,"), "write_bw/HOST/host:mlx5_0/65536/qps:4");
  EXPECT_EQ(name("\"direction\": \"bidirectional\","), "write_bw/HOST/host:mlx5_0/65536/bidirectional");
  EXPECT_EQ(name("\"wait\": \"event\","), "write_bw/HOST/host:mlx5_0/65536/event");
}

TEST(Session, RunsOfOneCellAreOneValue) {
  const std::string run = text_of(MadeRun{});
  std::string text = text_of(MadeDocument{});
  std::string more;
  for (const char* figure : {"90", "null", "110", "105"}) {
    MadeRun each;
    each.figure = figure;
    more += text_of(each) + ", ";
  }
  text.insert(text.find(run), more);
  const Session session = parse_session(text, "x");
  ASSERT_EQ(session.cells.size(), 1u);
  EXPECT_EQ(session.cells[0].value, 102.5);  // 90 100 105 110
  EXPECT_TRUE(session.unusable.empty());
}

TEST(Session, FiguresThatAreNoneAreCounted) {
  for (const char* figure : {"null", "0", "-3"}) {
    MadeDocument document;
    document.runs[0].figure = figure;
    const Session session = parse_session(text_of(document), "x");
    EXPECT_TRUE(session.cells.empty());
    ASSERT_EQ(session.unusable.size(), 1u);
    EXPECT_EQ(session.unusable[0], "write_bw/HOST/host:mlx5_0/65536");
  }
}

TEST(Session, OtherSchemasAreNamed) {
  MadeDocument document;
  document.schema = "gdrperf-results/2";
  const std::string what = refusal(text_of(document));
  EXPECT_THAT(what, HasSubstr("x.json"));
  EXPECT_THAT(what, HasSubstr("gdrperf-results/2"));
  EXPECT_THAT(what, HasSubstr("gdrperf-results/1"));
  EXPECT_THAT(refusal("{\"schema\": 3}"), HasSubstr("schema"));
  EXPECT_THAT(refusal("{\"context\": {}}"), HasSubstr("schema"));
}

TEST(Session, WhatIsNoDocument) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal(" \n"), HasSubstr("empty"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("list"));
  EXPECT_THAT(refusal("3"), HasSubstr("single value"));
  EXPECT_THAT(refusal("\x7f" "ELF"), HasSubstr("not JSON at byte 1"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("list"));
  EXPECT_THAT(refusal("{\"a\":" + std::string(100'000, '[')), HasSubstr("levels deep"));
  EXPECT_THAT(refusal("{\"relations\": {\"HOST\": [{}]}}"), HasSubstr("relations.HOST"));
  EXPECT_THAT(refusal("{\"relations\": {\"HOST\": {\"write_bw\": {}}}}"), HasSubstr("relations.HOST"));
  EXPECT_THAT(refusal("{\"relations\": {\"HOST\": 7}}"), HasSubstr("relations.HOST is not built as one"));
  EXPECT_THAT(refusal("{\"relations\": {\"HOST\": {\"write_bw\": [7]}}}"),
              HasSubstr("relations.HOST is not built as one"));
  EXPECT_THAT(refusal("{\"relations\": 7}"), HasSubstr("relations is not built as one"));
  EXPECT_THAT(refusal("{\"relations\": []}"), HasSubstr("relations is not built as one"));
}

TEST(Session, CutOffAnywhereIsRefused) {
  const std::string whole = text_of(MadeDocument{});
  for (std::size_t length = 1; length < whole.size(); length += 7) {
    EXPECT_THAT(refusal(whole.substr(0, length)), HasSubstr("ends in the middle")) << length;
  }
}

TEST(Session, NotANumberIsNamed) {
  MadeDocument document;
  document.runs[0].figure = "NaN";
  EXPECT_THAT(refusal(text_of(document)), HasSubstr("NaN"));
}

TEST(Session, WrongTypesNameThePlace) {
  MadeDocument document;
  document.runs[0].figure = "\"fast\"";
  EXPECT_THAT(refusal(text_of(document)), HasSubstr("relations.HOST, run 1: bw.median_gbps is no number"));
  document = {};
  document.runs[0].size = "null";
  EXPECT_THAT(refusal(text_of(document)), HasSubstr("size_bytes is no number"));
  document = {};
  document.runs[0].op = "write";
  EXPECT_THAT(refusal(text_of(document)), HasSubstr("'write' is no test"));
}

TEST(Session, TheMachineIsAFolderName) {
  MadeDocument document;
  const std::string machine = parse_session(text_of(document), "x").machine;
  EXPECT_THAT(machine, testing::MatchesRegex("left_mlx5_0_hardware_28.39-[0-9a-f]+"));
  document.firmware = "28.40";
  EXPECT_NE(parse_session(text_of(document), "x").machine, machine);
  document.firmware = "../../../etc";
  document.host = "../x";
  EXPECT_EQ(parse_session(text_of(document), "x").machine.find('/'), std::string::npos);
}

TEST(Session, LargeFilesAreRefusedWithoutReadingThem) {
  const std::string path = testing::TempDir() + "/large-" + std::to_string(::getpid()) + ".json";
  write_file_atomic(path, "{}");
  std::filesystem::resize_file(path, 500'000'000);  // sparse
  try {
    read_session(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("500 MB"));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gdrperf::compare
