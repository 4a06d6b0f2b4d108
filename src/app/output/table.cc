#include "app/output/table.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/terminal.h"

namespace gdrperf::app {

namespace {

/// Of the terminal that `out` is; 0: it is none.
std::size_t columns_of(const std::ostream& out) {
  if (&out == &std::cout) return terminal_columns(STDOUT_FILENO);
  return &out == &std::cerr ? terminal_columns(STDERR_FILENO) : 0;
}

/// What does not fit goes on below, further in.
void print_row(std::ostream& out, const std::vector<std::string>& row, const std::vector<std::size_t>& widths,
               std::size_t columns) {
  constexpr std::size_t kIn = 4;
  std::string text;
  const auto flush = [&] {
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
    text.assign(kIn, ' ');
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (columns > 0 && i > 0 && text.size() > kIn && text.size() + widths[i] > columns) flush();
    text += row[i];
    text.append(widths[i] - row[i].size() + 2, ' ');
  }
  flush();
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

void Table::add_line(std::string text) { lines_.push_back({rows_.size(), printable(text)}); }

void Table::print(std::ostream& out) const { print(out, columns_of(out)); }

void Table::print(std::ostream& out, std::size_t columns) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  auto line = lines_.begin();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    print_row(out, rows_[r], widths, columns);
    for (; line != lines_.end() && line->after == r + 1; ++line) out << wrapped(line->text, columns, 2) << '\n';
  }
}

void print_line(std::ostream& out, const std::string& line, std::size_t hang) {
  out << wrapped(printable(line), columns_of(out), hang) << '\n';
}

}  // namespace gdrperf::app
