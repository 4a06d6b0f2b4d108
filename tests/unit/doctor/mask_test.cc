// Masking of a recording: it hides MACs, serial numbers, addresses; and what it keeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/recording/mask.h"

namespace gdrperf::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string mask(const std::string& text) {
  Masks seen;
  return masked(text, seen);
}

TEST(Masking, MacsAndGuids) {
  const std::string text =
      mask("link/ether 94:6d:ae:12:34:56 brd ff:ff\nnode_guid: 946d:ae03:0012:3456\nagain 94:6d:ae:12:34:56\n");
  EXPECT_THAT(text, Not(HasSubstr("94:6d:ae")));
  EXPECT_THAT(text, Not(HasSubstr("946d:ae03")));
  EXPECT_EQ(text.find("02:00:00:00:00:01"), text.find("link/ether ") + 11) << text;
  EXPECT_NE(text.rfind("02:00:00:00:00:01"), text.find("02:00:00:00:00:01")) << "the same MAC stays the same";
}

TEST(Masking, Addresses) {
  const std::string text = mask("a 192.168.77.5 b 192.168.77.6 c 203.0.113.9\n");
  for (const char* secret : {"192.168.77", "203.0.113"}) EXPECT_THAT(text, Not(HasSubstr(secret)));
  EXPECT_EQ(text, "a 10.0.1.1 b 10.0.1.2 c 10.0.2.1\n") << "one network stays one";
  EXPECT_THAT(mask("gid fe80:0000:0000:0000:966d:aeff:fe12:3456\n"), Not(HasSubstr("966d")));
  EXPECT_THAT(mask("gid fe80:0000:0000:0000:966d:aeff:fe12:3456\n"), HasSubstr("fe80")) << "link-local stays so";
  EXPECT_THAT(mask("gid 0000:0000:0000:0000:0000:ffff:c0a8:4d05\n"), Not(HasSubstr("c0a8:4d05")));
  EXPECT_THAT(mask("gid 2001:67c:1234::7\n"), Not(HasSubstr("67c:1234")));
}

TEST(Masking, SerialNumbersAndUuids) {
  const std::string text = mask(
      "GPU 0: NVIDIA H100 (UUID: GPU-12345678-90ab-cdef-1234-567890abcdef)\n\t\t[SN] Serial number: MT2301X00001\n"
      "        Serial Number                  : 1650922001234\n");
  for (const char* secret : {"12345678-90ab", "MT2301X00001", "1650922001234"})
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  EXPECT_THAT(text, HasSubstr("NVIDIA H100"));
}

TEST(Masking, FilesNamedAsSerialNumbers) {
  Tree tree;
  tree.add_file("/sys/class/dmi/id/product_serial", "ABC123\n");
  tree.add_file("/etc/hostname", "node17.example.org\n");
  tree.add_file("/sys/class/net/eth2/address", "94:6d:ae:12:34:56\n");
  tree.add_program("ip addr", {ProgramResult::End::kExited, 0, "inet 192.168.77.5/24\n"});
  const Tree hidden = masked(tree);
  EXPECT_EQ(hidden.read("/sys/class/dmi/id/product_serial").text, "MASKED\n");
  EXPECT_EQ(hidden.read("/etc/hostname").text, "MASKED\n");
  EXPECT_EQ(hidden.read("/sys/class/net/eth2/address").text, "02:00:00:00:00:01\n");
  EXPECT_EQ(hidden.run({"ip", "addr"}).output, "inet 10.0.1.1/24\n");
}

TEST(Masking, WhatChecksReadStays) {
  for (const char* kept :
       {"0000:3b:00.0 Ethernet controller", "driver 580.65.06\n", "MLNX_OFED_LINUX-24.10-3.2.5.0:\n",
        "fw_ver 28.39.3560\n", "127.0.0.1\n", "0000:0000:0000:0000:0000:0000:0000:0000\n",
        "LnkSta: Speed 32GT/s, Width x16\n", "6.8.0-60-generic\n", "Kernel Module  535.183.01  Sun\n"}) {
    EXPECT_EQ(mask(kept), kept);
  }
}

}  // namespace
}  // namespace gdrperf::doctor
