#include "gdrperf/report/record.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "report/record/record_json.h"

namespace gdrperf::report {
namespace {

TEST(StopReason, NamesAreThoseOfTheSchema) {
  EXPECT_EQ(to_string(StopReason::kPrecision), "precision");
  EXPECT_EQ(to_string(StopReason::kIterations), "iterations");
  EXPECT_EQ(to_string(StopReason::kDuration), "duration");
  EXPECT_EQ(to_string(StopReason::kSignal), "signal");
  EXPECT_EQ(to_string(StopReason::kCap), "cap");
}

TEST(SamplesBeyond, CountsWhatLiesAboveTheRank) {
  EXPECT_EQ(samples_beyond(50, 0), 0u);
  EXPECT_EQ(samples_beyond(50, 1), 0u);
  EXPECT_EQ(samples_beyond(50, 2), 1u);
  EXPECT_EQ(samples_beyond(99, 1000), 10u);
  EXPECT_EQ(samples_beyond(99.9, 1000), 1u);
  EXPECT_EQ(samples_beyond(99.99, 1000), 0u);
  EXPECT_EQ(samples_beyond(99.99, 100'000), 10u);
  EXPECT_EQ(samples_beyond(99.9, 1'000'000'000), 1'000'000u);
  EXPECT_EQ(samples_beyond(100, 5), 0u);
}

TEST(SamplesBeyond, IsWhatCountingOneByOneGives) {
  // A percentile is the least value with at least that share of the samples at or below it, in whole ten thousandths.
  for (const std::uint64_t share : {5000u, 9000u, 9900u, 9990u, 9999u, 10000u}) {
    for (std::uint64_t samples = 0; samples <= 2100; ++samples) {
      std::uint64_t rank = 0;
      while (rank * 10000 < share * samples) ++rank;
      ASSERT_EQ(samples_beyond(static_cast<double>(share) / 100, samples), samples - rank) << share << " " << samples;
    }
  }
}

RunLevel level_of(double value, double lasts_s) {
  return {.value = value, .from_s = 0, .seconds = lasts_s, .share = 0};
}

TEST(Levels, AreNamedOneByOneUpToFour) {
  std::vector<RunLevel> levels;
  EXPECT_EQ(levels_text(levels, false), "");
  levels.push_back(level_of(0.02, 1.4));
  EXPECT_EQ(levels_text(levels, false), "");
  levels.push_back(level_of(0.01, 2));
  EXPECT_EQ(levels_text(levels, false), "two levels: 20 MB/s for 1.4 s, then 10 MB/s for 2 s");
  levels.push_back(level_of(12.5, 0.25));
  EXPECT_EQ(levels_text(levels, false),
            "three levels: 20 MB/s for 1.4 s, then 10 MB/s for 2 s, then 12.5 GB/s for 250 ms");
  levels.push_back(level_of(3, 1));
  EXPECT_EQ(levels_text(levels, false),
            "four levels: 20 MB/s for 1.4 s, then 10 MB/s for 2 s, then 12.5 GB/s for 250 ms, then 3 GB/s for 1 s");
  levels.push_back(level_of(2, 1));
  EXPECT_EQ(levels_text(levels, false), "five levels between 10 MB/s and 12.5 GB/s");
}

TEST(Levels, OfLatenciesAreTimes) {
  EXPECT_EQ(levels_text({level_of(1500, 0.5), level_of(2.5e6, 0.001)}, true),
            "two levels: 1.5 us for 500 ms, then 2.5 ms for 1 ms");
}

TEST(Levels, AreCountedInWordsUpToEight) {
  const char* kCounts[] = {"five", "six", "seven", "eight", "9", "10"};
  std::vector<RunLevel> levels(4, level_of(5, 1));
  for (const char* count : kCounts) {
    levels.push_back(level_of(static_cast<double>(levels.size() * 10), 1));
    EXPECT_EQ(levels_text(levels, true),
              std::string(count) + " levels between 5 ns and " + std::to_string(levels.size() * 10 - 10) + " ns");
  }
}

RunRecord datagrams(double gbytes) {
  RunRecord record;
  record.measured.bandwidth = Bandwidth{};
  record.measured.bandwidth->median_gbytes = gbytes;
  return record;
}

TEST(Delivery, WhatDidNotArriveIsLostAndWarnedOf) {
  Measurement measured = datagrams(10).measured;
  note_delivery(measured, 8000, 7999);
  EXPECT_EQ(measured.delivery->sent, 8000u);
  EXPECT_EQ(measured.delivery->lost, 1u);
  ASSERT_EQ(measured.warnings.size(), 1u);
  EXPECT_EQ(measured.warnings[0],
            "1 of 8000 messages (0.0125 %) were lost: 9.999 GB/s arrived of 10 GB/s sent; a lower -t or more "
            "receives (-r) lose fewer");
  measured = datagrams(10).measured;
  note_delivery(measured, 3000, 2000);
  EXPECT_EQ(measured.warnings.at(0),
            "1000 of 3000 messages (33.3 %) were lost: 6.667 GB/s arrived of 10 GB/s sent; a lower -t or more "
            "receives (-r) lose fewer");
}

TEST(Delivery, NothingIsLostWhereAllArrived) {
  for (const std::uint64_t arrived : {5u, 6u}) {  // a message of another sender may arrive, too
    Measurement measured = datagrams(1).measured;
    note_delivery(measured, 5, arrived);
    EXPECT_EQ(measured.delivery->sent, 5u);
    EXPECT_EQ(measured.delivery->lost, 0u);
    EXPECT_TRUE(measured.warnings.empty());
  }
}

TEST(Delivery, GoodputIsTheRateLessWhatWasLost) {
  Measurement measured = datagrams(8).measured;
  EXPECT_EQ(goodput_gbytes(measured), 8);
  measured.delivery = Delivery{4, 1};
  EXPECT_EQ(goodput_gbytes(measured), 6);
  measured.delivery = Delivery{0, 0};
  EXPECT_EQ(goodput_gbytes(measured), 8);
  measured.bandwidth.reset();
  EXPECT_TRUE(std::isnan(goodput_gbytes(measured)));
}

TEST(Efficiency, IsGoodputOverTheMaximum) {
  RunRecord record = datagrams(0.05);
  EXPECT_FALSE(efficiency(record));
  record.path.ceiling_gbps = 0.8;
  EXPECT_DOUBLE_EQ(efficiency(record).value(), 0.5);
  record.measured.delivery = Delivery{4, 1};
  EXPECT_DOUBLE_EQ(efficiency(record).value(), 0.375);
  record.measured.bandwidth.reset();
  EXPECT_FALSE(efficiency(record));
}

std::string json_of(const RunRecord& record, const char* key) {
  const Json json = record_json(record);
  return json.contains(key) ? one_line(json.at(key)) : "none";
}

std::string keys_of(const Json& json) {
  std::string keys;
  for (const auto& [key, value] : json.items()) keys += (keys.empty() ? "" : " ") + key;
  return keys;
}

TEST(RecordJson, AnEndInGpuMemory) {
  RunRecord record = datagrams(1);
  EXPECT_EQ(keys_of(record_json(record).at("client")),
            "device kind firmware driver port gid_index gid gid_type gid_why buffer cpu numa");
  record.client.gpu = GpuInfo{1, "H200", "GPU-1", "0000:17:00.0", 1, "580", "open"};
  record.server.gpu = GpuInfo{};
  record.measured.client_counters = {{"rx", 1}};
  record.measured.server_counters = {{"tx", 2}};
  const Json json = record_json(record);
  EXPECT_EQ(
      one_line(json.at("client").at("gpu")),
      R"({"index":1,"name":"H200","uuid":"GPU-1","pci_address":"0000:17:00.0","bar1_bytes":1,)"
      R"("driver":"580","kernel_module":"open"})");
  EXPECT_TRUE(json.at("server").at("gpu").at("bar1_bytes").is_null());
  EXPECT_EQ(one_line(json.at("client").at("counters")), R"({"rx":1})");
  EXPECT_EQ(one_line(json.at("server").at("counters")), R"({"tx":2})");
  record.measured.client_counters.clear();
  record.measured.server_counters.clear();
  EXPECT_FALSE(record_json(record).at("client").contains("counters"));
  EXPECT_FALSE(record_json(record).at("server").contains("counters"));
}

TEST(RecordJson, AnIntervalHasBothEndsOrNone) {
  RunRecord record = datagrams(1);
  Bandwidth& bandwidth = *record.measured.bandwidth;
  bandwidth.ci95_low_gbytes = 1;
  bandwidth.ci95_high_gbytes = 2;
  bandwidth.batches_gbytes = {1, 1.5};
  EXPECT_EQ(
      json_of(record, "bw"),
      R"({"median_gbps":8.0,"mean_gbps":0.0,"min_gbps":0.0,"max_gbps":0.0,"ci95_gbps":[8.0,16.0],)"
      R"("batches_gbps":[8.0,12.0]})");
  bandwidth.ci95_high_gbytes = std::nan("");
  EXPECT_TRUE(record_json(record).at("bw").at("ci95_gbps").is_null());
  bandwidth.ci95_high_gbytes = 2;
  bandwidth.ci95_low_gbytes = std::nan("");
  EXPECT_TRUE(record_json(record).at("bw").at("ci95_gbps").is_null());
  EXPECT_EQ(json_of(record, "latency"), "null");
}

TEST(RecordJson, ALatencyHasTheSamplesBeyondItsPercentiles) {
  RunRecord record;
  record.measured.latency = Latency{1, 2, 3, 4, 5, 6, 7, 8, 100'000, true, 1.5, 2.5, 0.5, {2, 2.25}};
  EXPECT_EQ(
      json_of(record, "latency"),
      R"({"min_ns":1.0,"p50_ns":2.0,"p90_ns":3.0,"p99_ns":4.0,"p999_ns":5.0,"p9999_ns":6.0,"max_ns":7.0,)"
      R"("mean_ns":8.0,)"
      R"("samples":100000,"halved":true,"samples_beyond":{"p50":50000,"p90":10000,"p99":1000,"p999":100,"p9999":10},)"
      R"("ci95_p50_ns":[1.5,2.5],"batches_p50_ns":[2.0,2.25]})");
  EXPECT_EQ(json_of(record, "bw"), "null");
}

TEST(RecordJson, PartsAndTheirRails) {
  RunRecord record = datagrams(16);
  record.spec.size_bytes = 1000;
  EXPECT_EQ(json_of(record, "parts"), "none");
  record.measured.parts = {{"thread 0", "a", "b", 0, 1, 1, "cuda:0", "cuda:1", 1},
                           {"thread 1", "a", "b", 1, 0, 2, "", "", 3},
                           {"thread 2", "c", "d", -1, -1, 3, "", "", 12}};
  record.measured.start_spread_s = 2.5e-6;
  EXPECT_EQ(
      json_of(record, "parts"),
      R"({"start_spread_us":2.5,"slowest":"rail a","each":[)"
      R"({"name":"thread 0","device":"a","server_device":"b","qps":1,"mean_gbps":8.0,"msg_rate_mpps":1.0,)"
      R"("buffer":"cuda:0","server_buffer":"cuda:1","cpu":0,"server_cpu":1},)"
      R"({"name":"thread 1","device":"a","server_device":"b","qps":2,"mean_gbps":24.0,"msg_rate_mpps":3.0,)"
      R"("cpu":1,"server_cpu":0},)"
      R"({"name":"thread 2","device":"c","server_device":"d","qps":3,"mean_gbps":96.0,)"
      R"("msg_rate_mpps":12.0}],"rails":[)"
      R"({"name":"rail a","device":"a","server_device":"b","qps":3,"mean_gbps":32.0,"msg_rate_mpps":4.0,)"
      R"("buffer":"cuda:0","server_buffer":"cuda:1"},)"
      R"({"name":"rail c","device":"c","server_device":"d","qps":3,"mean_gbps":96.0,"msg_rate_mpps":12.0}]})");
}

TEST(RecordJson, LevelsSharesAndWarnings) {
  RunRecord record = datagrams(1);
  EXPECT_EQ(json_of(record, "levels") + json_of(record, "shares") + json_of(record, "warnings") +
                json_of(record, "checked_by"),
            "nonenone[]none");
  record.measured.levels = {{2, 0, 0.5, 0.25}};
  record.measured.qp_shares = {{1, 0.4}, {2, 0.6}};
  record.measured.warnings = {"first"};
  record.warnings = {"second"};
  record.spec.verify_seed = 0;
  record.client.checker = "cpu";
  record.server.checker = "gpu";
  EXPECT_EQ(json_of(record, "levels"), R"([{"from_s":0.0,"seconds":0.5,"share":0.25,"median_gbps":16.0}])");
  EXPECT_EQ(json_of(record, "shares"),
            R"({"ports":2,"least_share":0.4,"most_share":0.6,"uneven":[49153],"qps":[)"
            R"({"udp_sport":49153,"flow_label":1,"share":0.4},{"udp_sport":49154,"flow_label":2,"share":0.6}]})");
  EXPECT_EQ(json_of(record, "warnings"), R"(["first","second"])");
  EXPECT_EQ(json_of(record, "checked_by"), R"(["cpu","gpu"])");
  record.measured.bandwidth.reset();
  record.measured.latency = Latency{};
  EXPECT_EQ(json_of(record, "levels"), R"([{"from_s":0.0,"seconds":0.5,"share":0.25,"p50_ns":2.0}])");
}

TEST(RecordJson, OfAnotherProgramsRunOnlyWhatItTold) {
  RunRecord record = datagrams(1);
  record.client.device = "mlx5_0";
  record.client.buffer = "host";
  record.client.program = "perftest";
  record.server = record.client;
  record.server.device = kUnknown;
  record.server.buffer = kUnknown;
  Json json = record_json(record);
  EXPECT_EQ(keys_of(json.at("server")), "program device buffer");
  EXPECT_EQ(keys_of(json.at("client")),
            "program device kind firmware driver port gid_index gid gid_type gid_why buffer cpu numa");
  std::swap(record.client, record.server);
  json = record_json(record);
  EXPECT_EQ(keys_of(json.at("client")), "program device buffer");
  EXPECT_EQ(keys_of(json.at("server")),
            "program device kind firmware driver port gid_index gid gid_type gid_why buffer cpu numa");
  record.told = {"qps", "server_port"};
  json = record_json(record);
  EXPECT_EQ(keys_of(json), "op size_bytes client server qps device_kind bw msg_rate_mpps latency warnings");
  EXPECT_EQ(keys_of(json.at("client")), "device buffer");
  EXPECT_EQ(keys_of(json.at("server")), "device port buffer");
  EXPECT_EQ(keys_of(json.at("bw")), "median_gbps mean_gbps min_gbps max_gbps ci95_gbps batches_gbps");
  record.measured.bandwidth.reset();
  record.measured.latency = Latency{};
  EXPECT_EQ(keys_of(record_json(record).at("latency")),
            "min_ns p50_ns p90_ns p99_ns p999_ns p9999_ns max_ns mean_ns samples halved samples_beyond ci95_p50_ns "
            "batches_p50_ns");
}

}  // namespace
}  // namespace gdrperf::report
