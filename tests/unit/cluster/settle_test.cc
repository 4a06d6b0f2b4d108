#include <gtest/gtest.h>

#include <vector>

#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"
#include "gdrperf/cluster/simulator.h"

namespace gdrperf::cluster {
namespace {

/// Eight nodes, of which one is a suspect.
class Settle : public testing::Test {
 protected:
  Settle() : simulator({.nodes = 8, .rails = 1, .faults = {{.node = 4, .factor = 0.8}}}) {
    for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
    judgement = judge(simulator.fabric(), samples, {});
    EXPECT_EQ(judgement.suspects.size(), 1u);
  }

  Simulator simulator;
  std::vector<Sample> samples;
  Judgement judgement;
};

TEST_F(Settle, RetestsWithoutControlsDecideNothing) {
  // All but the suspect and one partner are lost by now.
  Measurer measurer = simulator.measurer();
  measurer.gone = [] { return std::vector<bool>{true, true, true, true, false, false, true, true}; };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  EXPECT_TRUE(retests.empty());
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kUndecided);
}

// There is time for two rounds of retests: what they do not decide is undecided.
TEST_F(Settle, ASignalEndsRetests) {
  Measurer measurer = simulator.measurer();
  int asked = 0;
  measurer.stopped = [&] { return ++asked > 2; };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kUndecided);
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(retests.empty());
}

}  // namespace
}  // namespace gdrperf::cluster
