// gdrperf import: outputs of perftest as records. tests/data/import has one of each version's forms: those of 4.5 are
// what it printed over the software device, the others are made by hand after its sources.
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../failure_of.h"
#include "gdrperf/base/file.h"
#include "gdrperf/report/document.h"
#include "gdrperf/import/import.h"

namespace gdrperf::report {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string data(const std::string& name) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  return read_file(std::string(root == nullptr ? "." : root) + "/tests/data/import/" + name, kLargestImport);
}

Imported imported(const std::string& name, const ImportHints& hints = {}) {
  return import_results(data(name), name, hints);
}

Imported of_text(const std::string& text, const ImportHints& hints = {}) {
  return import_results(text, "x.txt", hints);
}

const Bandwidth& rate(const RunRecord& run) { return *run.measured.bandwidth; }
const Latency& time(const RunRecord& run) { return *run.measured.latency; }

constexpr double kMebibyteInGigabytes = 1048576e-9;

TEST(Import, MebibytesOfVersion44) {
  const Imported file = imported("perftest-4.4-write_bw.txt");
  EXPECT_EQ(file.format, "perftest");
  EXPECT_THAT(file.warnings, IsEmpty());
  ASSERT_EQ(file.runs.size(), 1u);
  const RunRecord& run = file.runs[0];
  EXPECT_EQ(to_string(run.spec.test), "write_bw");
  EXPECT_EQ(run.spec.size_bytes, 65536u);
  EXPECT_EQ(run.device_kind, kImported);
  EXPECT_EQ(run.relation, "HOST");
  EXPECT_EQ(run.client.device, "mlx5_0");
  EXPECT_EQ(run.server.device, "mlx5_0");
  EXPECT_EQ(run.measured.iterations, 10000u);
  EXPECT_DOUBLE_EQ(rate(run).median_gbytes, 11742.06 * kMebibyteInGigabytes);
  EXPECT_DOUBLE_EQ(rate(run).mean_gbytes, 11742.06 * kMebibyteInGigabytes);
  EXPECT_DOUBLE_EQ(rate(run).max_gbytes, 11743.18 * kMebibyteInGigabytes);
  EXPECT_DOUBLE_EQ(rate(run).msg_rate_mpps, 0.187873);
  EXPECT_TRUE(std::isnan(rate(run).min_gbytes));
  // What it printed agrees with itself: bytes of a message times their rate.
  EXPECT_NEAR(rate(run).median_gbytes, 65536 * 0.187873e-3, 1e-5);
}

TEST(Import, GigabitsAndTheOtherSettings) {
  const Imported file = imported("perftest-4.5-read_bw-gbits.txt");
  ASSERT_EQ(file.runs.size(), 1u);
  const RunRecord& run = file.runs[0];
  EXPECT_EQ(to_string(run.spec.test), "read_bw");
  EXPECT_EQ(run.spec.qps, 4);
  EXPECT_NEAR(rate(run).median_gbytes, 1048576 * rate(run).msg_rate_mpps * 1e-3, 0.01);
  EXPECT_THAT(*run.told,
              ::testing::IsSupersetOf({"qps", "tx_depth", "cq_mod", "mtu_bytes", "client_gid_index", "connection"}));
  EXPECT_FALSE(run.told->contains("qp_timeout"));
  EXPECT_FALSE(run.told->contains("rx_depth"));
}

TEST(Import, EverySizeOfASweep) {
  const Imported file = imported("perftest-4.5-write_bw-all.txt");
  ASSERT_EQ(file.runs.size(), 23u);
  EXPECT_EQ(file.runs.front().spec.size_bytes, 2u);
  EXPECT_EQ(file.runs.back().spec.size_bytes, 8388608u);
}

TEST(Import, LatencyWithPercentilesIsHalfARoundTripOfWrites) {
  const Imported file = imported("perftest-4.5-write_lat.txt");
  ASSERT_EQ(file.runs.size(), 1u);
  EXPECT_TRUE(time(file.runs[0]).halved);
  EXPECT_EQ(time(file.runs[0]).samples, 1000u);
  const RunRecord send = imported("perftest-26-two-tests.txt").runs[2];
  EXPECT_EQ(to_string(send.spec.test), "send_lat");
  EXPECT_DOUBLE_EQ(time(send).min_ns, 1020);
  EXPECT_DOUBLE_EQ(time(send).max_ns, 5110);
  EXPECT_DOUBLE_EQ(time(send).p50_ns, 1060);
  EXPECT_DOUBLE_EQ(time(send).mean_ns, 1070);
  EXPECT_DOUBLE_EQ(time(send).stdev_ns, 50);
  EXPECT_DOUBLE_EQ(time(send).p99_ns, 1210);
  EXPECT_DOUBLE_EQ(time(send).p999_ns, 3900);
  EXPECT_TRUE(std::isnan(time(send).p90_ns));
  EXPECT_FALSE(time(imported("perftest-4.5-read_lat-unsorted.txt").runs.at(0)).halved);
}

TEST(Import, AnAverageIsNoMedianOfLatency) {
  const RunRecord run = imported("perftest-4.5-send_lat-duration.txt").runs.at(0);
  EXPECT_DOUBLE_EQ(time(run).mean_ns, 358170);
  EXPECT_TRUE(std::isnan(time(run).p50_ns));
}

TEST(Import, EventsDirectionAtomicsAndTransport) {
  EXPECT_EQ(imported("perftest-4.5-send_bw-events.txt").runs.at(0).spec.wait, Wait::kEvent);
  EXPECT_EQ(imported("perftest-4.5-send_bw-ud.txt").runs.at(0).spec.transport, Transport::kUd);
  EXPECT_EQ(imported("perftest-4.5-write_bw-both.txt").runs.at(0).spec.direction, Direction::kBidirectional);
  EXPECT_EQ(to_string(imported("perftest-4.5-atomic_bw.txt").runs.at(0).spec.test), "atomic_bw");
  EXPECT_THAT(failure_of([] { imported("perftest-26-ports.txt"); }).what(),
              HasSubstr("perftest-26-ports.txt:3: two ports together"));
}

TEST(Import, GpuMemoryNeedsARelation) {
  EXPECT_THAT(failure_of([] { imported("perftest-26-write_bw-cuda.txt"); }).what(), HasSubstr("cuda:1 to cuda:1"));
  const Imported file = imported("perftest-26-write_bw-cuda.txt", {"PXB", "mlx5_3", "host"});
  const RunRecord& run = file.runs.at(0);
  EXPECT_EQ(run.relation, "PXB");
  EXPECT_EQ(run.client.buffer, "cuda:1");
  EXPECT_EQ(run.server.buffer, "host");
  EXPECT_EQ(run.server.device, "mlx5_3");
  EXPECT_DOUBLE_EQ(rate(run).median_gbytes, 391.92 / 8);
  EXPECT_TRUE(std::isnan(rate(run).max_gbytes)) << "0.00 is no peak";
}

TEST(Import, JsonWithQuotesAndWithout) {
  const RunRecord old = imported("perftest-23-write_bw.json").runs.at(0);
  EXPECT_DOUBLE_EQ(rate(old).median_gbytes, 23448.37 * kMebibyteInGigabytes);
  EXPECT_EQ(old.spec.tx_depth, 128);
  EXPECT_EQ(old.client.device, "mlx5_0");
  const RunRecord bits = imported("perftest-26-write_bw-gbits.json", {"PIX", "", ""}).runs.at(0);
  EXPECT_DOUBLE_EQ(rate(bits).median_gbytes, 196.70 / 8) << "the rate of messages tells the unit";
  EXPECT_EQ(bits.client.buffer, "cuda:1");
  const RunRecord latency = imported("perftest-26-write_lat.json").runs.at(0);
  EXPECT_DOUBLE_EQ(time(latency).p999_ns, 2950);
  const RunRecord lasting = imported("perftest-25-read_lat-duration.json").runs.at(0);
  EXPECT_DOUBLE_EQ(time(lasting).mean_ns, 1660);
}

struct Published {
  std::string name, expected, text;
};

std::vector<Published> published() {
  std::vector<Published> all;
  std::istringstream lines(data("../import-vendors/outputs.txt"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" => ");
    if (line.starts_with("=== ")) {
      all.push_back({line.substr(4, arrow - 4), line.substr(arrow + 4), {}});
    } else if (!all.empty()) {
      all.back().text += line + "\n";
    }
  }
  return all;
}

std::string shown(const RunRecord& run, const std::string& unit) {
  const double scale = unit == "us" ? 1e-3 : unit == "Gb" ? 8 : 1 / kMebibyteInGigabytes;
  const double value = unit == "us" ? time(run).p50_ns : rate(run).median_gbytes;
  return fmt::format("{} {:.2f} {}", run.client.buffer, value * scale, unit);
}

TEST(Import, OutputsOfAllVendorsAreRightOrRefused) {
  const std::vector<Published> all = published();
  EXPECT_EQ(all.size(), 27u);
  for (const Published& each : all) {
    SCOPED_TRACE(each.name);
    if (each.expected.starts_with("refused ")) {
      EXPECT_THAT(failure_of([&] { of_text(each.text, {"PIX", "", ""}); }).what(), HasSubstr(each.expected.substr(8)));
      continue;
    }
    const Imported file = of_text(each.text, {"PIX", "", ""});
    ASSERT_EQ(file.runs.size(), 1u);
    EXPECT_EQ(shown(file.runs[0], each.expected.substr(each.expected.rfind(' ') + 1)), each.expected);
    EXPECT_EQ(file.runs[0].relation, each.expected.starts_with("host ") ? "HOST" : "PIX");
  }
}

std::string failure(const std::string& text) {
  return failure_of([&] { of_text(text); }).what();
}

TEST(Import, WhatIsNoOutputIsRefusedWithItsLine) {
  EXPECT_THAT(failure(""), HasSubstr("x.txt: empty"));
  EXPECT_THAT(failure("hello\nworld\n"), HasSubstr("x.txt:1: no output"));
  EXPECT_THAT(failure("a\n #bytes     #iterations    BW peak[MB/sec]\n 2 3 4\n"),
              HasSubstr("x.txt:2: a table without the title"));
  const std::string good = data("perftest-4.4-write_bw.txt");
  const auto spoilt = [&](const std::string& what, const std::string& by) {
    std::string text = good;
    text.replace(text.find(what), what.size(), by);
    return failure(text);
  };
  EXPECT_THAT(spoilt("11742.06", "11742,06"), HasSubstr("x.txt:19: '11742,06' is not a number for BW average[MB/sec]"));
  EXPECT_THAT(spoilt("11742.06", "nan"), HasSubstr("x.txt:19: 'nan'"));
  EXPECT_THAT(spoilt("0.187873", "0.187873 7"), HasSubstr("x.txt:19: a row of 6 numbers under 5 columns"));
  EXPECT_THAT(spoilt("MsgRate[Mpps]", "Wishes"), HasSubstr("x.txt:17: no column of perftest that is known: 'Wishes'"));
  EXPECT_THAT(spoilt(": RC", ": RawEth"), HasSubstr("x.txt:5: connection type RawEth"));
  EXPECT_THAT(spoilt("RDMA_Write BW Test", "Send_imm BW Test"),
              HasSubstr("x.txt:2: 'Send_imm BW Test': gdrperf has no such test"));
  EXPECT_THAT(spoilt(" 65536 ", " 0 "), HasSubstr("x.txt:19: no message size"));
}

TEST(Import, ACutTableGivesItsWholeRowsAndNamesTheRest) {
  const std::string all = data("perftest-4.5-write_bw-all.txt");
  const std::size_t last = all.rfind(" 8388608");
  const Imported file = of_text(all.substr(0, last + 30));
  EXPECT_EQ(file.runs.size(), 22u);
  EXPECT_THAT(file.warnings, ElementsAre("x.txt:45: a row that was cut off: left out",
                                         "x.txt:45: the table was cut off here: rows may be missing"));
  // The last figure may have lost digits.
  EXPECT_EQ(of_text(all.substr(0, all.find('\n', last) - 1)).runs.size(), 22u);
  EXPECT_EQ(of_text(all.substr(0, all.find('\n', last) + 1)).runs.size(), 23u);
  EXPECT_THAT(failure(all.substr(0, all.find(" 2    "))), HasSubstr("no table in it has a whole row"));
  EXPECT_THAT(failure(all.substr(0, 300)), HasSubstr("ends without a table"));
}

TEST(Import, ManyRowsAreRefusedAndManyCutOnesCounted) {
  const std::string head = "RDMA_Write BW Test\n#bytes #iterations BW average[MB/sec]\n";
  std::string rows;
  for (std::size_t row = 0; row <= kMostImported; ++row) rows += "2 5 1.0\n";
  EXPECT_THAT(failure(head + rows), HasSubstr("x.txt:50003: more than 50000 rows"));
  std::string cut;
  for (int row = 0; row < 30; ++row) cut += "2 5\n";
  const Imported file = of_text(head + cut + "2 5 1.0\n---\n");
  EXPECT_EQ(file.runs.size(), 1u);
  EXPECT_EQ(file.warnings.size(), 21u);
  EXPECT_EQ(file.warnings.back(), "x.txt:34: 10 more rows that were cut off: left out");
}

TEST(Import, ACutJsonIsRefusedWithTheLine) {
  const std::string all = data("perftest-26-write_lat.json");
  for (std::size_t length = 30; length + 3 < all.size(); ++length) {
    EXPECT_THAT(failure(all.substr(0, length)),
                ::testing::AnyOf(HasSubstr("it was cut off"), HasSubstr("a quote that does not end")))
        << length;
  }
  EXPECT_THAT(failure("{\"test_info\": {\n\"test\": \"RDMA_Write_BW_Test\"},\n\"results\": {\"bw_avg\": 3.5}}"),
              HasSubstr("x.txt:1: no message size"));
  EXPECT_THAT(
      failure("{\"test_info\": {\"test\": \"RDMA_Write_BW_Test\"}, \"results\": {\"MsgSize\": 2, \"n_iterations\": 5,\n"
              "\"BW_average\": 0.00, \"MsgRate\": 0.000000}}"),
      HasSubstr("leave open whether that is MiB/s or Gb/s"));
}

TEST(Import, ADocumentHoldsWhatWasToldAndNothingElse) {
  Document document({"0", "x", {}}, "2026-01-31T12:00:00Z");
  for (const RunRecord& run : imported("perftest-26-two-tests.txt").runs) document.add(run);
  document.add_imported({"a.txt", "perftest", 3});
  const auto json = nlohmann::json::parse(document.to_json());
  const auto& run = json["relations"]["HOST"]["read_bw"][1];
  EXPECT_THAT(run["bw"]["median_gbps"].get<double>(), DoubleNear(23120.04 * kMebibyteInGigabytes * 8, 1e-4));
  EXPECT_EQ(run["device_kind"], kImported);
  EXPECT_EQ(run["tx_depth"], 128);
  EXPECT_EQ(run["connection"], "rdma_cm");
  EXPECT_EQ(run["server"], (nlohmann::json{{"device", "mlx5_1"}, {"buffer", "host"}}));
  for (const char* unknown : {"qp_timeout", "stop", "unstable", "duration_s", "footprint_bytes", "efficiency"})
    EXPECT_FALSE(run.contains(unknown)) << unknown;
  EXPECT_EQ(json["imported"][0]["runs"], 3);
}

}  // namespace
}  // namespace gdrperf::report
