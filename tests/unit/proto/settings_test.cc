#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"

#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/messages.h"

namespace gdrperf {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> spellings(const Setting& setting) {
  std::vector<std::string> all;
  std::istringstream in(setting.flags);
  for (std::string each; std::getline(in, each, ',');) all.push_back(each);
  return all;
}

/// Another value than the default, within the range.
SettingValue other_value(const Setting& setting) {
  if (setting.type == SettingType::kName) return std::string("other");
  if (setting.type == SettingType::kPercent) return 0.25;
  if (setting.type == SettingType::kNumber) return 1000.0;
  if (setting.type == SettingType::kFlag) return std::int64_t{1};
  if (setting.type == SettingType::kSwitch) return setting.choices[1].value;
  if (setting.type == SettingType::kChoice) return setting.choices.back().value;
  if (!setting.only.empty()) return setting.only.back();
  return setting.range.low + 1;
}

TEST(Settings, EachIsStatedOnce) {
  std::set<std::string> members, flags;
  for (const Setting& each : settings()) {
    const std::string member = std::string(each.object) + "." + each.member;
    EXPECT_TRUE(*each.member == 0 || members.insert(member).second) << member;
    for (const std::string& flag : spellings(each)) EXPECT_TRUE(flags.insert(flag).second) << flag;
    EXPECT_EQ(*each.member == 0, each.access.get == nullptr) << each.flags;
    EXPECT_TRUE(*each.member != 0 || each.take != nullptr) << each.flags;
    EXPECT_EQ(*each.group != 0, *each.help != 0) << each.flags;
  }
}

// A member that the table lacks would be left out: the house test looks for those.
TEST(Settings, CarryAllOfASpec) {
  TestSpec spec;
  spec.test = {Operation::kSend, Metric::kLatency};
  for (const Setting& each : settings()) {
    if (each.access.set != nullptr) each.access.set(spec, other_value(each));
  }
  const auto request = std::get<proto::RunRequest>(proto::decode(proto::encode(proto::RunRequest{spec, {}, 4096})));
  EXPECT_EQ(request.spec, spec);
}

TEST(Settings, TheDefaultAndBothEndsOfTheRangeAreAllowed) {
  for (const Setting& each : settings()) {
    if (each.access.get == nullptr || each.type == SettingType::kName) continue;
    TestSpec spec;
    EXPECT_NO_THROW(check_range(each, spec)) << each.member;
    if (each.range.high == 0) continue;
    for (const std::int64_t edge : {each.range.low, each.range.high}) {
      each.access.set(spec,
                      each.type == SettingType::kNumber ? SettingValue(static_cast<double>(edge)) : SettingValue(edge));
      EXPECT_NO_THROW(check_range(each, spec)) << each.member << " " << edge;
    }
  }
}

TEST(Settings, WhatIsTypedAndWhatIsSentAreHeldToOneRange) {
  for (const Setting& each : settings()) {
    const bool integer = each.type == SettingType::kInteger || each.type == SettingType::kSize;
    if (!integer || each.access.get == nullptr || each.range.high > (std::int64_t{1} << 41)) continue;
    TestSpec spec;
    const std::string beyond = std::to_string(each.range.high + 1);
    EXPECT_THROW(take(each, spec, beyond, flag_of(each)), Error) << each.member;
    spec = TestSpec();
    each.access.set(spec, each.range.high + 1);
    try {
      validate(spec);
      ADD_FAILURE() << each.member << " took " << beyond;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), flag_of(each) + " " + beyond + ": " + rule_of(each));
    }
  }
}

std::string refusal(const Setting& setting, const std::string& text) {
  TestSpec spec;
  try {
    take(setting, spec, text, flag_of(setting));
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(Settings, EachRangeIsToldInTheFieldsWords) {
  for (const Setting& each : settings()) {
    const bool free = each.type == SettingType::kName || each.type == SettingType::kChoice ||
                      each.type == SettingType::kSwitch || each.type == SettingType::kFlag;
    EXPECT_EQ(*each.rule == 0, free) << each.member;
    EXPECT_EQ(rule_of(each).find("{}"), std::string::npos) << each.member;
  }
}

TEST(Settings, AMessageHasTheFlagTheValueAsTypedAndTheRangeWithItsUnit) {
  const auto& size = setting<&TestSpec::size_bytes>();
  EXPECT_EQ(refusal(size, "3G"), "-s 3G: a message has from 1 byte to 2 GiB");
  EXPECT_EQ(refusal(setting<&TestSpec::mtu_bytes>(), "77"), "-m 77: a path MTU is 256, 512, 1024, 2048 or 4096 bytes");
  EXPECT_EQ(refusal(setting<&TestSpec::chunk_bytes>(), "1"), "--chunk 1: a copy has from 4 KiB to 1 GiB");
  EXPECT_EQ(refusal(setting<&TestSpec::footprint_bytes>(), "2T"),
            "--footprint 2T: the memory that a QP walks through has from 1 byte to 1 TiB");
  EXPECT_EQ(refusal(setting<&TestSpec::stop, &StopRule::cap>(), "0"), "--cap 0: a limit of time is from 1 ms to 168 h");
  EXPECT_EQ(refusal(setting<&TestSpec::stop, &StopRule::precision>(), "200%"),
            "--precision '200%': give a percentage above 0 and below 100 %, like 1% or 0.5%");
  EXPECT_EQ(refusal(setting<&TestSpec::qps>(), "many"), "-q 'many': not a number; a test has from 1 to 16384 QPs");
  EXPECT_EQ(refusal(setting<&TestSpec::qps>(), "99999999999999999999"),
            "-q 99999999999999999999: a test has from 1 to 16384 QPs");
  EXPECT_EQ(refusal(setting<&TestSpec::tx_depth>(), "0"), "-t 0: a QP has from 1 to 65536 messages in flight");
}

// A peer's request is judged by the same row; sizes stand there as they may be typed.
TEST(Settings, ARequestIsRefusedInTheSameWords) {
  TestSpec spec;
  spec.size_bytes = 3ull << 30;
  try {
    validate(spec);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "-s 3G: a message has from 1 byte to 2 GiB");
  }
}

TEST(Settings, AreReadAsTheyAreTyped) {
  TestSpec spec;
  const auto type = [&](const Setting& setting, const char* text) { take(setting, spec, text, flag_of(setting)); };
  type(setting<&TestSpec::chunk_bytes>(), "64K");
  EXPECT_EQ(spec.chunk_bytes, 65536u);
  type(setting<&TestSpec::registration>(), "peermem");
  EXPECT_EQ(spec.registration, Registration::kPeermem);
  type(setting<&TestSpec::stop, &StopRule::cap>(), "3s");
  EXPECT_EQ(spec.stop.cap, std::chrono::seconds(3));
  type(setting<&TestSpec::stop, &StopRule::precision>(), "2%");
  EXPECT_DOUBLE_EQ(spec.stop.precision, 0.02);
  type(setting<&TestSpec::direction>(), "");
  EXPECT_EQ(spec.direction, Direction::kBidirectional);
  type(setting<&TestSpec::server, &EndSpec::buffer>(), "cuda:0");
  EXPECT_TRUE(spec.server.buffer_given);
}

TEST(Settings, HelpNamesTheDefault) {
  EXPECT_THAT(help_of(setting<&TestSpec::rx_depth>()), HasSubstr("(default: 512; send)"));
  EXPECT_THAT((help_of(setting<&TestSpec::stop, &StopRule::cap>())), HasSubstr("(default: 5s;"));
  EXPECT_THAT((help_of(setting<&TestSpec::stop, &StopRule::precision>())), HasSubstr("(default: 1%)"));
  for (const Setting& each : settings()) EXPECT_EQ(help_of(each).find("{}"), std::string::npos) << each.flags;
}

TEST(Settings, ATestLeavesOutWhatItWouldRefuse) {
  for (const gdrperf::Test test : all_tests()) {
    TestSpec spec;
    for (const Setting& each : settings()) {
      const bool refused = each.scope != Scope::kAll && each.elsewhere == Elsewhere::kRefused;
      if (refused) each.access.set(spec, other_value(each));
    }
    spec.stop = StopRule();
    spec.client = spec.server = EndSpec();
    spec.size_bytes = sizes_of(test.operation, {64}).front();
    spec.test = test;
    spec.post_list = 1;
    leave_out_elsewhere(spec);
    const bool bandwidth = test.metric == Metric::kBandwidth;
    EXPECT_EQ(spec.burst == 1, !bandwidth) << to_string(test);
    spec.burst = 1;  // means something at a rate
    EXPECT_EQ(spec.limiter == Limiter::kSoftware, !bandwidth) << to_string(test);
    spec.limiter = Limiter::kSoftware;  // likewise
    EXPECT_EQ(spec.reverse, bandwidth) << to_string(test);
    spec.reverse = false;  // not with both directions
    EXPECT_EQ(spec.threads == 1, !bandwidth) << to_string(test);
    spec.threads = 1;  // and several devices: not with spread QPs
    spec.rails = spec.peer_rails = "";
    EXPECT_EQ(spec.incast == 1 && spec.victim.empty(), !bandwidth) << to_string(test);
    spec.incast = 1;
    spec.srq = false;
    spec.multicast = "";  // over UD alone
    EXPECT_EQ(spec.mix.empty(), !bandwidth) << to_string(test);
    spec.mix = "";
    EXPECT_EQ(spec.stride_bytes == 0, !bandwidth) << to_string(test);
    spec.stride_bytes = 0;
    spec.victim = "";
    EXPECT_NO_THROW(validate(spec)) << to_string(test);
  }
}

TEST(Settings, AskingForNothingIsNeverRefused) {
  TestSpec spec;
  spec.test.operation = Operation::kRead;
  spec.inline_bytes = 0;
  EXPECT_NO_THROW(validate(spec));
}

}  // namespace
}  // namespace gdrperf
