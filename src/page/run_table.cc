#include "gdrperf/page/run_table.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "gdrperf/base/compat/real.h"
#include "gdrperf/report/fields.h"

namespace gdrperf::page {

const std::vector<std::string>& RunTable::columns() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names = {"name"};
    for (const report::Field& each : report::fields()) {
      if (each.name != "median_gigabytes_per_s") names.emplace_back(each.name);  // the page has a units switch
    }
    for (const char* each : {"p50", "p90", "p99", "p999", "p9999"}) names.push_back(std::string("beyond_") + each);
    return names;
  }();
  return all;
}

std::size_t RunTable::place(std::string_view column) {
  static const std::map<std::string, std::size_t, std::less<>> places = [] {
    std::map<std::string, std::size_t, std::less<>> all;
    for (std::size_t i = 0; i < columns().size(); ++i) all[columns()[i]] = i;
    return all;
  }();
  const auto found = places.find(column);
  if (found == places.end()) throw std::logic_error("no such column: " + std::string(column));
  return found->second;
}

void RunTable::add(std::vector<std::string> row, std::vector<double> series) {
  row.resize(columns().size());
  rows_.push_back(std::move(row));
  series_.push_back(std::move(series));
}

void RunTable::set_all(std::string_view column, const std::string& text) {
  for (auto& row : rows_) row[place(column)] = text;
}

double RunTable::number(std::size_t row, std::string_view column) const { return number_of(text(row, column)); }

double number_of(const std::string& shown) {
  double value = 0;
  const auto [end, error] = real_from_chars(shown.data(), shown.data() + shown.size(), value);
  if (error != std::errc() || end != shown.data() + shown.size() || !std::isfinite(value)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return value;
}

std::string place_of(const RunTable& runs, std::size_t row) {
  const std::string& pair = runs.text(row, "pair");
  if (!pair.empty()) return pair;
  return runs.text(row, "client_buffer") + "/" + runs.text(row, "client_device");
}

}  // namespace gdrperf::page
