// Words that stand for several settings or for none of their own, and the texts of rows.
#include "gdrperf/proto/settings.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

const Setting& row_of(const std::string& flag) {
  for (const Setting& each : settings()) {
    if (("," + std::string(each.flags) + ",").find("," + flag + ",") != std::string::npos) return each;
  }
  throw std::logic_error("no row has " + flag);
}

using Words = std::vector<std::pair<const char*, const char*>>;

TestSpec spec_typed(const Words& words) {
  TestSpec spec;
  for (const auto& [flag, text] : words) take(row_of(flag), spec, text, flag);
  return spec;
}

std::string told_typed(const char* flag, const char* text) {
  return told_by([&] { spec_typed({{flag, text}}); });
}

TEST(Words, OfTransportsAreThoseOfPerftestToo) {
  const std::map<const char*, Transport> rows = {
      {"rc", Transport::kRc},   {"uc", Transport::kUc}, {"ud", Transport::kUd},   {"xrc", Transport::kXrc},
      {"dc", Transport::kDc},   {"srd", Transport::kSrd}, {"RC", Transport::kRc}, {"UC", Transport::kUc},
      {"UD", Transport::kUd}, {"XRC", Transport::kXrc}, {"DC", Transport::kDc},   {"SRD", Transport::kSrd}};
  for (const auto& [word, transport] : rows) EXPECT_EQ(spec_typed({{"-c", word}}).transport, transport) << word;
  EXPECT_EQ(told_typed("-c", "tcp"), "-c 'tcp': give rc, uc, ud, xrc, dc or srd");
}

TEST(Words, ForAGroupMeanDatagrams) {
  TestSpec spec = spec_typed({{"--multicast", ""}});
  EXPECT_EQ(spec.transport, Transport::kUd);
  EXPECT_EQ(spec.multicast, "auto");
  for (const Words& order : {Words{{"-M", "224.1.2.3"}, {"-g", ""}}, Words{{"-g", ""}, {"-M", "224.1.2.3"}}}) {
    spec = spec_typed(order);
    EXPECT_EQ(spec.transport, Transport::kUd);
    EXPECT_EQ(spec.multicast, "224.1.2.3");
  }
  // One that was asked for stays, and validate() refuses it.
  EXPECT_EQ(spec_typed({{"-c", "uc"}, {"-g", ""}}).transport, Transport::kUc);
  EXPECT_EQ(spec_typed({{"-c", "uc"}, {"-M", "224.1.2.3"}}).transport, Transport::kUc);
}

TEST(Words, ForMemory) {
  EXPECT_EQ(spec_typed({{"--use_cuda", "1"}}).client.buffer, "cuda:1");
  EXPECT_EQ(spec_typed({{"--use_rocm", "2"}}).client.buffer, "rocm:2");
  EXPECT_EQ(spec_typed({{"--use_hugepages", ""}}).client.buffer, "hugepage");
  EXPECT_EQ(told_typed("--use_cuda", ""), "--use_cuda: needs a GPU");
  EXPECT_EQ(told_typed("--use_rocm", ""), "--use_rocm: needs a GPU");
  EXPECT_EQ(told_typed("--peer-buffer", ""), "--peer-buffer: needs a value");
  const TestSpec peer = spec_typed({{"--peer-buffer", "host"}});
  EXPECT_EQ(peer.server.buffer, "host");
  EXPECT_TRUE(peer.server.buffer_given);
  EXPECT_FALSE(peer.client.buffer_given);
  EXPECT_EQ(spec_typed({{"--use_cuda_dmabuf", ""}}).registration, Registration::kDmabuf);
  // perftest types both.
  for (const Words& order : {Words{{"--use_cuda_dmabuf", ""}, {"--use_data_direct", ""}},
                             Words{{"--use_data_direct", ""}, {"--use_cuda_dmabuf", ""}}})
    EXPECT_EQ(spec_typed(order).registration, Registration::kDataDirect);
}

TEST(Words, ForCapabilities) {
  EXPECT_EQ(spec_typed({{"--use_ooo", ""}}).ooo, Use::kOn);
  EXPECT_EQ(spec_typed({{"--ooo", "auto"}, {"--no_ddp", ""}}).ooo, Use::kOff);
  EXPECT_EQ(spec_typed({{"--ipv6", ""}}).gid_family, GidFamily::kIpv6);
  EXPECT_EQ(spec_typed({{"--disable_pcie_relaxed", ""}}).ordering, Ordering::kStrict);
}

TEST(Words, ForVerifyingMeanASeedOfOne) {
  EXPECT_EQ(spec_typed({{"--verify", ""}}).verify_seed, 1u);
  EXPECT_EQ(spec_typed({{"--verify", ""}, {"--seed", "7"}}).verify_seed, 7u);
  EXPECT_EQ(spec_typed({{"--seed", "7"}, {"--verify", ""}}).verify_seed, 7u);
}

TEST(Words, ForRatesAndLoads) {
  TestSpec spec = spec_typed({{"--rate", "8Mb/s"}});
  EXPECT_EQ(spec.rate_per_s, 0);
  EXPECT_EQ(spec.rate_bytes_per_s, 1e6);
  spec = spec_typed({{"--rate", "8Mb/s"}, {"--rate", "7"}});
  EXPECT_EQ(spec.rate_per_s, 7);
  EXPECT_EQ(spec.rate_bytes_per_s, 0);
  EXPECT_EQ(spec_typed({{"--load", "50%"}}).load, "50%");
  EXPECT_EQ(told_typed("--load", "101%"),
            "--load 101%: a share is above 0 and up to 100 % of what the stream carries alone");
}

TEST(Words, ForPathsAreNumbersOrLists) {
  TestSpec spec = spec_typed({{"--flow-label", "0"}});
  EXPECT_EQ(spec.flow_label, 0);
  EXPECT_EQ(spec.flow_labels, "");
  spec = spec_typed({{"--flow-label", "7,0,1048575"}});
  EXPECT_EQ(spec.flow_label, 7);
  EXPECT_EQ(spec.flow_labels, "7,0,1048575");
  spec = spec_typed({{"--flow-label", "7,8"}, {"--flow-label", "9"}});
  EXPECT_EQ(spec.flow_label, 9);
  EXPECT_EQ(spec.flow_labels, "");
  EXPECT_EQ(told_typed("--flow-label", "7,1048576"), "--flow-label 1048576: a flow label is from 0 to 1048575");
  spec = spec_typed({{"--udp-sport", "49152,65535"}});
  EXPECT_EQ(spec.flow_label, 16385);            // bits 14 and 0, which cancel each other out
  EXPECT_EQ(spec.flow_labels, "16385,32766");  // bits 14 and 1 to 13
  EXPECT_EQ(told_typed("--udp-sport", "49151"), "--udp-sport 49151: must be from 49152 to 65535");
  EXPECT_EQ(told_typed("--udp-sport", "65536"), "--udp-sport 65536: must be from 49152 to 65535");
  EXPECT_EQ(spec_typed({{"--lag-port", "1,255"}}).lag_ports, "1,255");
  EXPECT_EQ(told_typed("--lag-port", "0"), "--lag-port 0: must be from 1 to 255");
  EXPECT_EQ(told_typed("--lag-port", "256"), "--lag-port 256: must be from 1 to 255");
}

TEST(Words, ForTimesHaveTheLargestUnitWithoutRest) {
  const Setting& gap = setting<&TestSpec::latency_gap>();
  const std::pair<std::int64_t, const char*> rows[] = {
      {0, "0ns"},           {1, "1ns"},           {999, "999ns"},          {1000, "1us"},
      {1001, "1001ns"},     {1500000, "1500us"},  {1000000, "1ms"},        {1000000000, "1s"},
      {90000000000, "90s"}, {5000000000, "5s"},   {3600000000000, "1h"},   {7200000000000, "2h"},
      {60000000000, "60s"}, {5400000000000, "5400s"}};
  for (const auto& [ns, text] : rows) EXPECT_EQ(to_text(gap, SettingValue(ns)), text);
  EXPECT_EQ(to_text(gap, SettingValue()), "");
}

TEST(Words, TakeThePlaceOfEachPlaceholder) {
  Setting row;
  row.range = {1, 2};
  row.rule = "{} and {}";
  row.reason = "{} is {}, not {}";
  EXPECT_EQ(rule_of(row), "from 1 to 2 and from 1 to 2");
  EXPECT_EQ(reason_for(row, {Operation::kSend, Metric::kLatency}), "send_lat is send_lat, not send_lat");
  EXPECT_EQ(reason_for(setting<&TestSpec::srq>(), {Operation::kRead, Metric::kBandwidth}), "read_bw posts no receives");
}

std::string tests_of(Scope scope) {
  Setting row;
  row.scope = scope;
  std::string names;
  for (const gdrperf::Test test : all_tests()) {
    if (concerns(row, test)) names += (names.empty() ? "" : " ") + to_string(test);
  }
  return names;
}

TEST(Scopes, AreTheTestsThatASettingMeansSomethingTo) {
  const std::string all =
      "write_bw write_lat send_bw send_lat read_bw read_lat write_imm_bw write_imm_lat send_imm_bw send_imm_lat "
      "atomic_bw atomic_lat";
  for (const Scope scope : {Scope::kAll, Scope::kReliable, Scope::kGpu, Scope::kStaged})
    EXPECT_EQ(tests_of(scope), all);
  EXPECT_EQ(tests_of(Scope::kBandwidth), "write_bw send_bw read_bw write_imm_bw send_imm_bw atomic_bw");
  EXPECT_EQ(tests_of(Scope::kLatency), "write_lat send_lat read_lat write_imm_lat send_imm_lat atomic_lat");
  EXPECT_EQ(tests_of(Scope::kCarriesData),
            "write_bw write_lat send_bw send_lat write_imm_bw write_imm_lat send_imm_bw send_imm_lat");
  EXPECT_EQ(tests_of(Scope::kPolledMemory), "write_lat");
  EXPECT_EQ(tests_of(Scope::kEvents),
            "write_bw send_bw send_lat read_bw read_lat write_imm_bw write_imm_lat send_imm_bw "
            "send_imm_lat atomic_bw atomic_lat");
  EXPECT_EQ(tests_of(Scope::kReceives), "send_bw send_lat write_imm_bw write_imm_lat send_imm_bw send_imm_lat");
  EXPECT_EQ(tests_of(Scope::kAtomic), "atomic_bw atomic_lat");
}

TEST(Scopes, WhatIsNotedElsewhereStays) {
  TestSpec spec;
  spec.test.metric = Metric::kLatency;
  spec.tx_depth = 64;
  spec.burst = 2;
  leave_out_elsewhere(spec);
  EXPECT_EQ(spec.tx_depth, 64) << "a latency test notes it";
  EXPECT_EQ(spec.burst, 1) << "a latency test refuses it";
}

}  // namespace
}  // namespace gdrperf
