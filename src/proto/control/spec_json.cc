#include "proto/control/spec_json.h"

#include <string_view>

#include "gdrperf/proto/settings.h"

namespace gdrperf::proto {
namespace {

using nlohmann::json;

bool is_word(const Setting& setting) {
  return setting.type == SettingType::kChoice || setting.type == SettingType::kSwitch;
}

json value_to_json(const Setting& setting, const SettingValue& value) {
  if (is_word(setting)) return to_text(setting, value);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::get<std::int64_t>(value);
}

SettingValue word_from_json(const Setting& setting, const JsonReader& reader) {
  const std::string text = reader.text(setting.member);
  std::string known;
  for (const Choice& choice : setting.choices) {
    if (text == choice.word) return choice.value;
    known += std::string(known.empty() ? "" : " nor ") + choice.word;
  }
  JsonReader::refuse(reader.path_of(setting.member), "is neither " + known);
}

SettingValue value_from_json(const Setting& setting, const JsonReader& reader) {
  if (is_word(setting)) return word_from_json(setting, reader);
  switch (setting.type) {
    case SettingType::kName: return reader.text(setting.member);
    case SettingType::kNumber:
    case SettingType::kPercent: return reader.number(setting.member);
    default: break;
  }
  const Range holds = setting.access.holds;
  return reader.integer<std::int64_t>(setting.member, holds.low, holds.high);
}

void read(const Setting& setting, const JsonReader& reader, TestSpec& spec) {
  if (setting.wire != Wire::kAlways && !reader.has(setting.member)) return;
  setting.access.set(spec, value_from_json(setting, reader));
}

bool on_the_wire(const Setting& setting, std::string_view object) {
  return setting.access.get != nullptr && setting.object == object;
}

constexpr const char* kObjects[] = {"client", "server", "stop"};

json object_to_json(const TestSpec& spec, std::string_view object) {
  json value = json::object();
  for (const Setting& each : settings()) {
    if (!on_the_wire(each, object)) continue;
    const SettingValue now = each.access.get(spec);
    if (each.wire != Wire::kWhenSet || now != default_of(each)) value[each.member] = value_to_json(each, now);
  }
  return value;
}

void object_from_json(const JsonReader& reader, std::string_view object, TestSpec& spec) {
  for (const Setting& each : settings()) {
    if (on_the_wire(each, object)) read(each, reader, spec);
  }
}

}  // namespace

json end_to_json(const EndSpec& end) {
  TestSpec spec;
  spec.server = end;
  return object_to_json(spec, "server");
}

EndSpec end_from_json(const JsonReader& reader) {
  TestSpec spec;
  object_from_json(reader, "server", spec);
  return spec.server;
}

json spec_to_json(const TestSpec& spec) {
  json value = object_to_json(spec, "");
  value["test"] = to_string(spec.test);
  for (const char* object : kObjects) value[object] = object_to_json(spec, object);
  return value;
}

TestSpec spec_from_json(const JsonReader& reader) {
  TestSpec spec;
  const auto test = parse_test(reader.text("test"));
  if (!test) JsonReader::refuse(reader.path_of("test"), "is no test that this version knows");
  spec.test = *test;
  object_from_json(reader, "", spec);
  for (const char* object : kObjects) object_from_json(reader.object(object), object, spec);
  return spec;
}

}  // namespace gdrperf::proto
