// Recorded noise: which of it is used, and the file it is kept in.
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/compare/noise.h"

namespace gdrperf::compare {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

CellNoise recorded(const std::string& kernel, double spread, std::size_t sessions = 20) {
  return {
      {"read_lat/HOST/host:mlx5_0/8", {{"kernel", kernel}, {"firmware", "28.39"}}, Better::kLower}, sessions, spread};
}

TEST(NoiseTable, TheWidestOfWhatWasRecordedUnderTheseConditions) {
  NoiseTable table;
  for (const auto& [kernel, spread] : {std::pair("6.1", 0.01), std::pair("6.2", 0.03), std::pair("6.3", 0.02)}) {
    table.add(recorded(kernel, spread));
  }
  EXPECT_EQ(table.size(), 3u);
  const CellKey key = recorded("6.3", 0).key;
  ASSERT_NE(table.find(key, {}), nullptr);
  EXPECT_EQ(table.find(key, {})->spread, 0.02);
  EXPECT_EQ(table.find(key, {"kernel"})->spread, 0.03);
  EXPECT_EQ(table.find(recorded("6.4", 0).key, {}), nullptr);
  CellKey other = key;
  other.name = "write_lat/HOST/host:mlx5_0/8";
  EXPECT_EQ(table.find(other, {}), nullptr);
  // Recorded anew: it replaces what was there, and the first of equal ones is used.
  table.add(recorded("6.3", 0.03, 7));
  EXPECT_EQ(table.size(), 3u);
  EXPECT_EQ(table.find(key, {})->sessions, 7u);
  EXPECT_EQ(table.find(key, {"kernel"})->sessions, 20u);
}

TEST(NoiseTable, TheWholeFile) {
  NoiseTable table;
  table.add({{"write_bw/PIX/\u00e9/65536", {}, Better::kHigher}, 9, 0.0200000004});
  table.add(recorded("6.1", 0.0123456789, 9));
  // t(0.9995) = 5.04131 for 8 degrees; for three candidates sqrt(1/9 + 1/3) = 0.66667, so exp(0.041492) - 1 for latency
  // and 1 - exp(-0.067217) for bandwidth.
  const double shift = 5.041305433 * std::sqrt(1.0 / 9 + 1.0 / 3);
  EXPECT_NEAR(std::expm1(shift * 0.0123456789), 0.04236, 1e-5);
  EXPECT_NEAR(-std::expm1(-shift * 0.02), 0.06501, 1e-5);
  EXPECT_EQ(table.to_json(), fmt::format(R"json({{
 "schema": "gdrperf-noise/1",
 "cells": [
  {{
   "cell": "read_lat/HOST/host:mlx5_0/8",
   "sessions": 9,
   "spread_percent": 1.23457,
   "noise_percent": {:.5f},
   "conditions": {{
    "kernel": "6.1",
    "firmware": "28.39"
   }}
  }},
  {{
   "cell": "write_bw/PIX/é/65536",
   "sessions": 9,
   "spread_percent": 2.0,
   "noise_percent": {:.5f},
   "conditions": {{}}
  }}
 ]
}}
)json",
                                          100 * std::expm1(shift * 0.0123456789), -100 * std::expm1(-shift * 0.02)));
}

TEST(NoiseTable, WhatIsReadBackIsWhatWasWritten) {
  NoiseTable written, read;
  written.add(recorded("6.1", 0.015, 5));
  written.add({{"write_bw/PIX/GPU0:mlx5_0/65536", {{"kernel", "6.2"}}, Better::kHigher}, 9, 0.02});
  read.read(written.to_json(), "noise.json");
  EXPECT_EQ(read.to_json(), written.to_json());
  ASSERT_EQ(read.cells().size(), 2u);
  const CellNoise& latency = read.cells().at("read_lat/HOST/host:mlx5_0/8").at(0);
  EXPECT_EQ(latency.key.better, Better::kLower);
  EXPECT_EQ(latency.sessions, 5u);
  EXPECT_DOUBLE_EQ(latency.spread, 0.015);
  EXPECT_EQ(latency.key.conditions, recorded("6.1", 0).key.conditions);
  EXPECT_EQ(read.cells().at("write_bw/PIX/GPU0:mlx5_0/65536").at(0).key.better, Better::kHigher);
}

std::string refused(const std::string& text) {
  try {
    NoiseTable().read(text, "noise.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(NoiseTable, OnlyItsSchemaIsRead) {
  const std::string other = "noise.json: its schema is not 'gdrperf-noise/1'";
  for (const char* text : {"[]", "{}", "3", R"({"schema": "gdrperf-noise/2", "cells": []})", R"({"cells": []})"}) {
    EXPECT_EQ(refused(text), other) << text;
  }
  EXPECT_EQ(refused(R"({"schema": "gdrperf-noise/1", "cells": []})"), "");
  EXPECT_THAT(refused("{"), HasSubstr("noise.json: [json.exception.parse_error"));
}

TEST(NoiseTable, SpreadsAndSessionsWithinTheirBounds) {
  struct Case {
    int sessions;
    const char* percent;
    bool taken;
  };
  const Case kCases[] = {{4, "1", false},  {5, "1", true},      {20, "0", true},        {20, "-0.001", false},
                         {20, "-1", false}, {20, "10000", true}, {20, "10000.1", false}, {20, "10050", false}};
  for (const Case& each : kCases) {
    const std::string text = fmt::format(
        R"({{"schema": "gdrperf-noise/1", "cells": [
  {{"cell": "a", "conditions": {{}}, "sessions": {}, "spread_percent": {}}}]}})",
        each.sessions, each.percent);
    EXPECT_EQ(refused(text), each.taken ? "" : "noise.json: 'a' has no usable spread") << text;
  }
}

class NoiseFolder : public testing::Test {
 protected:
  std::string write(const std::string& name, const CellNoise& noise) const {
    NoiseTable table;
    table.add(noise);
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    write_file_atomic(folder_.path(name), table.to_json());
    return folder_.path(name);
  }

  TemporaryFolder folder_;
};

TEST_F(NoiseFolder, ItsOwnFileAndThoseOfItsFolders) {
  write("noise.json", recorded("6.1", 0.01));
  const std::string file = write("machine/noise.json", recorded("6.2", 0.02));
  write("other/deeper/noise.json", recorded("6.3", 0.03));
  write("other/else.json", recorded("6.4", 0.04));
  EXPECT_EQ(read_noise_at(folder_.path()).size(), 2u);
  EXPECT_EQ(read_noise_at(folder_.path("machine")).size(), 1u);
  EXPECT_EQ(read_noise_at(folder_.path("other")).size(), 1u);
  EXPECT_EQ(read_noise_at(folder_.path("absent")).size(), 0u);
  EXPECT_EQ(read_noise_at(file).size(), 0u);
}

TEST_F(NoiseFolder, AFileAbove64MiBIsRefused) {
  const std::string path = write("noise.json", recorded("6.1", 0.01));
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20) + 1);  // sparse
  try {
    read_noise_at(folder_.path());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), EndsWith(": larger than 67108864 bytes"));
  }
}

}  // namespace
}  // namespace gdrperf::compare
