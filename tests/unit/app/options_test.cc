// Handling of the words of a command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>

#include "app/options/options.h"
#include "app/client/softnic_exec.h"
#include "app/options/no_effect.h"
#include "app/options/suggest.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "gdrperf/base/units.h"
#include "app/test/perftest.h"
#include "gdrperf/perftest/options.h"

namespace gdrperf::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Suggestions, AreNearInLetters) {
  const std::vector<std::string> known = {"-s",         "--size",     "--sizes", "--tx-depth",
                                          "--rx-depth", "--peer-dev", "-d",      "--duration"};
  EXPECT_THAT(suggestions("--sise", known), ElementsAre("--size", "--sizes"));
  EXPECT_THAT(suggestions("--tx_depth", known), ElementsAre("--tx-depth", "--rx-depth"));
  EXPECT_THAT(suggestions("--SIZE", known), ElementsAre("--size", "--sizes"));
  EXPECT_THAT(suggestions("--dur", known), ElementsAre("--duration"));
  EXPECT_THAT(suggestions("--peer-dve", known), ElementsAre("--peer-dev"));
  EXPECT_THAT(suggestions("-z", known), IsEmpty());
  EXPECT_THAT(suggestions("--cake", known), IsEmpty());
  EXPECT_THAT(suggestions("", known), IsEmpty());
  EXPECT_THAT(suggestions(std::string(100'000, 'x'), known), IsEmpty());
}

TEST(PerftestOptions, AreSpelledOnceEach) {
  std::set<std::string_view> seen;
  for (const PerftestOption& each : perftest_options()) {
    for (const std::string_view flag : split(each.flags, ',')) EXPECT_TRUE(seen.insert(flag).second) << flag;
    EXPECT_EQ(each.fate == PerftestFate::kRefused, *each.instead != 0) << each.flags;
    EXPECT_EQ(std::string_view(each.text).find(" | "), std::string_view::npos) << each.flags;
  }
}

TEST(PerftestOptions, AreNamedWhereACommandHasNone) {
  EXPECT_THAT(perftest_note("-F"), HasSubstr("leave -F out"));
  EXPECT_THAT(perftest_note("--cuda_mem_type=1"), HasSubstr("--buffer"));
  EXPECT_EQ(perftest_note("--size"), "");
  EXPECT_EQ(perftest_note("--cake"), "");
}

TEST(PerftestNames, AreOfItsPrograms) {
  EXPECT_EQ(own_test("ib_write_bw"), "write_bw");
  EXPECT_EQ(own_test("/usr/local/bin/ib_atomic_lat"), "atomic_lat");
  EXPECT_EQ(own_test("ib_write_bw_nongdr"), "write_bw");
  for (const char* other : {"write_bw", "ib_dance_bw", "ib_", "", "/", "ib_write_bw/"})
    EXPECT_EQ(own_test(other), "") << other;
}

TEST(PerftestNames, BecomeCommandsOfThisProgram) {
  EXPECT_THAT(as_own_command({"/bin/ib_read_bw", "h", "-o", "16"}),
              ElementsAre("gdrperf", "read_bw", "--as-perftest", "h", "--outs", "16"));
  EXPECT_THAT(as_own_command({"gdrperf", "ib_read_bw", "-o16", "--out_json"}),
              ElementsAre("gdrperf", "read_bw", "--as-perftest", "--outs=16", "--out_json"));
  EXPECT_THAT(as_own_command({"gdrperf", "sweep", "-o", "x"}), ElementsAre("gdrperf", "sweep", "-o", "x"));
  EXPECT_THAT(as_own_command({"gdrperf"}), ElementsAre("gdrperf"));
}

TEST(PerftestLimits, HaveTheUnitOfTheReport) {
  PerftestTyped typed;
  const gdrperf::Test bandwidth{Operation::kWrite, Metric::kBandwidth};
  const std::vector<std::uint64_t> one = {4096};
  OutputOptions output;
  require_typed(typed, bandwidth, one, output);
  EXPECT_FALSE(output.required.min_gbps);
  typed.least_rate = 1000;
  require_typed(typed, bandwidth, one, output);
  EXPECT_DOUBLE_EQ(output.required.min_gbps.value(), 1000.0 * 1048576 * 8 / 1e9);
  output = {};
  output.rate_unit = report::RateUnit::kGigabits;
  typed.least_mpps = 2;  // 65.5 Gb/s at 4 KiB: less than the other limit
  require_typed(typed, bandwidth, one, output);
  EXPECT_DOUBLE_EQ(output.required.min_gbps.value(), 1000);
  typed.least_rate.reset();
  output.required = {};
  require_typed(typed, bandwidth, one, output);
  EXPECT_DOUBLE_EQ(output.required.min_gbps.value(), 65.536);
  EXPECT_THROW(require_typed(typed, bandwidth, std::vector<std::uint64_t>{64, 4096}, output), Error);
}

TEST(ParseInteger, TakesTheWholeTextOnly) {
  EXPECT_EQ(parse_integer("7", "-q", 1, 10), 7);
  for (const char* bad :
       {"", " 7", "7 ", "7k", "0x7", "1e1", "0", "11", "-1", "99999999999999999999"}) {
    try {
      parse_integer(bad, "-q", 1, 10);
      ADD_FAILURE() << "accepted '" << bad << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_THAT(error.what(), ::testing::StartsWith("-q "));
    }
  }
}

TEST(ParsePercent, IsAFraction) {
  EXPECT_DOUBLE_EQ(parse_percent("1", "--precision"), 0.01);
  EXPECT_DOUBLE_EQ(parse_percent("0.5%", "--precision"), 0.005);
  EXPECT_DOUBLE_EQ(parse_percent("2 %", "--precision"), 0.02);
  for (const char* bad : {"", "%", "0", "100", "-1", "nan", "inf", "1 %%", "1 percent"}) {
    EXPECT_THROW(parse_percent(bad, "--precision"), Error) << bad;
  }
}

TEST(SpecFor, LocalUsesOneDeviceForBothEndsUnlessTold) {
  ClientOptions options;
  options.local = true;
  options.spec.client.device = "a";
  options.spec.client.port = 2;
  const gdrperf::Test test{Operation::kRead, Metric::kLatency};
  TestSpec spec = spec_for(options, test, 9);
  EXPECT_EQ(spec.server.device, "a");
  EXPECT_EQ(spec.server.port, 2);
  EXPECT_EQ(spec.size_bytes, 9u);
  EXPECT_EQ(spec.test, test);
  options.spec.server.device = "b";
  spec = spec_for(options, test, 9);
  EXPECT_EQ(spec.server.device, "b");
  EXPECT_EQ(spec.server.port, 0);
  options.local = false;
  options.spec.server.device.clear();
  EXPECT_EQ(spec_for(options, test, 9).server.device, "");
}

TEST(AllSizes, Are2BytesTo8MiB) {
  const auto sizes = all_sizes();
  ASSERT_EQ(sizes.size(), 23u);
  EXPECT_EQ(sizes.front(), 2u);
  EXPECT_EQ(sizes.back(), 8u << 20);
}

TEST(PreloadWith, PutsTheLibraryInFrontOnce) {
  const std::string library = "/lib/libgdrperf_softnic.so";
  EXPECT_EQ(preload_with(library, ""), library);
  EXPECT_EQ(preload_with(library, "/a.so:b.so"), library + ":/a.so:b.so");
  EXPECT_EQ(preload_with(library, library), library);
  EXPECT_EQ(preload_with(library, "/a.so /other/libgdrperf_softnic.so"),
            "/a.so /other/libgdrperf_softnic.so");
  EXPECT_EQ(preload_with(library, ":"), library + "::");
}

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
