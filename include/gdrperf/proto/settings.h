#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "gdrperf/proto/spec.h"

namespace gdrperf {

/// A setting's value; monostate: an optional member that is not set. Choices and flags
/// are integers, times are nanoseconds, shares are fractions.
using SettingValue = std::variant<std::monostate, std::int64_t, double, std::string>;

enum class SettingType {
  kInteger,
  kNumber,   ///< a double, typed as an integer
  kSize,     ///< bytes, typed like 64K
  kTime,     ///< nanoseconds, typed like 2s
  kPercent,  ///< a fraction, typed like 1%
  kChoice,   ///< one of `choices`
  kSwitch,   ///< takes no text: choices[1] where it is typed
  kFlag,     ///< takes no text: yes where it is typed
  kName,     ///< text; `range` limits its length
};

/// Which tests a setting means something to.
enum class Scope {
  kAll,
  kBandwidth,
  kLatency,
  kCarriesData,   ///< the request itself carries the data: not reads
  kPolledMemory,  ///< a round ends with bytes in memory: write_lat
  kEvents,        ///< completions say when a round ends: not write_lat
  kReceives,      ///< the peer posts receives
  kAtomic,
  kReliable,  ///< requests are acknowledged: not UC and UD
  kGpu,       ///< GPU memory at either end
  kStaged,    ///< copies between GPU and host memory
};
/// Treatment of a setting that was typed for a test outside of its scope.
enum class Elsewhere { kRefused, kNoted };

/// Whether two runs that differ in something are two different things.
enum class Identity {
  kNo,         ///< a result, or a circumstance of one run
  kCondition,  ///< yes: compared only where it is equal
  kName,       ///< yes, and it is part of the run's name
};

/// In the JSON of the protocol.
enum class Wire {
  kAlways,
  kMayMiss,  ///< always sent; older peers do not
  kWhenSet,  ///< left out at its default
};

struct Choice {
  const char* word;
  std::int64_t value;
};

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// Reads and writes one member of a TestSpec.
struct SettingAccess {
  const void* (*at)(const TestSpec&);
  SettingValue (*get)(const TestSpec&);
  void (*set)(TestSpec&, const SettingValue&);
  Range holds;  ///< integers that fit into the member
};

/// How result records show a setting.
struct Recorded {
  Identity identity = Identity::kNo;  ///< kNo: not at all
  const char* name = "";   ///< column; "": the member's name
  const char* unit = "";
  const char* label = "";  ///< in names of runs ("rate:1000"); "": the column's name; null: not at their end
};

/// One setting of a test: a row of the option table. The command line, its help,
/// validation, the JSON of the protocol and the record read this table. A row without
/// `member` is another spelling of a setting, with a `take` of its own.
struct Setting {
  const char* object = "";  ///< of the protocol's JSON that has the member; "": the spec itself
  const char* member = "";  ///< name in the protocol
  SettingAccess access{};
  SettingType type = SettingType::kInteger;
  /// Range of typed values. The default is allowed besides: 0 or -1 for "choose by itself".
  Range range{};
  std::span<const std::int64_t> only{};  ///< integers: nothing else; empty: all of `range`
  const char* rule = "";         ///< for messages: "a message has {}"; {} stands for the range
  std::span<const Choice> choices{};
  const char* every = "";  ///< typed in place of a value: one run with each of several, compared; "": no such word
  const char* every_more = "";   ///< another such word, with more of them
  const char* flags = "";        ///< the shortest spelling first; "": cannot be typed
  const char* placeholder = "";  ///< what stands for the value in help
  const char* group = "";        ///< of help; "": the command declares the option itself
  const char* help = "";         ///< {} stands for the default, {range} for the range
  Scope scope = Scope::kAll;
  Elsewhere elsewhere = Elsewhere::kRefused;
  std::int64_t off = std::numeric_limits<std::int64_t>::min();  ///< a value that is never refused: it asks for nothing
  const char* reason = "";       ///< why it means nothing elsewhere; {} stands for the test
  Wire wire = Wire::kAlways;
  Recorded recorded{};
  /// Takes what was typed in place of the type's own parser.
  void (*take)(TestSpec&, const std::string& text, std::string_view flag) = nullptr;
};

/// The option table, in the order of help.
std::span<const Setting> settings();

/// The row whose member is `spec.*outer.*inner...`; every member of TestSpec but
/// `test` has one.
const Setting& setting_at(const void* (*member)(const TestSpec&));

template <auto... Members>
struct SettingMember {
  template <typename Spec, typename First, typename... Rest>
  static auto& of(Spec& spec, First first, Rest... rest) {
    if constexpr (sizeof...(rest) == 0) {
      return spec.*first;
    } else {
      return of(spec.*first, rest...);
    }
  }
  static auto& in(TestSpec& spec) { return of(spec, Members...); }
  static const auto& in(const TestSpec& spec) { return of(spec, Members...); }
  static const void* at(const TestSpec& spec) { return &in(spec); }
};

/// setting<&TestSpec::stop, &StopRule::cap>()
template <auto... Members>
const Setting& setting() {
  return setting_at(SettingMember<Members...>::at);
}

/// "-t", "--cap": the first spelling, as messages name it.
std::string flag_of(const Setting& setting);
template <auto... Members>
std::string flag() {
  return flag_of(setting<Members...>());
}

/// Of the members of an end and of the stop rule: own_flag<&EndSpec::cpu>() is "--cpu".
template <auto Member>
std::string own_flag() {
  return flag<&TestSpec::client, Member>();
}
template <auto Member>
std::string peer_flag() {
  return flag<&TestSpec::server, Member>();
}
template <auto Member>
std::string stop_flag() {
  return flag<&TestSpec::stop, Member>();
}

/// Its value in a new TestSpec.
SettingValue default_of(const Setting& setting);
/// As it is typed: "64", "rdma_cm", "5s", "1%", "0.5"; "" for monostate.
std::string to_text(const Setting& setting, const SettingValue& value);
/// Its help with the default put in.
std::string help_of(const Setting& setting);

/// Range in the field's words: "a message has from 1 byte to 2 GiB".
std::string rule_of(const Setting& setting);

/// Puts what was typed into `spec`; usage_error naming `flag` for text that is no
/// value, or is out of range.
void take(const Setting& setting, TestSpec& spec, const std::string& text, std::string_view flag);

/// Throws usage_error naming the flag for a value out of range.
void check_range(const Setting& setting, const TestSpec& spec);

/// Whether `setting` means something to `test`, GPU memory and staging aside.
bool concerns(const Setting& setting, const Test& test);
/// `setting.reason` for this test.
std::string reason_for(const Setting& setting, const Test& test);
/// Throws usage_error naming the flag where `setting` is set, means nothing to the
/// spec's test and is refused there.
void refuse_elsewhere(const Setting& setting, const TestSpec& spec);
/// Sets all that the spec's test would refuse back to its default.
void leave_out_elsewhere(TestSpec& spec);

}  // namespace gdrperf
