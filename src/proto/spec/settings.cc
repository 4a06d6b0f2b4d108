#include "gdrperf/proto/settings.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/operation.h"

namespace gdrperf {
namespace {

constexpr std::uint64_t kLargestSize = std::numeric_limits<std::int64_t>::max();

const TestSpec& defaults() {
  static const TestSpec spec;
  return spec;
}

/// In the largest unit that leaves no rest: "168h", "5s", "1ms".
std::string time_text(std::int64_t ns) {
  static constexpr std::pair<std::int64_t, const char*> kUnits[] = {
      {3'600'000'000'000, "h"}, {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  for (const auto& [unit, name] : kUnits) {
    if (ns != 0 && ns % unit == 0) return fmt::format("{}{}", ns / unit, name);
  }
  return fmt::format("{}ns", ns);
}

/// "1 byte", "2 GiB", "1 ms", "16384".
std::string in_words(SettingType type, std::int64_t value) {
  if (type == SettingType::kSize) return value == 1 ? "1 byte" : format_size(static_cast<std::uint64_t>(value));
  if (type != SettingType::kTime) return std::to_string(value);
  std::string text = time_text(value);
  return text.insert(text.find_first_not_of("0123456789"), " ");
}

/// "3G", "1500": as a size may be typed.
std::string size_as_typed(std::uint64_t bytes) {
  std::string text = format_size(bytes);
  const std::size_t blank = text.find(' ');
  const bool plain = text[blank + 1] == 'B';
  return text.substr(0, blank) + (plain ? "" : text.substr(blank + 1, 1));
}

std::vector<const char*> words_of(const Setting& setting) {
  std::vector<const char*> words;
  for (const Choice& choice : setting.choices) words.push_back(choice.word);
  return words;
}

template <typename Items>
std::string joined_or(const Items& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == items.size() ? " or " : ", ") + fmt::format("{}", items[i]);
  }
  return text;
}

/// "-t 70000", "-s 3G", as messages begin; the flag alone where the value says no more.
std::string flag_and_value(const Setting& setting, const SettingValue& value) {
  const std::string flag = flag_of(setting);
  switch (setting.type) {
    case SettingType::kSize:
      return fmt::format("{} {}", flag, size_as_typed(static_cast<std::uint64_t>(std::get<std::int64_t>(value))));
    case SettingType::kInteger:
    case SettingType::kNumber:
    case SettingType::kPercent:
    case SettingType::kTime: return fmt::format("{} {}", flag, to_text(setting, value));
    default: return flag;
  }
}

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

bool within(const Setting& setting, std::int64_t value) {
  if (value < setting.range.low || value > setting.range.high) return false;
  return setting.only.empty() || std::find(setting.only.begin(), setting.only.end(), value) != setting.only.end();
}

void check_name(const Setting& setting, const std::string& name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > 0x20 && c != 0x7f; });
  const auto length = static_cast<std::int64_t>(name.size());
  if (length > setting.range.high || !printable) {
    throw usage_error(fmt::format("{}: a name has up to {} printable characters and no blank", flag_of(setting),
                                  setting.range.high));
  }
  if (length < setting.range.low) throw usage_error(flag_of(setting) + ": needs a value");
}

/// "from 1 to 16384", "256, 512 or 1024".
std::string range_words(const Setting& setting) {
  if (setting.type == SettingType::kPercent) return kPercentRange;
  if (!setting.only.empty()) return joined_or(setting.only);
  return fmt::format("from {} to {}", in_words(setting.type, setting.range.low),
                     in_words(setting.type, setting.range.high));
}

bool within(const Setting& setting, double value) {
  if (setting.type == SettingType::kPercent) return is_percent(value * 100);
  return value >= static_cast<double>(setting.range.low) && value <= static_cast<double>(setting.range.high);
}

/// Names and choices are judged where they are read.
bool right(const Setting& setting, const SettingValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return within(setting, *number);
  const auto* integer = std::get_if<std::int64_t>(&value);
  const bool chosen = setting.type == SettingType::kChoice || setting.type == SettingType::kSwitch ||
                      setting.type == SettingType::kFlag;
  return integer == nullptr || chosen || within(setting, *integer);
}

std::int64_t parsed_integer(const Setting& setting, const std::string& text, std::string_view flag) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || rest != end) {
    throw usage_error(fmt::format("{} '{}': not a number; {}", flag, text, rule_of(setting)));
  }
  // A value that does not fit is out of every range.
  if (error != std::errc()) throw usage_error(fmt::format("{} {}: {}", flag, text, rule_of(setting)));
  return value;
}

SettingValue parsed(const Setting& setting, const std::string& text, std::string_view flag) {
  switch (setting.type) {
    case SettingType::kInteger: return parsed_integer(setting, text, flag);
    case SettingType::kNumber: return static_cast<double>(parsed_integer(setting, text, flag));
    case SettingType::kSize: return static_cast<std::int64_t>(std::min(parse_size(text, flag), kLargestSize));
    case SettingType::kTime: return std::int64_t{parse_duration(text, flag).count()};
    case SettingType::kPercent: return parse_percent(text, flag);
    case SettingType::kSwitch: return setting.choices[1].value;
    case SettingType::kFlag: return std::int64_t{1};
    case SettingType::kName:
      if (text.empty()) throw usage_error(fmt::format("{}: needs a value", flag));
      return text;
    case SettingType::kChoice: break;
  }
  for (const Choice& choice : setting.choices) {
    if (text == choice.word) return choice.value;
  }
  throw usage_error(fmt::format("{} '{}': give {}", flag, text, joined_or(words_of(setting))));
}

}  // namespace

const Setting& setting_at(const void* (*member)(const TestSpec&)) {
  for (const Setting& each : settings()) {
    if (each.access.at != nullptr && each.access.at(defaults()) == member(defaults())) return each;
  }
  throw std::logic_error("no setting of the table has this member");
}

std::string flag_of(const Setting& setting) {
  const std::string_view flags = setting.flags;
  return std::string(flags.substr(0, flags.find(',')));
}

SettingValue default_of(const Setting& setting) { return setting.access.get(defaults()); }

std::string to_text(const Setting& setting, const SettingValue& value) {
  if (const auto* name = std::get_if<std::string>(&value)) return *name;
  if (const auto* number = std::get_if<double>(&value)) {
    return setting.type == SettingType::kPercent ? fmt::format("{:g}%", *number * 100) : fmt::format("{:g}", *number);
  }
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr) return {};
  for (const Choice& choice : setting.choices) {
    if (choice.value == *integer) return choice.word;
  }
  return setting.type == SettingType::kTime ? time_text(*integer) : std::to_string(*integer);
}

std::string help_of(const Setting& setting) {
  std::string help = setting.help;
  if (setting.access.get != nullptr) replace_all(help, "{}", to_text(setting, default_of(setting)));
  replace_all(help, "{range}", range_words(setting));
  return help;
}

std::string rule_of(const Setting& setting) {
  std::string rule = setting.rule;
  replace_all(rule, "{}", range_words(setting));
  return rule;
}

void take(const Setting& setting, TestSpec& spec, const std::string& text, std::string_view flag) {
  if (setting.take != nullptr) return setting.take(spec, text, flag);
  const SettingValue value = parsed(setting, text, flag);
  // A default that stands for "choose by itself" cannot be typed.
  if (!right(setting, value)) throw usage_error(fmt::format("{} {}: {}", flag, text, rule_of(setting)));
  if (const auto* name = std::get_if<std::string>(&value)) check_name(setting, *name);
  setting.access.set(spec, value);
}

void check_range(const Setting& setting, const TestSpec& spec) {
  if (setting.access.get == nullptr) return;
  const SettingValue value = setting.access.get(spec);
  if (value == default_of(setting)) return;
  if (const auto* name = std::get_if<std::string>(&value)) return check_name(setting, *name);
  if (!right(setting, value))
    throw usage_error(fmt::format("{}: {}", flag_and_value(setting, value), rule_of(setting)));
}

void refuse_elsewhere(const Setting& setting, const TestSpec& spec) {
  if (setting.access.get == nullptr || setting.elsewhere != Elsewhere::kRefused) return;
  const SettingValue value = setting.access.get(spec);
  if (value == default_of(setting) || value == SettingValue(setting.off) || concerns(setting, spec.test)) return;
  throw usage_error(flag_and_value(setting, value) + ": " + reason_for(setting, spec.test));
}

std::string reason_for(const Setting& setting, const Test& test) {
  std::string reason = setting.reason;
  replace_all(reason, "{}", to_string(test));
  return reason;
}

void leave_out_elsewhere(TestSpec& spec) {
  for (const Setting& each : settings()) {
    const bool refused = each.access.set != nullptr && each.elsewhere == Elsewhere::kRefused;
    if (refused && !concerns(each, spec.test)) each.access.set(spec, default_of(each));
  }
}

bool concerns(const Setting& setting, const Test& test) {
  const OperationFacts& operation = facts_of(test.operation);
  const bool latency = test.metric == Metric::kLatency;
  switch (setting.scope) {
    case Scope::kBandwidth: return !latency;
    case Scope::kLatency: return latency;
    case Scope::kCarriesData: return operation.carries_data;
    case Scope::kPolledMemory: return latency && operation.round_in_memory;
    case Scope::kEvents: return !(latency && operation.round_in_memory);
    case Scope::kReceives: return operation.receives;
    case Scope::kAtomic: return test.operation == Operation::kAtomic;
    case Scope::kAll:
    case Scope::kReliable:
    case Scope::kGpu:
    case Scope::kStaged: break;
  }
  return true;
}

}  // namespace gdrperf
