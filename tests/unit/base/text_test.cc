#include "gdrperf/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf {
namespace {

using ::testing::ElementsAre;

TEST(Text, IsTrimmedAtBothEnds) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \v\f\n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, SplitsIntoOneMorePartThanSeparators) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

// From draft-eastlake-fnv: the same in every process and on every host.
TEST(Text, DigestIsFnv1a) {
  EXPECT_EQ(digest(""), 0xcbf29ce484222325u);
  EXPECT_EQ(digest("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(digest("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace gdrperf
