#include "engine/watch/interval_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace gdrperf::engine {
namespace {

class Kept final : public RunObserver {
 public:
  explicit Kept(double seconds) : seconds_(seconds) {}
  void setting_up(const std::string& /*what*/) override {}
  void measuring(const RunState& /*state*/) override {}
  double interval_seconds() const override { return seconds_; }
  void interval(const IntervalState& state) override { all.push_back(state); }

  std::vector<IntervalState> all;

 private:
  double seconds_;
};

TestSpec spec_of(Metric metric) {
  TestSpec spec;
  spec.test.metric = metric;
  spec.size_bytes = 1000;
  return spec;
}

constexpr double kBatch = 0.005;

/// Batches of `messages` each from batch `first` to before `last`.
void feed(IntervalWatch& watch, int first, int last, std::uint64_t messages) {
  for (int i = first; i < last; ++i) watch.add(i * kBatch, kBatch, messages);
}

TEST(IntervalWatch, TellsWholeIntervalsAndTheRest) {
  Kept kept(0.1);
  IntervalWatch watch(&kept, spec_of(Metric::kBandwidth));
  feed(watch, 0, 50, 10);
  watch.finish();
  ASSERT_EQ(kept.all.size(), 3u);
  double end_s = 0;
  std::uint64_t messages = 0;
  for (const IntervalState& each : kept.all) {
    EXPECT_NEAR(each.start_s, end_s, 1e-9);
    EXPECT_EQ(each.size_bytes, 1000u);
    EXPECT_NEAR(each.slowest_per_s, 2000, 1e-6);
    EXPECT_TRUE(each.dips.empty());
    end_s = each.start_s + each.seconds;
    messages += each.messages;
  }
  EXPECT_NEAR(end_s, 0.25, 1e-9);
  EXPECT_EQ(messages, 500u);
}

TEST(IntervalWatch, OfRunsAtTheSameTimeEndsAtMultiples) {
  Kept kept(0.1);
  IntervalWatch watch(&kept, spec_of(Metric::kBandwidth));
  watch.begin(0.032);
  feed(watch, 0, 60, 10);
  watch.finish();
  ASSERT_EQ(kept.all.size(), 4u);
  EXPECT_NEAR(kept.all[0].start_s, 0.032, 1e-9);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(kept.all[i].start_s + kept.all[i].seconds, 0.1 * static_cast<double>(i + 1) + 0.002, 1e-9);
}

TEST(IntervalWatch, DatesADipInTheIntervalItEndsIn) {
  Kept kept(0.1);
  IntervalWatch watch(&kept, spec_of(Metric::kBandwidth));
  feed(watch, 0, 30, 10);
  feed(watch, 30, 55, 2);
  feed(watch, 55, 60, 10);
  watch.finish();
  ASSERT_EQ(kept.all.size(), 3u);
  EXPECT_TRUE(kept.all[1].dips.empty());
  ASSERT_EQ(kept.all[2].dips.size(), 1u);
  const Dip& dip = kept.all[2].dips[0];
  EXPECT_NEAR(dip.start_s, 0.15, 1e-9);
  EXPECT_NEAR(dip.seconds, 0.125, 1e-9);
  EXPECT_NEAR(dip.messages_per_s, 400, 1e-6);
  EXPECT_NEAR(kept.all[1].slowest_per_s, 400, 1e-6);
}

TEST(IntervalWatch, ADipBeginsAndEndsWithinABatch) {
  Kept kept(0.1);
  IntervalWatch watch(&kept, spec_of(Metric::kBandwidth));
  feed(watch, 0, 30, 100);
  watch.add(30 * kBatch, kBatch, 40);  // 1 ms at 100 a batch, 4 ms at 25 a batch
  feed(watch, 31, 54, 25);
  watch.add(54 * kBatch, kBatch, 55);  // 3 ms at 25, 2 ms at 100
  feed(watch, 55, 60, 100);
  watch.finish();
  ASSERT_EQ(kept.all.back().dips.size(), 1u);
  const Dip& dip = kept.all.back().dips[0];
  EXPECT_NEAR(dip.start_s, 0.151, 1e-9);
  EXPECT_NEAR(dip.seconds, 0.122, 1e-9);
  EXPECT_NEAR(dip.messages_per_s, 5000, 1e-6);
}

TEST(IntervalWatch, AStandstillIsOneLongBatch) {
  Kept kept(0.1);
  IntervalWatch watch(&kept, spec_of(Metric::kBandwidth));
  feed(watch, 0, 10, 10);
  watch.add(0.05, 1.0, 10);
  for (int i = 0; i < 4; ++i) watch.add(1.05 + i * kBatch, kBatch, 10);
  watch.finish();
  std::vector<Dip> dips;
  for (const IntervalState& each : kept.all) dips.insert(dips.end(), each.dips.begin(), each.dips.end());
  ASSERT_EQ(dips.size(), 1u);
  EXPECT_NEAR(dips[0].start_s, 0.05, 1e-9);
  EXPECT_NEAR(dips[0].seconds, 1.0, 1e-9);
}

TEST(IntervalWatch, ALastingDipBecomesTheLevel) {
  Kept kept(1);
  IntervalWatch watch(&kept, spec_of(Metric::kBandwidth));
  feed(watch, 0, 100, 10);
  feed(watch, 100, 100 + static_cast<int>(200 / kBatch), 5);
  watch.finish();
  std::size_t dips = 0;
  for (const IntervalState& each : kept.all) dips += each.dips.size();
  EXPECT_EQ(dips, 1u);
}

TEST(IntervalWatch, RoundTripsHaveThePercentilesOfTheirInterval) {
  Kept kept(0.1);
  IntervalWatch watch(&kept, spec_of(Metric::kLatency));
  for (int i = 0; i < 40; ++i) {
    stats::Histogram rounds;
    for (int each = 0; each < 100; ++each) rounds.record(i < 20 ? 100 : 200);
    watch.add(i * kBatch, kBatch, rounds, 0.5);
  }
  watch.finish();
  ASSERT_EQ(kept.all.size(), 2u);
  EXPECT_EQ(kept.all[0].p50_ns, 50);
  EXPECT_EQ(kept.all[0].max_ns, 50);
  EXPECT_EQ(kept.all[1].p50_ns, 100);
  EXPECT_EQ(kept.all[1].messages, 2000u);
}

TEST(IntervalWatch, SaysNothingToWhoAsksForNone) {
  Kept kept(0);
  IntervalWatch watch(&kept, spec_of(Metric::kBandwidth));
  EXPECT_FALSE(watch.on());
  feed(watch, 0, 100, 10);
  watch.finish();
  EXPECT_TRUE(kept.all.empty());
  EXPECT_FALSE(IntervalWatch(nullptr, spec_of(Metric::kBandwidth)).on());
}

}  // namespace
}  // namespace gdrperf::engine
