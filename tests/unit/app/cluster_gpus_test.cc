#include "cluster/ranks/gpus.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/output/report.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

// Two GPUs, four NICs; the last has no relation to any.
topo::Topology two_gpus() {
  topo::Topology topology;
  topology.matrix = topo::Matrix{{"GPU0", "GPU1"},
                                 {{"NIC0", "mlx5_0"}, {"NIC1", "mlx5_1"}, {"NIC2", "mlx5_2"}},
                                 {{"X", "SYS"}, {"SYS", "X"}},
                                 {{"PIX", "NODE", "SYS"}, {"SYS", "PXB", "SYS"}},
                                 {{"X", "SYS", "SYS"}, {"SYS", "X", "SYS"}, {"SYS", "SYS", "X"}},
                                 {},
                                 {},
                                 {}};
  return topology;
}

TEST(ClusterGpus, EachNicHasTheNearest) {
  const auto nearest = nearest_gpus(two_gpus());
  ASSERT_EQ(nearest.size(), 3u);
  EXPECT_EQ(nearest.at("mlx5_0").gpu, "0");
  EXPECT_EQ(nearest.at("mlx5_0").relation, "PIX");
  EXPECT_EQ(nearest.at("mlx5_1").gpu, "1") << "PXB is nearer than NODE";
  EXPECT_EQ(nearest.at("mlx5_1").relation, "PXB");
  EXPECT_EQ(nearest.at("mlx5_2").relation, "SYS");
  EXPECT_TRUE(nearest_gpus({}).empty());
}

TEST(ClusterGpus, BuffersAreSpeltAsTheOptionTakesThem) {
  CardDevice device;
  device.name = "mlx5_0";
  EXPECT_EQ(buffer_for(device, ClusterBuffer::kGpu), "host") << "no GPU";
  device.gpu = "0000:17:00.0";
  EXPECT_EQ(buffer_for(device, ClusterBuffer::kHost), "host");
  EXPECT_EQ(buffer_for(device, ClusterBuffer::kGpu), "cuda:0000:17:00.0");
  EXPECT_EQ(buffer_for(device, ClusterBuffer::kStaged), "staged:0000:17:00.0");
  Member member;
  member.card.devices = {device};
  EXPECT_EQ(buffer_of(member, "mlx5_0", ClusterBuffer::kGpu), "cuda:0000:17:00.0");
  EXPECT_EQ(parse_cluster_buffer("staged"), ClusterBuffer::kStaged);
  EXPECT_THROW(parse_cluster_buffer("cuda:0"), Error);
}

TEST(ClusterGpus, TheOddRelationIsNamed) {
  std::vector<Member> members(4);
  for (Member& member : members) {
    CardDevice device;
    device.name = "mlx5_0";
    device.gpu = "0";
    device.gpu_relation = &member == &members[2] ? "SYS" : "PIX";
    member.card.devices = {device};
    member.devices = {"mlx5_0"};
  }
  std::ostringstream out;
  print_differences(members, out);
  EXPECT_EQ(out.str(), "differs: NIC 0 relation to a GPU: 'SYS' on rank 2; 'PIX' on the 3 others\n");
}

}  // namespace
}  // namespace gdrperf::app
