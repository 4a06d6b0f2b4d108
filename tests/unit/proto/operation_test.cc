// What the operations are and where verbs have them: InfiniBand specification vol. 1, 9.2 and 9.7 (RC has all, UC no
// requests with a response, UD sends alone); SRD as EFA has it, without atomics.
#include "gdrperf/proto/operation.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace gdrperf {
namespace {

constexpr Transport kTransports[] = {Transport::kRc,  Transport::kUc, Transport::kUd,
                                     Transport::kXrc, Transport::kDc, Transport::kSrd};

std::string names_where(bool (*fact)(const OperationFacts&)) {
  std::string names;
  for (const OperationFacts& each : operations()) {
    if (fact(each)) names += (names.empty() ? "" : " ") + std::string(each.name);
  }
  return names;
}

TEST(Operations, AreWhatTheSpecificationSays) {
  using Facts = const OperationFacts&;
  EXPECT_EQ(names_where([](Facts) { return true; }), "write send read write_imm send_imm atomic");
  EXPECT_EQ(names_where([](Facts f) { return f.carries_data; }), "write send write_imm send_imm");
  EXPECT_EQ(names_where([](Facts f) { return f.names_address; }), "write read write_imm atomic");
  EXPECT_EQ(names_where([](Facts f) { return f.receives; }), "send write_imm send_imm");
  EXPECT_EQ(names_where([](Facts f) { return f.round_in_memory; }), "write");
  EXPECT_EQ(names_where([](Facts f) { return f.in_sweep; }), "write send read");
  EXPECT_EQ(names_where([](Facts f) { return f.over_uc; }), "write send write_imm send_imm");
  EXPECT_EQ(names_where([](Facts f) { return f.over_ud; }), "send send_imm");
  EXPECT_EQ(names_where([](Facts f) { return f.only_bytes == 8; }), "atomic");
  EXPECT_EQ(names_where([](Facts f) { return f.only_bytes == 0; }), "write send read write_imm send_imm");
  for (const OperationFacts& each : operations()) EXPECT_EQ(&facts_of(each.operation), &each) << each.name;
}

TEST(Operations, GoOverTheTransportsThatHaveThem) {
  const std::string all = "write send read write_imm send_imm atomic";
  const std::map<Transport, std::string> expected = {
      {Transport::kRc, all},  {Transport::kUc, "write send write_imm send_imm"},
      {Transport::kXrc, all}, {Transport::kUd, "send send_imm"},
      {Transport::kDc, all},  {Transport::kSrd, "write send read write_imm send_imm"}};
  for (const Transport transport : kTransports) {
    std::string names;
    for (const OperationFacts& each : operations()) {
      if (goes_over(each.operation, transport)) names += (names.empty() ? "" : " ") + std::string(each.name);
    }
    EXPECT_EQ(names, expected.at(transport)) << to_string(transport);
  }
}

TEST(Operations, AreAcknowledgedOnReliableTransports) {
  std::set<std::string_view> acknowledging, of_drivers;
  for (const Transport transport : kTransports) {
    if (acknowledged(transport)) acknowledging.insert(to_string(transport));
    if (by_driver(transport)) of_drivers.insert(to_string(transport));
  }
  EXPECT_EQ(acknowledging, (std::set<std::string_view>{"RC", "XRC", "DC", "SRD"}));
  EXPECT_EQ(of_drivers, (std::set<std::string_view>{"DC", "SRD"}));
}

// Nobody learns when one arrives that is neither acknowledged nor received nor answered.
TEST(Operations, CanBeVerifiedWhereSomebodyLearnsOfThem) {
  const std::set<std::string> unseen = {"write_bw", "read_bw", "atomic_bw"};
  for (const gdrperf::Test test : all_tests()) {
    for (const Transport transport : kTransports) {
      const bool unreliable = transport == Transport::kUc || transport == Transport::kUd;
      EXPECT_EQ(can_verify(test, transport), !unreliable || !unseen.contains(to_string(test)))
          << to_string(test) << " over " << to_string(transport);
    }
  }
}

TEST(Operations, OverUdHaveOnePacketAtMost) {
  const std::vector<std::uint64_t> sizes = {1, 255, 256, 257, 4095, 4096, 4097};
  TestSpec spec;
  EXPECT_EQ(sizes_within(spec, sizes), sizes) << "RC cuts messages into packets";
  EXPECT_EQ(largest_datagram(spec), 4096u);
  spec.transport = Transport::kUd;
  EXPECT_EQ(sizes_within(spec, sizes), (std::vector<std::uint64_t>{1, 255, 256, 257, 4095, 4096}));
  spec.mtu_bytes = 256;
  EXPECT_EQ(largest_datagram(spec), 256u);
  EXPECT_EQ(sizes_within(spec, sizes), (std::vector<std::uint64_t>{1, 255, 256}));
}

TEST(Operations, BringTheirDataInAnswersOrNot) {
  std::set<std::string_view> answered;
  for (const OperationFacts& each : operations()) {
    TestSpec spec;
    spec.test.operation = each.operation;
    if (answers_carry_data(spec)) answered.insert(each.name);
  }
  EXPECT_EQ(answered, (std::set<std::string_view>{"read", "atomic"}));
}

TEST(Tests, OfASweepAreThoseOfWriteSendAndRead) {
  std::string names;
  for (const gdrperf::Test test : default_tests()) names += to_string(test) + " ";
  EXPECT_EQ(names, "write_bw write_lat send_bw send_lat read_bw read_lat ");
}

TEST(Words, OfConnectorsPathsAndTransports) {
  EXPECT_EQ(to_string(Connector::kExchange), "exchange");
  EXPECT_EQ(to_string(Connector::kRdmaCm), "rdma_cm");
  EXPECT_EQ(to_string(Path::kDirect), "direct");
  EXPECT_EQ(to_string(Path::kStaged), "staged");
  std::string names;
  for (const Transport transport : kTransports) names += std::string(to_string(transport)) + " ";
  EXPECT_EQ(names, "RC UC UD XRC DC SRD ");
}

}  // namespace
}  // namespace gdrperf
