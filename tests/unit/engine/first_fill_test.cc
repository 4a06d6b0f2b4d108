#include "engine/figures/first_fill.h"

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

/// Round trips of `round_trip_s`, in each of which `outstanding` messages follow each other after `message_s`.
FirstFill fill_of(int messages, int outstanding, double message_s, double round_trip_s) {
  FirstFill fill;
  for (int i = 0; i < messages; ++i) {
    const double period_s = outstanding * message_s > round_trip_s ? outstanding * message_s : round_trip_s;
    fill.add(static_cast<std::uint64_t>(i) + 1, round_trip_s + i / outstanding * period_s + i % outstanding * message_s);
  }
  return fill;
}

TEST(FirstFill, AFullPipeHasNoClumps) {
  EXPECT_EQ(fill_of(128, 128, 0.0065, 0.0465).clump(), 0u);
  EXPECT_EQ(fill_of(8, 8, 0.84, 0.88).clump(), 0u);
  EXPECT_EQ(fill_of(1, 1, 0.001, 0.0465).clump(), 0u);
  EXPECT_EQ(FirstFill().clump(), 0u);
}

TEST(FirstFill, APipeFullThatEndsBeforeItsRoundTripIsAClump) {
  const FirstFill fill = fill_of(4, 4, 0.0065, 0.0465);
  EXPECT_EQ(fill.clump(), 4u);
  EXPECT_DOUBLE_EQ(fill.round_trip_s(), 0.0465);
}

TEST(FirstFill, ReadsOutstandingAreFewerThanPosted) { EXPECT_EQ(fill_of(128, 16, 0.0001, 0.0465).clump(), 16u); }

}  // namespace
}  // namespace gdrperf::engine
