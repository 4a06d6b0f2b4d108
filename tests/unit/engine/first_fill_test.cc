#include "engine/figures/first_fill.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

/// A pipe of `posted` messages, and as many more as are needed; message i completes at `when(i)`.
FirstFill fill_of(int posted, const std::function<double(int)>& when) {
  FirstFill fill;
  for (int i = 0; i < posted || fill.needs_more(); ++i) fill.add(static_cast<std::uint64_t>(i) + 1, when(i));
  return fill;
}

/// Round trips of `round_trip_s`, in each of which `outstanding` messages follow each other after `message_s`.
FirstFill link_fill(int posted, int outstanding, double message_s, double round_trip_s) {
  const double period_s = std::max(outstanding * message_s, round_trip_s);
  return fill_of(posted,
                 [=](int i) { return round_trip_s + i / outstanding * period_s + i % outstanding * message_s; });
}

TEST(FirstFill, AFullPipeHasNoClumps) {
  EXPECT_EQ(link_fill(128, 128, 0.0065, 0.0465).clump(), 0u);
  EXPECT_EQ(link_fill(8, 8, 0.84, 0.88).clump(), 0u);
  EXPECT_EQ(link_fill(1, 1, 0.001, 0.0465).clump(), 0u);
  EXPECT_EQ(FirstFill().clump(), 0u);
}

TEST(FirstFill, APipeFullThatEndsBeforeItsRoundTripIsAClump) {
  const FirstFill fill = link_fill(4, 4, 0.0065, 0.0465);
  EXPECT_EQ(fill.clump(), 4u);
  EXPECT_DOUBLE_EQ(fill.round_trip_s(), 0.0465);
}

TEST(FirstFill, ReadsOutstandingAreFewerThanPosted) { EXPECT_EQ(link_fill(128, 16, 0.0001, 0.0465).clump(), 16u); }

TEST(FirstFill, AProgramThatWaitedForACpuHasNoClumps) {
  // Before the first message, and in the middle.
  EXPECT_EQ(fill_of(128, [](int i) { return 0.02 + i * 1e-5; }).clump(), 0u);
  EXPECT_EQ(fill_of(128, [](int i) { return 1e-4 + i * 1e-5 + (i > 20 ? 0.004 : 0) + (i > 100 ? 0.004 : 0); }).clump(),
            0u);
}

TEST(FirstFill, LooksNoLongerThanItMay) {
  // A message takes 3.3 ms; the program waited for a CPU before the 121st.
  const auto wants_more = [](FirstFill fill) {
    for (int i = 1; i <= 150; ++i) {
      fill.add(static_cast<std::uint64_t>(i), i * 0.0033 + (i > 120 ? 0.01 : 0));
      if (i == 128 && !fill.needs_more()) return false;
    }
    return fill.needs_more();
  };
  EXPECT_TRUE(wants_more(FirstFill()));
  EXPECT_TRUE(wants_more(FirstFill(1)));
  EXPECT_FALSE(wants_more(FirstFill(0.45)));
}

}  // namespace
}  // namespace gdrperf::engine
