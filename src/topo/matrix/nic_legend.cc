#include "topo/matrix/nic_legend.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "topo/matrix/matrix_words.h"

namespace gdrperf::topo {
namespace {

/// "NIC0: mlx5_0" at the front of a text; an empty name for anything else.
std::pair<std::string_view, std::string_view> entry_of(std::string_view text) {
  const std::size_t colon = std::min(text.substr(0, kMaxLabel).find(':'), text.size());
  const std::string_view label = trimmed(text.substr(0, colon));
  if (!is_numbered(label, "NIC")) return {};
  return {label, first_word(text.substr(std::min(colon + 1, text.size())))};
}

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
    const bool entries = headed || !other_text;
    if (const auto [label, name] = entry_of(content); entries && !name.empty()) {
      // A paste may put several into one line.
      for (std::string_view rest = content; !rest.empty();) {
        const auto [each, its_name] = entry_of(rest);
        if (its_name.empty()) break;
        names.add(line, each, its_name);
        rest = trimmed(rest.substr(static_cast<std::size_t>(its_name.data() + its_name.size() - rest.data())));
      }
      named = true;
    } else if ((named || headed) && (content == "..." || content == "\u2026")) {
      // The paste was cut here, and says so: the other columns keep their labels.
      return names.take();
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
