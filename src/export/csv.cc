#include "gdrperf/export/csv.h"

#include <string_view>

#include "gdrperf/report/fields.h"

namespace gdrperf::report {
namespace {

std::string quoted_cell(const std::string& value) {
  if (value.find_first_of("\",\r\n") == std::string::npos) return value;
  std::string cell = "\"";
  for (const char c : value) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

}  // namespace

std::string csv_header() {
  std::string line;
  for (const Field& each : fields()) line += (line.empty() ? "" : ",") + std::string(each.name);
  return line + "\n";
}

std::string csv_line(const RunRecord& record) {
  std::string line;
  const char* separator = "";
  for (const Field& each : fields()) {
    line += separator + quoted_cell(to_text(each.get(record)));
    separator = ",";
  }
  return line + "\n";
}

}  // namespace gdrperf::report
