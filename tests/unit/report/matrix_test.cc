#include "gdrperf/report/pair_matrix.h"

#include <algorithm>
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
