#include "topo/matrix/matrix_header.h"

#include <algorithm>

#include <fmt/format.h>

#include "topo/matrix/matrix_words.h"

namespace gdrperf::topo {
namespace {

/// A header has GPU0 first; so has the row of GPU0, whose next word is a cell,
/// and so may prose and other sections of a report.
bool starts_matrix(const CapturedText& text, std::size_t line) {
  const std::vector<Token> words = tokens_of(text.line(line), 2);
  if (words.empty() || words[0].text != "GPU0") return false;
  if (words.size() > 1) {
    const std::string_view second = words[1].text;
    if (is_cell(second) || is_p2p(second)) return false;
    if (is_gpu(second) || text.line(line).find("CPU Affinity") != std::string_view::npos)
      return true;
  }
  const std::size_t next = text.next_non_blank(line + 1);
  if (next == text.lines()) return false;
  const std::vector<Token> row = tokens_of(text.line(next), 2);
  return row.size() == 2 && row[0].text == "GPU0" && is_cell(row[1].text);
}

bool rows_are_p2p(const CapturedText& text, std::size_t header) {
  const std::size_t next = text.next_non_blank(header + 1);
  if (next == text.lines()) return false;
  const std::vector<Token> row = tokens_of(text.line(next), 64);
  return row.size() > 1 && is_gpu(row[0].text) &&
         std::any_of(row.begin() + 1, row.end(),
                     [](const Token& word) { return is_p2p(word.text); });
}

/// Headings that ran together ("NIC34NIC35CPU"), as wide matrices have them in narrow columns: cut where a new one
/// begins behind a digit.
std::vector<Token> apart(const std::vector<Token>& words) {
  std::vector<Token> all;
  for (const Token& word : words) {
    std::size_t from = 0;
    for (std::size_t at = 1; at < word.text.size() && all.size() <= kMaxDevices + 16; ++at) {
      const std::string_view rest = word.text.substr(at);
      const bool after_digit = word.text[at - 1] >= '0' && word.text[at - 1] <= '9';
      if (!after_digit ||
          !(rest.starts_with("NIC") || rest.starts_with("GPU") || rest.starts_with("mlx") || rest == "CPU")) {
        continue;
      }
      all.push_back({word.text.substr(from, at - from), word.at + from, word.column + from});
      from = at;
    }
    all.push_back({word.text.substr(from), word.at + from, word.column + from});
  }
  return all;
}

/// Takes a header line word by word.
class HeaderParser {
 public:
  HeaderParser(const CapturedText& text, std::size_t line)
      : text_(text), words_(apart(tokens_of(text.line(line), kMaxDevices + 16))) {
    header_.line = line;
  }

  Header parse() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (word(i) == "CPU" && word(i + 1) == "Affinity") {
        add_affinity(kCpu, i++);
      } else if (word(i) == "NUMA" && word(i + 1) == "Affinity") {
        add_affinity(kNuma, i++);
      } else if (word(i) == "GPU" && word(i + 1) == "NUMA" && word(i + 2) == "ID") {
        add_affinity(kGpuNuma, i);
        i += 2;
      } else {
        add_device(i);
      }
    }
    return std::move(header_);
  }

 private:
  std::string_view word(std::size_t i) const {
    return i < words_.size() ? words_[i].text : std::string_view();
  }

  void add_affinity(Affinity which, std::size_t at) {
    const auto later = header_.has.begin() + which;
    if (std::find(later, header_.has.end(), true) != header_.has.end()) {
      throw text_.error(header_.line, word(at), "affinity columns repeated or out of order");
    }
    header_.has[which] = true;
    header_.affinity_at.push_back(words_[at].column);
  }

  void add_device(std::size_t at) {
    const std::string label(word(at));
    if (!is_device_label(label) || header_.affinities() > 0) {
      throw text_.error(header_.line, word(at),
                        fmt::format("the header has {} where a device or an affinity column is "
                                    "expected",
                                    in_quotes(label)));
    }
    if (header_.devices() == kMaxDevices) {
      throw text_.error(header_.line, fmt::format("more than {} device columns", kMaxDevices));
    }
    if (!header_.by_label.emplace(label, header_.devices()).second) {
      throw text_.error(header_.line, word(at), fmt::format("two columns are labelled {}", label));
    }
    header_.labels.push_back(label);
  }

  const CapturedText& text_;
  const std::vector<Token> words_;
  Header header_;
};

}  // namespace

std::optional<std::size_t> Header::column(std::string_view label) const {
  if (label.size() > kMaxLabel) return std::nullopt;
  const auto found = by_label.find(std::string(label));
  return found == by_label.end() ? std::nullopt : std::optional(found->second);
}

HeaderSearch find_header(const CapturedText& text) {
  HeaderSearch found;
  for (std::size_t line = 0; line < text.lines() && !found.header; ++line) {
    if (!starts_matrix(text, line)) continue;
    if (!rows_are_p2p(text, line))
      found.header = line;
    else if (!found.p2p)
      found.p2p = line;
  }
  return found;
}

bool adopt_prefix(CapturedText& text) {
  constexpr std::size_t kLongest = 256;
  for (std::size_t line = 0; line + 1 < text.lines(); ++line) {
    const std::string_view head = text.line(line).substr(0, 2 * kLongest);
    const std::size_t gpu = head.find("GPU0");
    if (gpu == 0 || gpu == std::string_view::npos || gpu > kLongest) continue;
    std::size_t end = gpu;
    while (end > 0 && is_blank(head[end - 1])) --end;
    if (end == 0) continue;
    const std::string prefix(head.substr(0, end));
    const std::string_view below = text.line(line + 1);
    if (!below.starts_with(prefix) || first_word(below.substr(prefix.size())) != "GPU0") continue;
    text.set_prefix(prefix);
    return true;
  }
  return false;
}

Header parse_header(const CapturedText& text, std::size_t line) {
  return HeaderParser(text, line).parse();
}

}  // namespace gdrperf::topo
