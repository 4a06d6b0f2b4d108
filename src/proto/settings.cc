#include "gdrperf/proto/settings.h"

#include <algorithm>
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

std::string integer_text(SettingType type, std::int64_t value) {
  if (type == SettingType::kSize) return value == 1 ? "1 byte" : format_size(static_cast<std::uint64_t>(value));
  return type == SettingType::kTime ? time_text(value) : std::to_string(value);
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

/// "-t 70000", as messages begin; the flag alone where the value says no more.
std::string flag_and_value(const Setting& setting, const SettingValue& value) {
  const std::string flag = flag_of(setting);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{} {:g}", flag, *number);
  const bool count = setting.type == SettingType::kInteger || setting.type == SettingType::kSize;
  return count ? fmt::format("{} {}", flag, std::get<std::int64_t>(value)) : flag;
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

/// "must be from 1 to 16384".
std::string range_text(const Setting& setting) {
  if (setting.type == SettingType::kPercent) return "must be above 0 and below 100 %, like 1%";
  if (!setting.only.empty()) return "must be " + joined_or(setting.only);
  return fmt::format("must be from {} to {}", integer_text(setting.type, setting.range.low),
                     integer_text(setting.type, setting.range.high));
}

bool within(const Setting& setting, double value) {
  if (setting.type == SettingType::kPercent) return value > 0 && value < 1;
  return value >= static_cast<double>(setting.range.low) && value <= static_cast<double>(setting.range.high);
}

SettingValue parsed(const Setting& setting, const std::string& text, std::string_view flag) {
  switch (setting.type) {
    case SettingType::kInteger: return parse_integer(text, flag, setting.range.low, setting.range.high);
    case SettingType::kNumber:
      return static_cast<double>(parse_integer(text, flag, setting.range.low, setting.range.high));
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
  const std::size_t at = help.find("{}");
  if (at != std::string::npos) help.replace(at, 2, to_text(setting, default_of(setting)));
  return help;
}

void take(const Setting& setting, TestSpec& spec, const std::string& text, std::string_view flag) {
  if (setting.take != nullptr) return setting.take(spec, text, flag);
  setting.access.set(spec, parsed(setting, text, flag));
  check_range(setting, spec);
}

void check_range(const Setting& setting, const TestSpec& spec) {
  if (setting.access.get == nullptr) return;
  const SettingValue value = setting.access.get(spec);
  if (value == default_of(setting)) return;
  if (const auto* name = std::get_if<std::string>(&value)) return check_name(setting, *name);
  bool right = true;
  if (const auto* number = std::get_if<double>(&value)) right = within(setting, *number);
  const bool chosen = setting.type == SettingType::kChoice || setting.type == SettingType::kSwitch ||
                      setting.type == SettingType::kFlag;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) right = chosen || within(setting, *integer);
  if (!right) throw usage_error(fmt::format("{}: {}", flag_and_value(setting, value), range_text(setting)));
}

void refuse_elsewhere(const Setting& setting, const TestSpec& spec) {
  if (setting.access.get == nullptr || setting.elsewhere != Elsewhere::kRefused) return;
  const SettingValue value = setting.access.get(spec);
  if (value == default_of(setting) || value == SettingValue(setting.off) || concerns(setting, spec.test)) return;
  throw usage_error(flag_and_value(setting, value) + ": " + reason_for(setting, spec.test));
}

std::string reason_for(const Setting& setting, const Test& test) {
  std::string reason = setting.reason;
  const std::size_t at = reason.find("{}");
  if (at != std::string::npos) reason.replace(at, 2, to_string(test));
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
    case Scope::kEvents: return !(latency && operation.round_in_memory);
    case Scope::kReceives: return operation.receives;
    case Scope::kAll:
    case Scope::kGpu:
    case Scope::kStaged: break;
  }
  return true;
}

}  // namespace gdrperf
