#include "cluster/output/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cluster/output/compare.h"
#include "cluster/output/export.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

ClusterFile cluster_of(double third_percent) {
  ClusterFile file;
  file.started = "2026-01-02T03:04:05Z";
  file.verdict = third_percent < -3 ? "slow" : "fine";
  file.typical_gbytes = 40;
  for (int i = 0; i < 4; ++i) {
    const std::string host = i == 2 ? "n2; rm -rf /" : "n" + std::to_string(i);
    const double shift = i == 2 ? third_percent : 0;
    const FileEffect effect{true, shift, shift - 0.5, shift + 0.5};
    file.ranks.push_back({i, host, i == 3 ? "no answer within 10 s" : ""});
    file.nics.push_back({i, host, "mlx5_0", 0, effect, effect});
  }
  FileSuspect suspect;
  suspect.part = "nic";
  suspect.verdict = "slow";
  suspect.rank = suspect.nic = 2;
  suspect.percent = third_percent;
  suspect.way = "both";
  suspect.retests = 18;
  if (file.verdict == "slow") file.suspects.push_back(suspect);
  suspect.part = "pair";
  suspect.nic = 0;
  suspect.peer = 1;
  if (file.verdict == "slow") file.suspects.push_back(suspect);
  return file;
}

TEST(ClusterExport, DrainsSlowAndLostNodesAndNothingAHostCouldSay) {
  const std::string text = export_cluster(cluster_of(-12.5), ClusterFormat::kSlurm);
  EXPECT_THAT(text,
              HasSubstr("scontrol update NodeName=n2__rm_-rf__ State=DRAIN Reason=\"gdrperf: NIC mlx5_0 -12.5 %\"\n"));
  EXPECT_THAT(text, HasSubstr("NodeName=n3 State=DRAIN Reason=\"gdrperf: lost: no answer within 10 s\""));
  EXPECT_THAT(text, Not(HasSubstr("\nscontrol update NodeName=n0 ")));
  // The scheduler's own name of a host, and what is no rate.
  ClusterFile file = cluster_of(-12.5);
  file.ranks[2].node = "rack2-n2";
  file.losing = {1};
  file.failed = {{0, "cannot make a QP; $(reboot)"}};
  file.ranks.push_back({4, "", "did not come within 60 s"});
  const std::string more = export_cluster(file, ClusterFormat::kSlurm);
  EXPECT_THAT(more, HasSubstr("NodeName=rack2-n2 State=DRAIN Reason=\"gdrperf: NIC mlx5_0 -12.5 %\"\n"));
  EXPECT_THAT(more, HasSubstr("NodeName=n1 State=DRAIN Reason=\"gdrperf: NIC mlx5_0 loses messages or packets\"\n"));
  EXPECT_THAT(more, HasSubstr("NodeName=n0 State=DRAIN Reason=\"gdrperf: NIC mlx5_0 none of its runs worked: "
                              "cannot make a QP_ _(reboot)\"\n"));
  EXPECT_THAT(more, HasSubstr("# rank 4 never came: did not come within 60 s\n"));
  EXPECT_THAT(text, HasSubstr("# pair mlx5_0 of n0 (rank 0) and mlx5_0 of n1 (rank 1) is slow"));
}

TEST(ClusterExport, NoHostIsAllNodesAndNoDocumentIsACommand) {
  ClusterFile file = cluster_of(-12.5);
  for (const char* name : {"--all", "ALL", "all"}) {
    file.ranks[2].node = name;
    for (const ClusterFormat format : {ClusterFormat::kSlurm, ClusterFormat::kKubernetes}) {
      const std::string text = export_cluster(file, format);
      EXPECT_THAT(text, Not(HasSubstr(std::string(" nodes ") + name + " ")));
      EXPECT_THAT(text, Not(HasSubstr(std::string("=") + name + " ")));
    }
  }
  file = cluster_of(-12.5);
  file.started = file.verdict = "now\nreboot\r";
  file.nics[0].device = "mlx5_0\nreboot\r";
  for (const ClusterFormat format : {ClusterFormat::kSlurm, ClusterFormat::kKubernetes}) {
    EXPECT_THAT(export_cluster(file, format), Not(AnyOf(HasSubstr("\nreboot"), HasSubstr("\r"))));
  }
}

TEST(ClusterExport, LabelsAndTaintsNodes) {
  const std::string text = export_cluster(cluster_of(-12.5), ClusterFormat::kKubernetes);
  EXPECT_THAT(text, HasSubstr("kubectl label nodes n3 gdrperf/slow=true --overwrite"));
  EXPECT_THAT(text, HasSubstr("kubectl taint nodes n2__rm_-rf__ gdrperf/slow=true:NoSchedule"));
  // What undoes it takes away both.
  EXPECT_THAT(text, HasSubstr("kubectl taint nodes NODE gdrperf/slow-; kubectl label nodes NODE gdrperf/slow-"));
}

TEST(ClusterExport, MetricsAndPage) {
  const std::string metrics = export_cluster(cluster_of(-12.5), ClusterFormat::kPrometheus);
  EXPECT_THAT(metrics, HasSubstr("gdrperf_cluster_verdict{verdict=\"slow\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("gdrperf_cluster_nic_shift_ratio{host=\"n2; rm -rf "
                                 "/\",device=\"mlx5_0\",rank=\"2\",way=\"sends\"} -0.125\n"));
  EXPECT_THAT(metrics,
              HasSubstr("gdrperf_cluster_rank_lost{rank=\"3\",host=\"n3\",why=\"no answer within 10 s\"} 1\n"));
  EXPECT_THAT(export_cluster(cluster_of(-12.5), ClusterFormat::kMarkdown),
              HasSubstr("| NIC mlx5\\_0 of n2; rm -rf / (rank 2) | slow | -12.5 % | sends and receives | 18 |"));
  EXPECT_THROW(parse_cluster_format("xml"), Error);
}

TEST(ClusterExport, ANicThatFailedIsAMetricWithItsReason) {
  ClusterFile file = cluster_of(0);
  file.failed = {{1, "cannot make a QP"}};
  file.losing = {2};
  const std::string metrics = export_cluster(file, ClusterFormat::kPrometheus);
  EXPECT_THAT(metrics, HasSubstr("gdrperf_cluster_nic_sick{host=\"n1\",device=\"mlx5_0\",why=\"failed\","
                                 "reason=\"cannot make a QP\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("device=\"mlx5_0\",why=\"losses\"} 1\n"));
}

TEST(ClusterExport, ANodeWhoseNicsAllFailedIsOneReason) {
  ClusterFile file = cluster_of(0);
  file.nics.push_back({1, "n1", "mlx5_1", 1, {}, {}});
  file.failed = {{1, "cannot make a QP"}};
  EXPECT_THAT(export_cluster(file, ClusterFormat::kSlurm), HasSubstr("NIC mlx5_0 none of its runs worked: cannot"));
  file.failed[4] = "cannot make a QP";
  const std::string text = export_cluster(file, ClusterFormat::kSlurm);
  EXPECT_THAT(text, HasSubstr("Reason=\"gdrperf: none of the runs of its 2 NICs worked: cannot make a QP\"\n"));
}

TEST(ClusterExport, OnePartInFourSeriesIsOnePart) {
  ClusterFile file = cluster_of(-12.5);
  file.suspects.pop_back();
  for (const char* series : {"small_bandwidth", "latency", "small_latency"}) {
    file.suspects.push_back(file.suspects.front());
    file.suspects.back().series = series;
    file.suspects.back().percent = -50;
  }
  EXPECT_THAT(export_cluster(file, ClusterFormat::kMarkdown),
              HasSubstr("| -12.5 %, -50.0 % with small messages, +100.0 % latency, +100.0 % latency | sends"));
  const auto lines_with = [](const std::string& text, const std::string& what) {
    int lines = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++lines;
    return lines;
  };
  EXPECT_EQ(lines_with(export_cluster(file, ClusterFormat::kMarkdown), "| NIC "), 1);
  EXPECT_EQ(lines_with(export_cluster(file, ClusterFormat::kPrometheus), "gdrperf_cluster_slow{"), 1);
  EXPECT_EQ(lines_with(export_cluster(file, ClusterFormat::kSlurm), "NIC mlx5_0"), 1);
}

TEST(ClusterCompare, NamesTheNicThatBecameSlow) {
  const ClusterFile before = cluster_of(0);
  const ClusterFile after = cluster_of(-12.5);
  const ClusterComparison comparison = compare_clusters(before, after);
  EXPECT_EQ(verdict_of(comparison, before, after, 0.02), ExitCode::kRegression);
  EXPECT_EQ(verdict_of(comparison, before, after, 0.2), ExitCode::kOk);
  EXPECT_THAT(to_text(comparison, before, after, 0.02),
              HasSubstr("SLOWER NIC mlx5_0 of n2; rm -rf / when it sends: -12.5 % (40 to 35 GB/s)"));
  EXPECT_EQ(verdict_of(compare_clusters(after, before), after, before, 0.02), ExitCode::kOk);
}

TEST(ClusterCompare, SeveralResultsAreOneBaselineWithTheirRange) {
  const ClusterFile combined = combine_clusters({cluster_of(-2), cluster_of(1), cluster_of(0)});
  ASSERT_EQ(combined.nics.size(), 4u);
  EXPECT_EQ(combined.started, "3 results up to 2026-01-02T03:04:05Z");
  const FileEffect& third = combined.nics[2].sends;
  EXPECT_NEAR(third.shift_percent, 0, 1e-9);
  EXPECT_NEAR(third.low_percent, -2.5, 1e-9);
  EXPECT_NEAR(third.high_percent, 1.5, 1e-9);
  // Within what it was before, and below that.
  EXPECT_EQ(verdict_of(compare_clusters(combined, cluster_of(-2)), combined, cluster_of(-2), 0.01), ExitCode::kOk);
  EXPECT_EQ(verdict_of(compare_clusters(combined, cluster_of(-4)), combined, cluster_of(-4), 0.01),
            ExitCode::kRegression);
}

TEST(ClusterCompare, WhatOverlapsIsNoRegressionAndNothingInCommonIsNoAnswer) {
  const ClusterFile before = cluster_of(0);
  const ClusterFile after = cluster_of(-0.9);
  EXPECT_EQ(verdict_of(compare_clusters(before, after), before, after, 0.001), ExitCode::kOk);
  ClusterFile other = cluster_of(0);
  for (FileNic& nic : other.nics) nic.host += "x";
  const ClusterComparison comparison = compare_clusters(before, other);
  EXPECT_EQ(comparison.gone, 4u);
  EXPECT_EQ(comparison.fresh, 4u);
  EXPECT_EQ(verdict_of(comparison, before, other, 0.02), ExitCode::kInconclusive);
  ClusterFile partial = cluster_of(0);
  partial.partial = true;
  EXPECT_EQ(verdict_of(compare_clusters(before, partial), before, partial, 0.02), ExitCode::kInconclusive);
}

TEST(ClusterFile, PackedMeasurementsAreTwelveBytes) {
  const std::string bytes = pack_measurements({{1, 258, 1.0F}});
  EXPECT_EQ(bytes, std::string("\1\0\0\0\2\1\0\0\0\0\x80\x3f", 12));
}

TEST(ClusterFile, LeavesOfJsonAndOfSlurm) {
  const cluster::Leaves wanted = {{"n1", "leaf1"}, {"n2", "leaf1"}};
  EXPECT_EQ(parse_leaves(" {\"leaf1\": [\"n1\", \"n2\"]}", "f"), wanted);
  EXPECT_EQ(parse_leaves("{\"pod1\": {\"leaf1\": [\"n1\", \"n2\"]}}", "f"), wanted);
  EXPECT_EQ(parse_leaf_pods("{\"pod1\": {\"leaf1\": [\"n1\", \"n2\"]}}"), (cluster::Pods{{"leaf1", "pod1"}}));
  EXPECT_TRUE(parse_leaf_pods("{\"leaf1\": [\"n1\", \"n2\"]}").empty());
  EXPECT_EQ(parse_leaves("SwitchName=leaf1 Nodes=n[1-2]\n", "f"), wanted);
  EXPECT_THROW(parse_leaves("{\"leaf1\": [1]}", "f"), Error);
  EXPECT_THROW(parse_leaves("{\"leaf1\"", "f"), Error);
}

TEST(ClusterFile, OtherTextIsRefused) {
  for (const char* text :
       {"", "[]", "{}", "{\"schema\": \"gdrperf-cluster/2\"}", "{\"schema\": \"gdrperf-cluster/1\"}"}) {
    EXPECT_THROW(parse_cluster(text, "x.json"), Error) << text;
  }
  EXPECT_TRUE(is_cluster_document("{\n \"schema\": \"gdrperf-cluster/1\","));
  EXPECT_FALSE(is_cluster_document("{\n \"schema\": \"gdrperf/1\","));
}

}  // namespace
}  // namespace gdrperf::app
