#include "gdrperf/verbs/host_side.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "../../temporary_folder.h"

namespace gdrperf::verbs {
namespace {

std::string recorded() {
  const char* const root = std::getenv("GDRPERF_SOURCE_ROOT");
  return std::string(root == nullptr ? "." : root) + "/tests/data/host-side";
}

TEST(VerbsHostSide, TheCpuOfACompletionVectorIsThatOfItsInterrupt) {
  EXPECT_EQ(interrupt_cpus("0000:3b:00.0", 0, recorded()), "1");
  EXPECT_EQ(interrupt_cpus("0000:3b:00.0", 1, recorded()), "2");
  EXPECT_EQ(interrupt_cpus("0000:3b:00.0", 10, recorded()), "3");
  EXPECT_EQ(interrupt_cpus("0000:af:00.0", 0, recorded()), "0");
}

TEST(VerbsHostSide, WithoutTheEffectiveOneWhatIsAllowedCounts) {
  EXPECT_EQ(interrupt_cpus("0000:af:00.0", 1, recorded()), "2-3");
}

TEST(VerbsHostSide, WhatIsNotThereIsNotKnown) {
  EXPECT_EQ(interrupt_cpus("0000:3b:00.0", 2, recorded()), "");
  EXPECT_EQ(interrupt_cpus("0000:17:00.0", 0, recorded()), "");
  EXPECT_EQ(interrupt_cpus("", 0, recorded()), "");
  EXPECT_EQ(interrupt_cpus("0000:3b:00.0", 0, recorded() + "/none"), "");
}

/// Configuration space whose PCI Express capability has this Device Control.
std::string config_with(std::uint16_t device_control) {
  std::string bytes(256, '\0');
  bytes[6] = 0x10;     // it has capabilities
  bytes[0x34] = 0x60;  // the first
  bytes[0x60] = 0x10;  // PCI Express
  bytes[0x68] = static_cast<char>(device_control & 0xff);
  bytes[0x69] = static_cast<char>(device_control >> 8);
  return bytes;
}

class Ordering : public ::testing::Test {
 protected:
  void put(const std::string& place, const std::string& bytes) {
    const std::string folder = folder_.path() + "/sys/bus/pci/devices/" + place;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/config", std::ios::binary) << bytes;
  }
  OrderingSeen seen(const std::string& address) { return relaxed_ordering_seen(address, folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST_F(Ordering, DeviceControlTells) {
  put("0000:3b:00.0", config_with(0x2910));
  put("0000:af:00.0", config_with(0x2900));
  EXPECT_EQ(seen("0000:3b:00.0"), OrderingSeen::kEnabled);
  EXPECT_EQ(seen("0000:af:00.0"), OrderingSeen::kDisabled);
}

TEST_F(Ordering, OfAVirtualFunctionThePhysicalOneCounts) {
  put("0000:3b:00.2", config_with(0));
  put("0000:3b:00.2/physfn", config_with(0x10));
  EXPECT_EQ(seen("0000:3b:00.2"), OrderingSeen::kEnabled);
}

TEST_F(Ordering, WithoutRootNothingIsKnown) {
  put("0000:3b:00.0", config_with(0x2910).substr(0, 64));
  EXPECT_EQ(seen("0000:3b:00.0"), OrderingSeen::kAsked);
  EXPECT_EQ(seen("0000:17:00.0"), OrderingSeen::kAsked);
}

}  // namespace
}  // namespace gdrperf::verbs
