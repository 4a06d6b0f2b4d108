// Theoretical maxima: headers counted packet by packet, and the whole text of what limits a path.
#include "gdrperf/topo/ceiling.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "made_tree.h"

namespace gdrperf::topo {
namespace {

std::string headers_shown(Carrier carrier, Transfer transfer) {
  std::string shown;
  for (const WireHeader& header : wire_headers(carrier, transfer)) {
    shown += (shown.empty() ? "" : ", ") + std::string(header.name) + " " + std::to_string(header.bytes) +
             (header.first_packet_only ? " once" : "");
  }
  return shown;
}

// IEEE 802.3, RFC 791, 8200 and 768, InfiniBand specification vol. 1, chapter 9, and annex A17.
TEST(WireHeaders, AreThoseOfTheSpecifications) {
  const std::string ethernet = "preamble and start of frame 8, gap between frames 12, Ethernet 14, ";
  EXPECT_EQ(headers_shown(Carrier::kRoceV2Ipv4, Transfer::kSend), ethernet + "IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4");
  EXPECT_EQ(headers_shown(Carrier::kRoceV2Ipv6, Transfer::kWrite),
            ethernet + "IPv6 40, UDP 8, BTH 12, ICRC 4, FCS 4, RETH 16 once");
  EXPECT_EQ(headers_shown(Carrier::kInfiniBand, Transfer::kRead), "LRH 8, BTH 12, ICRC 4, VCRC 2, AETH 4 once");
}

/// Bytes on the wire, packet by packet.
std::uint64_t wire_bytes(Carrier carrier, Transfer transfer, std::uint64_t mtu, std::uint64_t message) {
  const std::uint64_t each = carrier == Carrier::kInfiniBand ? 26 : carrier == Carrier::kRoceV2Ipv6 ? 102 : 82;
  std::uint64_t sum = 0;
  for (std::uint64_t sent = 0; sent < message; sent += mtu) {
    const bool first = sent == 0, last = sent + mtu >= message;
    sum += std::min(mtu, message - sent) + each;
    if (transfer == Transfer::kWrite && first) sum += 16;
    if (transfer == Transfer::kRead && (first || last)) sum += 4;
  }
  return sum;
}

TEST(PortLimits, AreWhatIsLeftOfTheRate) {
  for (const Carrier carrier : {Carrier::kRoceV2Ipv4, Carrier::kRoceV2Ipv6, Carrier::kInfiniBand}) {
    for (const Transfer transfer : {Transfer::kWrite, Transfer::kSend, Transfer::kRead}) {
      for (const int mtu : {1, 256, 4096}) {
        for (const std::uint64_t message : {1u, 2u, 255u, 256u, 257u, 512u, 513u, 4096u, 4097u, 8192u, 65536u}) {
          const double share =
              static_cast<double>(message) /
              static_cast<double>(wire_bytes(carrier, transfer, static_cast<std::uint64_t>(mtu), message));
          ASSERT_DOUBLE_EQ(port_payload_gbps({100, mtu, carrier}, transfer, message), 100 * share)
              << headers_shown(carrier, transfer) << " of " << message << " at " << mtu;
        }
      }
    }
  }
  EXPECT_GT(port_payload_gbps({0.5, 4096}, Transfer::kSend, 64), 0);
  EXPECT_EQ(port_payload_gbps({0, 4096}, Transfer::kSend, 64), 0);
  EXPECT_EQ(port_payload_gbps({100, 0}, Transfer::kSend, 64), 0);
  EXPECT_EQ(port_payload_gbps({100, 4096}, Transfer::kSend, 0), 0);
}

TEST(PortLimits, SayWhatTheyAreMadeOf) {
  const auto limit = port_ceiling("mlx5_0", {1, 1024, Carrier::kRoceV2Ipv6}, Transfer::kWrite, 64);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->limited_by, "port of mlx5_0: 1 Gb/s, RoCE v2 headers at MTU 1024");
  EXPECT_DOUBLE_EQ(limit->gbps, 64.0 / (64 + 102 + 16));
  EXPECT_FALSE(port_ceiling("mlx5_0", {0, 1024, Carrier::kRoceV2Ipv6}, Transfer::kWrite, 64));
  TreeNic nic;
  nic.name = "mlx5_1";
  EXPECT_FALSE(port_ceiling(nic));
  nic.rate_gbps = 100;
  const double mebibyte = 1 << 20;
  EXPECT_EQ(port_ceiling(nic)->limited_by, "port of mlx5_1: 100 Gb/s, RoCE v2 headers at MTU 4096");
  EXPECT_DOUBLE_EQ(port_ceiling(nic)->gbps, 100 * mebibyte / (mebibyte + 256 * 82 + 16));
  nic.infiniband = true;
  EXPECT_EQ(port_ceiling(nic)->limited_by, "port of mlx5_1: 100 Gb/s, InfiniBand headers at MTU 4096");
  EXPECT_DOUBLE_EQ(port_ceiling(nic)->gbps, 100 * mebibyte / (mebibyte + 256 * 26 + 16));
  nic.rate_source = PortRate::kAtMost;
  EXPECT_EQ(port_ceiling(nic)->limited_by, "port of mlx5_1: at most 100 Gb/s, by its PCI ID");
}

TEST(TlpEfficiency, CountsFramingBelow64GtPerSecondAndFlitsFromThere) {
  EXPECT_DOUBLE_EQ(tlp_efficiency(256, {63, 16}), 256.0 / (256 + 16 + 8));
  EXPECT_DOUBLE_EQ(tlp_efficiency(256, {64, 16}), 236.0 / (236 + 6) * 256 / (256 + 16));
  EXPECT_DOUBLE_EQ(tlp_efficiency(0, {64, 16}), 236.0 / (236 + 6) * 256 / (256 + 16));
}

/// A path of one hop, at function 1 of a tree: 0000:01:00.0.
struct OneHop {
  MadeTree made;
  PciPath path;
  PathHop& hop;

  OneHop() : hop(path.hops.emplace_back()) {
    made.bridge_on(made.root());
    hop.function = made.device_below(0);
    hop.side = PathHop::Side::kNic;
  }
  OneHop(const OneHop&) = delete;
  OneHop& operator=(const OneHop&) = delete;
  std::string limit() const {
    const auto ceiling = path_ceiling(made.tree, path);
    return ceiling ? ceiling->limited_by : "none";
  }
};

TEST(PathLimits, SayWhichLinkTheyAre) {
  OneHop one;
  EXPECT_EQ(one.limit(), "none");
  one.hop.link_gbytes = 15.75;
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: 15.8 GB/s, max payload unknown, 256 B assumed");
  one.hop.max_payload_bytes = 128;
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: 15.8 GB/s, max payload 128 B");
  one.hop.now = {8, 4};
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: gen3 x4, max payload 128 B");
  one.hop.max = {16, 16};
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: gen3 x4, max payload 128 B") << "a NIC runs at what it runs at";
  one.hop.side = PathHop::Side::kGpu;
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: gen4 x4, max payload 128 B") << "a GPU may be idle";
  one.hop.idle = true;
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: gen4 x4 (at most: it was recorded idle), max payload 128 B");
  one.hop.now = {};
  one.hop.idle = false;
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: gen4 x16, max payload 128 B");
  one.hop.now = {8, 4};
  one.hop.max = {};
  EXPECT_EQ(one.limit(), "PCIe link of 0000:01:00.0: gen3 x4, max payload 128 B");
  one.hop.cpu_link = "NVLink 2";
  one.hop.link_gbytes = 50;
  EXPECT_EQ(one.limit(), "NVLink 2 of 0000:01:00.0: 50 GB/s");
  EXPECT_DOUBLE_EQ(hop_payload_gbps(one.hop), 400) << "NVLink's rate is one of payload";
}

TEST(PathLimits, AreTheFirstOfTheLeastKnown) {
  OneHop one;
  one.hop.now = {16, 16};
  one.hop.max_payload_bytes = 256;
  PathHop narrow = one.hop;
  narrow.function = 0;
  narrow.now.width = 8;
  PathHop same = narrow;
  same.function = 1;
  PathHop unknown;
  one.path.hops.insert(one.path.hops.end(), {narrow, same, unknown});
  EXPECT_EQ(one.limit(), "PCIe link of 0000:00:00.0: gen4 x8, max payload 256 B");
  EXPECT_DOUBLE_EQ(path_ceiling(one.made.tree, one.path)->gbps, 16 * 8 * 128.0 / 130 * 256 / 280);
  one.path.hops.back().link_gbytes = 0.1;
  EXPECT_DOUBLE_EQ(path_ceiling(one.made.tree, one.path)->gbps, 0.8 * 256 / 280) << "below 1 Gb/s";
  TreeNic nic;
  nic.name = "mlx5_0";
  nic.rate_gbps = 0.1;
  EXPECT_EQ(pair_ceiling(one.made.tree, one.path, nic)->limited_by,
            "port of mlx5_0: 0.1 Gb/s, RoCE v2 headers at MTU 4096");
  // From gen6 on by what the link can, which is what it is coded for.
  PathHop gpu;
  gpu.now = {2.5, 16};
  gpu.max = {64, 16};
  EXPECT_DOUBLE_EQ(hop_payload_gbps(gpu), 64 * 16 * 242.0 / 256 * 236 / 242 * 256 / 272);
}

TEST(LikelyReasons, OfSlowPaths) {
  OneHop one;
  const auto reasons = [&] {
    std::string told;
    for (const std::string& reason : likely_reasons(one.made.tree, one.path)) told += reason + "; ";
    return told;
  };
  one.path.relation = {Relation::kPxb, Relation::kPxb};
  EXPECT_EQ(reasons(), "");
  one.hop.now = {16, 16};
  EXPECT_EQ(reasons(), "");
  one.hop.max = {16, 16};
  EXPECT_EQ(reasons(), "");
  one.hop.now = {8, 16};
  EXPECT_EQ(reasons(), "the link of 0000:01:00.0 runs at 8 GT/s x16 of 16 GT/s x16; ");
  one.hop.side = PathHop::Side::kGpu;
  EXPECT_EQ(reasons(), "") << "an idle GPU";
  one.hop.now = {16, 8};
  EXPECT_EQ(reasons(), "the link of 0000:01:00.0 runs at 16 GT/s x8 of 16 GT/s x16; ") << "the width stays";
  one.hop.now = {};
  EXPECT_EQ(reasons(), "");
  one.hop.max_payload_bytes = 256;
  EXPECT_EQ(reasons(), "");
  one.hop.max_payload_bytes = 128;
  EXPECT_EQ(reasons(), "a maximum payload of 128 B on the path; ");
  one.path.hops.emplace_back();
  EXPECT_EQ(reasons(), "a maximum payload of 128 B on the path; ") << "of any hop";
}

TEST(LikelyReasons, OfTranslationsRedirectsAndDistance) {
  OneHop one;
  const auto reasons = [&] {
    std::string told;
    for (const std::string& reason : likely_reasons(one.made.tree, one.path)) told += reason + "; ";
    return told;
  };
  one.path.relation = {Relation::kPix, Relation::kPix};
  for (const auto& [type, mode] : {std::pair{"DMA", "DMA"}, {"DMA-FQ", "DMA-FQ"}, {"identity", ""}, {"", ""}}) {
    one.made.at(1).iommu_type = type;
    one.hop.device = false;
    EXPECT_EQ(reasons(), "") << type;
    one.hop.device = true;
    EXPECT_EQ(reasons(), *mode == 0
                             ? ""
                             : "the IOMMU translates the addresses of 0000:01:00.0 (mode " + std::string(mode) + "); ");
  }
  one.path.acs_redirecting = {0, 1};
  EXPECT_EQ(reasons(), "");
  one.path.acs_redirect = true;
  EXPECT_EQ(reasons(), "ACS redirect at 0000:00:00.0, 0000:01:00.0 sends the data up to the root complex; ");
  one.path.acs_redirect = false;
  const std::string complex =
      "the data go through the root complex, and many forward between devices slowly, reads more so than writes; ";
  for (const auto& [relation, expected] :
       {std::pair{Relation::kPxb, std::string()}, {Relation::kPhb, complex}, {Relation::kNode, complex},
        {Relation::kSys, std::string("the data cross the link between NUMA nodes (SYS); ")}}) {
    one.path.relation = {Relation::kPix, relation};
    EXPECT_EQ(reasons(), expected);
  }
}

}  // namespace
}  // namespace gdrperf::topo
