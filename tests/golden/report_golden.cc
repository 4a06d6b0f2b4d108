// report_golden DIR: every sample in every form, as files in DIR.

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/record/field_rows.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/report/console.h"
#include "gdrperf/export/csv.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/export/formats.h"
#include "report_samples.h"

namespace {

using namespace gdrperf::report;

void write_table(const std::string& path, ConsoleOptions options) {
  std::ofstream out(path);
  ConsoleTable table(out, options);
  for (const RunRecord& record : samples::sweep()) table.add(record);
  table.add(samples::soft_roce_run());
  table.add(samples::gpu_run());
  table.add(samples::nan_run());
  table.finish();
}

void write_formats(const std::string& folder) {
  std::vector<RunRecord> runs = samples::sweep();
  runs.push_back(samples::soft_roce_run());
  runs.push_back(samples::gpu_run());
  runs.push_back(samples::bandwidth_run(gdrperf::Operation::kSend, 1000, 3.6));  // once more
  runs.push_back(samples::nan_run());
  const FormatContext context{"2025-01-31T12:00:00Z", "left", "gdrperf", "0.1.0", 2};
  for (const Format& format : all_formats()) {
    std::ofstream(folder + "format." + std::string(format.name)) << format.render(runs, context);
  }
}

/// A setting that stands in no row of fields: it follows from the option table alone.
bool is_option_alone(const Field& field) {
  const auto rows = field_rows();
  return std::none_of(rows.begin(), rows.end(), [&](const Field& row) { return row.name == field.name; });
}

/// The schema of a setting's value; its default is never written.
nlohmann::ordered_json schema_of(const gdrperf::Setting& setting) {
  nlohmann::ordered_json schema;
  if (!setting.choices.empty()) {
    std::vector<std::string> words;
    for (const gdrperf::Choice& each : setting.choices) {
      const std::string word = gdrperf::to_text(setting, each.value);
      const bool again = std::find(words.begin(), words.end(), word) != words.end();
      if (!again && gdrperf::SettingValue(each.value) != gdrperf::default_of(setting)) words.push_back(word);
    }
    schema["enum"] = words;
  } else if (setting.type == gdrperf::SettingType::kInteger || setting.type == gdrperf::SettingType::kSize) {
    schema["type"] = "integer";
    schema["minimum"] = setting.range.low;
    schema["maximum"] = setting.range.high;
  } else {
    schema["type"] = setting.type == gdrperf::SettingType::kFlag ? "boolean"
                     : setting.type == gdrperf::SettingType::kName ? "string"
                                                                   : "number";
  }
  schema["description"] = gdrperf::help_of(setting) + "; absent at its default";
  return schema;
}

/// The schema of a field's value, by what its getter returns. A number that is not finite becomes null.
nlohmann::ordered_json schema_of(const Field& field) {
  const bool null = field.missing == Missing::kNull;
  nlohmann::ordered_json schema;
  if (std::holds_alternative<Getter<bool>>(field.getter)) {
    schema["type"] = "boolean";
    if (null) schema["type"] = {"boolean", "null"};
  } else {
    const bool text = std::holds_alternative<Getter<std::string>>(field.getter);
    const bool count = std::holds_alternative<Getter<std::uint64_t>>(field.getter);
    const char* name = text    ? (null ? "text_or_null" : "text")
                       : count ? (null ? "index_or_null" : "count")
                               : "quantity_or_null";
    schema["$ref"] = std::string("#/$defs/") + name;
  }
  const std::string_view says = field.description.empty() ? field.unit : field.description;
  if (!says.empty()) schema["description"] = says;
  return schema;
}

/// The schema's lines that follow from a table, by place in a run, and the flags of options. "exact": the line is as
/// here; else a person may have written another one.
void write_lines(const std::string& path) {
  nlohmann::ordered_json lines;
  for (const Field& each : fields()) {
    const std::string place(each.json);
    if (is_option_alone(each)) {
      lines[place] = {{"schema", schema_of(*each.setting)}, {"exact", true}, {"flags", each.setting->flags}};
    } else if (each.setting == nullptr && !place.empty()) {
      lines[place] = {{"schema", schema_of(each)}, {"exact", !each.description.empty()}};
    }
  }
  std::ofstream(path) << lines;
}

/// All columns, in their order.
void write_columns(const std::string& path) {
  std::ofstream out(path);
  for (const Field& each : fields()) out << each.name << "\n";
}

/// The table of fields, as docs/reference/formats.md shows it.
void write_fields(const std::string& path) {
  std::ofstream out(path);
  out << "| field | unit | identifies | in a run's JSON |\n| :--- | :--- | :--- | :--- |\n";
  for (const Field& each : fields()) {
    if (is_option_alone(each)) continue;
    const char* identifies = each.identity == Identity::kName        ? "yes, in the name"
                             : each.identity == Identity::kCondition ? "yes"
                                                                     : "";
    const std::string place = each.json.empty() ? "" : "`" + std::string(each.json) + "`";
    out << "| `" << each.name << "` | " << each.unit << " | " << identifies << " | " << place << " |\n";
  }
}

/// Each field in a document, and what is written where it has no value.
void write_places(const std::string& path) {
  std::ofstream out(path);
  for (const Field& each : fields()) {
    if (!each.json.empty()) out << each.json << (each.missing == Missing::kNull ? " null\n" : " omitted\n");
  }
}

void write_tests(const std::string& path) {
  std::ofstream out(path);
  for (const gdrperf::Test test : gdrperf::all_tests()) out << to_string(test) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: report_golden DIR\n";
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  for (const auto& [name, document] : samples::documents()) document.write(folder + name + ".json");
  write_table(folder + "table.txt", {});
  ConsoleOptions gbits;
  gbits.rate_unit = RateUnit::kGigabits;
  write_table(folder + "table_gbits.txt", gbits);
  ConsoleOptions terminal;
  terminal.colour = gdrperf::Colour::kOn;
  terminal.charset = Charset::kUtf8;
  write_table(folder + "table_colour.txt", terminal);
  ConsoleOptions narrow;
  narrow.columns = 80;
  narrow.detail = Detail::kAll;
  write_table(folder + "table_80.txt", narrow);
  write_formats(folder);
  write_fields(folder + "fields.md");
  write_places(folder + "places.txt");
  write_tests(folder + "tests.txt");
  write_lines(folder + "lines.txt");
  write_columns(folder + "columns.txt");
  std::ofstream csv(folder + "runs.csv");
  csv << csv_header();
  for (const RunRecord& record : samples::sweep()) csv << csv_line(record);
  csv << csv_line(samples::soft_roce_run()) << csv_line(samples::nan_run());
}
