#include "gdrperf/proto/counters.h"

#include <gtest/gtest.h>

namespace gdrperf {
namespace {

TEST(Counters, ThatRoseAreToldByHowMuch) {
  const Counters before = {{"equal", 5}, {"fell", 9}, {"gone", 1}, {"rose", 10}};
  const Counters after = {{"equal", 5}, {"fell", 3}, {"new", 4}, {"rose", 17}};
  EXPECT_EQ(risen(before, after), (Counters{{"rose", 7}}));
}

}  // namespace
}  // namespace gdrperf
