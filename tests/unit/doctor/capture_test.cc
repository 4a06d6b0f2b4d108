// Reading of captured text: the captures beside the source, where
// they lie, each with the finding it is known for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "machine.h"
#include "gdrperf/base/file.h"

namespace gdrperf::doctor {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

struct Expected {
  const char* file;
  const char* check;
  Verdict verdict;
  const char* found;
};

class Captures : public testing::TestWithParam<Expected> {};

TEST_P(Captures, AreJudged) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  if (root == nullptr) GTEST_SKIP() << "GDRPERF_SOURCE_ROOT is not set";
  const std::string path = std::string(root) + "/../shared/fixtures/doctor/" + GetParam().file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto found = of_check(read_capture(read_file(path, 1u << 20)), GetParam().check);
  ASSERT_THAT(found, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(found.back().verdict, GetParam().verdict) << found.back().found;
  EXPECT_THAT(found.back().found, HasSubstr(GetParam().found));
}

constexpr Verdict kOk = Verdict::kOk;
constexpr Verdict kWarn = Verdict::kWarn;
constexpr Verdict kFail = Verdict::kFail;

INSTANTIATE_TEST_SUITE_P(
    Doctor, Captures,
    testing::Values(
        Expected{"lspci-vvv-gpu-link-downgraded.txt", "gpu-link", kOk,
                 "2.5 GT/s x16 of 16 GT/s x16"},
        Expected{"lspci-vvv-connectx7-acs-off.txt", "nic-link", kOk, "32 GT/s x16"},
        Expected{"lspci-vvv-connectx7-acs-off.txt", "pcie-requests", kWarn, "MaxReadReq 512"},
        Expected{"lspci-vvv-connectx7-acs-off.txt", "relaxed-ordering", kOk, "RlxdOrd+"},
        Expected{"lspci-vvv-connectx7-acs-off.txt", "numa", kOk, "NUMA node 0"},
        Expected{"lspci-vvv-gpu-link-downgraded.txt", "bar1", kOk, "64 GiB"},
        Expected{"lspci-vvv-gpu-link-downgraded.txt", "pcie-requests", kOk, "MaxPayload 256 of 256"},
        Expected{"lspci-vvv-gpu-link-downgraded.txt", "numa", kOk, "NUMA node 0"},
        Expected{"lspci-vvv-connectx7-acs-off.txt", "acs", kOk, "no redirect"},
        Expected{"lspci-acsctl-all-off.txt", "acs", kOk, "no redirect"},
        Expected{"lspci-acsctl-redirect-on.txt", "acs", kWarn, "40:01.2, 40:01.3"},
        Expected{"lsmod-peermem-bound-ib-core.txt", "peermem", kOk, "ib_core"},
        Expected{"lsmod-peermem-bound-ib-uverbs.txt", "peermem", kOk, "ib_uverbs"},
        Expected{"lsmod-peermem-loaded-not-bound.txt", "peermem", kFail, "neither"},
        Expected{"modprobe-peermem-key-rejected.txt", "peermem", kFail, "Secure Boot"},
        Expected{"dmesg-peermem-unknown-symbol-enoent.txt", "peermem", kFail, "no peer memory API"},
        Expected{"dmesg-peermem-module-verification.txt", "peermem", kWarn, "not signed"},
        Expected{"ibv_devinfo-mlx4-roce-2port.txt", "mtu", kWarn, "1024 of 4096"},
        Expected{"ibv_devinfo-mlx4-roce-2port.txt", "port-state", kOk, "ACTIVE, Ethernet"},
        Expected{"show_gids-bond.txt", "gid", kOk, "index 3: RoCE v2, 10.96.83.26"},
        Expected{"show_gids-no-ipv4-second-device.txt", "gid", kWarn, "link-local"},
        Expected{"ethtool-i-mlx5.txt", "driver", kOk, "mlx5_core 23.10-1.1.9, firmware 28.39.3560"},
        Expected{"ethtool-i-mlx5-annotated.txt", "driver", kOk, "23.10-3.2.2"},
        Expected{"ibdev2netdev-up-down.txt", "port-state", kOk, "ens9f1np1"},
        Expected{"memlock-ucx-64k.txt", "memlock", kFail, "64 KiB"},
        Expected{"memlock-ucx-8m-wrapped.txt", "memlock", kFail, "8 MiB"},
        Expected{"memlock-perftest-could-not-allocate-mr.txt", "memlock", kFail, "nvidia_peermem"}),
    [](const auto& info) {
      std::string name = std::string(info.param.file) + "_" + info.param.check;
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

TEST(Capture, DetailsOfThose) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  const std::string folder =
      std::string(root == nullptr ? "" : root) + "/../shared/fixtures/doctor/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const auto gids =
      read_capture(read_file(folder + "show_gids-no-ipv4-second-device.txt", 1u << 20));
  ASSERT_THAT(gids, SizeIs(2));
  EXPECT_EQ(gids[0].subject, "hrn3_bond_0/1");
  EXPECT_THAT(gids[0].found, HasSubstr("index 1"));
  const auto driver = read_capture(read_file(folder + "ethtool-i-mlx5-annotated.txt", 1u << 20));
  ASSERT_THAT(driver, SizeIs(1));
  EXPECT_EQ(driver[0].subject, "0000:4d:00.0");
  const auto ports = read_capture(read_file(folder + "ibdev2netdev-up-down.txt", 1u << 20));
  ASSERT_THAT(ports, SizeIs(4));
  EXPECT_EQ(ports[0].verdict, kWarn);
  EXPECT_EQ(ports[0].fix, "sudo ip link set ens3np0 up");
}

TEST(Capture, EveryFileOfTheIndexIsKnown) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  const std::string folder = std::string(root == nullptr ? "" : root) + "/../shared/fixtures/doctor/";
  if (!std::filesystem::exists(folder + "INDEX.tsv")) GTEST_SKIP() << "no " << folder;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    ++count;
    const auto findings = read_capture(read_file(entry.path().string(), 1u << 20));
    EXPECT_TRUE(of_check(findings, "capture").empty()) << entry.path();
  }
  EXPECT_GE(count, 19);
}

TEST(Capture, SeveralInOneText) {
  const auto findings = read_capture(
      "$ ibdev2netdev\nmlx5_0 port 1 ==> eth2 (Down)\n$ lsmod\nnvidia 100 0\nib_core 100 0\n");
  EXPECT_EQ(finding_of(findings, "port-state").verdict, kFail);
  EXPECT_EQ(finding_of(findings, "peermem").verdict, kFail);
  EXPECT_THAT(findings, SizeIs(2));
}

TEST(Capture, CutAnywhereAndWithBytesOfAllKinds) {
  const std::string text =
      "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n\t\t\tactive_mtu:\t1024 (3)\n"
      "mlx5_0 port 1 ==> eth2 (Down)\nmlx5_0\t1\t3\t::ffff:10.0.0.1\t10.0.0.1\tv2\teth2\n"
      "driver: mlx5_core\nbus-info: 0000:4d:00.0\n3b:00.0 Ethernet controller: X\n"
      "\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n\tLnkSta: Speed 8GT/s, Width x8\n"
      "\tACSCtl: ReqRedir+\nnvidia_peermem 16384 0\nnvidia 1 1 nvidia_peermem\n"
      "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)\n"
      "max locked memory (current: 8192 kbytes)\n";
  const std::size_t all = read_capture(text).size();
  EXPECT_EQ(all, 10u);
  for (std::size_t at = 0; at < text.size(); ++at) {
    EXPECT_LE(read_capture(text.substr(0, at)).size(), all);
    EXPECT_GE(read_capture(text.substr(at)).size(), 1u);
    for (const char byte : {'\0', '\xff', '\n', ' ', '9'}) {
      std::string changed = text;
      changed[at] = byte;
      EXPECT_GE(read_capture(changed).size(), 1u);
    }
  }
}

TEST(Capture, NothingKnown) {
  for (const char* text : {"", "hello\n", "total 100 200 300\n"}) {
    const auto findings = read_capture(text);
    ASSERT_THAT(findings, SizeIs(1)) << text;
    EXPECT_EQ(findings[0].verdict, Verdict::kSkip) << text;
  }
}

}  // namespace
}  // namespace gdrperf::doctor
