// InfluxDB line protocol (docs.influxdata.com, "Line protocol"): measurement, tags, fields, time in ns.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include "gdrperf/export/formats.h"
#include "gdrperf/report/fields.h"

namespace gdrperf::report {
namespace {

/// Tags cannot hold line ends; blanks, commas and '=' stand behind a backslash, and a backslash at the end would
/// swallow what follows.
std::string tag_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' || c == ',' || c == '=') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? '_' : c;
  }
  if (!result.empty() && result.back() == '\\') result += '_';
  return result;
}

/// A field's value; "" for one that is not known. Counts are fields of floats, too: InfluxDB refuses a field that
/// changes its type.
std::string field_value(const FieldValue& value) {
  if (const bool* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  if (!std::holds_alternative<std::string>(value)) return to_text(value);
  std::string result = "\"";
  for (const char c : std::get<std::string>(value)) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

/// " 1738324800000000000" of "2025-01-31T12:00:00.25Z"; "" for anything else: the receiver's time counts then.
std::string time_text(const std::string& rfc3339) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  char z = 0;
  if (std::sscanf(rfc3339.c_str(), "%d-%d-%dT%d:%d:%lf%c", &year, &month, &day, &hour, &minute, &second, &z) != 7 ||
      z != 'Z') {
    return {};
  }
  std::tm when{};
  when.tm_year = year - 1900;
  when.tm_mon = month - 1;
  when.tm_mday = day;
  when.tm_hour = hour;
  when.tm_min = minute;
  const auto whole = std::chrono::seconds(::timegm(&when));
  const auto fraction = std::chrono::nanoseconds(std::llround(second * 1e6) * 1000);
  return fmt::format(" {}", (std::chrono::nanoseconds(whole) + fraction).count());
}

}  // namespace

/// InfluxDB line protocol: what identifies a run in tags, the rest in fields.
std::string influx(std::span<const RunRecord> runs, const FormatContext& context) {
  std::string text;
  for (const RunRecord& record : runs) {
    std::string tags, values;
    for (const Field& each : fields()) {
      const FieldValue value = each.get(record);
      if (to_text(value).empty() || each.name == "started") continue;
      if (each.identity == Identity::kNo) {
        values += fmt::format("{}{}={}", values.empty() ? "" : ",", each.name, field_value(value));
      } else {
        tags += fmt::format(",{}={}", each.name, tag_text(to_text(value)));
      }
    }
    const std::string started = to_text(field("started").get(record));
    if (!values.empty())
      text += fmt::format("gdrperf{} {}{}\n", tags, values, time_text(started.empty() ? context.started : started));
  }
  return text;
}

}  // namespace gdrperf::report
