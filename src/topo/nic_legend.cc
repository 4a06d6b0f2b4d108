#include "nic_legend.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "matrix_words.h"

namespace gdrperf::topo {
namespace {

class Names {
 public:
  Names(const CapturedText& text, const Header& header)
      : text_(text), header_(header), names_(header.devices()) {}

  void add(std::size_t line, std::string_view label, std::string_view name) {
    const auto column = header_.column(label);
    if (!column) {
      throw text_.error(line, label,
                        fmt::format("the NIC legend names {}, which has no column", label));
    }
    if (!is_device_label(name)) {
      throw text_.error(line, name, fmt::format("{} is no device name", in_quotes(name)));
    }
    if (!names_[*column].empty()) {
      throw text_.error(line, label, fmt::format("the NIC legend names {} twice", label));
    }
    if (!used_.insert(name).second) {
      throw text_.error(line, name, fmt::format("two NICs have the name {}", name));
    }
    names_[*column] = name;
  }

  void require_all(std::size_t line) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i].empty() && is_numbered(header_.labels[i], "NIC")) {
        throw text_.error(line, fmt::format("{} is not in the NIC legend", header_.labels[i]));
      }
    }
  }

  std::vector<std::string_view> take() { return std::move(names_); }

 private:
  const CapturedText& text_;
  const Header& header_;
  std::vector<std::string_view> names_;
  std::unordered_set<std::string_view> used_;
};

}  // namespace

std::vector<std::string_view> read_nic_legend(const CapturedText& text, const Header& header,
                                              std::size_t from) {
  Names names(text, header);
  std::size_t line = from;
  bool headed = false;
  bool named = false;
  bool other_text = false;
  for (; line < text.lines(); ++line) {
    const std::string_view content = trimmed(text.line(line));
    if (content.empty()) continue;
    if (!named && content.starts_with("NIC Legend")) {
      headed = true;
      continue;
    }
    const std::size_t colon = std::min(content.substr(0, kMaxLabel).find(':'), content.size());
    const std::string_view label = trimmed(content.substr(0, colon));
    const std::string_view name = first_word(content.substr(std::min(colon + 1, content.size())));
    if (is_numbered(label, "NIC") && !name.empty() && (headed || !other_text)) {
      names.add(line, label, name);
      named = true;
    } else if (named) {
      break;
    } else {
      const bool of_legend =
          content.starts_with("Legend") || content.find(" = ") != std::string_view::npos;
      other_text = other_text || !of_legend;
    }
  }
  if (headed || named) names.require_all(line - 1);
  return names.take();
}

}  // namespace gdrperf::topo
