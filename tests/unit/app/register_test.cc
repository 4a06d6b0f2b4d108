#include "app/client/register_all.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

using ::testing::HasSubstr;

TestSpec spec_in_gpu() {
  TestSpec spec;
  spec.test = {Operation::kWrite, Metric::kBandwidth};
  spec.size_bytes = 1 << 20;
  spec.client.buffer = "cuda:0";
  return spec;
}

/// A NIC without Data Direct and without peer memory.
report::RunRecord run_here(const TestSpec& spec) {
  if (spec.registration == Registration::kDataDirect) throw Error(ExitCode::kEnvironment, "mlx5_0 has no DMA function");
  if (spec.registration == Registration::kPeermem) throw Error(ExitCode::kEnvironment, "ibv_reg_mr: Bad address");
  report::RunRecord record;
  record.spec = spec;
  if (spec.test.metric == Metric::kBandwidth) {
    record.measured.bandwidth.emplace().median_gbytes = spec.registration == Registration::kDmabuf ? 40 : 48;
  } else {
    EXPECT_EQ(spec.size_bytes, 8u);
    record.measured.latency.emplace().p50_ns = 2500;
  }
  return record;
}

TEST(RegisterAll, EachWayIsARow) {
  const auto rows = try_registrations(spec_in_gpu(), run_here);
  ASSERT_EQ(rows.size(), 4u);
  std::ostringstream out;
  print_registrations(rows, spec_in_gpu(), out);
  EXPECT_THAT(out.str(), HasSubstr("mlx5_0 has no DMA function"));
  EXPECT_THAT(out.str(), HasSubstr("Bad address"));
  EXPECT_THAT(out.str(), ::testing::ContainsRegex("dmabuf +yes +40 +2\\.5"));
  EXPECT_THAT(out.str(), ::testing::ContainsRegex("dmabuf-pcie +yes +48 +2\\.5"));
  EXPECT_THAT(out.str(), HasSubstr("it is dmabuf, by rule")) << "though another one was faster here";
}

TEST(RegisterAll, WhereNoneWorksTheWayRoundIsNamed) {
  const auto rows = try_registrations(spec_in_gpu(), [](const TestSpec&) -> report::RunRecord {
    throw Error(ExitCode::kEnvironment, "refused");
  });
  std::ostringstream out;
  print_registrations(rows, spec_in_gpu(), out);
  EXPECT_THAT(out.str(), HasSubstr("--path staged"));
}

TEST(RegisterAll, WhatIsNoRefusalIsThrown) {
  const RunOne lost = [](const TestSpec&) -> report::RunRecord { throw Error(ExitCode::kPeer, "the peer vanished"); };
  EXPECT_THROW(try_registrations(spec_in_gpu(), lost), Error);
  TestSpec host = spec_in_gpu();
  host.client.buffer = "host";
  EXPECT_THROW(check_register_all(host), Error);
}

}  // namespace
}  // namespace gdrperf::app
