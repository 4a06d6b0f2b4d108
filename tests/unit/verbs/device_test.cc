#include "gdrperf/verbs/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"
#include "gdrperf/verbs/inventory.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::verbs {
namespace {

using testing::HasSubstr;

TEST(DeviceKind, FromWhatIsKnown) {
  EXPECT_EQ(kind_from({"20.39.2048", "mlx5_core", true}), DeviceKind::kHardware);
  EXPECT_EQ(kind_from({"20.39.2048", "", true}), DeviceKind::kHardware);
  EXPECT_EQ(kind_from({"", "rdma_rxe", false}), DeviceKind::kRxe);
  // Old kernels let an rxe's `device` link point to the NIC below.
  EXPECT_EQ(kind_from({"", "rdma_rxe", true}), DeviceKind::kRxe);
  EXPECT_EQ(kind_from({"0.0.0", "siw", false}), DeviceKind::kSiw);
  EXPECT_EQ(kind_from({"softnic 0.1.0", "", false}), DeviceKind::kSoftware);
  EXPECT_STREQ(to_string(DeviceKind::kRxe), "rxe");
  EXPECT_STREQ(to_string(DeviceKind::kSimulated), "simulated");
}

/// Takes up to 60 bytes inline and grants them in steps of 32.
bool grant(ibv_qp_init_attr& attr, std::vector<std::uint32_t>& asked) {
  asked.push_back(attr.cap.max_inline_data);
  if (attr.cap.max_inline_data > 60) return false;
  attr.cap.max_inline_data = (attr.cap.max_inline_data + 31) / 32 * 32;
  return true;
}

TEST(Inline, IsWhatTheFirstQpThatCouldBeMadeWasGranted) {
  std::vector<std::uint32_t> asked;
  const auto create = [&](ibv_qp_init_attr& attr) { return grant(attr, asked); };
  ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC, nullptr, nullptr, {.inline_bytes = 220});
  ASSERT_TRUE(create_qp(attr, Inlining::kUpTo, create));
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{220, 110, 55}));
  EXPECT_EQ(attr.cap.max_inline_data, 64u);
  asked.clear();
  attr.cap.max_inline_data = 220;
  EXPECT_FALSE(create_qp(attr, Inlining::kExactly, create));
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{220}));
  EXPECT_EQ(attr.cap.max_inline_data, 220u) << "for the message";
}

TEST(Inline, WithoutAnyIsTheLastAttempt) {
  std::vector<std::uint32_t> asked;
  ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC, nullptr, nullptr, {.inline_bytes = 40});
  EXPECT_FALSE(create_qp(attr, Inlining::kUpTo, [&](ibv_qp_init_attr& each) {
    asked.push_back(each.cap.max_inline_data);
    return false;
  }));
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{40, 20, 0}));
}

TEST(Port, RateFromSpeedAndWidth) {
  EXPECT_DOUBLE_EQ(rate_gbps_from(32, 2), 100);   // 4X EDR
  EXPECT_DOUBLE_EQ(rate_gbps_from(64, 16), 100);  // 2X HDR
  EXPECT_DOUBLE_EQ(rate_gbps_from(128, 2), 400);  // 4X NDR
  EXPECT_DOUBLE_EQ(rate_gbps_from(256, 2), 800);  // 4X XDR
  EXPECT_DOUBLE_EQ(rate_gbps_from(1, 1), 2.5);
  EXPECT_DOUBLE_EQ(rate_gbps_from(0, 2), 0);
  EXPECT_DOUBLE_EQ(rate_gbps_from(3, 2), 0);
  EXPECT_EQ(mtu_bytes(IBV_MTU_256), 256);
  EXPECT_EQ(mtu_bytes(IBV_MTU_4096), 4096);
  EXPECT_EQ(mtu_bytes(static_cast<ibv_mtu>(0)), 0);
}

TEST(Port, Names) {
  PortInfo port;
  port.state = IBV_PORT_ACTIVE;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  EXPECT_TRUE(port.active());
  EXPECT_STREQ(port.state_name(), "ACTIVE");
  EXPECT_STREQ(port.link_layer_name(), "Ethernet");
}

TEST(DataPath, LinesOfASoftwareDevice) {
  const auto paths = parse_data_paths(
      "window off move=never\n"
      "kernel first memory that is not shared\n"
      "agent fallback\n"
      "\nnonsense\nkernel perhaps so\n");
  ASSERT_EQ(paths.size(), 3u);
  EXPECT_EQ(paths[0].way, "window");
  EXPECT_EQ(paths[0].state, "off");
  EXPECT_EQ(paths[0].note, "move=never");
  EXPECT_EQ(paths[1].note, "memory that is not shared");
  EXPECT_EQ(paths[2].note, "");
  EXPECT_TRUE(parse_data_paths("").empty());
}

TEST(Context, NoDeviceAtAllNamesTheWaysOut) {
  if (!list_devices().empty()) GTEST_SKIP() << "this machine has an RDMA device";
  for (const char* name : {"", "mlx5_7"}) {
    try {
      Context::open(name);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kEnvironment);
      EXPECT_THAT(error.what(), HasSubstr("no RDMA device found"));
      EXPECT_THAT(error.what(), HasSubstr(name));
      EXPECT_THAT(error.hint(), HasSubstr("--softnic"));
      EXPECT_THAT(error.hint(), HasSubstr("gdrperf doctor"));
    }
  }
}

TEST(Context, AnUnknownNameListsThoseThereAre) {
  const std::vector<DeviceInfo> devices = list_devices();
  if (devices.empty()) GTEST_SKIP() << "no RDMA device on this machine";
  try {
    Context::open("no_such_device");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("no_such_device"));
    EXPECT_THAT(error.what(), HasSubstr(devices.front().name));
  }
}

}  // namespace
}  // namespace gdrperf::verbs
