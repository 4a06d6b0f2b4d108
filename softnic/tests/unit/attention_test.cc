// What the control thread goes by: whether a program polls for what it posts.

#include "flight/attention.h"

#include <gtest/gtest.h>

namespace gdrperf::softnic {
namespace {

constexpr auto kLeftAlone = [] { return true; };
constexpr auto kUnderWay = [] { return false; };

void poll_and_post(Attention& attention, int times) {
  for (int i = 0; i < times; ++i) {
    attention.polled();
    attention.posted(kLeftAlone);
  }
}

TEST(SoftnicAttention, APollAfterEachOf64PostsShowsIt) {
  Attention attention;
  poll_and_post(attention, 63);
  EXPECT_FALSE(attention.attended());
  poll_and_post(attention, 1);
  EXPECT_TRUE(attention.attended());
  attention.posted(kUnderWay);
  EXPECT_TRUE(attention.attended()) << "the one before is still under way";
  attention.posted(kLeftAlone);
  EXPECT_FALSE(attention.attended());
}

TEST(SoftnicAttention, AMessageLeftAloneBeginsAnew) {
  Attention attention;
  poll_and_post(attention, 64);
  attention.posted(kLeftAlone);
  poll_and_post(attention, 63);
  EXPECT_FALSE(attention.attended());
  poll_and_post(attention, 1);
  EXPECT_TRUE(attention.attended());
}

TEST(SoftnicAttention, BurstsCountForNineAtMost) {
  Attention attention;
  for (int burst = 0; burst < 8; ++burst) {
    EXPECT_FALSE(attention.attended()) << burst;
    attention.polled();
    for (int i = 0; i < 20; ++i) attention.posted(kUnderWay);
  }
  attention.polled();
  attention.posted(kUnderWay);
  EXPECT_TRUE(attention.attended());
}

TEST(SoftnicAttention, FourLeftAloneAreIgnored) {
  Attention attention;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(attention.ignores()) << i;
    attention.posted(kLeftAlone);
  }
  EXPECT_TRUE(attention.ignores());
  poll_and_post(attention, 1);
  EXPECT_FALSE(attention.ignores());
}

}  // namespace
}  // namespace gdrperf::softnic
