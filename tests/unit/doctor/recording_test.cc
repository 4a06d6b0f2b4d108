// What a recording says of a path.

#include <string>

#include <gtest/gtest.h>

#include "doctor/recording/tree.h"

namespace gdrperf::doctor {
namespace {

const std::string kListed = "/sys/bus/pci/devices/0000:00:06.0";
const std::string kPlace = "/sys/devices/pci0000:00/0000:00:06.0";

Tree function_of_a_virtual_machine() {
  Tree tree;
  tree.add_link(kListed, kPlace);
  tree.add_file(kPlace + "/class", "0x030200\n");
  tree.add_link(kListed + "/driver", "/sys/bus/pci/drivers/nvidia");
  return tree;
}

TEST(Recording, LinksAreFollowed) {
  const Tree tree = function_of_a_virtual_machine();
  EXPECT_EQ(tree.resolve(kListed), kPlace);
  EXPECT_EQ(tree.resolve(kListed + "/"), kPlace);
  EXPECT_EQ(tree.resolve(kListed + "/class"), kPlace + "/class");
  EXPECT_EQ(tree.read(kListed + "/class").text, "0x030200\n");
}

TEST(Recording, ALinkNamesItsTargetThoughNothingIsThere) {
  EXPECT_EQ(function_of_a_virtual_machine().resolve(kListed + "/driver"), "/sys/bus/pci/drivers/nvidia");
}

// A virtual machine without an IOMMU is none whose IOMMU cannot be read.
TEST(Recording, WhatIsMissingInALinkedFolderIsNowhere) {
  EXPECT_EQ(function_of_a_virtual_machine().resolve(kListed + "/iommu_group"), "");
  EXPECT_EQ(function_of_a_virtual_machine().resolve("/sys/bus/pci/devices/0000:00:07.0"), "");
  EXPECT_EQ(function_of_a_virtual_machine().resolve("/"), "");
}

}  // namespace
}  // namespace gdrperf::doctor
