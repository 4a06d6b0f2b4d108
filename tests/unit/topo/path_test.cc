// Links of paths through made trees.
#include "gdrperf/topo/path.h"

#include <string>

#include <gtest/gtest.h>

#include "made_tree.h"

namespace gdrperf::topo {
namespace {

/// "3 2 | 5": the functions of a path's hops on the GPU's side, then on the NIC's.
std::string hops_shown(const PciPath& path) {
  std::string gpu, nic;
  for (const PathHop& hop : path.hops) {
    std::string& side = hop.side == PathHop::Side::kGpu ? gpu : nic;
    side += (side.empty() ? "" : " ") + std::to_string(hop.function) + (hop.device ? "d" : "");
  }
  return gpu + " | " + nic;
}

/// A root port with a switch, a GPU and a NIC below it, a second such switch deeper, and a device below another root
/// port.
struct TwoSwitches : MadeTree {
  int host = root("0000:[00-7f]");
  std::size_t port = bridge_on(host);               // 0
  std::size_t up = bridge_below(port);              // 1
  std::size_t down_gpu = bridge_below(up);          // 2
  std::size_t gpu = device_below(down_gpu);         // 3
  std::size_t down_nic = bridge_below(up);          // 4
  std::size_t nic = device_below(down_nic);         // 5
  std::size_t second_up = bridge_below(bridge_below(up));         // 7, below 6
  std::size_t far_nic = device_below(bridge_below(second_up));    // 9, below 8
  std::size_t other_nic = device_below(bridge_on(host));          // 11, below 10
  std::size_t other_root = root("0000:[80-ff]") == 1 ? bridge_on(1) : 0;  // 12
  std::size_t sys_nic = device_below(other_root);   // 13
};

TEST(Paths, HaveALinkBelowEachPortOfASwitch) {
  TwoSwitches made;
  const auto hops = [&](std::size_t nic) { return hops_shown(path_between(made.tree, made.gpu, nic)); };
  const auto expect_all = [&] {
    EXPECT_EQ(hops(made.nic), "3d | 5d");
    EXPECT_EQ(hops(made.far_nic), "3d | 7 9d");
    EXPECT_EQ(hops(made.other_nic), "3d 1 | 11d");
    EXPECT_EQ(hops(made.sys_nic), "3d 1 | 13d");
  };
  expect_all();
  // The same by the types of the ports: 4 root, 5 upstream, 6 downstream.
  for (const std::size_t root_port : {made.port, made.other_root, std::size_t{10}}) made.at(root_port).port_type = 4;
  for (const std::size_t upstream : {made.up, made.second_up}) made.at(upstream).port_type = 5;
  for (const std::size_t downstream : {2u, 4u, 6u, 8u}) made.at(downstream).port_type = 6;
  expect_all();
}

// A bridge to PCI (type 7) hangs below a link as a device does, and so does one of type 0.
TEST(Paths, FollowPortTypesRatherThanDepth) {
  MadeTree made;
  const std::size_t port = made.bridge_on(made.root());
  const std::size_t odd = made.bridge_below(port);
  const std::size_t even = made.bridge_below(odd);
  const std::size_t gpu = made.device_below(even);
  const std::size_t nic = made.device_below(made.bridge_on(made.root()));
  const auto hops = [&](int type_odd, int type_even) {
    made.at(odd).port_type = type_odd;
    made.at(even).port_type = type_even;
    return hops_shown(path_between(made.tree, gpu, nic));
  };
  EXPECT_EQ(hops(-1, -1), "3d 1 | 5d");
  EXPECT_EQ(hops(6, 5), "3d 2 | 5d");
  EXPECT_EQ(hops(4, 7), "3d 2 | 5d");
  EXPECT_EQ(hops(0, 0), "3d 2 1 | 5d");
  EXPECT_EQ(hops(7, 6), "3d 1 | 5d");
}

TEST(Paths, OfNcclsTreeHaveALinkAtEachFunction) {
  MadeTree made;
  made.tree.of_nccl = true;
  const std::size_t top = made.bridge_on(made.root());
  const std::size_t low = made.bridge_below(top);
  const std::size_t gpu = made.device_below(low);
  const std::size_t nic = made.device_on(0);
  made.at(gpu).max_payload_bytes = 512;
  made.at(low).max_payload_bytes = 128;
  const PciPath path = path_between(made.tree, gpu, nic);
  EXPECT_EQ(hops_shown(path), "2d 1 0 | 3d");
  EXPECT_EQ(path.hops[0].max_payload_bytes, 512) << "what is above is no port of this link";
}

TEST(Paths, NameWhatTheirEndsShare) {
  TwoSwitches made;
  const auto shared = [&](std::size_t nic) {
    const PciPath path = path_between(made.tree, made.gpu, nic);
    return path.common_ancestor + (path.common_bridge ? " " + std::to_string(*path.common_bridge) : "");
  };
  EXPECT_EQ(shared(made.nic), "0000:01:00.0 1");
  EXPECT_EQ(shared(made.other_nic), "0000:[00-7f]");
  EXPECT_EQ(shared(made.sys_nic), "");
  made.at(made.gpu).root = made.at(made.other_nic).root = -1;
  EXPECT_EQ(shared(made.other_nic), "") << "neither tells a root bus";
  MadeTree flat;
  const std::size_t port = flat.bridge_on(flat.root());
  const std::size_t one = flat.device_below(port);
  EXPECT_EQ(path_between(flat.tree, one, flat.device_below(port)).common_ancestor, "0000:00:00.0") << "one bridge";
}

TEST(Paths, LinksAreWhatBothTheirEndsCan) {
  TwoSwitches made;
  const auto hop = [&] { return path_between(made.tree, made.gpu, made.nic).hops.back(); };
  PciFunction& nic = made.at(made.nic);
  PciFunction& port = made.at(made.down_nic);
  nic.max_read_request_bytes = 4096;
  nic.link_gbytes = 7;
  EXPECT_EQ(hop().max_read_request_bytes, 4096);
  EXPECT_EQ(hop().link_gbytes, 7);
  EXPECT_EQ(hop().max_payload_bytes, 0);
  port.max_payload_bytes = 256;
  EXPECT_EQ(hop().max_payload_bytes, 256);
  nic.max_payload_bytes = 128;
  EXPECT_EQ(hop().max_payload_bytes, 128);
  port.max_payload_bytes = 0;
  EXPECT_EQ(hop().max_payload_bytes, 128);
  nic.max_payload_bytes = 512;
  port.max_payload_bytes = 256;
  EXPECT_EQ(hop().max_payload_bytes, 256);
  port.link = {8, 8};
  EXPECT_EQ(hop().now, (PcieLink{8, 8})) << "as the port tells it";
  nic.link = {16, 4};
  EXPECT_EQ(hop().now, (PcieLink{16, 4})) << "its own word first";
  EXPECT_FALSE(hop().max.known());
  port.link_max = {16, 16};
  EXPECT_EQ(hop().max, (PcieLink{16, 16}));
  nic.link_max = {32, 8};
  EXPECT_EQ(hop().max, (PcieLink{16, 8}));
  port.link_max = {64, 4};
  EXPECT_EQ(hop().max, (PcieLink{32, 4}));
  port.link_max = {};
  EXPECT_EQ(hop().max, (PcieLink{32, 8}));
}

TEST(Paths, OfADeviceBelowTheFirstFunctionHaveThatPort) {
  MadeTree made;
  const std::size_t port = made.bridge_on(made.root());
  const std::size_t gpu = made.device_below(port);
  const std::size_t nic = made.device_below(port);
  made.at(port).max_payload_bytes = 128;
  EXPECT_EQ(path_between(made.tree, gpu, nic).hops.back().max_payload_bytes, 128);
}

struct IdleRow {
  PcieLink now;
  PcieLink most;
  double link_gbytes;
  bool idle;
  double usable_gbps;
};

// A GPU clocks its link down to gen1 while idle, and keeps its width; then what it can counts.
TEST(Paths, AnIdleGpusLinkIsKnownByItsSpeed) {
  const double gen4 = 16 * 128.0 / 130;
  const IdleRow rows[] = {
      {{2.5, 16}, {16, 16}, 0, true, 16 * gen4},
      {{2.5, 8}, {16, 16}, 0, true, 8 * gen4},
      {{2.5, 16}, {2.5, 16}, 0, false, 2.5 * 16 * 0.8},
      {{2.5, 16}, {5, 16}, 0, true, 5 * 16 * 0.8},
      {{5, 16}, {16, 16}, 0, false, 16 * gen4},
      {{16, 16}, {8, 16}, 0, false, 16 * gen4},
      {{2.5, 16}, {}, 0, false, 2.5 * 16 * 0.8},
      {{}, {16, 16}, 4, true, 16 * gen4},
      {{}, {16, 16}, 4.1, false, 16 * gen4},
      {{}, {16, 16}, 0, false, 16 * gen4},
      {{}, {16, 16}, 0.5, true, 16 * gen4},
      {{}, {}, 3, false, 24},
  };
  for (const IdleRow& row : rows) {
    TwoSwitches made;
    made.at(made.gpu).link = row.now;
    made.at(made.gpu).link_max = row.most;
    made.at(made.gpu).link_gbytes = row.link_gbytes;
    const PathHop hop = path_between(made.tree, made.gpu, made.nic).hops.front();
    const std::string told = to_string(row.now) + " of " + to_string(row.most) + ", " + std::to_string(row.link_gbytes);
    EXPECT_EQ(hop.idle, row.idle) << told;
    EXPECT_DOUBLE_EQ(usable_link_gbps(hop), row.usable_gbps) << told;
  }
}

TEST(Paths, AnIdleGpusMostIsThatOfItsIdsWhereNothingElseTells) {
  TwoSwitches made;
  made.at(made.gpu).vendor = 0x10de;
  made.at(made.gpu).device = 0x2330;  // H100: gen5 x16
  made.at(made.gpu).link = {2.5, 16};
  EXPECT_EQ(path_between(made.tree, made.gpu, made.nic).hops.front().max, (PcieLink{32, 16}));
  made.at(made.gpu).link_max = {8, 16};
  EXPECT_EQ(path_between(made.tree, made.gpu, made.nic).hops.front().max, (PcieLink{8, 16}));
  made.at(made.gpu).link_max = {};
  made.at(made.gpu).link = {8, 16};
  EXPECT_FALSE(path_between(made.tree, made.gpu, made.nic).hops.front().max.known()) << "it is awake";
  // A NIC does not clock down.
  made.at(made.nic).vendor = 0x10de;
  made.at(made.nic).device = 0x2330;
  made.at(made.nic).link = {2.5, 16};
  made.at(made.nic).link_max = {32, 16};
  const PathHop nic = path_between(made.tree, made.gpu, made.nic).hops.back();
  EXPECT_FALSE(nic.idle);
  EXPECT_DOUBLE_EQ(usable_link_gbps(nic), 2.5 * 16 * 0.8);
  // And no bridge above a GPU.
  made.at(made.up).link = {2.5, 16};
  made.at(made.up).link_max = {32, 16};
  EXPECT_FALSE(path_between(made.tree, made.gpu, made.other_nic).hops[1].idle);
}

TEST(Paths, AcsRedirectsAtOrBelowWhatIsShared) {
  TwoSwitches made;
  const auto acs = [&](std::size_t nic) {
    const PciPath path = path_between(made.tree, made.gpu, nic);
    std::string told = !path.acs_redirect ? "unknown: " + path.acs_unknown : *path.acs_redirect ? "yes" : "no";
    for (const std::size_t bridge : path.acs_redirecting) told += " " + std::to_string(bridge);
    return told;
  };
  EXPECT_EQ(acs(made.other_nic), "unknown: all data between them go through the root complex anyway");
  EXPECT_EQ(acs(made.nic), "unknown: the source does not record it");
  made.at(made.down_nic).acs_unknown = "only root may";
  EXPECT_EQ(acs(made.nic), "unknown: only root may");
  made.at(made.down_gpu).acs_unknown = "the first tells";
  EXPECT_EQ(acs(made.nic), "unknown: the first tells");
  made.at(made.down_gpu).acs_redirect = false;
  EXPECT_EQ(acs(made.nic), "unknown: only root may");
  made.at(made.down_nic).acs_redirect = false;
  EXPECT_EQ(acs(made.nic), "no");
  made.at(made.port).acs_redirect = made.at(made.up).acs_redirect = true;
  EXPECT_EQ(acs(made.nic), "no") << "what they share does not matter";
  made.at(made.down_nic).acs_redirect = true;
  EXPECT_EQ(acs(made.nic), "yes 4");
  made.at(made.down_gpu).acs_redirect = true;
  EXPECT_EQ(acs(made.nic), "yes 2 4");
  made.at(made.down_nic).acs_redirect.reset();
  EXPECT_EQ(acs(made.nic), "yes 2") << "one that is known is enough";
  made.tree.of_nccl = true;
  EXPECT_EQ(acs(made.nic), "unknown: NCCL's file does not record it");
}

TEST(Paths, ToAGpuThatIsJoinedToItsCpuTakeThatLink) {
  TwoSwitches made;
  made.at(made.gpu).vendor = 0x10de;
  made.at(made.gpu).device = 0x2342;  // GH200
  EXPECT_EQ(hops_shown(path_between(made.tree, made.gpu, made.nic)), "3d | 5d") << "they share a switch";
  const PciPath path = path_between(made.tree, made.gpu, made.other_nic);
  EXPECT_EQ(hops_shown(path), "3d | 11d");
  EXPECT_EQ(path.hops[0].cpu_link, "NVLink-C2C");
  EXPECT_DOUBLE_EQ(usable_link_gbps(path.hops[0]), 3600);
}

TEST(Paths, TheNarrowestKnownLinkOfSeveralIsTheFirst) {
  PciPath path;
  EXPECT_EQ(narrowest_hop(path), nullptr);
  path.hops.resize(4);
  EXPECT_EQ(narrowest_hop(path), nullptr) << "none is known";
  for (PathHop& hop : path.hops) hop.side = PathHop::Side::kNic;
  path.hops[1].now = {16, 16};
  EXPECT_EQ(narrowest_hop(path), &path.hops[1]);
  path.hops[2].now = path.hops[3].now = {16, 8};
  EXPECT_EQ(narrowest_hop(path), &path.hops[2]);
  path.hops[3].now = {2.5, 1};
  EXPECT_EQ(narrowest_hop(path), &path.hops[3]);
  path.hops[3].now = {};
  path.hops[3].link_gbytes = 0.1;
  EXPECT_EQ(narrowest_hop(path), &path.hops[3]) << "0.8 Gb/s";
}

}  // namespace
}  // namespace gdrperf::topo
