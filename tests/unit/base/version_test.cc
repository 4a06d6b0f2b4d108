#include "gdrperf/base/version.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf {
namespace {

TEST(Version, IsThreeNumbers) {
  EXPECT_THAT(tool_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(Version, RevisionIsNeverEmpty) { EXPECT_FALSE(std::string(tool_git()).empty()); }

}  // namespace
}  // namespace gdrperf
