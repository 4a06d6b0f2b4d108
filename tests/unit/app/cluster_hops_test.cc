#include "cluster/output/hops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cluster/output/file.h"
#include "cluster/output/lldp.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string lldp_refusal(const std::string& text) {
  try {
    parse_lldp(text, "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "nothing was refused";
}

// As lldpctl -f json prints one interface, and several; the last host as -f json0 does, and n4's switch has no name.
const char* const kNeighbors = R"({
 "hosts": {
  "n1": {"lldp": {"interface": {"eth2": {"via": "LLDP", "rid": "1",
    "chassis": {"leaf1": {"id": {"type": "mac", "value": "00:00:00:00:00:01"}, "descr": "a switch"}},
    "port": {"id": {"type": "ifname", "value": "swp1"}}}}}},
  "n2": {"lldp": {"interface": [
    {"eth2": {"chassis": {"leaf1": {"id": {"type": "mac", "value": "00:00:00:00:00:01"}}}, "port": {}}},
    {"eth3": {"chassis": {"leaf2": {"id": {"type": "mac", "value": "00:00:00:00:00:02"}}}, "port": {}}},
    {"eth4": {"chassis": {"n1": {"id": {"type": "mac", "value": "00:00:00:00:00:09"}}}, "port": {}}}]}},
  "n3": {"lldp": [{"interface": [{"name": "eth2", "via": "LLDP", "chassis": [
    {"id": [{"type": "mac", "value": "00:00:00:00:00:02"}], "name": [{"value": "leaf2"}]}]}]}]},
  "n4": {"lldp": {"interface": {"eth2": {"chassis": {"id": {"type": "mac", "value": "00:00:00:00:00:03"}}}}}}
 },
 "switches": {
  "spine": {"lldp": {"interface": [{"swp1": {"chassis": {"leaf1": {"id": {"type": "mac", "value": "x"}}}}},
                                   {"swp2": {"chassis": {"leaf2": {"id": {"type": "mac", "value": "y"}}}}},
                                   {"swp3": {"chassis": {"n9": {"id": {"type": "mac", "value": "z"}}}}}]}}
 }
})";

TEST(Hops, OfLldpNeighbors) {
  const cluster::Wiring wiring = parse_lldp(kNeighbors, "f");
  const Hops hops = find_hops(wiring, {{"n1", {"mlx5_0", "eth2"}},
                                       {"n2", {"mlx5_0", "eth2"}},
                                       {"n2", {"mlx5_1", "eth3"}},
                                       {"n3", {"mlx5_0"}},
                                       {"n4", {"mlx5_0"}},
                                       {"n5", {"mlx5_0"}}});
  EXPECT_THAT(hops.switches, ElementsAre("leaf1", "leaf2", "00:00:00:00:00:03"));
  EXPECT_THAT(hops.of_nic, ElementsAre(0, 0, 1, 1, 2, -1));
  EXPECT_EQ(hops.of(0, 1), 1);
  EXPECT_EQ(hops.of(0, 2), 3) << "by the spine";
  EXPECT_EQ(hops.of(2, 3), 1);
  EXPECT_EQ(hops.of(0, 4), 0) << "no way is known";
  EXPECT_EQ(hops.of(0, 5), 0);
  EXPECT_EQ(hops.of(0, 6), 0) << "no such NIC";
  const cluster::Leaves leaves = {{"n1", "leaf1"}, {"n2", "leaf1"}, {"n3", "leaf2"}, {"n4", "00:00:00:00:00:03"}};
  EXPECT_EQ(parse_leaves(kNeighbors, "f"), leaves);
  EXPECT_TRUE(parse_leaf_pods(kNeighbors).empty());
}

TEST(Hops, MeasurementsAreGroupedByDistance) {
  const cluster::Wiring wiring = parse_lldp(kNeighbors, "f");
  const Hops hops = find_hops(wiring, {{"n1", {"eth2"}}, {"n2", {"eth2"}}, {"n3", {"eth2"}}, {"n5", {"eth2"}}});
  const auto groups = by_hops(hops, std::vector<cluster::Sample>{
                                        {0, 1, 40}, {1, 0, 42}, {0, 1, 41}, {0, 2, 30}, {2, 0, 20}, {3, 0, 1}});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].hops, 1);
  EXPECT_EQ(groups[0].measurements, 3u);
  EXPECT_DOUBLE_EQ(groups[0].median, 41);
  EXPECT_EQ(groups[1].hops, 3);
  EXPECT_EQ(groups[1].measurements, 2u);
  EXPECT_TRUE(by_hops({}, std::vector<cluster::Sample>{{0, 1, 40}}).empty());
}

TEST(Hops, BadLldpIsNamed) {
  EXPECT_THAT(lldp_refusal("{\"hosts\": {\n\"n1\": {\"lldp\": {]\n"), HasSubstr("f:2: no JSON from here on"));
  EXPECT_THAT(lldp_refusal("{\"lldp\": {}}"), HasSubstr("f: no 'hosts'"));
  EXPECT_THAT(lldp_refusal("{\"hosts\": {\"n1\": {\"lldp\": {}}, \"n2\": []}}"), HasSubstr("what 'n2' has is not"));
  EXPECT_THAT(lldp_refusal("{\"hosts\": {\"n1\": {\"lldp\": {}}}}"), HasSubstr("no host there has a neighbor"));
  EXPECT_THAT(lldp_refusal("{\"hosts\": {\"n1\": {\"lldp\": {\"interface\": {\"eth0\": {\"chassis\": {\"s\": {}}}}}}}, "
                           "\"switches\": []}"),
              HasSubstr("'hosts' and 'switches' are objects"));
}

}  // namespace
}  // namespace gdrperf::app
