#include "gdrperf/cluster/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "gdrperf/base/error.h"
#include "gdrperf/cluster/plan.h"

namespace gdrperf::cluster {
namespace {

using testing::HasSubstr;

Variables of(std::map<std::string, std::string> values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  };
}

void expect(const Launch& launch, int rank, int ranks, const std::string& root, const std::string& origin) {
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.ranks, ranks);
  EXPECT_EQ(launch.root, root);
  EXPECT_EQ(launch.origin, origin);
}

std::string refusal(const LaunchByHand& by_hand, const std::map<std::string, std::string>& values) {
  try {
    find_launch(by_hand, of(values));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Launch, OfEachLauncher) {
  expect(find_launch({}, of({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "64"}, {"SLURM_STEP_NUM_TASKS", "16"},
                             {"SLURM_STEP_NODELIST", "n[7-9,12],m1"}})),
         3, 16, "n7", "Slurm");
  expect(find_launch({}, of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"},
                             {"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}})),
         0, 2, "10.0.0.1", "torchrun");
  expect(find_launch({}, of({{"LWS_WORKER_INDEX", "1"}, {"LWS_GROUP_SIZE", "4"}, {"LWS_LEADER_ADDRESS", "a-0.a"}})),
         1, 4, "a-0.a", "LeaderWorkerSet");
  expect(find_launch({.ranks = 4, .root = "job-0.svc"}, of({{"JOB_COMPLETION_INDEX", "2"}})), 2, 4,
         "job-0.svc", "indexed Job");
  expect(find_launch({.rank = 1, .ranks = 3, .root = "h"}, of({{"SLURM_PROCID", "x"}})), 1, 3, "h", "--rank");
}

TEST(Launch, OfOpenMpi) {
  const std::string head = "123.0;tcp://192.0.2.7:49029;tcp6://[fd00::2]:50537";
  expect(find_launch({}, of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})),
         1, 2, "127.0.0.1", "OpenMPI");
  expect(find_launch({}, of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}, {"OMPI_MCA_orte_hnp_uri", head}})),
         1, 2, "192.0.2.7", "OpenMPI");
  EXPECT_THAT(refusal({}, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}, {"OMPI_MCA_orte_hnp_uri", head},
                           {"OMPI_MCA_orte_local_daemon_uri", "123.1;tcp://192.0.2.8:1"}}),
              HasSubstr("OpenMPI does not name the host of rank 0"));
}

TEST(Launch, WhatIsHalfOrWrongIsNamed) {
  EXPECT_THAT(refusal({}, {}), HasSubstr("no launcher"));
  EXPECT_THAT(refusal({.rank = 1}, {}), HasSubstr("--ranks is missing"));
  EXPECT_THAT(refusal({.rank = 1, .ranks = 2}, {}), HasSubstr("--root is missing"));
  EXPECT_THAT(refusal({.rank = 2, .ranks = 2, .root = "h"}, {}), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(refusal({}, {{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE is set but RANK is not"));
  EXPECT_THAT(refusal({}, {{"SLURM_PROCID", "2"}}), HasSubstr("SLURM_STEP_NUM_TASKS is not"));
  EXPECT_THAT(refusal({}, {{"RANK", "two"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is 'two'"));
  EXPECT_THAT(refusal({}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}), HasSubstr("does not name the host of rank 0"));
  EXPECT_THAT(refusal({}, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), HasSubstr("PMI_RANK is set but PMI_FD is not"));
  EXPECT_THAT(refusal({}, {{"PMI_SIZE", "2"}}), HasSubstr("PMI_SIZE is set but PMI_FD is not"));
  EXPECT_THAT(refusal({}, {{"PMIX_RANK", "1"}}), HasSubstr("PMIX_RANK is set, but"));
  EXPECT_THAT(refusal({}, {{"JOB_COMPLETION_INDEX", "1"}}), HasSubstr("--ranks is not"));
  EXPECT_THAT(refusal({}, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", "n[1-2"}}),
              HasSubstr("without ']'"));
}

TEST(Launch, FirstOfANodeList) {
  EXPECT_EQ(first_host("n1"), "n1");
  EXPECT_EQ(first_host("n1,n2"), "n1");
  EXPECT_EQ(first_host("n[001-016,20],m3"), "n001");
  EXPECT_EQ(first_host("rack[2-3]n[4,7]-ib,x"), "rack2n4-ib");
}

TEST(Launch, LeafOfSlurmsTopology) {
  EXPECT_EQ(leaf_of("spine.leaf1.n1"), "leaf1");
  EXPECT_EQ(leaf_of("leaf1.n1"), "leaf1");
  EXPECT_EQ(leaf_of("n1"), "");
  EXPECT_EQ(leaf_of(""), "");
  EXPECT_EQ(pod_of("core.pod1.leaf1.n1"), "pod1");
  for (const char* none : {"spine.leaf1.n1", "leaf1.n1", "n1", ".", ".n1", ""}) EXPECT_EQ(pod_of(none), "") << none;
}

TEST(Plan, IsWhatTheScheduleHolds) {
  const Plan plan = make_plan(uniform_fabric(8, 2, 0), {}, {0.5, 10});
  EXPECT_EQ(plan.rounds, 7u);
  EXPECT_EQ(plan.links, 56u);
  EXPECT_EQ(plan.most_links, 8u);
  EXPECT_DOUBLE_EQ(plan.seconds, 7);
  EXPECT_DOUBLE_EQ(plan.gigabytes, 56 * 2 * 0.5 * 10);
  EXPECT_DOUBLE_EQ(plan.most_gbytes, 80);
  EXPECT_DOUBLE_EQ(plan.nic_seconds, 3.5);
}

TEST(Plan, WhatIsInFlightTakesItsTimeAtBothEndsOfARun) {
  PlanRates rates{0.5, 10, 0.1, 6, 0.25};
  EXPECT_DOUBLE_EQ(make_plan(uniform_fabric(8, 1, 0), {}, rates).seconds, 7 * (6 * 0.6 + 2 * 2 * 0.25));
}

TEST(Plan, PatternsComeOnTop) {
  const PlanRates rates{1, 10, 0.5};
  const Pattern ring[] = {Pattern::kRing};
  const PatternPlan plan = plan_patterns(uniform_fabric(8, 2, 0), ring, 1, rates);
  EXPECT_EQ(plan.steps, 1u);
  EXPECT_DOUBLE_EQ(plan.seconds, 1.5);
  EXPECT_DOUBLE_EQ(plan.gigabytes, 160) << "each NIC sends to the next";
}

}  // namespace
}  // namespace gdrperf::cluster
