// The range of each setting: its two ends are taken, what lies beyond is refused in the words of its rule.
#include "gdrperf/proto/settings.h"

#include <algorithm>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kWeekNs = 7ll * 24 * 3600 * 1'000'000'000;

struct SettingRange {
  const char* member;
  std::int64_t low;
  std::int64_t high;
  const char* rule;
};

constexpr SettingRange kRanges[] = {
    {"size_bytes", 1, 2147483648, "a message has from 1 byte to 2 GiB"},
    {"port", 1, 255, "a device's ports have the numbers from 1 to 255"},
    {"gid_index", 0, 65535, "a GID has an index from 0 to 65535"},
    {"cpu", 0, 65535, "a CPU has a number from 0 to 65535"},
    {"numa", 0, 4095, "a NUMA node has a number from 0 to 4095"},
    {"gpu_threads", 1, 1024, "a block has from 1 to 1024 threads"},
    {"gpu_blocks", 1, 1024, "a kernel has from 1 to 1024 blocks"},
    {"chunk_bytes", 4096, 1073741824, "a copy has from 4 KiB to 1 GiB"},
    {"rate_per_s", 1, 1'000'000'000, "a rate is from 1 to 1000000000 messages per second"},
    {"rate_bytes_per_s", 1, 1'000'000'000'000'000, "a rate is from 1 to 1000000000000000 bytes per second"},
    {"burst", 1, 65536, "a burst has from 1 to 65536 messages"},
    {"latency_gap", 1, 10'000'000'000, "a pause lasts from 1 ns to 10 s"},
    {"load_size_bytes", 1, 2147483648, "a message of the stream has from 1 byte to 2 GiB"},
    {"threads", 1, 64, "a run has from 1 to 64 threads"},
    {"incast", 1, 64, "an incast has from 1 to 64 clients"},
    {"parts", 1, 64, "a client has from 1 to 64 runs at the same time"},
    {"part", 0, 64, "of runs at the same time one has a number from 0 to 64"},
    {"qps", 1, 16384, "a test has from 1 to 16384 QPs"},
    {"tx_depth", 1, 65536, "a QP has from 1 to 65536 messages in flight"},
    {"rx_depth", 1, 65536, "a QP has from 1 to 65536 receives posted"},
    {"cq_mod", 1, 65536, "every N-th message is signalled, N from 1 to 65536"},
    {"post_list", 1, 65536, "a list has from 1 to 65536 messages"},
    {"inline_bytes", 0, 65536, "inline messages have from 0 to 65536 bytes"},
    {"footprint_bytes", 1, 1099511627776, "the memory that a QP walks through has from 1 byte to 1 TiB"},
    {"stride_bytes", 64, 4294967296, "the distance between messages is from 64 B to 4 GiB"},
    {"sges", 1, 256, "a message has from 1 to 256 pieces"},
    {"verify_seed", 0, kLargest, "a seed is from 0 to 9223372036854775807"},
    {"iterations", 1, 1'000'000'000'000, "a run has from 1 to 1000000000000 messages or round trips"},
    {"duration_ns", 1'000'000, kWeekNs, "a measurement takes from 1 ms to 168 h"},
    {"cap_ns", 1'000'000, kWeekNs, "a limit of time is from 1 ms to 168 h"},
    {"service_level", 0, 15, "a service level is from 0 to 15"},
    {"traffic_class", 0, 255, "a traffic class is from 0 to 255"},
    {"flow_label", 0, 1048575, "a flow label is from 0 to 1048575"},
    {"spread", 2, 16384, "a run spreads over from 2 to 16384 UDP source ports"},
    {"hop_limit", 1, 255, "a hop limit is from 1 to 255"},
    {"qp_timeout", 0, 31, "the ACK timeout is 4.096 us * 2^N, N from 0 to 31"},
    {"retry_count", 0, 7, "a retry count is from 0 to 7"},
    {"rnr_retry", 0, 7, "an RNR retry count is from 0 to 7"},
    {"rnr_timer", 0, 31, "the RNR timer has a code from 0 to 31"},
    {"max_rd_atomic", 1, 255, "a QP has from 1 to 255 reads or atomics outstanding"},
    {"pkey_index", 0, 65535, "a partition key has an index from 0 to 65535"},
    {"comp_vector", 0, 65535, "a completion vector has a number from 0 to 65535"},
};

std::string typed_number(const Setting& setting, std::int64_t value) {
  return std::to_string(value) + (setting.type == SettingType::kTime ? "ns" : "");
}

std::string flag_for(const Setting& setting) { return *setting.flags == 0 ? "(not typed)" : flag_of(setting); }

/// A number as typed, and what the spec has of it.
std::string number_taken(const Setting& setting, const std::string& text) {
  TestSpec spec;
  const std::string told = told_by([&] { take(setting, spec, text, flag_for(setting)); });
  if (told != "taken") return told;
  const SettingValue value = setting.access.get(spec);
  if (const auto* number = std::get_if<double>(&value)) return std::to_string(static_cast<std::int64_t>(*number));
  return std::to_string(std::get<std::int64_t>(value));
}

TEST(Ranges, AreTakenToTheirEndsAndNoFurther) {
  for (const SettingRange& range : kRanges) {
    int found = 0;
    for (const Setting& each : settings()) {
      if (each.member != std::string(range.member)) continue;
      ++found;
      EXPECT_EQ(rule_of(each), range.rule);
      for (const std::int64_t end : {range.low, range.high})
        EXPECT_EQ(number_taken(each, typed_number(each, end)), std::to_string(end)) << range.member;
      const std::string rule = std::string(": ") + range.rule;
      const std::string below = typed_number(each, range.low - 1);
      const std::string above = range.high == kLargest ? "9223372036854775808" : typed_number(each, range.high + 1);
      EXPECT_EQ(number_taken(each, above), flag_for(each) + " " + above + rule);
      if (below != "-1ns") {
        EXPECT_EQ(number_taken(each, below), flag_for(each) + " " + below + rule);
      }
    }
    EXPECT_GT(found, 0) << range.member;
  }
}

TEST(Ranges, OfAllNumbersStandAbove) {
  for (const Setting& each : settings()) {
    const bool words = each.type == SettingType::kName || each.type == SettingType::kChoice ||
                       each.type == SettingType::kFlag || each.type == SettingType::kSwitch ||
                       each.type == SettingType::kPercent || !each.only.empty();
    const bool above = std::any_of(std::begin(kRanges), std::end(kRanges),
                                   [&](const SettingRange& range) { return each.member == std::string(range.member); });
    EXPECT_EQ(above, !words) << each.member;
  }
}

TEST(Ranges, HoldForNumbersOfAPeer) {
  const Setting& rate = setting<&TestSpec::rate_per_s>();
  TestSpec spec;
  for (const auto& [value, expected] : {std::pair{1.0, "taken"},
                                        {1e9, "taken"},
                                        {0.5, "--rate 0.5: a rate is from 1 to 1000000000 messages per second"},
                                        {2e9, "--rate 2e+09: a rate is from 1 to 1000000000 messages per second"}}) {
    spec.rate_per_s = value;
    EXPECT_EQ(told_by([&] { check_range(rate, spec); }), expected);
  }
  const Setting& precision = setting<&TestSpec::stop, &StopRule::precision>();
  for (const auto& [value, expected] :
       {std::pair{0.995, "taken"},
        {1.0, "--precision 100%: the half width of the interval is above 0 and below 100 %"},
        {0.0, "--precision 0%: the half width of the interval is above 0 and below 100 %"}}) {
    spec.stop.precision = value;
    EXPECT_EQ(told_by([&] { check_range(precision, spec); }), expected);
  }
}

TEST(Ranges, NoNumberIsTakenForAnother) {
  const Setting& qps = setting<&TestSpec::qps>();
  const std::string rule = "a test has from 1 to 16384 QPs";
  for (const char* text : {"", "x", "12x", "1.5", "0x10", " 1"})
    EXPECT_EQ(number_taken(qps, text), "-q '" + std::string(text) + "': not a number; " + rule);
  for (const char* text : {"99999999999999999999", "-99999999999999999999"})
    EXPECT_EQ(number_taken(qps, text), "-q " + std::string(text) + ": " + rule);
  const Setting& seed = setting<&TestSpec::verify_seed>();
  for (const char* text : {"99999999999999999999", "-99999999999999999999"})
    EXPECT_EQ(number_taken(seed, text), "--seed " + std::string(text) + ": a seed is from 0 to 9223372036854775807");
}

TEST(Ranges, OfNamesAreTheirLengths) {
  const Setting& device = setting<&TestSpec::client, &EndSpec::device>();
  const Setting& buffer = setting<&TestSpec::client, &EndSpec::buffer>();
  const std::string kUpTo128 = ": a name has up to 128 printable characters and no blank";
  const auto told = [](const Setting& setting, const std::string& name) {
    TestSpec spec;
    return told_by([&] { take(setting, spec, name, "--some"); });
  };
  EXPECT_EQ(told(device, "a"), "taken");
  EXPECT_EQ(told(device, std::string(128, 'a')), "taken");
  EXPECT_EQ(told(device, std::string(129, 'a')), "-d" + kUpTo128);
  EXPECT_EQ(told(device, "a b"), "-d" + kUpTo128);
  EXPECT_EQ(told(device, "a\x7f"), "-d" + kUpTo128);
  EXPECT_EQ(told(device, ""), "--some: needs a value");
  EXPECT_EQ(told(buffer, "a"), "taken");
  TestSpec spec;
  spec.client.buffer = "";
  EXPECT_EQ(told_by([&] { check_range(buffer, spec); }), "--buffer: needs a value");
  EXPECT_EQ(told_by([&] { check_range(device, spec); }), "taken") << "the device is chosen";
}

}  // namespace
}  // namespace gdrperf
