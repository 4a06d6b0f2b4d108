#include "help_format.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include "gdrperf/base/terminal.h"

namespace gdrperf::app {
namespace {

constexpr std::size_t kHelpColumns = 80;

/// Each line at most as wide as help may be; what follows is indented as the line is, and by `hang` at least.
std::string narrow(const std::string& text, std::size_t hang) {
  std::string out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out += line.size() <= kHelpColumns ? line : wrapped(line, kHelpColumns, std::max(indent, hang));
    if (out.empty() || out.back() != '\n') out += '\n';
    begin = end + 1;
  }
  return out;
}

/// Lines of a paragraph are joined, then wrapped; indented ones (examples, tables) stay lines.
std::string reflowed(const std::string& text) {
  std::string out;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += wrapped(paragraph, kHelpColumns, 0) + '\n';
    paragraph.clear();
  };
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && line.front() != ' ') {
      paragraph += (paragraph.empty() ? "" : " ") + line;
      if (line.back() == ':') end_paragraph();
      continue;
    }
    end_paragraph();
    out += (line.size() <= kHelpColumns ? line : wrapped(line, kHelpColumns, 6)) + '\n';
  }
  end_paragraph();
  return out;
}

/// "Print JSON" as "print JSON", so that all options read alike; "RDMA device" stays.
std::string uncapitalised(std::string text) {
  const auto is = [&](std::size_t at, int (*kind)(int)) {
    return at < text.size() && kind(static_cast<unsigned char>(text[at])) != 0;
  };
  if (is(0, std::isupper) && !is(1, std::isupper) && !is(1, std::isdigit))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

class NarrowHelp : public CLI::Formatter {
 public:
  NarrowHelp() {
    label("TEXT", "");
    label("REQUIRED", "(required)");
    label("Excludes", "not with");
    label("Needs", "with");
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return uncapitalised(CLI::Formatter::make_option_desc(option));
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return narrow(CLI::Formatter::make_option(option, is_positional), column_width_);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return narrow(CLI::Formatter::make_subcommand(command), column_width_);
  }
  std::string make_description(const CLI::App* app) const override {
    return narrow(CLI::Formatter::make_description(app), 0);
  }
  std::string make_footer(const CLI::App* app) const override { return reflowed(CLI::Formatter::make_footer(app)); }
};

}  // namespace

void wrap_help(CLI::App& app) { app.formatter(std::make_shared<NarrowHelp>()); }

}  // namespace gdrperf::app
