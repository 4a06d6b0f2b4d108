#include "gdrperf/topo/nvidia_smi.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "topo/readers/captured_text.h"
#include "gdrperf/topo/readers.h"
#include "topo/matrix/matrix_header.h"
#include "topo/matrix/matrix_row.h"
#include "topo/matrix/matrix_words.h"
#include "topo/matrix/nic_legend.h"
#include "topo/readers/read_parsed.h"

namespace gdrperf::topo {
namespace {

constexpr std::size_t kMaxFileBytes = 4u << 20;

/// The rows below one header.
class Parser {
 public:
  Parser(const CapturedText& text, std::size_t header_line)
      : text_(text),
        header_(parse_header(text, header_line)),
        rows_(header_.devices()),
        row_line_(header_.devices()) {}
  Matrix parse();

 private:
  std::size_t parse_rows();
  bool is_row(std::size_t line) const;
  void parse_row(std::size_t line);
  void check_cells(std::size_t line, std::size_t own, const Row& row) const;
  void check_mirror() const;
  void check_nothing_follows(std::size_t from) const;
  bool is_last(std::size_t line) const;
  Matrix build(const std::vector<std::string_view>& names) const;

  const CapturedText& text_;
  const Header header_;
  std::vector<std::optional<Row>> rows_;  ///< by column
  std::vector<std::size_t> row_line_;     ///< by column
};

/// Of a matrix that is not whole, where nothing follows.
constexpr const char* kCutOff = ": the text ends here, so it was cut off; copy the whole of what nvidia-smi prints";

bool Parser::is_last(std::size_t line) const {
  while (++line < text_.lines()) {
    if (!first_word(text_.line(line)).empty()) return false;
  }
  return true;
}

bool Parser::is_row(std::size_t line) const {
  const std::vector<Token> words = tokens_of(text_.line(line), 2);
  if (words.empty()) return false;
  if (words.size() > 1 && is_cell(words[1].text)) return true;
  const auto column = header_.column(words[0].text);
  return column && !rows_[*column];
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
      throw text_.error(end - 1, fmt::format("{} has a column (line {}) and no row{}", header_.labels[i],
                                             header_.line + 1, is_last(end - 1) ? kCutOff : ""));
    }
  }
  return end;
}

void Parser::parse_row(std::size_t line) {
  const std::string_view label = first_word(text_.line(line));
  const auto column = header_.column(label);
  if (!column) {
    throw text_.error(line, label,
                      fmt::format("the row {} has no column (the header is line {})", in_quotes(label),
                                  header_.line + 1));
  }
  const std::size_t own = *column;
  if (rows_[own]) {
    throw text_.error(
        line, label,
        fmt::format("a second row {}; the first is line {}", label, row_line_[own] + 1));
  }
  Row row = split_row(text_, header_, line, label);
  check_cells(line, own, row);
  rows_[own] = std::move(row);
  row_line_[own] = line;
}

void Parser::check_cells(std::size_t line, std::size_t own, const Row& row) const {
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const std::string_view cell = row.cells[i];
    const auto refuse = [&](const std::string& why) {
      return text_.error(
          line, cell,
          fmt::format("row {}, column {}: {}", header_.labels[own], header_.labels[i], why));
    };
    if (cell.empty()) throw refuse("the cell is empty");
    if (!is_cell(cell)) {
      const bool cut = i + 1 == row.cells.size() && row.cells.size() < header_.labels.size() && is_last(line);
      throw refuse(fmt::format("unknown relation {}{}", in_quotes(cell), cut ? kCutOff : ""));
    }
    if ((cell == "X") != (i == own)) {
      throw refuse(i == own ? fmt::format("{} where X is expected", in_quotes(cell))
                            : "X, which belongs on the diagonal");
    }
    if (is_nvlink(cell) && !(is_gpu(header_.labels[i]) && is_gpu(header_.labels[own]))) {
      throw refuse(fmt::format("NVLink ({}) to a NIC", cell));
    }
  }
  if (row.cells.size() != header_.labels.size()) {
    throw text_.error(line,
                      fmt::format("row {} has {} cell{} for the {} device columns of the header "
                                  "(line {}){}",
                                  header_.labels[own], row.cells.size(), row.cells.size() == 1 ? "" : "s",
                                  header_.labels.size(), header_.line + 1, is_last(line) ? kCutOff : ""));
  }
}

void Parser::check_mirror() const {
  for (std::size_t a = 0; a < rows_.size(); ++a) {
    for (std::size_t b = a + 1; rows_[a] && b < rows_.size(); ++b) {
      if (!rows_[b] || rows_[a]->cells[b] == rows_[b]->cells[a]) continue;
      throw text_.error(
          row_line_[b], rows_[b]->cells[a],
          fmt::format("{} to {} is {}, but {} in line {}", header_.labels[b], header_.labels[a],
                      rows_[b]->cells[a], rows_[a]->cells[b], row_line_[a] + 1));
    }
  }
}

/// A whole row further down means that something stands in the middle of the
/// matrix, or that there are two of them.
void Parser::check_nothing_follows(std::size_t from) const {
  const std::size_t wanted = header_.labels.size();
  for (std::size_t line = from; line < text_.lines(); ++line) {
    const std::string_view label = first_word(text_.line(line));
    if (!header_.column(label)) continue;
    const std::vector<Token> words = tokens_of(text_.line(line), wanted + 1);
    if (words.size() <= wanted) continue;
    if (std::all_of(words.begin() + 1, words.end(),
                    [](const Token& word) { return is_cell(word.text); })) {
      throw text_.error(
          line, label,
          fmt::format("another row {} after the end of the matrix (line {}): more than one "
                      "matrix, or text in the middle of it",
                      label, from));
    }
  }
}

Matrix Parser::build(const std::vector<std::string_view>& names) const {
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
      matrix.nics.push_back({label, names[i].empty() ? label : std::string(names[i])});
    }
  }
  const auto block = [&](const std::vector<std::size_t>& from, const std::vector<std::size_t>& to) {
    std::vector<std::vector<std::string>> cells;
    for (const std::size_t a : from) {
      auto& line = cells.emplace_back();
      for (const std::size_t b : to) {
        if (rows_[a])
          line.emplace_back(rows_[a]->cells[b]);
        else if (rows_[b])
          line.emplace_back(rows_[b]->cells[a]);
        else
          line.emplace_back(a == b ? "X" : "");
      }
    }
    return cells;
  };
  matrix.gpu_gpu = block(gpus, gpus);
  matrix.gpu_nic = block(gpus, nics);
  matrix.nic_nic = block(nics, nics);
  const auto column = [&](Affinity which) -> Matrix::Column {
    if (!header_.has[which]) return std::nullopt;
    std::vector<Outside> values;
    for (const std::size_t gpu : gpus) values.emplace_back(rows_[gpu]->affinities[which]);
    return values;
  };
  matrix.cpu_affinity = column(kCpu);
  matrix.numa_affinity = column(kNuma);
  matrix.gpu_numa_id = column(kGpuNuma);
  return matrix;
}

Matrix Parser::parse() {
  const std::size_t end = parse_rows();
  check_mirror();
  check_nothing_follows(end);
  return build(read_nic_legend(text_, header_, end));
}

/// Text found instead of a matrix, in the words of those who captured it.
Error no_matrix(const CapturedText& text, std::optional<std::size_t> p2p_line) {
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
  if (p2p_line) {
    return text.error(*p2p_line,
                      "this is the table of nvidia-smi topo -p2p, which shows no topology; "
                      "give the output of nvidia-smi topo -m");
  }
  std::size_t first = text.lines();
  for (std::size_t line = 0; line < text.lines(); ++line) {
    const std::string_view content = trimmed(text.line(line));
    if (content.empty()) continue;
    if (first == text.lines()) first = line;
    for (const Known& known : kKnown) {
      if (content.substr(0, 4096).find(known.text) == std::string_view::npos) continue;
      return text.error(line, fmt::format("no topology matrix: {}", known.meaning));
    }
  }
  if (first == text.lines())
    return text.error(0, "the input is empty; give the output of nvidia-smi topo -m");
  return text.error(first,
                    "no topology matrix in the input (a header line that starts with GPU0, as "
                    "nvidia-smi topo -m prints it)");
}

/// rocm-smi has matrices of GPUs alone.
void refuse_rocm_smi(const CapturedText& text) {
  for (std::size_t line = 0; line < text.lines(); ++line) {
    if (text.line(line).substr(0, 4096).find("between two GPUs") == std::string_view::npos) continue;
    throw text.error(
        line,
        "this is the output of rocm-smi --showtopo, which shows GPUs and no NIC; give 'lspci -tv' (--lspci), hwloc XML "
        "(--hwloc) or a copy of /sys (--sysfs) of that machine");
  }
}

/// A header that a narrow terminal broke behind its devices: its affinity headings stand in the next line. Lines keep
/// their numbers.
std::string with_header_in_one_line(std::string_view raw) {
  std::string all(raw);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find('\n', at);
    if (end == std::string::npos) break;
    const std::size_t next_end = std::min(all.find('\n', end + 1), all.size());
    const std::string_view line = trimmed(std::string_view(all).substr(at, end - at));
    const std::string_view next = trimmed(std::string_view(all).substr(end + 1, next_end - end - 1));
    const bool broken =
        line.starts_with("GPU0") &&
        (next.starts_with("Affinity") || next.starts_with("NUMA Affinity") || next.starts_with("CPU Affinity"));
    if (broken) {
      all[end] = ' ';
      all.insert(next_end, "\n");
      return all;
    }
    at = end + 1;
  }
  return all;
}

}  // namespace

Matrix parse_nvidia_smi(std::string_view raw, std::string_view name) {
  const std::string unwrapped = with_header_in_one_line(raw);
  CapturedText text(unwrapped, name);
  refuse_rocm_smi(text);
  HeaderSearch found = find_header(text);
  if (!found.header && adopt_prefix(text)) found = find_header(text);
  if (!found.header) throw no_matrix(text, found.p2p);
  return Parser(text, *found.header).parse();
}

Matrix read_nvidia_smi_file(const std::string& path) {
  return read_parsed(parse_nvidia_smi, path, kMaxFileBytes);
}

}  // namespace gdrperf::topo
