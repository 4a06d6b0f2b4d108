#include "topo/matrix/matrix_row.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "topo/matrix/matrix_words.h"

namespace gdrperf::topo {
namespace {

using Cells = std::vector<std::string_view>;

/// Drivers leave an empty cell in front of the GPU NUMA ID, and in front of
/// "N/A" wherever it stands: drops as many of those as there are too many.
Cells without_gaps(Cells cells, const Header& header) {
  while (!cells.empty() && cells.back().empty()) cells.pop_back();
  for (std::size_t i = cells.size(); i-- > 1 && cells.size() > header.affinities();) {
    const bool before_id = header.has[kGpuNuma] && i + 1 == cells.size();
    if (!cells[i - 1].empty() || !(before_id || cells[i] == "N/A")) continue;
    cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    --i;
  }
  return cells;
}

/// Cells at tab stops every 8 columns, as a terminal shows what the driver
/// prints; nothing when the words do not stand there.
std::optional<Cells> at_tab_stops(const std::vector<Token>& tail, const Header& header) {
  Cells cells;
  std::size_t stop = (1 + header.devices()) * 8;
  for (std::size_t next = 0; next < tail.size() && cells.size() < 2 * kAffinities;) {
    if (tail[next].column == stop) {
      cells.push_back(tail[next].text);
      stop = ((stop + tail[next].text.size()) / 8 + 1) * 8;
      ++next;
    } else {
      cells.emplace_back();
      stop += 8;
    }
    if (next == tail.size()) {
      const bool id_without_gap = header.has[kGpuNuma] && cells.size() == header.affinities();
      if (!id_without_gap && without_gaps(cells, header).size() <= header.affinities())
        return cells;
    }
  }
  return std::nullopt;
}

/// Cells that stand below the headings, as somebody aligned them.
std::optional<Cells> below_headings(const std::vector<Token>& tail, const Header& header) {
  const std::vector<std::size_t>& starts = header.affinity_at;
  Cells cells(starts.size());
  for (const Token& word : tail) {
    const auto at = std::find(starts.begin(), starts.end(), word.column);
    if (at == starts.end()) return std::nullopt;
    cells[static_cast<std::size_t>(at - starts.begin())] = word.text;
  }
  return cells;
}

/// The cells after the device columns of a row whose tabs became blanks. Where
/// each column has a value they go by their order, otherwise by their place.
Cells blank_separated_tail(const CapturedText& text, const Header& header, std::size_t line,
                           const std::vector<Token>& tail) {
  if (tail.empty() || tail.size() >= header.affinities()) {
    Cells cells;
    for (const Token& word : tail) cells.push_back(word.text);
    return cells;
  }
  if (auto cells = at_tab_stops(tail, header)) return *std::move(cells);
  if (auto cells = below_headings(tail, header)) return *std::move(cells);
  throw text.error(line, tail.front().text,
                   fmt::format("it is not clear which affinity cell of the row is empty, as blanks "
                               "stand for tabs ({} values for {} columns)",
                               tail.size(), header.affinities()));
}

/// Gives the cells after the device columns to the affinity columns there are.
/// They are kept as they stand, but they have to be lists of numbers or N/A.
Cells assign(const CapturedText& text, const Header& header, std::size_t line, Cells tail) {
  for (const std::string_view value : tail) {
    if (is_cell(value)) {
      throw text.error(line, value,
                       fmt::format("more cells than the {} device columns of the header (line {})",
                                   header.devices(), header.line + 1));
    }
    if (value.find_first_not_of("0123456789abcdefABCDEFNx,-./: ") != std::string_view::npos) {
      throw text.error(line, value, fmt::format("{} is no CPU or NUMA affinity", in_quotes(value)));
    }
  }
  tail = without_gaps(std::move(tail), header);
  if (tail.size() > header.affinities()) {
    throw text.error(line, tail.back(),
                     fmt::format("{} is to the right of the header's last column (line {})",
                                 in_quotes(tail.back()), header.line + 1));
  }
  Cells values(kAffinities);
  std::size_t next = 0;
  for (std::size_t which = 0; which < kAffinities; ++which) {
    if (header.has[which] && next < tail.size()) values[which] = tail[next++];
  }
  return values;
}

}  // namespace

Row split_row(const CapturedText& text, const Header& header, std::size_t line,
              std::string_view label) {
  const std::string_view whole = text.line(line);
  const std::size_t wanted = header.devices();
  const std::size_t most = 1 + wanted + 2 * kAffinities;
  Row row;

  // As printed: one tab between cells. Any blank inside a device cell means
  // that somebody turned some of the tabs into blanks.
  Cells parts;
  bool tabs = true;
  for (std::string_view rest = whole;;) {
    const bool last = parts.size() == most;
    const std::size_t tab = last ? std::string_view::npos : rest.find('\t');
    parts.push_back(trimmed(rest.substr(0, tab)));
    const bool one_word = first_word(parts.back()).size() == parts.back().size();
    if (parts.size() <= wanted + 1 && !one_word) tabs = false;
    if (tab == std::string_view::npos) break;
    rest.remove_prefix(tab + 1);
  }
  while (!parts.empty() && parts.back().empty()) parts.pop_back();
  const auto cells_end = static_cast<std::ptrdiff_t>(1 + wanted);
  if (tabs && parts.front() == label && parts.size() > wanted) {
    row.cells.assign(parts.begin() + 1, parts.begin() + cells_end);
    row.affinities = assign(text, header, line, {parts.begin() + cells_end, parts.end()});
    return row;
  }

  const std::vector<Token> words = tokens_of(whole, most);
  for (std::size_t i = 1; i < words.size() && i <= wanted; ++i) row.cells.push_back(words[i].text);
  if (row.cells.size() == wanted) {
    const std::vector<Token> tail(words.begin() + cells_end, words.end());
    row.affinities = assign(text, header, line, blank_separated_tail(text, header, line, tail));
  }
  return row;
}

}  // namespace gdrperf::topo
