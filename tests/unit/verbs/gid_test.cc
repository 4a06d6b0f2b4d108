#include "gdrperf/verbs/gid.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gdrperf/base/error.h"

namespace gdrperf::verbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Families = std::vector<std::string>;

Gid gid(int index, GidType type, const std::string& address, const std::string& netdev = "eth0") {
  ibv_gid raw{};
  const bool ipv4 = address.find(':') == std::string::npos;
  const std::string text = ipv4 ? "::ffff:" + address : address;
  EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), raw.raw), 1) << address;
  return make_gid(index, type, raw, netdev);
}

std::vector<int> indices(const std::vector<Gid>& table) {
  std::vector<int> result;
  for (const Gid& entry : table) result.push_back(entry.index);
  return result;
}

/// GIDs of a ConnectX port with one IPv4 and one IPv6 address.
std::vector<Gid> usual_table() {
  return {gid(0, GidType::kRoceV1, "fe80::ba59:9fff:fe12:3456"),
          gid(1, GidType::kRoceV2, "fe80::ba59:9fff:fe12:3456"),
          gid(2, GidType::kRoceV1, "10.1.2.3"),
          gid(3, GidType::kRoceV2, "10.1.2.3"),
          gid(4, GidType::kRoceV1, "2001:db8::7"),
          gid(5, GidType::kRoceV2, "2001:db8::7")};
}

Error choose_error(std::span<const Gid> table, int index, const Families& peer) {
  try {
    choose_gid(table, index, peer);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing thrown";
  return Error(ExitCode::kOk, "");
}

TEST(Gid, AnIwarpPortHasTheAddressesOfItsInterface) {
  // The loopback interface's hardware address is zero.
  const std::vector<Gid> table = addresses_of(ibv_gid{});
  const auto own =
      std::find_if(table.begin(), table.end(), [](const Gid& each) { return each.address == "127.0.0.1"; });
  if (own == table.end()) GTEST_SKIP() << "no interface has 127.0.0.1";
  EXPECT_EQ(own->netdev, "lo");
  EXPECT_EQ(family_name(*own), "iWARP/IPv4");
  EXPECT_EQ(table[static_cast<std::size_t>(own->index)].address, own->address);
  ibv_gid nobodys{};
  nobodys.raw[0] = 0x02;
  nobodys.raw[5] = 0x99;
  EXPECT_THAT(addresses_of(nobodys), testing::IsEmpty());
}

TEST(Gid, AddressAndFamily) {
  const Gid v4 = gid(3, GidType::kRoceV2, "10.1.2.3");
  EXPECT_EQ(v4.address, "10.1.2.3");
  EXPECT_TRUE(v4.ipv4);
  EXPECT_FALSE(v4.link_local);
  EXPECT_EQ(family_name(v4), "RoCE v2/IPv4");
  EXPECT_EQ(family_name(gid(0, GidType::kRoceV1, "fe80::1")), "RoCE v1/IPv6 link-local");
  EXPECT_EQ(family_name(gid(0, GidType::kRoceV2, "febf::1")), "RoCE v2/IPv6 link-local");
  EXPECT_EQ(family_name(gid(0, GidType::kRoceV2, "fec0::1")), "RoCE v2/IPv6");
  EXPECT_EQ(family_name(gid(0, GidType::kRoceV2, "169.254.7.7")), "RoCE v2/IPv4 link-local");
  EXPECT_EQ(family_name(gid(0, GidType::kInfiniBand, "fe80::7cfe:9003:0026:1b2a")), "InfiniBand");
}

TEST(Gid, RankedByPreference) {
  EXPECT_THAT(indices(ranked(usual_table())), ElementsAre(3, 5, 1, 2, 4, 0));
  EXPECT_EQ(families(usual_table()),
            (Families{"RoCE v2/IPv4", "RoCE v2/IPv6", "RoCE v2/IPv6 link-local", "RoCE v1/IPv4",
                      "RoCE v1/IPv6", "RoCE v1/IPv6 link-local"}));
}

TEST(Gid, LoopbackAndContainerBridgesComeLastInTheirFamily) {
  const std::vector<Gid> table = {gid(1, GidType::kRoceV2, "127.0.0.1", "lo"),
                                  gid(2, GidType::kRoceV2, "172.17.0.1", "docker0"),
                                  gid(3, GidType::kRoceV2, "10.88.0.1", "podman0"),
                                  gid(4, GidType::kRoceV2, "192.168.1.9"),
                                  gid(5, GidType::kRoceV2, "192.168.1.8")};
  EXPECT_THAT(indices(ranked(table)), ElementsAre(4, 5, 2, 3, 1));
  // Better than nothing, and better than another family.
  const std::vector<Gid> only = {gid(0, GidType::kRoceV2, "fe80::1"),
                                 gid(1, GidType::kRoceV2, "127.0.0.1")};
  EXPECT_EQ(choose_gid(only, -1, {}).gid.index, 1);
}

TEST(Gid, ChoosesByItselfAndSaysWhy) {
  const GidChoice choice = choose_gid(usual_table(), -1, {});
  EXPECT_EQ(choice.gid.index, 3);
  EXPECT_EQ(choice.why, "first RoCE v2 over IPv4");

  const Families v1_peer = {"RoCE v1/IPv6 link-local", "RoCE v1/IPv6"};
  const GidChoice common = choose_gid(usual_table(), -1, v1_peer);
  EXPECT_EQ(common.gid.index, 4);
  EXPECT_EQ(common.why, "first RoCE v1 over IPv6 among the kinds the peer has");
}

TEST(Gid, BothEndsArriveAtOneFamily) {
  const std::vector<Gid> here = usual_table();
  const std::vector<Gid> there = {gid(0, GidType::kRoceV1, "fe80::2"),
                                  gid(1, GidType::kRoceV2, "fe80::2"),
                                  gid(6, GidType::kRoceV2, "2001:db8::9")};
  const Gid a = choose_gid(here, -1, families(there)).gid;
  const Gid b = choose_gid(there, -1, families(here)).gid;
  EXPECT_EQ(family_name(a), "RoCE v2/IPv6");
  EXPECT_EQ(family_name(b), "RoCE v2/IPv6");
  // An end that was told which one to use offers that family alone.
  const Gid c = choose_gid(here, -1, offered_families(there, 0)).gid;
  EXPECT_EQ(family_name(c), "RoCE v1/IPv6 link-local");
}

TEST(Gid, RequestedIndex) {
  const GidChoice choice = choose_gid(usual_table(), 1, {});
  EXPECT_EQ(choice.gid.index, 1);
  EXPECT_EQ(choice.why, "asked for with -x 1");
  const Error absent = choose_error(usual_table(), 9, {});
  EXPECT_EQ(absent.code(), ExitCode::kUsage);
  EXPECT_THAT(absent.what(), HasSubstr("-x 9"));
  EXPECT_THAT(absent.what(), HasSubstr("3 (RoCE v2/IPv4, 10.1.2.3)"));
  const Error mismatch = choose_error(usual_table(), 2, {"RoCE v2/IPv4"});
  EXPECT_THAT(mismatch.what(), HasSubstr("RoCE v1/IPv4"));
  EXPECT_THAT(mismatch.what(), HasSubstr("RoCE v2/IPv4"));
  EXPECT_FALSE(mismatch.hint().empty());
}

TEST(Gid, NothingInCommonNamesBothEnds) {
  const std::vector<Gid> v2_only = {gid(1, GidType::kRoceV2, "10.0.0.1")};
  const Error error = choose_error(v2_only, -1, {"RoCE v1/IPv4", "InfiniBand"});
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_THAT(error.what(), HasSubstr("this host has RoCE v2/IPv4"));
  EXPECT_THAT(error.what(), HasSubstr("the peer has RoCE v1/IPv4, InfiniBand"));
  EXPECT_FALSE(error.hint().empty());
}

TEST(Gid, AnEmptyTableIsTheEnvironmentsFault) {
  const Error error = choose_error({}, -1, {});
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_THAT(error.hint(), HasSubstr("ip addr add"));
  EXPECT_EQ(choose_error({}, 3, {}).code(), ExitCode::kEnvironment);
}

}  // namespace
}  // namespace gdrperf::verbs
