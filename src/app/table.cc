#include "table.h"

#include <algorithm>
#include <ostream>

#include "gdrperf/base/printable.h"

namespace gdrperf::app {

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

void Table::add_line(std::string text) { lines_.push_back({rows_.size(), printable(text)}); }

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  auto line = lines_.begin();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string text;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      text += rows_[r][i];
      text.append(widths[i] - rows_[r][i].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
    for (; line != lines_.end() && line->after == r + 1; ++line) out << line->text << '\n';
  }
}

}  // namespace gdrperf::app
