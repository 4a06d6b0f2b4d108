#include "device/config.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf::softnic {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_config(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "accepted: " + text;
}

TEST(SoftnicConfig, EmptyIsTwoPlainDevices) {
  const auto devices = parse_config("");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "soft0");
  EXPECT_EQ(devices[1].name, "soft1");
  EXPECT_EQ(devices[0].mode, DeviceMode::kFull);
  EXPECT_FALSE(devices[0].modelled());
  EXPECT_TRUE(devices[0].peers.own_user_only());
}

TEST(SoftnicConfig, EachOptionIsTaken) {
  const auto devices = parse_config(
      "a:mode=null,port=down,ports=2,port2=down,gid=none,move=never,kernel=never,peers=1000+1001,fail=reg_mr:ENOMEM,"
      "netdev=eth7,"
      "mac=02:00:00:00:00:0a,pci=0000:3b:00.0,numa=1;b:rate=12.5GB/s,latency=2us,slow=1.05,strict=5GB/"
      "s,slow_sport=50000:1GB/s");
  ASSERT_EQ(devices.size(), 2u);
  const DeviceConfig& a = devices[0];
  EXPECT_EQ(a.mode, DeviceMode::kNull);
  EXPECT_FALSE(a.port_up);
  EXPECT_EQ(a.ports, 2u);
  EXPECT_FALSE(a.second_port_up.value());
  EXPECT_FALSE(a.has_gids);
  EXPECT_EQ(a.move, MovePolicy::kNever);
  EXPECT_EQ(a.kernel, KernelPolicy::kNever);
  EXPECT_TRUE(a.peers.admits(1001));
  EXPECT_FALSE(a.peers.admits(1002));
  EXPECT_EQ(a.fault("reg_mr"), ENOMEM);
  EXPECT_EQ(a.fault("create_qp"), 0);
  EXPECT_EQ(a.netdev, "eth7");
  EXPECT_EQ(a.mac.value()[5], 0x0a);
  EXPECT_EQ(a.pci, "0000:3b:00.0");
  EXPECT_EQ(a.numa, 1);
  EXPECT_TRUE(devices[1].modelled());
  EXPECT_DOUBLE_EQ(devices[1].link.rate, 12.5e9);
  EXPECT_DOUBLE_EQ(devices[1].link.latency_ns, 2000);
  EXPECT_DOUBLE_EQ(devices[1].link.slow, 1.05);
  EXPECT_DOUBLE_EQ(devices[1].link.strict_rate, 5e9);
  EXPECT_EQ(devices[1].link.slow_sport, 50000);
  EXPECT_DOUBLE_EQ(devices[1].link.slow_sport_rate, 1e9);
}

TEST(SoftnicConfig, AFaultOfMessagesIsModelled) {
  const auto devices = parse_config("soft0:fault=flip:every=1000:from=5");
  ASSERT_EQ(devices[0].message_faults.size(), 1u);
  EXPECT_EQ(devices[0].message_faults[0].kind, FaultKind::kFlip);
  EXPECT_EQ(devices[0].message_faults[0].every, 1000u);
  EXPECT_TRUE(devices[0].modelled());
}

TEST(SoftnicConfig, TcpHasAPortAnAddressAndASecret) {
  const auto path = std::filesystem::temp_directory_path() / ("gdrperf-softnic-token-" + std::to_string(::getpid()));
  std::ofstream(path) << "sixteen bytes and more\n";
  const std::string token = "token=" + path.string();
  const auto devices =
      parse_config("soft0:netdev=lo,tcp=on;soft1:tcp=5000,netdev=lo,shared=never," + token + ";soft2:tcp=off");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].tcp_port, kDefaultTcpPort);
  EXPECT_TRUE(devices[0].address.loopback);
  EXPECT_EQ(devices[0].token, "");
  EXPECT_EQ(devices[1].tcp_port, 5000);
  EXPECT_EQ(devices[1].shared, SharedPolicy::kNever);
  EXPECT_EQ(devices[1].token, "sixteen bytes and more");
  EXPECT_EQ(devices[2].tcp_port, 0);
  std::ofstream(path) << "short\n";
  EXPECT_THAT(refusal("soft0:netdev=lo,tcp=on," + token),
              AllOf(HasSubstr("5"), HasSubstr("16 to 4096"), HasSubstr("(column 24)")));
  std::filesystem::remove(path);
  EXPECT_THAT(refusal("soft0:netdev=lo,tcp=on," + token), AllOf(HasSubstr(token), HasSubstr("cannot read")));
  for (const char* port : {"0", "65536", "yes", "-1", ""}) {
    EXPECT_THAT(refusal(std::string("soft0:netdev=lo,tcp=") + port), AllOf(HasSubstr("tcp="), HasSubstr("(column 17)")))
        << port;
  }
  EXPECT_THAT(refusal("soft0:shared=never"), HasSubstr("tcp="));
  EXPECT_THAT(refusal("soft0:tcp=on,netdev=no-such-netdev"),
              AllOf(HasSubstr("no such interface"), HasSubstr("(column 14)")));
}

TEST(SoftnicConfig, AFileHasADeviceALineAndComments) {
  const auto path = std::filesystem::temp_directory_path() / ("gdrperf-softnic-" + std::to_string(::getpid()));
  std::ofstream(path) << "# two\n\n  soft0:numa=0;\t# the first\r\nsoft1:numa=1\n";
  const auto devices = parse_config("@" + path.string());
  std::filesystem::remove(path);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].numa, 0);
  EXPECT_EQ(devices[1].numa, 1);
  std::ofstream(path) << "# one\nsoft0:numa=0\nsoft1:numa=x\n";
  const std::string wrong = refusal("@" + path.string());
  std::filesystem::remove(path);
  EXPECT_THAT(wrong, HasSubstr("(line 3)"));
}

TEST(SoftnicConfig, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal("soft 0"), HasSubstr("SOFTNIC 'soft 0'"));
  EXPECT_THAT(refusal("soft0:mode=fast"), HasSubstr("mode=fast"));
  EXPECT_THAT(refusal("soft0:color=red"), HasSubstr("color"));
  EXPECT_THAT(refusal("soft0;soft0"), HasSubstr("soft0"));
  EXPECT_THAT(refusal("soft0:rate=0"), HasSubstr("rate"));
  EXPECT_THAT(refusal("soft0:pci=3b"), HasSubstr("pci=3b"));
  EXPECT_THAT(refusal("soft0:peers=me"), HasSubstr("peers"));
  EXPECT_THAT(refusal("soft0:ports=3"), AllOf(HasSubstr("ports=3"), HasSubstr("give 1 or 2")));
  EXPECT_THAT(refusal("soft0:port2=up"), HasSubstr("ports=2"));
  EXPECT_THAT(refusal("soft0:ports=2,tcp=on,netdev=lo"), HasSubstr("one port"));
  EXPECT_THAT(refusal("soft0:port=up;soft1:numa=0,color=red"), HasSubstr("(column 28)"));
  EXPECT_THAT(refusal("soft0:port=up;soft 1"), HasSubstr("(column 15)"));
  EXPECT_THAT(refusal("soft0;soft1;soft0:port=up"), AllOf(HasSubstr("named twice"), HasSubstr("(column 13)")));
  EXPECT_THAT(refusal("@/no/such/file"), HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace gdrperf::softnic
