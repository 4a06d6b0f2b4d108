#include "app/topo/expected.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Equipment eight() {
  Equipment equipment;
  for (int i = 0; i < 8; ++i) {
    equipment.gpu_nodes.push_back(i / 4);
    equipment.nics.push_back({"mlx5_" + std::to_string(i), i / 4, 400});
  }
  return equipment;
}

std::vector<std::string> lacks(const char* expected, const Equipment& equipment) {
  return unmet(parse_expected(expected), equipment);
}

TEST(Expected, WhatIsThereIsMet) {
  for (const char* text : {"gpus=8,nics=8,rate=400", "gpus=4+4", "nics=4+4,gpus=8", "rate=399.9"})
    EXPECT_THAT(lacks(text, eight()), IsEmpty()) << text;
}

TEST(Expected, AMissingNicAndAGpuOnTheWrongSocketAreNamed) {
  Equipment equipment = eight();
  equipment.nics.pop_back();
  EXPECT_THAT(lacks("gpus=8,nics=8", equipment), ElementsAre("7 NICs with an active port, 8 expected"));
  equipment.gpu_nodes[3] = 1;
  EXPECT_THAT(lacks("gpus=8", equipment), IsEmpty());
  EXPECT_THAT(lacks("gpus=4+4", equipment), ElementsAre("8 GPUs with a driver by NUMA node: 3+5, 4+4 expected"));
  equipment.gpu_nodes[3] = -1;
  EXPECT_THAT(lacks("gpus=4+4", equipment), ElementsAre(HasSubstr("of unknown NUMA nodes")));
}

TEST(Expected, APortAtHalfItsRateIsNamed) {
  Equipment equipment = eight();
  equipment.nics[5].rate_gbps = 200;
  EXPECT_THAT(lacks("rate=400", equipment), ElementsAre("port of mlx5_5 at 200 Gb/s, 400 expected"));
}

TEST(Expected, OtherWordsAreRefusedByName) {
  for (const char* bad : {"", "gpus", "gpus=", "gpus=x", "gpus=-1", "gpus=4+", "gpus=9999", "cpus=2", "rate=0",
                          "rate=inf", "rate=400Gb", "gpus=8,gpus=8", "gpus=8,"}) {
    try {
      parse_expected(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage) << bad;
      EXPECT_THAT(error.what(), HasSubstr("--expect")) << bad;
    }
  }
}

// A GPU whose driver is gone, or that a virtual machine has, is none to compute on.
TEST(Expected, GpusAreThoseThatADriverHas) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "expected_sys";
  fs::remove_all(root);
  const auto device = [&](const std::string& address, const char* driver, const char* node) {
    const fs::path at = root / "bus/pci/devices" / address;
    fs::create_directories(at);
    std::ofstream(at / "class") << "0x030200\n";
    std::ofstream(at / "vendor") << "0x10de\n";
    std::ofstream(at / "numa_node") << node << '\n';
    if (*driver != '\0') fs::create_symlink(root / "bus/pci/drivers" / driver, at / "driver");
  };
  device("0000:18:00.0", "nvidia", "0");
  device("0000:c8:00.0", "nvidia", "1");
  device("0000:c9:00.0", "vfio-pci", "1");
  device("0000:ca:00.0", "", "1");
  EXPECT_THAT(gpu_nodes(root.string()), ElementsAre(0, 1));
  EXPECT_THAT(gpu_nodes((root / "none").string()), IsEmpty());
}

}  // namespace
}  // namespace gdrperf::app
