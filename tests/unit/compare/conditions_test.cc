// What a session's cells stand under, and what its machine is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"
#include "gdrperf/base/error.h"
#include "gdrperf/compare/session.h"

namespace gdrperf::compare {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

/// A document of one run with these ends, under these hosts.
struct Ends {
  std::string client = R"("device": "mlx5_0", "kind": "hardware", "buffer": "cuda:0")";
  std::string server = R"("device": "mlx5_1", "kind": "hardware", "buffer": "host")";
  std::string client_host = R"("hostname": "left")";
  std::string server_host = R"("hostname": "right")";
  std::string run = R"("bw": {"median_gbps": 98})";
};

Session session_of(const Ends& ends) {
  return parse_session(fmt::format(R"({{"schema": "gdrperf-results/1", "hosts": {{"client": {{{}}}, "server": {{{}}}}},
 "topology": {{"gpus": [{{"name": "GPU0", "model": "H200"}}, {{"name": "GPU12", "model": "B300"}}],
  "nics": [{{"name": "mlx5_0", "firmware": "28.39", "driver": "mlx5_core"}},
   {{"name": "mlx5_1", "firmware": "1", "driver": "one"}}]}},
 "relations": {{"PIX": {{"write_bw": [{{"op": "write_bw", "size_bytes": 64,
  "client": {{{}}}, "server": {{{}}}, {}}}]}}}}}})",
                                   ends.client_host, ends.server_host, ends.client, ends.server, ends.run),
                       "x.json");
}

std::string condition_of(const Ends& ends, const std::string& name) {
  const Session session = session_of(ends);
  for (const Condition& each : session.cells.at(0).key.conditions) {
    if (each.name == name) return each.value.raw();
  }
  return "(none)";
}

TEST(Conditions, FactsOfBothHosts) {
  Ends ends;
  ends.client_host =
      R"("hostname": "left", "kernel": "6.1", "cpu_model": "EPYC", "cpus_allowed": 64, "governor": "performance",
    "clock_source": "tsc", "gpu_driver": "580", "other": {"kernel": "deeper"})";
  ends.server_host =
      R"("hostname": "right", "kernel": "6.2", "cpu_model": "Xeon", "cpus_allowed": 32, "governor": "powersave",
    "clock_source": "hpet", "gpu_driver": "590")";
  ends.run += R"(, "kernel": "no", "cpu": "no")";
  const std::pair<const char*, const char*> kTold[] = {{"host", "left / right"},
                                                       {"kernel", "6.1 / 6.2"},
                                                       {"cpu", "EPYC / Xeon"},
                                                       {"cpus", "64 / 32"},
                                                       {"governor", "performance / powersave"},
                                                       {"clock_source", "tsc / hpet"},
                                                       {"gpu_driver", "580"}};
  for (const auto& [name, value] : kTold) EXPECT_EQ(condition_of(ends, name), value) << name;
  ends.server = R"("device": "mlx5_1", "kind": "hardware", "buffer": "cuda:12")";
  EXPECT_EQ(condition_of(ends, "gpu_driver"), "580 / 590");
  // Told once where both are alike, or where the server does not say.
  ends.server_host = R"("hostname": "left", "kernel": null, "cpu_model": "")";
  EXPECT_EQ(condition_of(ends, "host"), "left");
  EXPECT_EQ(condition_of(ends, "kernel"), "6.1");
  ends.client_host = R"("hostname": "left", "kernel": null)";
  EXPECT_EQ(condition_of(ends, "kernel"), "-");
  EXPECT_EQ(condition_of(ends, "governor"), "-");
}

TEST(Conditions, FactsOfTheNicByTheRunElseByTheClientsList) {
  Ends ends;
  EXPECT_EQ(condition_of(ends, "firmware"), "28.39");
  EXPECT_EQ(condition_of(ends, "driver"), "mlx5_core");
  ends.client = R"("device": "mlx5_0", "firmware": "28.41", "buffer": "host")";
  EXPECT_EQ(condition_of(ends, "firmware"), "28.41");
  EXPECT_EQ(condition_of(ends, "driver"), "mlx5_core");
  // The list is the client's: its mlx5_1 is none of the server's.
  ends.server = R"("device": "mlx5_1", "firmware": "28.42", "buffer": "host")";
  EXPECT_EQ(condition_of(ends, "firmware"), "28.41 / 28.42");
  ends.client = R"("device": "mlx5_9", "buffer": "host")";
  EXPECT_EQ(condition_of(ends, "driver"), "-");
}

TEST(Conditions, ModelsOfTheGpusThatTakePart) {
  const auto gpu = [](const std::string& client, const std::string& server) {
    Ends ends;
    ends.client = fmt::format(R"("device": "mlx5_0", "buffer": "{}")", client);
    ends.server = fmt::format(R"("device": "mlx5_0", "buffer": "{}")", server);
    return condition_of(ends, "gpu");
  };
  EXPECT_EQ(gpu("cuda:0", "host"), "H200");
  EXPECT_EQ(gpu("cuda:12", "cuda:12"), "B300");
  EXPECT_EQ(gpu("cuda:0", "cuda-vmm:12"), "H200 / B300");
  EXPECT_EQ(gpu("cuda:1", "host"), "-");
  EXPECT_EQ(gpu("cuda", "host"), "-");
  EXPECT_EQ(gpu("host:0", "host:0"), "-");
  EXPECT_EQ(gpu("host", "host"), "-");
}

TEST(Conditions, ImportedResultsAreMarkedByAnyOfTheirRuns) {
  Ends ends;
  EXPECT_FALSE(session_of(ends).imported);
  ends.run = R"("device_kind": "imported", "bw": {"median_gbps": 98})";
  EXPECT_TRUE(session_of(ends).imported);
  ends.run += R"(}, {"op": "write_bw", "size_bytes": 8, "device_kind": "hardware", "bw": {"median_gbps": 98})";
  EXPECT_TRUE(session_of(ends).imported);
}

TEST(Conditions, OnlyADocumentThatSaysSoIsPartial) {
  const auto partial = [](const std::string& head) {
    return parse_session(R"({"schema": "gdrperf-results/1", )" + head + R"("relations": {}})", "x.json").partial;
  };
  EXPECT_FALSE(partial(""));
  EXPECT_FALSE(partial(R"("simulated": true, )"));
  EXPECT_FALSE(partial(R"("partial": false, "simulated": true, )"));
  EXPECT_TRUE(partial(R"("partial": true, "simulated": false, )"));
}

TEST(Figures, AnyPositiveNumberAndNothingElse) {
  const auto cells = [](const std::string& figure) {
    Ends ends;
    ends.run = fmt::format(R"("bw": {{"median_gbps": {}}})", figure);
    return session_of(ends).cells.size();
  };
  EXPECT_EQ(cells("0.25"), 1u);
  for (const char* figure : {"0", "-1", "null"}) EXPECT_EQ(cells(figure), 0u) << figure;
  EXPECT_THROW(cells("true"), Error);
  EXPECT_THROW(cells("\"98\""), Error);
}

TEST(Figures, TestAndSizeAreRequired) {
  const auto refusal = [](const std::string& members) -> std::string {
    try {
      parse_session(
          fmt::format(R"({{"schema": "gdrperf-results/1", "relations": {{"PIX": {{"a": [{{{}}}]}}}}}})", members),
          "x.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string place = "x.json: relations.PIX, run 1: ";
  EXPECT_EQ(refusal(R"("size_bytes": 8)"), place + "op is no text");
  EXPECT_EQ(refusal(R"("op": 5, "size_bytes": 8)"), place + "op is no text");
  EXPECT_EQ(refusal(R"("op": "", "size_bytes": 8)"), place + "op is no text");
  EXPECT_EQ(refusal(R"("op": "write_bw")"), place + "size_bytes is no number");
  EXPECT_EQ(refusal(R"("op": "write_bw", "size_bytes": "8")"), place + "size_bytes is no number");
  EXPECT_EQ(refusal(R"("op": "write", "size_bytes": 8)"), place + "op 'write' is no test");
  EXPECT_EQ(refusal(R"("op": "write_lat", "size_bytes": 8)"), "");
}

TEST(Machine, ReadableAndSafeAsAFolder) {
  const auto machine = [](const std::string& host, const std::string& server = "null") {
    Ends ends;
    ends.client_host = fmt::format(R"("hostname": "{}")", host);
    ends.server_host = fmt::format(R"("hostname": {})", server);
    ends.client = R"("device": "mlx5_0", "buffer": "host")";
    ends.run = R"("device_kind": "hardware", "bw": {"median_gbps": 98})";
    const std::string name = session_of(ends).machine;
    EXPECT_THAT(name.substr(name.size() - 9), MatchesRegex("-[0-9a-f]+"));
    return name.substr(0, name.size() - 9);
  };
  const std::string nic = "_mlx5_0_hardware_28.39";
  EXPECT_EQ(machine("left"), "left" + nic);
  EXPECT_EQ(machine("left", R"("right")"), "left-right" + nic);
  EXPECT_EQ(machine("a / b"), "a-b" + nic);
  EXPECT_EQ(machine("/etc"), "etc" + nic);
  EXPECT_EQ(machine(".hidden"), "_.hidden" + nic);
  EXPECT_EQ(machine(std::string(100, 'x')), std::string(80, 'x'));
}

}  // namespace
}  // namespace gdrperf::compare
