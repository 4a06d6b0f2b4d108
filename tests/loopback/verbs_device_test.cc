// Devices, ports and GIDs as libibverbs shows them, on the software device with
// SOFTNIC="soft0:port=down;soft1;soft2:gid=none,move=never".
#include "gdrperf/verbs/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands/devices.h"
#include "gdrperf/base/error.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::verbs {
namespace {

using testing::HasSubstr;

template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing thrown";
  return Error(ExitCode::kOk, "");
}

class VerbsDevice : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<DeviceInfo> devices = list_devices();
    if (devices.size() < 3 || devices[2].name != "soft2") {
      GTEST_SKIP() << "the software device is not loaded with three devices";
    }
  }
};

TEST_F(VerbsDevice, TheFirstWithAnActivePortIsTaken) {
  Context context = Context::open();
  EXPECT_EQ(context.name(), "soft1");
  EXPECT_EQ(context.kind(), DeviceKind::kSoftware);
  EXPECT_THAT(context.firmware(), HasSubstr("softnic"));
  EXPECT_EQ(context.ports(), 1);
  const Context moved = std::move(context);
  EXPECT_EQ(choose_port(moved, 0).number, 1);
}

TEST_F(VerbsDevice, AnUnknownNameListsThoseThereAre) {
  const Error error = error_of([] { Context::open("mlx5_0"); });
  EXPECT_EQ(error.code(), ExitCode::kUsage);
  EXPECT_STREQ(error.what(),
               "-d mlx5_0: there is no such RDMA device; this machine has: soft0, soft1, soft2");
  EXPECT_THAT(error_of([] { Context::open("mlx5_0", "--peer-dev"); }).hint(), HasSubstr("choose one with --peer-dev"));
}

TEST_F(VerbsDevice, APortThatIsDownIsNamedWithItsState) {
  const Context context = Context::open("soft0");
  for (const int requested : {0, 1}) {
    const Error error = error_of([&] { choose_port(context, requested); });
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("soft0"));
    EXPECT_THAT(error.what(), HasSubstr("port 1 is DOWN"));
    EXPECT_THAT(error.hint(), HasSubstr("SOFTNIC has port=down"));
  }
  const Error absent = error_of([&] { query_port(context, 2); });
  EXPECT_EQ(absent.code(), ExitCode::kUsage);
  EXPECT_STREQ(absent.what(), "soft0 has no port 2; it has port 1 only");
}

TEST_F(VerbsDevice, GidsAreReadAndChosen) {
  const Context context = Context::open("soft1");
  const std::vector<Gid> table = gid_table(context, 1);
  const GidChoice choice = choose_gid(table, -1, {});
  EXPECT_EQ(family_name(choice.gid), "RoCE v2/IPv4");
  EXPECT_EQ(choice.why, "first RoCE v2 over IPv4");
  EXPECT_EQ(choice.gid.netdev, "lo");

  const Context without = Context::open("soft2");
  const Error error = error_of([&] { choose_gid(gid_table(without, 1), -1, {}); });
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
}

TEST_F(VerbsDevice, TheTableHasARowForEachPortAndItsGids) {
  std::ostringstream out;
  EXPECT_EQ(app::run_devices({}, out), 0);
  EXPECT_THAT(out.str(), HasSubstr("soft0   1     "));
  EXPECT_THAT(out.str(), HasSubstr("Ethernet    DOWN"));
  EXPECT_THAT(out.str(), HasSubstr("GID 2   RoCE v2     127.0.0.2"));
  EXPECT_THAT(out.str(), HasSubstr("no GID"));
  EXPECT_THAT(out.str(), HasSubstr("  software\n"));
}

TEST_F(VerbsDevice, VerboseSaysWhatADeviceClaimsAndHowDataTravels) {
  std::ostringstream out;
  app::DevicesOptions options;
  options.verbose = true;
  EXPECT_EQ(app::run_devices(options, out), 0);
  EXPECT_THAT(out.str(), HasSubstr("soft0\n  kind                        software\n"));
  EXPECT_THAT(out.str(), HasSubstr("  max_mr_size                 70368744177664 (64 TiB)\n"));
  EXPECT_THAT(out.str(), HasSubstr("  atomics                     within the device\n"));
  EXPECT_THAT(out.str(), HasSubstr("  port 1                      DOWN\n"));
  EXPECT_THAT(out.str(), HasSubstr("    GID                       none\n"));
  EXPECT_THAT(out.str(), HasSubstr("    window                    not used: move=never\n"));
}

TEST_F(VerbsDevice, JsonHasTheSame) {
  std::ostringstream out;
  app::DevicesOptions options;
  options.json = "-";
  EXPECT_EQ(app::run_devices(options, out), 0);
  const auto devices = nlohmann::json::parse(out.str()).at("devices");
  EXPECT_EQ(devices.at(1).at("limits").at("max_qp_rd_atom"), 16);
  EXPECT_EQ(devices.at(1).at("atomics"), "within the device");
  EXPECT_FALSE(devices.at(1).at("odp").empty());
  EXPECT_EQ(devices.at(1).at("ports").at(0).at("max_message_bytes"), 1 << 30);
  EXPECT_EQ(devices.at(2).at("data_path").at(0),
            (nlohmann::json{{"way", "window"}, {"state", "off"}, {"note", "move=never"}}));
  // Whatever this machine allows, something comes first.
  for (const auto& device : devices) {
    int first = 0;
    for (const auto& path : device.at("data_path")) first += path.at("state") == "first" ? 1 : 0;
    EXPECT_EQ(first, 1) << device.dump();
  }
}

}  // namespace
}  // namespace gdrperf::verbs
