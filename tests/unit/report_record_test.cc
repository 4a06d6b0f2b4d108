#include "gdrperf/report/record.h"

#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

TEST(StopReason, NamesAreThoseOfTheSchema) {
  EXPECT_EQ(to_string(StopReason::kPrecision), "precision");
  EXPECT_EQ(to_string(StopReason::kIterations), "iterations");
  EXPECT_EQ(to_string(StopReason::kDuration), "duration");
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

NameParts parts_of_a_gpu() {
  NameParts parts;
  parts.test = "write_bw";
  parts.relation = "PIX";
  parts.client = {"cuda:0", "mlx5_0", "1"};
  parts.server = parts.client;
  parts.size_bytes = "65536";
  return parts;
}

TEST(RunName, SaysTestRelationMemoryNicAndSize) {
  NameParts parts = parts_of_a_gpu();
  EXPECT_EQ(run_name(parts), "write_bw/PIX/GPU0:mlx5_0/65536");
  parts.server = {"host", "mlx5_1", "2"};
  EXPECT_EQ(run_name(parts), "write_bw/PIX/GPU0:mlx5_0>host:mlx5_1.2/65536");
}

TEST(RunName, CallsGpusWhatTopologyCallsThem) {
  NameParts parts = parts_of_a_gpu();
  parts.pair = "GPU3/mlx5_0";
  parts.client.buffer = parts.server.buffer = "cuda:0000:3b:00.0";
  EXPECT_EQ(run_name(parts), "write_bw/PIX/GPU3:mlx5_0/65536");
  parts.server.buffer = "cuda:1";  // another one: the pair says nothing of it
  EXPECT_EQ(run_name(parts), "write_bw/PIX/GPU3:mlx5_0>GPU1:mlx5_0/65536");
  parts.client.buffer = parts.server.buffer = "simulated:GPU3";
  EXPECT_EQ(run_name(parts), "write_bw/PIX/GPU3:mlx5_0/65536");
}

TEST(RunName, TellsApartWhatIsNotTheSameTest) {
  NameParts parts = parts_of_a_gpu();
  parts.bidirectional = parts.event = parts.staged = parts.consume = parts.remote_node = parts.simulated = true;
  parts.qps = "4";
  parts.rate_per_s = "1000";
  EXPECT_EQ(run_name(parts),
            "write_bw/PIX/GPU0:mlx5_0/65536/bidirectional/qps:4/event/rate:1000/staged/consume/remote/simulated");
}

}  // namespace
}  // namespace gdrperf::report
