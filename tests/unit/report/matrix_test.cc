#include "gdrperf/report/pair_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

using testing::HasSubstr;
using testing::Not;

RunRecord run_of(int gpu, int nic, double gbytes, std::uint64_t size = 65536) {
  RunRecord record;
  record.device_kind = "hardware";
  record.client.buffer = "cuda:" + std::to_string(gpu);
  record.server.buffer = "host";
  record.relation = gpu == nic ? "PIX" : "NODE";
  record.path.pair = "GPU" + std::to_string(gpu) + "/mlx5_" + std::to_string(nic);
  record.path.ceiling_gbps = 400;
  record.spec.test = {Operation::kWrite, Metric::kBandwidth};
  record.spec.size_bytes = size;
  record.measured.bandwidth = Bandwidth{};
  record.measured.bandwidth->median_gbytes = gbytes;
  return record;
}

std::string text_of(const PairMatrix& matrix, std::size_t columns = 80) {
  ConsoleOptions options;
  options.columns = columns;
  std::ostringstream out;
  matrix.print(out, options);
  return out.str();
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(PairMatrix, EightByEightFitEightyColumnsAndOneScreen) {
  PairMatrix matrix;
  for (int gpu = 0; gpu < 8; ++gpu) {
    for (int nic = 0; nic < 8; ++nic) {
      for (const std::uint64_t size : {2u, 4096u, 65536u}) matrix.add(run_of(gpu, nic, gpu == nic ? 49.3 : 23.1, size));
    }
  }
  const std::string text = text_of(matrix);
  EXPECT_LE(longest_line(text), 80u) << text;
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24) << text;
  EXPECT_THAT(text, HasSubstr("mlx5_7"));
  EXPECT_THAT(text, HasSubstr("lowest 23.1"));
  EXPECT_THAT(text, HasSubstr("46 % to 99 % of the maximum"));
}

TEST(PairMatrix, NarrowTerminalsGetItInParts) {
  PairMatrix matrix;
  for (int nic = 0; nic < 8; ++nic) matrix.add(run_of(0, nic, 10));
  const std::string text = text_of(matrix, 40);
  EXPECT_LE(longest_line(text.substr(0, text.find("median"))), 40u) << text;
  EXPECT_THAT(text, HasSubstr("mlx5_7"));
}

TEST(PairMatrix, ShowsTheBestSizeAndSaysWhatIsUnstable) {
  PairMatrix matrix;
  matrix.add(run_of(0, 0, 1, 64));
  RunRecord best = run_of(0, 0, 48.7, 1 << 20);
  best.measured.unstable = true;
  best.warnings = {"client and server share CPU 0"};
  matrix.add(best);
  matrix.add(run_of(0, 0, 40, 8 << 20));
  const std::string text = text_of(matrix);
  EXPECT_THAT(text, HasSubstr("48.7!"));
  EXPECT_THAT(text, HasSubstr("! unstable"));
  EXPECT_THAT(text, HasSubstr("warning (1 run): client and server share CPU 0"));
}

TEST(PairMatrix, MemoryAndDeviceStandForAPairWithoutOne) {
  EndSpec client;
  EndSpec server;
  client.device = "soft0";
  EXPECT_EQ(matrix_place("", client, server), std::pair(std::string("host"), std::string("soft0")));
  server.buffer = "cuda:1";
  EXPECT_EQ(matrix_place("", client, server).first, "host to cuda:1");
  EXPECT_EQ(matrix_place("GPU0/mlx5_0", client, server).first, "GPU0 to cuda:1");
}

RunRecord latency_run_of(int gpu, int nic, double p50_ns, std::uint64_t size) {
  RunRecord record = run_of(gpu, nic, 1, size);
  record.spec.test.metric = Metric::kLatency;
  record.measured.bandwidth.reset();
  record.measured.latency = Latency{};
  record.measured.latency->p50_ns = p50_ns;
  return record;
}

TEST(PairMatrix, FromTheRelationsToTheWarnings) {
  PairMatrix matrix;
  matrix.add(run_of(0, 0, 49.34));
  matrix.add(run_of(0, 1, 23.14));
  matrix.add(run_of(1, 1, 48.66));
  matrix.add(latency_run_of(1, 1, 2001.4, 64));
  matrix.add(latency_run_of(1, 1, 1503.4, 8));
  matrix.add(latency_run_of(1, 1, 3000, 4096));
  matrix.add(latency_run_of(1, 1, 9000, 8));  // the first of one size stays
  RunRecord rxe = latency_run_of(0, 0, 1600, 2);
  rxe.device_kind = "rxe";
  rxe.measured.unstable = true;
  rxe.warnings = {"client and server share CPU 0"};
  rxe.measured.warnings = {"client and server share CPU 1", "slow"};
  matrix.add(rxe);
  EXPECT_EQ(text_of(matrix, 0),
            "\n"
            "relation\n"
            "        mlx5_0  mlx5_1\n"
            "  GPU0     PIX    NODE\n"
            "  GPU1       -     PIX\n"
            "  Results of the kernel's Soft-RoCE (rxe), not of hardware.\n"
            "\n"
            "write_bw, GB/s, best size of each\n"
            "        mlx5_0  mlx5_1\n"
            "  GPU0   49.3    23.1 \n"
            "  GPU1       -   48.7 \n"
            "  median 48.7, lowest 23.1 (GPU0/mlx5_1, NODE); 46 % to 99 % of the maximum\n"
            "\n"
            "write_lat, us, p50 at 2 B\n"
            "        mlx5_0  mlx5_1\n"
            "  GPU0    1.6!       -\n"
            "  GPU1       -    1.5 \n"
            "  median 1.6, slowest 1.6 (GPU0/mlx5_0, PIX)\n"
            "  ! unstable: not known within the requested precision\n"
            "  warning (2 runs, like this one): client and server share CPU 1\n"
            "  warning (1 run): slow\n");
}

TEST(PairMatrix, ANarrowTerminalBreaksTitlesWordsAndWarnings) {
  PairMatrix matrix;
  for (int nic = 0; nic < 3; ++nic) {
    RunRecord record = run_of(0, nic, 10);
    record.warnings = {"client and server share CPU 0"};
    matrix.add(record);
  }
  // Four for the GPU's name, two blanks, and two columns of six with two blanks each.
  EXPECT_EQ(text_of(matrix, 22),
            "\n"
            "relation\n"
            "        mlx5_0  mlx5_1\n"
            "  GPU0     PIX    NODE\n"
            "        mlx5_2\n"
            "  GPU0    NODE\n"
            "\n"
            "write_bw, GB/s, best\n"
            "    size of each\n"
            "        mlx5_0  mlx5_1\n"
            "  GPU0     10      10 \n"
            "        mlx5_2\n"
            "  GPU0     10 \n"
            "  median 10, lowest 10\n"
            "    (GPU0/mlx5_0,\n"
            "    PIX); 20 % to 20 %\n"
            "    of the maximum\n"
            "  warning (3 runs,\n"
            "    like this one):\n"
            "    client and server\n"
            "    share CPU 0\n");
  EXPECT_THAT(text_of(matrix, 21), HasSubstr("relation\n"
                                             "        mlx5_0\n"
                                             "  GPU0     PIX\n"
                                             "        mlx5_1\n"));
  EXPECT_THAT(text_of(matrix, 3), HasSubstr("\n        mlx5_0\n  GPU0     PIX\n")) << "one at least";
}

TEST(PairMatrix, RatesBelowOneAreShownAndWhatIsNoRateIsNot) {
  PairMatrix matrix;
  matrix.add(run_of(0, 0, 0));
  matrix.add(run_of(0, 1, std::numeric_limits<double>::infinity()));
  matrix.add(run_of(0, 2, std::nan("")));
  RunRecord none = run_of(0, 3, 1);
  none.measured.bandwidth.reset();
  matrix.add(none);
  EXPECT_THAT(text_of(matrix), Not(HasSubstr("write_bw")));
  RunRecord other = run_of(0, 3, 0.5);
  other.spec.test.operation = Operation::kRead;
  matrix.add(other);
  EXPECT_THAT(text_of(matrix), HasSubstr("\nread_bw, GB/s, best size of each\n"
                                         "        mlx5_0  mlx5_1  mlx5_2  mlx5_3\n"
                                         "  GPU0       -       -       -    0.5 \n"));
}

TEST(PairMatrix, OfEqualRatesTheFirstStays) {
  PairMatrix matrix;
  matrix.add(run_of(0, 0, 10, 4096));
  RunRecord unstable = run_of(0, 0, 10, 65536);
  unstable.measured.unstable = true;
  matrix.add(unstable);
  EXPECT_THAT(text_of(matrix), Not(HasSubstr("!")));
}

TEST(PairMatrix, TheWordsNameTheMiddleAndTheWorst) {
  PairMatrix rates, latencies;
  const double values[] = {5, 1, 9, 7, 3};
  for (int nic = 0; nic < 5; ++nic) {
    RunRecord record = run_of(0, nic, values[nic]);
    if (nic < 2) record.path.ceiling_gbps = 0;  // the others have a share
    rates.add(record);
    latencies.add(latency_run_of(0, nic, 1000 * values[nic], 8));
  }
  EXPECT_THAT(text_of(rates), HasSubstr("  median 5, lowest 1 (GPU0/mlx5_1, NODE); 6 % to 18 % of the maximum\n"));
  EXPECT_THAT(text_of(latencies), HasSubstr("  median 5, slowest 9 (GPU0/mlx5_2, NODE)\n"));
  PairMatrix equal;
  for (int nic = 0; nic < 4; ++nic) equal.add(run_of(0, nic, 2));
  EXPECT_THAT(text_of(equal), HasSubstr("  median 2, lowest 2 (GPU0/mlx5_0, PIX)"))
      << "the first of those that are equal";
}

TEST(PairMatrix, ColoursSayHowMuchOfTheMaximumIsReached) {
  PairMatrix matrix;
  matrix.add(run_of(0, 0, 49));
  ConsoleOptions options;
  options.colour = Colour::kOn;
  options.rate_unit = RateUnit::kGigabits;
  std::ostringstream out;
  matrix.print(out, options);
  EXPECT_EQ(out.str(),
            "\n"
            "\033[1mrelation\033[0m\n"
            "\033[2m        mlx5_0\033[0m\n"
            "  GPU0     PIX\n"
            "\n"
            "\033[1mwrite_bw, Gb/s, best size of each\033[0m\n"
            "\033[2m        mlx5_0\033[0m\n"
            "  GPU0\033[32m    392 \033[0m\n"
            "  median 392, lowest 392 (GPU0/mlx5_0, PIX); 98 % to 98 % of the maximum\n");
}

TEST(PairMatrix, NothingWithoutRunsAndNothingHarmful) {
  EXPECT_EQ(text_of(PairMatrix()), "");
  PairMatrix matrix;
  RunRecord record = run_of(0, 0, 1);
  record.path.pair = "GPU0/\x1b[2J";
  record.warnings = {"x\x1b[2J"};
  matrix.add(record);
  EXPECT_THAT(text_of(matrix), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gdrperf::report
