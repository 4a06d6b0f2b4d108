#include "gdrperf/proto/hints.h"

#include <string>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

std::string hints_read(const char* text) {
  TphHints hints;
  const std::string told = told_by([&] { hints = parse_hints(text, "--tph"); });
  return told != "taken" ? told
                         : std::to_string(hints.hint) + " " + std::to_string(hints.memory) + " " +
                               std::to_string(hints.cpu);
}

TEST(Hints, AreAHintAloneOrWithMemoryAndCpu) {
  const std::pair<const char*, const char*> rows[] = {
      {"0", "0 -1 -1"},
      {"3", "3 -1 -1"},
      {"4", "--tph 4: must be from 0 to 3"},
      {"-1", "--tph -1: must be from 0 to 3"},
      {"1,volatile,0", "1 0 0"},
      {"2,persistent,65535", "2 1 65535"},
      {"2,persistent,65536", "--tph 65536: must be from 0 to 65535"},
      {"2,persistent,-1", "--tph -1: must be from 0 to 65535"},
      {"x", "--tph 'x': not a number; give one from 0 to 3"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(hints_read(text), expected) << text;
  for (const char* text : {"1,volatile", "1,fast,3", "1,volatile,3,4", "1,3,volatile", "volatile,1,3"}) {
    EXPECT_EQ(hints_read(text), "--tph '" + std::string(text) + "': no processing hints | give HINT (0 to 3), or "
              "HINT,volatile,CPU or HINT,persistent,CPU");
  }
}

}  // namespace
}  // namespace gdrperf
