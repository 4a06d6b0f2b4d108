#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/report/console.h"

namespace gdrperf::report {
namespace {

/// Between a GPU and a NIC, with all that a heading shows.
RunRecord gpu_to_nic(std::uint64_t size, double gbytes) {
  RunRecord record;
  record.device_kind = "hardware";
  record.relation = "PIX";
  record.path.pair = "GPU0/mlx5_0";
  record.path.link_gbps = 400;
  record.spec.size_bytes = size;
  record.spec.tx_depth = 128;
  record.spec.cq_mod = 1;
  record.spec.mtu_bytes = 4096;
  record.client.device = "mlx5_0";
  record.client.port = 1;
  record.client.gid_index = 3;
  record.client.gid = "10.0.0.1";
  record.client.gid_type = "RoCE v2/IPv4";
  record.client.buffer = "cuda:0";
  record.server = record.client;
  record.server.device = "mlx5_7";
  record.server.port = 2;
  record.server.gid_index = 5;
  record.server.gid = "10.0.0.2";
  record.server.buffer = "host";
  record.measured.iterations = 1000;
  record.measured.bandwidth = {.median_gbytes = gbytes,
                               .ci95_low_gbytes = gbytes,
                               .ci95_high_gbytes = gbytes,
                               .mean_gbytes = gbytes,
                               .min_gbytes = gbytes / 2,
                               .max_gbytes = 2 * gbytes,
                               .batches_gbytes = {},
                               .msg_rate_mpps = 0.25};
  return record;
}

RunRecord latency_to_nic(std::uint64_t size) {
  RunRecord record = gpu_to_nic(size, 1);
  record.spec.test.metric = Metric::kLatency;
  record.measured.bandwidth.reset();
  record.measured.latency = Latency{1500, 2001, 2002, 3003, 4004, 5005, 60006, 2222.2, 1'000'000, true, 1990, 2002};
  return record;
}

std::string printed(const std::vector<RunRecord>& records, const ConsoleOptions& options) {
  std::ostringstream out;
  ConsoleTable table(out, options);
  for (const RunRecord& record : records) table.add(record);
  table.finish();
  return out.str();
}

std::string wide(const std::vector<RunRecord>& records, RateUnit unit = RateUnit::kGigabytes) {
  ConsoleOptions options;
  options.rate_unit = unit;
  return printed(records, options);
}

std::string line_of_text(const std::string& text, int number) {
  std::istringstream in(text);
  std::string line;
  for (int at = 0; at < number; ++at) std::getline(in, line);
  return line;
}

TEST(ConsoleBlocks, ATableFromItsHeadingToItsNotes) {
  RunRecord small = gpu_to_nic(64, 2);
  small.measured.unstable = true;
  small.measured.warnings = {"the client stood still for 0.5 s"};
  RunRecord large = gpu_to_nic(1 << 20, 49);
  large.measured.warnings = {"the client stood still for 1.5 s"};
  large.warnings = {"client and server share CPU 0"};
  large.measured.client_cpu_per_message_ns = 310;
  large.measured.server_cpu_per_message_ns = 4700;
  for (RunRecord* each : {&small, &large}) {
    each->path.ceiling_gbps = 400;
    each->path.limited_by = "port of mlx5_0";
  }
  EXPECT_EQ(
      wide({small, large}),
      "write_bw  PIX GPU0/mlx5_0: client mlx5_0 port 1 (cuda:0 buffer), server mlx5_7 port 2 (host buffer)\n"
      "  RoCE v2/IPv4: GID 3 10.0.0.1 to GID 5 10.0.0.2, MTU 4096 B\n"
      "  RC by address exchange, 1 QP, polling, rates in GB/s (JSON and CSV: Gb/s, 8 times that)\n"
      "\n"
      "  Maximum at 64 B: 50.00 GB/s, port of mlx5_0\n"
      "      size   iterations    tx/cq median GB/s +-95 % CI   min GB/s  max GB/s      Mpps     of max\n"
      "      64 B         1000    128/1       2.000  +-0.00 %      1.000     4.000    0.2500      4.0 % !\n"
      "     1 MiB         1000    128/1       49.00  +-0.00 %      24.50     98.00    0.2500     98.0 %\n"
      "  ! unstable: not known within the requested precision, or interrupted; measure longer (-D, --cap) or stop "
      "other work on the machine.\n"
      "  warning (64 B, 1 MiB; values of 64 B): the client stood still for 0.5 s\n"
      "  warning (1 MiB): client and server share CPU 0\n"
      "  CPU time at 1 MiB: client 310 ns per message, 296 us per GB; server 4.7 us per message, 4.48 ms per GB\n"
      "  Published for PIX at 400 Gb/s: 44.9 to 49 GB/s, 5 results; 49 GB/s here is above 4 of them "
      "(results/reference).\n");
}

TEST(ConsoleBlocks, ALatencyTableOnATerminalOfEightyColumns) {
  ConsoleOptions options;
  options.columns = 80;
  options.colour = Colour::kOn;
  RunRecord record = latency_to_nic(8);
  record.path.ceiling_gbps = 400;  // of no concern to a latency
  record.measured.client_cpu_per_message_ns = 310;
  RunRecord few = latency_to_nic(16);
  few.measured.latency->samples = 50000;
  few.measured.latency->ci95_p50_low_ns = 1900;
  EXPECT_EQ(
      printed({few, record}, options),
      "\033[1mwrite_lat  PIX GPU0/mlx5_0: client mlx5_0 port 1 (cuda:0 buffer), server mlx5_7\033[0m\n"
      "    port 2 (host buffer)\n"
      "  RoCE v2/IPv4: GID 3 10.0.0.1 to GID 5 10.0.0.2, MTU 4096 B\n"
      "  RC by address exchange, 1 QP, polling, half round trips\n"
      "\n"
      "\033[2m      size us: min      p50      p90      p99    p99.9   p99.99      max\033[0m\n"
      "      16 B   1.500    2.001    2.002    3.003    4.004    5.005~  60.006\n"
      "       8 B   1.500    2.001    2.002    3.003    4.004    5.005   60.006\n"
      "\033[2m  ~ fewer than 10 samples lie beyond this percentile; measure longer (-D or a\n"
      "    larger -n).\033[0m\n"
      "\033[2m  CPU time at 8 B: client 310 ns per round trip\033[0m\n"
      "\033[2m  samples are left out below 100 columns; -v shows them\033[0m\n");
}

TEST(ConsoleBlocks, TablesAreApartAndEachHasItsOwnNotes) {
  RunRecord first = gpu_to_nic(65536, 4);
  first.measured.bandwidth->ci95_low_gbytes = first.measured.bandwidth->ci95_high_gbytes = std::nan("");
  first.path.pair = {};
  first.path.host_node = "remote";
  first.relation = "HOST";
  RunRecord second = gpu_to_nic(65536, 40);
  second.path.pair = {};
  second.relation = "HOST";
  EXPECT_EQ(
      wide({first, second}, RateUnit::kGigabits),
      "write_bw  HOST (remote node): client mlx5_0 port 1 (cuda:0 buffer), server mlx5_7 port 2 (host buffer)\n"
      "  RoCE v2/IPv4: GID 3 10.0.0.1 to GID 5 10.0.0.2, MTU 4096 B\n"
      "  RC by address exchange, 1 QP, polling\n"
      "\n"
      "      size   iterations    tx/cq median Gb/s +-95 % CI   min Gb/s  max Gb/s      Mpps\n"
      "    64 KiB         1000    128/1       32.00         -?     16.00     64.00    0.2500\n"
      "  ? fewer than 6 batches, so no interval; measure longer (-D or a larger -n).\n"
      "\n"
      "write_bw  HOST: client mlx5_0 port 1 (cuda:0 buffer), server mlx5_7 port 2 (host buffer)\n"
      "  RoCE v2/IPv4: GID 3 10.0.0.1 to GID 5 10.0.0.2, MTU 4096 B\n"
      "  RC by address exchange, 1 QP, polling\n"
      "\n"
      "      size   iterations    tx/cq median Gb/s +-95 % CI   min Gb/s  max Gb/s      Mpps\n"
      "    64 KiB         1000    128/1       320.0  +-0.00 %      160.0     640.0    0.2500\n");
}

TEST(ConsoleBlocks, NoTableHasNoNotes) {
  ConsoleOptions options;
  options.columns = 80;
  EXPECT_EQ(printed({}, options), "");
}

TEST(ConsoleBlocks, SettingsThatAreNotTheUsualOnesAreNamed) {
  using Changed = std::function<void(RunRecord&)>;
  const std::string bandwidth = ", rates in GB/s (JSON and CSV: Gb/s, 8 times that)";
  const std::pair<Changed, std::string> kLines[] = {
      {[](RunRecord&) {}, "1 QP, polling" + bandwidth},
      {[](RunRecord& run) { run.spec.qps = 2; }, "2 QPs, polling" + bandwidth},
      {[](RunRecord& run) { run.spec.wait = Wait::kEvent; }, "1 QP, completion events" + bandwidth},
      {[](RunRecord& run) { run.spec.post_list = 2; }, "1 QP, polling, post list 2" + bandwidth},
      {[](RunRecord& run) { run.spec.test.operation = Operation::kSend; }, "1 QP, polling, rx depth 512" + bandwidth},
      {[](RunRecord& run) { run.spec.verify_seed = 0; }, "1 QP, polling, every message verified" + bandwidth},
      {[](RunRecord& run) { run.spec.path = Path::kStaged; },
       "1 QP, polling, staged through host memory" + bandwidth},
      {[](RunRecord& run) { run.spec.consume = true; }, "1 QP, polling, consumed by the receiving GPU" + bandwidth},
      {[](RunRecord& run) { run.spec.rate_per_s = 0.5; }, "1 QP, polling, 0.5 messages due per second" + bandwidth},
      {[](RunRecord& run) { run.spec.rate_per_s = 1234567.8; },
       "1 QP, polling, 1234568 messages due per second" + bandwidth},
      {[](RunRecord& run) { run.spec.rate_per_s = 1000, run.spec.burst = 2; },
       "1 QP, polling, 1000 messages due per second in bursts of 2" + bandwidth},
      {[](RunRecord& run) { run.spec.reverse = true; }, "1 QP, polling, reversed: the server sends" + bandwidth},
      {[](RunRecord& run) { run.spec.reverse = true, run.spec.test.operation = Operation::kRead; },
       "1 QP, polling, reversed: the server reads" + bandwidth},
      {[](RunRecord& run) { run.spec.direction = Direction::kBidirectional; },
       "1 QP, polling, both ways (rates are the sum)" + bandwidth},
      {[](RunRecord& run) { run = latency_to_nic(8), run.spec.post_list = 4; }, "1 QP, polling, half round trips"},
      {[](RunRecord& run) { run = latency_to_nic(8), run.measured.latency->halved = false; },
       "1 QP, polling, full round trips"},
      {[](RunRecord& run) { run = latency_to_nic(8), run.spec.test.operation = Operation::kSend; },
       "1 QP, polling, half round trips"},
  };
  for (const auto& [change, line] : kLines) {
    RunRecord record = gpu_to_nic(65536, 1);
    change(record);
    EXPECT_EQ(line_of_text(wide({record}), 3), "  RC by address exchange, " + line);
  }
  RunRecord record = gpu_to_nic(65536, 1);
  record.spec.connector = Connector::kRdmaCm;
  EXPECT_EQ(line_of_text(wide({record}, RateUnit::kGigabits), 3), "  RC by rdma_cm, 1 QP, polling");
}

TEST(ConsoleBlocks, AddressesOfBothEnds) {
  RunRecord record = gpu_to_nic(65536, 1);
  record.server.gid_type = "RoCE v2/IPv6";
  EXPECT_EQ(line_of_text(wide({record}), 2),
            "  RoCE v2/IPv4 and RoCE v2/IPv6: GID 3 10.0.0.1 to GID 5 10.0.0.2, MTU 4096 B");
  record.server.gid = {};
  record.client.gid_type = record.server.gid_type = "";
  EXPECT_EQ(line_of_text(wide({record}), 2), "  GID 3 10.0.0.1 to no GID, MTU 4096 B");
}

TEST(ConsoleBlocks, TheMaximumIsShownWhereItIsKnown) {
  RunRecord record = gpu_to_nic(1 << 20, 0.01);
  EXPECT_THAT(wide({record}), Not(testing::HasSubstr("Maximum")));
  record.path.ceiling_gbps = 0.8;
  record.path.limited_by = "a slow slot";
  EXPECT_EQ(line_of_text(wide({record}), 5), "  Maximum at 1 MiB: 0.1000 GB/s, a slow slot");
  EXPECT_EQ(line_of_text(wide({record}, RateUnit::kGigabits), 5), "  Maximum at 1 MiB: 0.8000 Gb/s, a slow slot");
}

TEST(ConsoleBlocks, EachDirectionOfARunInBoth) {
  RunRecord record = gpu_to_nic(65536, 12);
  record.measured.client_sent_gbytes = 5;
  EXPECT_THAT(wide({record}), Not(testing::HasSubstr("sent")));
  record.measured.server_sent_gbytes = 7;
  EXPECT_EQ(line_of_text(wide({record}), 7), "            client sent 5.000, server sent 7.000 GB/s");
  EXPECT_EQ(line_of_text(wide({record}, RateUnit::kGigabits), 7),
            "            client sent 40.00, server sent 56.00 Gb/s");
  record.measured.client_sent_gbytes.reset();
  EXPECT_THAT(wide({record}), Not(testing::HasSubstr("sent")));
}

TEST(ConsoleBlocks, CpuTimeOfOneEndAlone) {
  RunRecord record = gpu_to_nic(1 << 20, 12);
  EXPECT_THAT(wide({record}), Not(testing::HasSubstr("CPU")));
  record.measured.server_cpu_per_message_ns = 1048.576;
  EXPECT_EQ(line_of_text(wide({record}), 7), "  CPU time at 1 MiB: server 1.05 us per message, 1 ms per GB");
}

/// The warnings of a table whose sizes all give one.
std::string warning_lines(const std::vector<std::string>& warnings) {
  std::vector<RunRecord> records;
  for (std::size_t at = 0; at < warnings.size(); ++at) {
    records.push_back(gpu_to_nic(std::uint64_t{2} << at, 1));
    records.back().path.pair = {};
    records.back().warnings = {warnings[at]};
  }
  const std::string text = wide(records);
  return text.substr(text.find("  warning"));
}

TEST(ConsoleBlocks, WarningsThatDifferInNumbersAreOneLine) {
  EXPECT_EQ(warning_lines({"a b", "a b"}), "  warning (2 B, 4 B): a b\n");
  EXPECT_EQ(warning_lines({"a 1 b", "a 2.5 b"}), "  warning (2 B, 4 B; values of 2 B): a 1 b\n");
  EXPECT_EQ(warning_lines({"a 1 b", "a 2 b", "a 2 b"}), "  warning (2 B, 4 B, 8 B; values of 2 B): a 1 b\n");
  EXPECT_EQ(warning_lines({"a", "b", "a"}), "  warning (2 B, 8 B): a\n  warning (4 B): b\n");
  EXPECT_THAT(warning_lines({"a", "a", "a", "a"}), testing::StartsWith("  warning (2 B, 4 B, 8 B, 16 B): a\n"));
  EXPECT_THAT(warning_lines({"a", "a", "a", "a", "a"}),
              testing::StartsWith("  warning (2 B, 4 B, 8 B, 16 B and 1 more): a\n"));
  EXPECT_THAT(warning_lines({"0", "9", "0", "9", "0", "5.1"}),
              testing::StartsWith("  warning (2 B, 4 B, 8 B, 16 B and 2 more; values of 2 B): 0\n"));
}

TEST(ConsoleBlocks, AKindOfWarningIsItsTextWithoutNumbers) {
  EXPECT_EQ(warning_kind("0 of 19.5 MB, by 1234567890"), " of  MB, by ");
  EXPECT_EQ(warning_kind("known within +-3 %, not +-1 %: it drifts: 2 s"), ":  s");
  EXPECT_EQ(warning_kind("not known (1 batch)"), "not known ( batch)");
}

TEST(ConsoleBlocks, LargeMessagesOneWayBetweenGpuAndNicAreRankedByTheBest) {
  const auto ranked = [](const RunRecord& record) { return wide({record}).find("Published for") != std::string::npos; };
  EXPECT_TRUE(ranked(gpu_to_nic(65536, 10)));
  EXPECT_TRUE(ranked(gpu_to_nic(8 << 20, 10)));
  EXPECT_FALSE(ranked(gpu_to_nic(65535, 10)));
  EXPECT_FALSE(ranked(gpu_to_nic(65536, 0)));
  EXPECT_FALSE(ranked(latency_to_nic(65536)));
  RunRecord host = gpu_to_nic(65536, 10);
  host.path.pair = {};
  EXPECT_FALSE(ranked(host));
  RunRecord both = gpu_to_nic(65536, 10);
  both.spec.direction = Direction::kBidirectional;
  EXPECT_FALSE(ranked(both));
  EXPECT_THAT(wide({gpu_to_nic(1 << 16, 10), gpu_to_nic(1 << 17, 30), gpu_to_nic(1 << 18, 20)}),
              testing::HasSubstr("; 30 GB/s here"));
}

}  // namespace
}  // namespace gdrperf::report
