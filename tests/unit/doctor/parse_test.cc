#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/recording/capture_parse.h"
#include "doctor/survey/lspci.h"
#include "doctor/survey/modules.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Text, WordsLinesNumbers) {
  EXPECT_THAT(lines_of("a\r\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(words_of("  a\tb  "), ElementsAre("a", "b"));
  EXPECT_EQ(value_after("\tLnkSta:\tSpeed 16GT/s", "LnkSta:"), "Speed 16GT/s");
  EXPECT_EQ(value_after("LnkSta2: x", "LnkSta:"), std::nullopt);
  EXPECT_EQ(number_of(" 42\n"), 42);
  EXPECT_EQ(number_of("42x"), std::nullopt);
  EXPECT_EQ(number_of(""), std::nullopt);
  EXPECT_EQ(leading_number("32.0 GT/s PCIe"), 32);
  for (const char* none : {"Unknown", "inf", "nan", "-1", ""}) EXPECT_EQ(leading_number(none), 0);
  EXPECT_EQ(leading_int("1e300"), 1'000'000'000);
  EXPECT_EQ(leading_int("99999999999999999999 x"), 1'000'000'000);
  EXPECT_EQ(base_name("/a/b"), "b");
  EXPECT_EQ(base_name("b"), "b");
  EXPECT_EQ(first_line("\n  hello \nworld"), "hello");
  EXPECT_EQ(one_line(" a\n\tb "), "a b");
}

TEST(Lspci, AddressesOfBothForms) {
  EXPECT_TRUE(is_pci_address("3b:00.0"));
  EXPECT_TRUE(is_pci_address("0000:3b:00.0"));
  EXPECT_TRUE(is_pci_address("00010000:3b:1f.7"));
  for (const char* bad : {"", "3b:00", "3b:00.", "b:00.0", "3b:0.0", "000:3b:00.0", "x000:3b:00.0",
                          "pci0000:00", "0000:3b:00.00", ":3b:00.0"}) {
    EXPECT_FALSE(is_pci_address(bad)) << bad;
  }
  EXPECT_EQ(full_pci_address("3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(full_pci_address("0001:3b:00.0"), "0001:3b:00.0");
}

TEST(Lspci, LinksAcsAndDriver) {
  const auto functions = parse_lspci(
      "01:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)\n"
      "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us\n"
      "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)\n"
      "\t\tLnkSta2: Current De-emphasis Level: -6dB\n"
      "\tKernel driver in use: nvidia\n"
      "\n"
      "0000:02:00.0 PCI bridge: Broadcom / LSI PEX890xx\n"
      "\t\tACSCap:\tSrcValid+ ReqRedir+ CmpltRedir+\n"
      "\t\tACSCtl:\tSrcValid+ ReqRedir- CmpltRedir-\n"
      "03:00.0 Ethernet controller: Mellanox Technologies MT2910\n"
      "\tCapabilities: <access denied>\n");
  ASSERT_THAT(functions, SizeIs(3));
  EXPECT_EQ(functions[0].kind, "3D controller");
  EXPECT_TRUE(functions[0].is_nvidia_gpu());
  EXPECT_EQ(functions[0].driver, "nvidia");
  EXPECT_EQ(to_string(functions[0].link), "2.5 GT/s x8");
  EXPECT_EQ(to_string(functions[0].link_max), "32 GT/s x16");
  EXPECT_FALSE(functions[0].acs);
  EXPECT_TRUE(functions[1].is_bridge());
  ASSERT_TRUE(functions[1].acs);
  EXPECT_FALSE(functions[1].acs->redirects()) << "what it can do is not what it does";
  EXPECT_FALSE(functions[1].link.known());
  EXPECT_TRUE(functions[2].denied);
  EXPECT_TRUE(functions[2].is_network());
}

TEST(Lspci, LinesWithoutADevice) {
  const auto functions =
      parse_lspci("ACSCtl: ReqRedir- CmpltRedir-\n ACSCtl: ReqRedir- CmpltRedir+\n");
  ASSERT_THAT(functions, SizeIs(2));
  EXPECT_FALSE(functions[0].acs->redirects());
  EXPECT_TRUE(functions[1].acs->redirects());
  EXPECT_EQ(functions[1].address, "");
}

TEST(Lspci, LinkRates) {
  EXPECT_DOUBLE_EQ(link_gbps({2.5, 16}), 32);
  EXPECT_NEAR(link_gbps({8, 16}), 126.03, 0.01);
  EXPECT_NEAR(link_gbps({32, 16}), 504.12, 0.01);
  EXPECT_NEAR(link_gbps({64, 16}), 968, 0.1);
  EXPECT_EQ(link_gbps({}), 0);
}

TEST(Modules, LsmodAndProcModules) {
  const auto modules = parse_modules(
      "$ lsmod | grep nvidia\n"
      "Module                  Size  Used by\n"
      "nvidia_peermem         16384  0\n"
      "ib_core 319488 2 rdma_cm,nvidia_peermem, Live 0xffffffffc0a3e000\n"
      "ib_uverbs 200704 0 - Live 0x0000000000000000\n"
      "nvidia 14299136 - - Live 0xffffffffc0400000 (O)\n");
  ASSERT_THAT(modules, SizeIs(4));
  EXPECT_THAT(find_module(modules, "ib_core")->used_by, ElementsAre("rdma_cm", "nvidia_peermem"));
  EXPECT_THAT(find_module(modules, "ib_uverbs")->used_by, IsEmpty());
  EXPECT_TRUE(find_module(modules, "ib_uverbs")->users_known);
  EXPECT_FALSE(find_module(modules, "nvidia")->users_known);
  EXPECT_EQ(find_module(modules, "Module"), nullptr);
  EXPECT_EQ(peer_memory(modules).module, "nvidia_peermem");
  EXPECT_EQ(peer_memory(modules).bound_to, "ib_core");
}

TEST(Modules, PeerMemoryOfEitherName) {
  EXPECT_EQ(peer_memory(parse_modules("nv_peer_mem 1 0\nib_core 2 1 nv_peer_mem\n")).bound_to,
            "ib_core");
  EXPECT_EQ(
      peer_memory(parse_modules("nvidia_peermem 1 0\nib_core 2 1 nvidia_peermem_x\n")).bound_to,
      "");
  EXPECT_EQ(peer_memory(parse_modules("ib_core 2 0\n")).module, "");
}

TEST(Modules, WhyPeerMemoryDidNotLoad) {
  EXPECT_EQ(peer_memory_trouble(""), PeerMemoryTrouble::kNone);
  EXPECT_EQ(
      peer_memory_trouble("modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n"),
      PeerMemoryTrouble::kInvalidArgument);
  EXPECT_EQ(peer_memory_trouble("[1.2] other: module verification failed: signature\n"),
            PeerMemoryTrouble::kNone);
  // The warning in front does not hide the cause.
  EXPECT_EQ(peer_memory_trouble(
                "[1.2] nvidia_peermem: module verification failed: signature\n"
                "[1.3] nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)\n"),
            PeerMemoryTrouble::kNoPeerMemoryApi);
}

TEST(Captures, Ethtool) {
  const auto driver = parse_ethtool_driver(
      "driver: mlx5_core\nversion: 6.8.0\nfirmware-version: 28.1 (X)\n"
      "bus-info: 0000:4d:00.0 # a comment\n");
  ASSERT_TRUE(driver);
  EXPECT_EQ(driver->bus_info, "0000:4d:00.0");
  EXPECT_EQ(driver->firmware, "28.1 (X)");
  EXPECT_FALSE(parse_ethtool_driver("driver: mlx5_core\n"));
}

TEST(Captures, IbvDevinfo) {
  const auto ports = parse_ibv_devinfo(
      "hca_id:\tmlx5_0\n\tphys_port_cnt:\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\tPORT_DOWN (1)\n"
      "\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n\t\t\tlink_layer:\t\tEthernet\n\n"
      "hca_id:\tmlx5_1\n\t\tport:\t1\n\t\t\tstate:\t\tPORT_ACTIVE (4)\n");
  ASSERT_THAT(ports, SizeIs(2));
  EXPECT_EQ(ports[0].subject(), "mlx5_0/1");
  EXPECT_EQ(ports[0].state, "DOWN");
  EXPECT_EQ(ports[0].active_mtu, 1024);
  EXPECT_EQ(ports[0].max_mtu, 4096);
  EXPECT_EQ(ports[1].device, "mlx5_1");
  EXPECT_TRUE(ports[1].active());
  EXPECT_EQ(ports[1].active_mtu, 0);
}

TEST(Captures, Ibdev2netdev) {
  const auto ports = parse_ibdev2netdev(
      "# ibdev2netdev\n0000:3b:00.0 mlx5_0 port 1 ==> eth2 (Up)\nmlx5_1 port 1 ==>  (Down)\n==>\n");
  ASSERT_THAT(ports, SizeIs(1));
  EXPECT_EQ(ports[0].netdev, "eth2");
}

TEST(Captures, ShowGidsWithTabsOrBlanks) {
  for (const char* blank : {"\t", "  "}) {
    std::string text =
        "DEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\n---\t----\t-----\t---\t----\t---\t---\n"
        "mlx5_0\t1\t1\tfe80:0000:0000:0000:0e42:a1ff:fead:479a\t\t\tv2\teth2\n"
        "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a60:531a\t10.96.83.26  \tv2\teth2\n"
        "n_gids_found=2\n";
    for (std::size_t at = 0; (at = text.find('\t', at)) != std::string::npos; ++at)
      text.replace(at, 1, blank);
    const auto ports = parse_show_gids(text);
    ASSERT_THAT(ports, SizeIs(1));
    EXPECT_EQ(ports[0].netdev, "eth2");
    ASSERT_THAT(*ports[0].gids, SizeIs(2));
    EXPECT_TRUE((*ports[0].gids)[0].link_local);
    EXPECT_EQ((*ports[0].gids)[1].address, "10.96.83.26");
    EXPECT_EQ((*ports[0].gids)[1].index, 3);
  }
}

}  // namespace
}  // namespace gdrperf::doctor
