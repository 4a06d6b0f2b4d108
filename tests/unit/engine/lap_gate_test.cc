#include "engine/session/lap_gate.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

constexpr std::uint64_t kLapBytes = 1000;
constexpr double kLapNs = 20e6;

TestSpec lap_spec() {
  TestSpec spec;
  spec.size_bytes = kLapBytes;
  return spec;
}

std::vector<PartCurve> curves_of(const LapGate& gate, std::size_t parts) {
  return gate.curves(std::vector<PartCurve>(parts), lap_spec());
}

/// `laps` of both runs, the second beginning 2 ms after the first and sending twice as much.
void go_together(LapGate& gate, int laps, bool alone) {
  const auto go = [&](int part) {
    for (int lap = 0; lap < laps; ++lap) {
      gate.meet([] {});
      const double from_ns = lap * 10 * kLapNs + part * 2e6;
      gate.add(part, {from_ns, from_ns + kLapNs, 100u * static_cast<std::uint64_t>(part + 1), alone});
    }
  };
  std::thread other([&] { go(1); });
  go(0);
  other.join();
}

TEST(LapGate, ALapLastsFromTheFirstPostToTheLastCompletion) {
  LapGate gate(2);
  EXPECT_FALSE(gate.any());
  go_together(gate, 30, false);
  gate.leave();
  gate.leave();
  EXPECT_TRUE(gate.any());
  const Together::Sum sum = sum_of(curves_of(gate, 2), lap_spec());
  const double lap_s = (kLapNs + 2e6) * 1e-9;
  EXPECT_NEAR(sum.measured.duration_s, 30 * lap_s, 1e-9);
  EXPECT_EQ(sum.measured.iterations, 30u * 300);
  EXPECT_NEAR(sum.measured.bandwidth->median_gbytes, 300 * kLapBytes / lap_s * 1e-9, 1e-12);
  EXPECT_NEAR(sum.gbytes[1], 2 * sum.gbytes[0], 1e-12);
  EXPECT_NEAR(sum.gbytes[0] + sum.gbytes[1], sum.measured.bandwidth->mean_gbytes, 1e-12);
  EXPECT_NEAR(sum.start_spread_s, 2e-3, 1e-12);
}

TEST(LapGate, LapsOfFewerCountOnlyWhereNumbersDo) {
  for (const bool alone : {false, true}) {
    LapGate gate(2);
    go_together(gate, 10, alone);
    gate.leave();
    gate.meet([] {});
    gate.add(1, {0, kLapNs, 7, alone});
    gate.leave();
    const std::vector<PartCurve> curves = curves_of(gate, 2);
    EXPECT_EQ(curves[0].run.sent, 1000u);
    EXPECT_EQ(curves[1].run.sent, 2000u + (alone ? 7 : 0));
  }
}

TEST(LapGate, AFailureFreesThoseWhoWait) {
  LapGate gate(2);
  std::thread waiting([&] { EXPECT_THROW(gate.meet([] {}), Error); });
  gate.give_up();
  waiting.join();
}

}  // namespace
}  // namespace gdrperf::engine
