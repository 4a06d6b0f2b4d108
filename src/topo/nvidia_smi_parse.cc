#include "gdrperf/topo/nvidia_smi.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "captured_text.h"
#include "gdrperf/base/file.h"

namespace gdrperf::topo {
namespace {

constexpr std::size_t kMaxDevices = 512;
constexpr std::size_t kMaxFileBytes = 4u << 20;
constexpr std::size_t kMaxLabel = 64;

bool is_numbered(std::string_view word, std::string_view stem) {
  if (!word.starts_with(stem) || word.size() == stem.size() || word.size() > kMaxLabel) return false;
  word.remove_prefix(stem.size());
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_gpu(std::string_view word) { return is_numbered(word, "GPU"); }

/// "NV4": a bonded set of 4 NVLinks. NV0 would be none.
bool is_nvlink(std::string_view token) {
  return is_numbered(token, "NV") && token.size() <= 5 && token[2] != '0';
}

bool is_relation(std::string_view token) {
  return is_nvlink(token) || relation_from_token(token).has_value();
}

bool is_cell(std::string_view token) { return token == "X" || is_relation(token); }

/// Cells of `nvidia-smi topo -p2p`, which looks like a matrix and is none.
bool is_p2p(std::string_view token) {
  static constexpr std::array<std::string_view, 7> kTokens = {"OK", "NS", "CNS", "GNS",
                                                              "TNS", "DR", "U"};
  return std::find(kTokens.begin(), kTokens.end(), token) != kTokens.end();
}

bool is_device_label(std::string_view word) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-' || c == '.';
  };
  return word.size() <= kMaxLabel && std::all_of(word.begin(), word.end(), fits) && !is_cell(word);
}

/// Index of each affinity column, in the order in which drivers print them.
enum Affinity { kCpu, kNuma, kGpuNuma, kAffinities };

struct Header {
  std::size_t line = 0;
  std::vector<std::string> labels;  ///< of the device columns
  std::unordered_map<std::string_view, std::size_t> column;
  std::array<bool, kAffinities> has{};
  std::vector<std::size_t> affinity_at;  ///< where those columns start, tabs expanded

  std::size_t affinities() const { return affinity_at.size(); }
};

/// One row of the matrix, taken apart.
struct Row {
  std::vector<std::string_view> cells;      ///< one for each device column
  std::vector<std::string_view> affinities;  ///< kAffinities, "" where empty
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text, name) {}
  Matrix parse();

 private:
  bool find_header();
  bool adopt_prefix();
  bool header_follows(std::size_t line) const;
  bool rows_are_p2p(std::size_t header) const;
  void parse_header(std::size_t line);
  std::size_t parse_rows();
  bool is_row(std::size_t line) const;
  void parse_row(std::size_t line);
  Row split_row(std::size_t line, std::string_view label) const;
  std::vector<std::string_view> blank_separated_tail(std::size_t line,
                                                     const std::vector<Token>& tokens) const;
  std::vector<std::string_view> assign(std::size_t line, std::vector<std::string_view> tail) const;
  void check_cells(std::size_t line, std::size_t own, const Row& row) const;
  void check_mirror() const;
  void check_nothing_follows(std::size_t line) const;
  void read_legend(std::size_t line);
  void add_legend_entry(std::size_t line, std::string_view label, std::string_view name);
  Error no_matrix() const;
  Matrix build() const;

  CapturedText text_;
  Header header_;
  std::vector<std::optional<Row>> rows_;    ///< by column
  std::vector<std::size_t> row_line_;       ///< by column
  std::vector<std::string_view> names_;     ///< by column, from the legend
  std::unordered_set<std::string_view> used_names_;
  std::optional<std::size_t> p2p_line_;
};

// --- the header ---------------------------------------------------------------------------------

/// A header has GPU0 first; so has the row of GPU0, whose next word is a cell,
/// and so may prose and other sections of a report.
bool Parser::header_follows(std::size_t line) const {
  const std::vector<Token> words = tokens_of(text_.line(line), 2);
  if (words.empty() || words[0].text != "GPU0") return false;
  if (words.size() > 1) {
    const std::string_view second = words[1].text;
    if (is_cell(second) || is_p2p(second)) return false;
    if (is_gpu(second) || text_.line(line).find("CPU Affinity") != std::string_view::npos) return true;
  }
  const std::size_t next = text_.next_non_blank(line + 1);
  if (next == text_.lines()) return false;
  const std::vector<Token> row = tokens_of(text_.line(next), 2);
  return row.size() == 2 && row[0].text == "GPU0" && is_cell(row[1].text);
}

bool Parser::rows_are_p2p(std::size_t header) const {
  const std::size_t next = text_.next_non_blank(header + 1);
  if (next == text_.lines()) return false;
  const std::vector<Token> row = tokens_of(text_.line(next), 64);
  return row.size() > 1 && is_gpu(row[0].text) &&
         std::any_of(row.begin() + 1, row.end(), [](const Token& word) { return is_p2p(word.text); });
}

bool Parser::find_header() {
  for (std::size_t line = 0; line < text_.lines(); ++line) {
    if (!header_follows(line)) continue;
    if (rows_are_p2p(line)) {
      if (!p2p_line_) p2p_line_ = line;
      continue;
    }
    parse_header(line);
    return true;
  }
  return false;
}

/// The output of grep, a quotation, a comment: the same text in front of the
/// header and of the row below it.
bool Parser::adopt_prefix() {
  constexpr std::size_t kLongest = 256;
  for (std::size_t line = 0; line + 1 < text_.lines(); ++line) {
    const std::string_view head = text_.line(line).substr(0, 2 * kLongest);
    const std::size_t gpu = head.find("GPU0");
    if (gpu == 0 || gpu == std::string_view::npos || gpu > kLongest) continue;
    std::size_t end = gpu;
    while (end > 0 && is_blank(head[end - 1])) --end;
    if (end == 0) continue;
    const std::string prefix(head.substr(0, end));
    const std::string_view below = text_.line(line + 1);
    if (!below.starts_with(prefix) || first_word(below.substr(prefix.size())) != "GPU0") continue;
    text_.set_prefix(prefix);
    return true;
  }
  return false;
}

void Parser::parse_header(std::size_t line) {
  header_.line = line;
  const std::vector<Token> words = tokens_of(text_.line(line), kMaxDevices + 16);
  const auto word = [&](std::size_t i) { return i < words.size() ? words[i].text : std::string_view(); };
  const auto affinity = [&](Affinity which, std::size_t at) {
    const bool in_order = std::none_of(header_.has.begin() + which, header_.has.end(), [](bool b) { return b; });
    if (!in_order) throw text_.error(line, words[at].text, "affinity columns repeated or out of order");
    header_.has[which] = true;
    header_.affinity_at.push_back(words[at].column);
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (word(i) == "CPU" && word(i + 1) == "Affinity") {
      affinity(kCpu, i++);
    } else if (word(i) == "NUMA" && word(i + 1) == "Affinity") {
      affinity(kNuma, i++);
    } else if (word(i) == "GPU" && word(i + 1) == "NUMA" && word(i + 2) == "ID") {
      affinity(kGpuNuma, i);
      i += 2;
    } else if (!is_device_label(word(i)) || header_.affinities() > 0) {
      throw text_.error(line, word(i), fmt::format("the header has {} where a device or an affinity "
                                                   "column is expected", quoted(word(i))));
    } else {
      header_.labels.emplace_back(word(i));
      if (header_.labels.size() > kMaxDevices) {
        throw text_.error(line, fmt::format("more than {} device columns", kMaxDevices));
      }
    }
  }
  for (std::size_t i = 0; i < header_.labels.size(); ++i) {
    if (!header_.column.emplace(header_.labels[i], i).second) {
      throw text_.error(line, fmt::format("two columns are labelled {}", header_.labels[i]));
    }
  }
  rows_.resize(header_.labels.size());
  row_line_.resize(header_.labels.size());
  names_.resize(header_.labels.size());
}

// --- rows ---------------------------------------------------------------------------------------

bool Parser::is_row(std::size_t line) const {
  const std::vector<Token> words = tokens_of(text_.line(line), 2);
  if (words.empty()) return false;
  if (words.size() > 1 && is_cell(words[1].text)) return true;
  const auto column = header_.column.find(words[0].text);
  return column != header_.column.end() && !rows_[column->second];
}

/// Returns the line after the last row.
std::size_t Parser::parse_rows() {
  std::size_t line = header_.line + 1;
  std::size_t end = line;
  for (; line < text_.lines(); ++line) {
    if (first_word(text_.line(line)).empty()) continue;
    if (!is_row(line)) break;
    parse_row(line);
    end = line + 1;
  }
  for (std::size_t i = 0; i < header_.labels.size(); ++i) {
    if (is_gpu(header_.labels[i]) && !rows_[i]) {
      throw text_.error(end - 1, fmt::format("{} has a column (line {}) and no row", header_.labels[i],
                                             header_.line + 1));
    }
  }
  return end;
}

void Parser::parse_row(std::size_t line) {
  const std::string_view label = first_word(text_.line(line));
  const auto column = header_.column.find(label);
  if (column == header_.column.end()) {
    throw text_.error(line, label, fmt::format("the row {} has no column (the header is line {})",
                                               quoted(label), header_.line + 1));
  }
  const std::size_t own = column->second;
  if (rows_[own]) {
    throw text_.error(line, label, fmt::format("a second row {}; the first is line {}", label,
                                               row_line_[own] + 1));
  }
  Row row = split_row(line, label);
  check_cells(line, own, row);
  rows_[own] = std::move(row);
  row_line_[own] = line;
}

Row Parser::split_row(std::size_t line, std::string_view label) const {
  const std::string_view whole = text_.line(line);
  const std::size_t wanted = header_.labels.size();
  const std::size_t most = 1 + wanted + kAffinities + 2;
  Row row;

  // As printed: one tab between cells. Any blank inside a device cell means
  // that somebody turned some of the tabs into blanks.
  std::vector<std::string_view> parts;
  bool tabs = true;
  for (std::string_view rest = whole; parts.size() < most;) {
    const std::size_t tab = rest.find('\t');
    parts.push_back(trimmed(rest.substr(0, tab)));
    if (parts.size() <= wanted + 1 && first_word(parts.back()).size() != parts.back().size()) tabs = false;
    if (tab == std::string_view::npos) break;
    rest.remove_prefix(tab + 1);
  }
  while (!parts.empty() && parts.back().empty()) parts.pop_back();
  if (tabs && !parts.empty() && parts.front() == label && parts.size() > wanted) {
    const auto cells_end = parts.begin() + 1 + static_cast<std::ptrdiff_t>(wanted);
    row.cells.assign(parts.begin() + 1, cells_end);
    row.affinities = assign(line, {cells_end, parts.end()});
    return row;
  }

  const std::vector<Token> words = tokens_of(whole, most);
  for (std::size_t i = 1; i < words.size() && i <= wanted; ++i) row.cells.push_back(words[i].text);
  if (row.cells.size() == wanted) row.affinities = assign(line, blank_separated_tail(line, words));
  return row;
}

/// The cells after the device columns of a row whose tabs became blanks. Where
/// each column has a value they go by their order; otherwise by their place,
/// which is that of tab stops every 8 columns (as a terminal shows the row) or
/// that of the header (as somebody aligned it).
std::vector<std::string_view> Parser::blank_separated_tail(std::size_t line,
                                                           const std::vector<Token>& words) const {
  const std::size_t first = 1 + header_.labels.size();
  const std::vector<Token> tail(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
  std::vector<std::string_view> values;
  for (const Token& word : tail) values.push_back(word.text);
  if (tail.empty() || tail.size() >= header_.affinities()) return values;

  values.clear();
  std::size_t stop = first * 8;
  std::size_t next = 0;
  while (next < tail.size() && values.size() < kAffinities + 1) {
    if (tail[next].column == stop) {
      values.push_back(tail[next].text);
      stop = ((stop + tail[next].text.size()) / 8 + 1) * 8;
      ++next;
    } else {
      values.emplace_back();
      stop += 8;
    }
  }
  // The driver leaves a cell empty in front of the GPU NUMA ID.
  const bool gap = header_.has[kGpuNuma];
  const bool as_printed = values.size() < header_.affinities() ||
                          values.size() == header_.affinities() + (gap ? 1 : 0);
  if (next == tail.size() && as_printed) return values;

  values.assign(header_.affinities(), {});
  for (const Token& word : tail) {
    const auto& starts = header_.affinity_at;
    const auto at = std::find(starts.begin(), starts.end(), word.column);
    if (at == starts.end()) {
      throw text_.error(line, word.text,
                        fmt::format("cannot tell which affinity cell of the row is empty, as blanks "
                                    "stand for tabs ({} values for {} columns)",
                                    tail.size(), header_.affinities()));
    }
    values[static_cast<std::size_t>(at - starts.begin())] = word.text;
  }
  return values;
}

/// Gives the cells after the device columns to the affinity columns there are.
/// They are kept as they stand, but they have to be lists of numbers or N/A.
std::vector<std::string_view> Parser::assign(std::size_t line,
                                             std::vector<std::string_view> tail) const {
  for (const std::string_view value : tail) {
    if (is_cell(value)) {
      throw text_.error(line, value,
                        fmt::format("more cells than the {} device columns of the header (line {})",
                                    header_.labels.size(), header_.line + 1));
    }
    if (value.find_first_not_of("0123456789abcdefABCDEFNx,-./: ") != std::string_view::npos) {
      throw text_.error(line, value, fmt::format("{} is no CPU or NUMA affinity", quoted(value)));
    }
  }
  while (!tail.empty() && tail.back().empty()) tail.pop_back();
  if (header_.has[kGpuNuma] && tail.size() == header_.affinities() + 1 && tail[tail.size() - 2].empty()) {
    tail.erase(tail.end() - 2);
  }
  if (tail.size() > header_.affinities()) {
    throw text_.error(line, tail[header_.affinities()],
                      fmt::format("{} stands behind the last column of the header (line {})",
                                  quoted(tail[header_.affinities()]), header_.line + 1));
  }
  std::vector<std::string_view> values(kAffinities);
  std::size_t next = 0;
  for (std::size_t which = 0; which < kAffinities; ++which) {
    if (header_.has[which] && next < tail.size()) values[which] = tail[next++];
  }
  return values;
}

void Parser::check_cells(std::size_t line, std::size_t own, const Row& row) const {
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const std::string_view cell = row.cells[i];
    const auto refuse = [&](const std::string& why) {
      return text_.error(line, cell, fmt::format("row {}, column {}: {}", header_.labels[own],
                                                 header_.labels[i], why));
    };
    if (cell.empty()) throw refuse("the cell is empty");
    if (!is_cell(cell)) throw refuse(fmt::format("unknown relation {}", quoted(cell)));
    if ((cell == "X") != (i == own)) {
      throw refuse(i == own ? fmt::format("{} where X is expected", quoted(cell))
                            : "X, which belongs on the diagonal");
    }
    if (is_nvlink(cell) && !(is_gpu(header_.labels[i]) && is_gpu(header_.labels[own]))) {
      throw refuse(fmt::format("NVLink ({}) to a NIC", cell));
    }
  }
  if (row.cells.size() != header_.labels.size()) {
    throw text_.error(line, fmt::format("row {} has {} cells for the {} device columns of the header "
                                        "(line {})", header_.labels[own], row.cells.size(),
                                        header_.labels.size(), header_.line + 1));
  }
}

void Parser::check_mirror() const {
  for (std::size_t a = 0; a < rows_.size(); ++a) {
    for (std::size_t b = a + 1; rows_[a] && b < rows_.size(); ++b) {
      if (!rows_[b] || rows_[a]->cells[b] == rows_[b]->cells[a]) continue;
      throw text_.error(row_line_[b], rows_[b]->cells[a],
                        fmt::format("{} to {} is {}, but {} in line {}", header_.labels[b],
                                    header_.labels[a], rows_[b]->cells[a], rows_[a]->cells[b],
                                    row_line_[a] + 1));
    }
  }
}

/// A whole row further down means that something stands in the middle of the
/// matrix, or that there are two of them.
void Parser::check_nothing_follows(std::size_t from) const {
  const std::size_t wanted = header_.labels.size();
  for (std::size_t line = from; line < text_.lines(); ++line) {
    const std::string_view label = first_word(text_.line(line));
    if (!header_.column.contains(label)) continue;
    const std::vector<Token> words = tokens_of(text_.line(line), wanted + 1);
    if (words.size() <= wanted) continue;
    if (std::all_of(words.begin() + 1, words.end(), [](const Token& word) { return is_cell(word.text); })) {
      throw text_.error(line, label,
                        fmt::format("another row {} after the end of the matrix (line {}): more than one "
                                    "matrix, or text in the middle of it", label, from));
    }
  }
}

// --- the NIC legend -----------------------------------------------------------------------------

/// Entries "NIC0: mlx5_0" below the heading "NIC Legend:"; where the heading is
/// gone, those that come before any text that is not part of the legends.
void Parser::read_legend(std::size_t line) {
  bool headed = false;
  bool named = false;
  bool other_text = false;
  for (; line < text_.lines(); ++line) {
    const std::string_view content = trimmed(text_.line(line));
    if (content.empty()) continue;
    if (!named && content.starts_with("NIC Legend")) {
      headed = true;
      continue;
    }
    const std::size_t colon = std::min(content.substr(0, kMaxLabel).find(':'), content.size());
    const std::string_view label = trimmed(content.substr(0, colon));
    const std::string_view name = first_word(content.substr(std::min(colon + 1, content.size())));
    if (is_numbered(label, "NIC") && !name.empty() && (headed || !other_text)) {
      add_legend_entry(line, label, name);
      named = true;
    } else if (named) {
      break;
    } else {
      const bool of_legend = content.starts_with("Legend") || content.find(" = ") != std::string_view::npos;
      other_text = other_text || !of_legend;
    }
  }
  if (!headed && !named) return;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty() && is_numbered(header_.labels[i], "NIC")) {
      throw text_.error(line - 1, fmt::format("{} is not in the NIC legend", header_.labels[i]));
    }
  }
}

void Parser::add_legend_entry(std::size_t line, std::string_view label, std::string_view name) {
  const auto column = header_.column.find(label);
  if (column == header_.column.end()) {
    throw text_.error(line, label, fmt::format("the NIC legend names {}, which has no column", label));
  }
  if (!is_device_label(name)) {
    throw text_.error(line, name, fmt::format("{} is no device name", quoted(name)));
  }
  if (!names_[column->second].empty()) {
    throw text_.error(line, label, fmt::format("the NIC legend names {} twice", label));
  }
  if (!used_names_.insert(name).second) {
    throw text_.error(line, name, fmt::format("two NICs have the name {}", name));
  }
  names_[column->second] = name;
}

// --- the whole ----------------------------------------------------------------------------------

/// What is there instead of a matrix, in the words of those who captured it.
Error Parser::no_matrix() const {
  struct Known {
    std::string_view text;
    std::string_view meaning;
  };
  static constexpr std::array<Known, 6> kKnown = {{
      {"No devices were found", "nvidia-smi found no GPU"},
      {"couldn't communicate with the NVIDIA driver", "nvidia-smi could not reach the driver"},
      {"Failed to initialize NVML", "nvidia-smi could not initialise NVML"},
      {"command not found", "nvidia-smi was not installed where this was captured"},
      {"No such file or directory", "nvidia-smi was not installed where this was captured"},
      {"Unable to determine the device handle", "nvidia-smi lost a GPU"},
  }};
  if (p2p_line_) {
    return text_.error(*p2p_line_, "this is the table of nvidia-smi topo -p2p, which shows no topology; "
                                   "give the output of nvidia-smi topo -m");
  }
  std::size_t first = text_.lines();
  for (std::size_t line = 0; line < text_.lines(); ++line) {
    const std::string_view content = trimmed(text_.line(line));
    if (content.empty()) continue;
    if (first == text_.lines()) first = line;
    for (const Known& known : kKnown) {
      if (content.substr(0, 4096).find(known.text) == std::string_view::npos) continue;
      return text_.error(line, fmt::format("no topology matrix: {}", known.meaning));
    }
  }
  if (first == text_.lines()) return text_.error(0, "the input is empty; give the output of nvidia-smi topo -m");
  return text_.error(first, "no topology matrix in the input (a header line that starts with GPU0, as "
                            "nvidia-smi topo -m prints it)");
}

Matrix Parser::build() const {
  Matrix matrix;
  std::vector<std::size_t> gpus;
  std::vector<std::size_t> nics;
  for (std::size_t i = 0; i < header_.labels.size(); ++i) {
    const std::string& label = header_.labels[i];
    if (is_gpu(label)) {
      gpus.push_back(i);
      matrix.gpus.push_back(label);
    } else {
      nics.push_back(i);
      matrix.nics.push_back({label, names_[i].empty() ? label : std::string(names_[i])});
    }
  }
  const auto block = [&](const std::vector<std::size_t>& from, const std::vector<std::size_t>& to) {
    std::vector<std::vector<std::string>> cells;
    for (const std::size_t a : from) {
      auto& line = cells.emplace_back();
      for (const std::size_t b : to) {
        if (rows_[a]) line.emplace_back(rows_[a]->cells[b]);
        else if (rows_[b]) line.emplace_back(rows_[b]->cells[a]);
        else line.emplace_back(a == b ? "X" : "");
      }
    }
    return cells;
  };
  matrix.gpu_gpu = block(gpus, gpus);
  matrix.gpu_nic = block(gpus, nics);
  matrix.nic_nic = block(nics, nics);
  const auto column = [&](Affinity which) -> Matrix::Column {
    if (!header_.has[which]) return std::nullopt;
    std::vector<std::string> values;
    for (const std::size_t gpu : gpus) values.emplace_back(rows_[gpu]->affinities[which]);
    return values;
  };
  matrix.cpu_affinity = column(kCpu);
  matrix.numa_affinity = column(kNuma);
  matrix.gpu_numa_id = column(kGpuNuma);
  return matrix;
}

Matrix Parser::parse() {
  if (!find_header() && !(adopt_prefix() && find_header())) throw no_matrix();
  const std::size_t end = parse_rows();
  check_mirror();
  check_nothing_follows(end);
  read_legend(end);
  return build();
}

}  // namespace

Matrix parse_nvidia_smi(std::string_view text, std::string_view name) {
  return Parser(text, name).parse();
}

Matrix read_nvidia_smi_file(const std::string& path) {
  return parse_nvidia_smi(read_file(path, kMaxFileBytes), path == "-" ? "standard input" : path);
}

}  // namespace gdrperf::topo
