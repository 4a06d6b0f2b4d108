#include "app/options/no_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <fmt/ranges.h>

namespace gdrperf::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr gdrperf::Test kWriteBw{Operation::kWrite, Metric::kBandwidth};
constexpr gdrperf::Test kWriteLat{Operation::kWrite, Metric::kLatency};
constexpr gdrperf::Test kSendBw{Operation::kSend, Metric::kBandwidth};

class WithoutEffect : public ::testing::Test {
 protected:
  std::vector<std::string> of(const std::vector<gdrperf::Test>& tests, std::set<std::string> typed, bool gpu = false) {
    return without_effect(options_, tests, gpu, [&](const std::string& flag) { return typed.contains(flag); });
  }

  ClientOptions options_;
};

TEST_F(WithoutEffect, NothingTypedIsNothingToSay) { EXPECT_THAT(of(all_tests(), {}), IsEmpty()); }

TEST_F(WithoutEffect, GpuOptionsOnHostMemory) {
  options_.paths = {Path::kDirect, Path::kStaged};
  const std::set<std::string> typed{"--chunk", "--register", "--path"};
  EXPECT_THAT(of({kWriteBw}, typed), SizeIs(3));
  EXPECT_THAT(of({kWriteBw}, typed).front(), HasSubstr("--register changes nothing"));
  EXPECT_THAT(of({kWriteBw}, typed, true), IsEmpty());
  options_.paths = {Path::kDirect};
  EXPECT_THAT(of({kWriteBw}, typed, true), SizeIs(1)) << "chunks are copied where data is staged";
  options_.spec.client.buffer = "staged:0";
  EXPECT_THAT(of({kWriteBw}, typed, true), IsEmpty());
}

TEST_F(WithoutEffect, QueuesOfLatencyTests) {
  EXPECT_THAT(of({kWriteLat}, {"-t", "-Q", "--footprint"}), SizeIs(3));
  EXPECT_THAT(of({kWriteLat, kWriteBw}, {"-t", "-Q", "--footprint"}), IsEmpty());
}

TEST_F(WithoutEffect, ReceivesOfTestsThatHaveNone) {
  EXPECT_THAT(of({kWriteBw}, {"-r"}), SizeIs(1));
  EXPECT_THAT(of({kWriteBw, kSendBw}, {"-r"}), IsEmpty());
  EXPECT_THAT(of({kWriteLat}, {"-r"}, true), IsEmpty()) << "its rounds end with receives";
}

TEST_F(WithoutEffect, PrecisionOfARunThatEndsOtherwise) {
  EXPECT_THAT(of({kWriteBw}, {"--precision", "--cap"}), IsEmpty());
  options_.spec.stop.duration = std::chrono::seconds(1);
  EXPECT_THAT(fmt::format("{}", fmt::join(of({kWriteBw}, {"--precision", "--cap"}), "; ")),
              HasSubstr("--cap changes nothing: -D decides when"));
  EXPECT_THAT(of({kWriteBw}, {"--precision"}).front(),
              HasSubstr("--precision does not end the run, -D does; a result"));
  options_.spec.stop.duration.reset();
  options_.spec.stop.iterations = 5;
  EXPECT_THAT(of({kWriteBw}, {"--cap"}).front(), HasSubstr("-n decides when"));
}

TEST_F(WithoutEffect, APortOfNobody) {
  EXPECT_THAT(of({kWriteBw}, {"-p"}), IsEmpty());
  options_.local = true;
  EXPECT_THAT(of({kWriteBw}, {"-p"}), SizeIs(1));
}

}  // namespace
}  // namespace gdrperf::app
