#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../field_samples.h"
#include "gdrperf/report/fields.h"
#include "report/record/json_text.h"

namespace gdrperf::report {
namespace {

using field_samples::base_run;

std::string text_of_field(const char* name, const RunRecord& run) { return to_text(field(name).get(run)); }

struct FieldCase {
  const char* name;
  std::function<void(RunRecord&)> change;
  const char* text;
};

void expect_fields(Metric metric, const std::vector<FieldCase>& cases) {
  for (const FieldCase& each : cases) {
    RunRecord run = base_run(metric);
    each.change(run);
    EXPECT_EQ(text_of_field(each.name, run), each.text) << each.name;
  }
}

TEST(FieldValues, ZeroIsAValueAndBelowZeroIsNone) {
  expect_fields(Metric::kBandwidth, {{"client_cpu", [](RunRecord& run) { run.client.cpu = 0; }, "0"},
                                     {"client_cpu", [](RunRecord& run) { run.client.cpu = -1; }, ""},
                                     {"server_numa", [](RunRecord& run) { run.server.numa = 1; }, "1"},
                                     {"inline_bytes", [](RunRecord& run) { run.spec.inline_bytes = 0; }, "0"},
                                     {"inline_bytes", [](RunRecord& run) { run.spec.inline_bytes = -1; }, ""},
                                     {"inline_bytes", [](RunRecord& run) { run.spec.inline_bytes = 220; }, "220"}});
}

TEST(FieldValues, OfSomeZeroMeansNotKnown) {
  expect_fields(Metric::kBandwidth, {{"ceiling_gbps", [](RunRecord&) {}, ""},
                                     {"ceiling_gbps", [](RunRecord& run) { run.path.ceiling_gbps = 0.5; }, "0.5"},
                                     {"chunk_bytes", [](RunRecord&) {}, ""},
                                     {"chunk_bytes", [](RunRecord& run) { run.measured.chunk_bytes = 1; }, "1"}});
}

TEST(FieldValues, RatesAreWholeNumbersWhereTheyAre) {
  const auto value = [](double rate) {
    RunRecord run = base_run(Metric::kBandwidth);
    run.spec.rate_per_s = rate;
    return field("rate_per_s").get(run);
  };
  EXPECT_EQ(value(0), FieldValue());
  EXPECT_EQ(value(-2), FieldValue());
  EXPECT_EQ(value(0.5), FieldValue(0.5));
  EXPECT_EQ(value(1), FieldValue(std::uint64_t{1}));
  EXPECT_EQ(value(1.5), FieldValue(1.5));
  EXPECT_EQ(value(123'456'789), FieldValue(std::uint64_t{123'456'789})) << "more digits than a measured number has";
  EXPECT_EQ(value(1e17), FieldValue(std::uint64_t{100'000'000'000'000'000}));
  EXPECT_EQ(value(1e18), FieldValue(1e18));
  EXPECT_EQ(value(2.5e18), FieldValue(2.5e18));
}

TEST(FieldValues, FlagsSayYesWhereTheyAreSet) {
  expect_fields(Metric::kBandwidth, {{"srq", [](RunRecord& run) { run.spec.srq = true; }, "true"},
                                     {"srq", [](RunRecord&) {}, ""},
                                     {"verified", [](RunRecord& run) { run.spec.verify_seed = 0; }, "true"},
                                     {"verified", [](RunRecord&) {}, ""},
                                     {"placed_out_of_order", [](RunRecord& run) { run.client.ooo = true; }, "true"},
                                     {"placed_out_of_order", [](RunRecord& run) { run.server.ooo = true; }, ""}});
}

TEST(FieldValues, ThePathIsOfMemoryOnAGpu) {
  const auto of_buffers = [](const char* client, const char* server) {
    RunRecord run = base_run(Metric::kBandwidth);
    run.client.gpu.reset();
    run.server.gpu.reset();
    run.client.buffer = client;
    run.server.buffer = server;
    return text_of_field("path", run) + " " + text_of_field("consume", run);
  };
  EXPECT_EQ(of_buffers("host", "hugepage"), " ");
  for (const char* gpu : {"cuda:0", "cuda-vmm:1", "staged:0"}) {
    EXPECT_EQ(of_buffers(gpu, "host"), "direct false") << gpu;
    EXPECT_EQ(of_buffers("host", gpu), "direct false") << gpu;
  }
  EXPECT_EQ(of_buffers("cuda-host", "host"), " ") << "memory of the host";
}

void load(RunRecord& run) {
  UnderLoad& under = run.measured.under_load.emplace();
  under.idle.p50_ns = 1;
  under.idle.p99_ns = 0;
  under.carried_gbytes = 0.1;
}

TEST(FieldValues, LatencyUnderALoadIsComparedWithTheIdleOne) {
  expect_fields(
      Metric::kLatency,
      {{"idle_p50_ns", load, "1"},
       {"p50_ratio", load, "2"},
       {"p99_ratio", load, ""},
       {"p50_ratio", [](RunRecord&) {}, ""},
       {"p50_ratio", [](RunRecord& run) { load(run), run.measured.latency.reset(); }, ""},
       {"stream_carried_gbps", load, "0.8"},
       {"stream_offered_gbps", load, ""},
       {"stream_alone_gbps", [](RunRecord& run) { load(run), run.measured.under_load->alone_gbytes = 2; }, "16"}});
}

TEST(FieldValues, CpuTimePerGigabyteIsOfRates) {
  const auto busy = [](RunRecord& run) { run.spec.size_bytes = 1000, run.measured.client_cpu_per_message_ns = 250; };
  // A message of 1000 bytes takes 250 ns, a million of them take 250 ms.
  expect_fields(Metric::kBandwidth,
                {{"client_cpu_per_gigabyte_us", busy, "250000"}, {"server_cpu_per_gigabyte_us", busy, ""}});
  expect_fields(Metric::kLatency, {{"client_cpu_per_gigabyte_us", busy, ""}});
}

TEST(FieldTable, HasEverySettingThatIsRecordedAndNoneTwice) {
  for (const Setting& each : settings()) {
    const auto rows =
        std::count_if(fields().begin(), fields().end(), [&](const Field& row) { return row.setting == &each; });
    EXPECT_EQ(rows, each.recorded.identity == Identity::kNo ? 0 : 1) << each.member;
  }
}

TEST(FieldTable, LeavesOutWhatGoesWithoutSaying) {
  for (const Field& each : fields()) {
    if (each.setting == nullptr) continue;
    const bool omitted = each.setting->wire == Wire::kWhenSet && each.name != "verified";
    EXPECT_EQ(each.missing, omitted ? Missing::kOmitted : Missing::kNull) << each.name;
  }
  EXPECT_EQ(field("verified").setting->wire, Wire::kWhenSet);
}

TEST(RunNames, ConditionsHaveNoSlashesAndBlanks) {
  std::vector<RunRecord> runs(2, base_run(Metric::kBandwidth));
  runs[1].client.gid_type = "an IB/a";
  EXPECT_THAT(run_names(runs), testing::ElementsAre(testing::EndsWith("/client_gid_type:RoCE-v2-IPv4"),
                                                    testing::EndsWith("/client_gid_type:an-IB-a")));
  runs[1].client.gid_type = "";
  EXPECT_THAT(run_names(runs)[1], testing::EndsWith("/client_gid_type:-"));
}

TEST(SeriesName, SaysWhatASweepMeasuresOneAfterAnother) {
  RunRecord run = base_run(Metric::kBandwidth);
  EXPECT_EQ(series_name(run), "write_bw");
  run.spec.ordering = Ordering::kRelaxed;
  EXPECT_EQ(series_name(run), "write_bw, relaxed ordering");
  run.spec.ordering = Ordering::kStrict;
  EXPECT_EQ(series_name(run), "write_bw, strict ordering");
  run.spec.ordering = Ordering::kAuto;
  run.spec.path = Path::kStaged;
  run.spec.initiator = Initiator::kGpuProxy;
  EXPECT_EQ(series_name(run), "write_bw/staged, gpu-proxy");
}

TEST(JsonText, ListsOfPlainValuesTakeOneLine) {
  const Json value =
      Json::parse(R"({"a": [1, 2.5, "é", null, true], "b": [], "c": {}, "d": [[1], {"e": {"f": -1}}, 2]})");
  EXPECT_EQ(pretty(value, 0), R"({
  "a": [1, 2.5, "é", null, true],
  "b": [],
  "c": {},
  "d": [
    [1],
    {
      "e": {
        "f": -1
      }
    },
    2
  ]
})");
  EXPECT_EQ(pretty(Json::parse(R"([{"a": 1}])"), 4), "[\n      {\n        \"a\": 1\n      }\n    ]");
  EXPECT_EQ(one_line(Json("a\xff\n")), "\"a\xef\xbf\xbd\\n\"");
}

TEST(JsonText, NumbersHaveSevenDigits) {
  EXPECT_EQ(one_line(number(1.0 / 3)), "0.3333333");
  EXPECT_EQ(one_line(number(123456789)), "123456800.0");
  EXPECT_EQ(one_line(number(-0.5)), "-0.5");
  EXPECT_EQ(one_line(number(std::nan(""))), "null");
  EXPECT_EQ(one_line(number(HUGE_VAL)), "null");
}

}  // namespace
}  // namespace gdrperf::report
