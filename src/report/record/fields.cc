#include "gdrperf/report/fields.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "report/record/field_rows.h"

namespace gdrperf::report {
namespace {

std::string_view recorded_name(const Setting& setting) {
  return *setting.recorded.name != 0 ? setting.recorded.name : setting.member;
}

const Setting* setting_called(std::string_view name) {
  for (const Setting& each : settings()) {
    if (each.recorded.identity != Identity::kNo && recorded_name(each) == name) return &each;
  }
  return nullptr;
}

Field completed(Field row, const Setting& setting) {
  row.setting = &setting;
  row.name = row.json = recorded_name(setting);
  row.unit = setting.recorded.unit;
  row.identity = setting.recorded.identity;
  if (row.identity == Identity::kCondition) row.condition = row.name;
  // "verified" says no where nothing was verified.
  if (setting.wire == Wire::kWhenSet && row.name != "verified") row.missing = Missing::kOmitted;
  return row;
}

/// Settings without a row of their own.
void append_others(std::vector<Field>& table) {
  const auto rows = field_rows();
  for (const Setting& each : settings()) {
    if (each.recorded.identity == Identity::kNo) continue;
    const bool placed =
        std::any_of(rows.begin(), rows.end(), [&](const Field& row) { return row.name == recorded_name(each); });
    if (!placed) table.push_back(completed({}, each));
  }
}

std::vector<Field> whole_table() {
  std::vector<Field> table;
  for (const Field& row : field_rows()) {
    if (row.name == kOtherSettings) {
      append_others(table);
      continue;
    }
    const Setting* setting = setting_called(row.name);
    table.push_back(setting == nullptr ? row : completed(row, *setting));
  }
  return table;
}

FieldValue number_value(double number) {
  if (number <= 0) return {};
  // Exact: it identifies.
  const bool whole = number >= 1 && number < 1e18 && number == std::floor(number);
  return whole ? FieldValue(static_cast<std::uint64_t>(number)) : FieldValue(number);
}

FieldValue value_of(const Setting& setting, const TestSpec& spec) {
  const SettingValue value = setting.access.get(spec);
  const bool chosen_elsewhere = setting.wire == Wire::kWhenSet && value == default_of(setting);
  if (chosen_elsewhere || std::holds_alternative<std::monostate>(value)) return {};
  if (const auto* number = std::get_if<double>(&value)) return number_value(*number);
  if (setting.type == SettingType::kFlag) return std::get<std::int64_t>(value) != 0;
  if (!setting.choices.empty() || std::holds_alternative<std::string>(value)) return to_text(setting, value);
  const std::int64_t integer = std::get<std::int64_t>(value);
  return integer < 0 ? FieldValue() : FieldValue(static_cast<std::uint64_t>(integer));
}

}  // namespace

FieldValue Field::get(const RunRecord& run) const {
  return std::visit([&](const auto read) -> FieldValue {
    if constexpr (std::is_same_v<decltype(read), const std::monostate>) {
      return value_of(*setting, run.spec);
    } else {
      const auto found = read(run);
      return found ? FieldValue(*found) : FieldValue();
    }
  }, getter);
}

std::string Field::in_name(std::string_view value) const {
  if (namer != nullptr) return namer(value);
  const bool says = setting != nullptr && identity == Identity::kName && setting->recorded.label != nullptr;
  if (!says || value.empty() || value == to_text(*setting, default_of(*setting))) return {};
  if (setting->type == SettingType::kFlag) return value == "true" ? std::string(name) : std::string();
  if (!setting->choices.empty()) return std::string(value);
  return fmt::format("{}:{}", *setting->recorded.label != 0 ? setting->recorded.label : name, value);
}

std::span<const Field> fields() {
  static const std::vector<Field> table = whole_table();
  return table;
}

const Field& field(std::string_view name) {
  for (const Field& each : fields()) {
    if (each.name == name) return each;
  }
  throw std::logic_error("no such field: " + std::string(name));
}

}  // namespace gdrperf::report
