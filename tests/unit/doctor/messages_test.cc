// Messages of other programs as users paste them: tests/data/doctor/messages.tsv says what the doctor makes of each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "machine.h"
#include "gdrperf/base/file.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// check, verdict, words, message
std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> columns;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    columns.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return columns;
}

std::string told(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& finding : findings) {
    all += std::string(to_string(finding.verdict)) + " " + finding.check + ": " + finding.found + " => " + finding.fix +
           "\n";
  }
  return all;
}

TEST(Messages, AreUnderstood) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  if (root == nullptr) GTEST_SKIP() << "GDRPERF_SOURCE_ROOT is not set";
  const std::string text = read_file(std::string(root) + "/tests/data/doctor/messages.tsv", 1u << 20);
  int count = 0;
  for (const std::string_view line : lines_of(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto columns = columns_of(line);
    ASSERT_EQ(columns.size(), 4u) << line;
    ++count;
    const auto findings = read_capture(columns[3] + "\n");
    const bool understood = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.check == columns[0] && to_string(finding.verdict) == columns[1] &&
             in_lower_case(finding.found + finding.fix + finding.for_good).find(in_lower_case(columns[2])) !=
                 std::string::npos;
    });
    EXPECT_TRUE(understood) << columns[3] << "\n" << told(findings);
    for (const Finding& finding : findings) {
      if (finding.verdict == Verdict::kWarn || finding.verdict == Verdict::kFail) {
        EXPECT_THAT(finding.fix, Not(IsEmpty())) << columns[3];
      }
    }
  }
  EXPECT_GE(count, 90);
}

TEST(Messages, ALineThatWasUnderstoodIsNotLeftToARuleThatKnowsLess) {
  const std::string line =
      "NCCL WARN NET/OFI Unable to register memory (type = 2) for device 4. RC: -22, Error: Invalid argument\n";
  const auto findings = read_capture(line + line + line);
  ASSERT_EQ(findings.size(), 1u) << told(findings);
  EXPECT_THAT(findings[0].fix, HasSubstr("FI_EFA_SET_CUDA_SYNC_MEMOPS=0"));
}

TEST(Messages, AVgpuIsTheCause) {
  const auto findings = read_capture(
      "[pid = 56, dev = 0] device name = [NVIDIA A30-8C]\ncuMemAlloc() of a 262144 bytes GPU buffer\nCouldn't allocate "
      "MR\n"
      "failed to create mr\nERRNO: Bad address.\n");
  EXPECT_EQ(finding_of(findings, "vgpu").verdict, Verdict::kFail) << told(findings);
  const auto geforce =
      read_capture("[pid = 5, dev = 0] device name = [NVIDIA GeForce RTX 3090]\nCouldn't allocate MR\n");
  EXPECT_THAT(told(of_check(geforce, "gpu-registration")), HasSubstr("does no GPUDirect RDMA"));
}

TEST(Messages, AnEmptyListOfDevices) {
  const std::string heading = "    device                 node GUID\n    ------              ----------------\n";
  EXPECT_EQ(finding_of(read_capture(heading), "rdma-device").verdict, Verdict::kFail);
  EXPECT_TRUE(of_check(read_capture(heading + "    mlx5_0              e89e490300356eaa\n"), "rdma-device").empty());
}

TEST(Messages, RoomThatBridgesLackIsNoFault) {
  const auto findings = read_capture(
      "pci 0000:00:1c.0: BAR 13: no space for [io  size 0x1000]\npci 0000:00:1c.0: BAR 15: no space for "
      "[mem size 0x00200000 64bit pref]\n");
  EXPECT_TRUE(of_check(findings, "bar1").empty());
}

TEST(Messages, AGidIndexOfTheWrongType) {
  const std::string table =
      "mlx5_0  1       4       0000:0000:0000:0000:0000:ffff:0a0c:0015 10.12.0.21      v1      net1\n"
      "mlx5_0  1       5       0000:0000:0000:0000:0000:ffff:0a0c:0015 10.12.0.21      v2      net1\n";
  EXPECT_EQ(
      told(of_check(read_capture("export NCCL_IB_GID_INDEX=4\n" + table), "gid-index")).find("index 4 was asked for") !=
          std::string::npos,
      true);
  const auto right = of_check(read_capture("export NCCL_IB_GID_INDEX=5\n" + table), "gid-index");
  EXPECT_THAT(told(right), Not(HasSubstr("was asked for")));
  // As in a pod: nothing below 4.
  EXPECT_THAT(told(right), HasSubstr("NCCL_IB_GID_INDEX=5 UCX_IB_GID_INDEX=5"));
}

}  // namespace
}  // namespace gdrperf::doctor
