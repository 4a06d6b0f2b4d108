#include "gdrperf/export/csv.h"

#include <string_view>
#include <variant>

#include "gdrperf/report/fields.h"

namespace gdrperf::report {
std::string csv_cell(std::string_view text) {
  constexpr std::string_view kBeginFormulas = "=+-@\t\r\n";
  std::string cell(!text.empty() && kBeginFormulas.find(text.front()) != text.npos ? "'" : "");
  cell += text;
  if (cell.find_first_of("\",\r\n\t") == cell.npos) return cell;
  for (std::size_t at = cell.find('"'); at != cell.npos; at = cell.find('"', at + 2)) cell.insert(at, 1, '"');
  return '"' + cell + '"';
}

std::string csv_header() {
  std::string line;
  for (const Field& each : fields()) line += (line.empty() ? "" : ",") + std::string(each.name);
  return line + "\n";
}

std::string csv_line(const RunRecord& record) {
  std::string line;
  const char* separator = "";
  for (const Field& each : fields()) {
    const FieldValue value = each.get(record);
    const std::string* text = std::get_if<std::string>(&value);
    line += separator + (text != nullptr ? csv_cell(*text) : to_text(value));
    separator = ",";
  }
  return line + "\n";
}

}  // namespace gdrperf::report
