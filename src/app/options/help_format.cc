#include "help_format.h"

#include <algorithm>
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

class NarrowHelp : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return narrow(CLI::Formatter::make_option(option, is_positional), column_width_);
  }
  std::string make_subcommand(const CLI::App* command) const override { return narrow(CLI::Formatter::make_subcommand(command), column_width_); }
  std::string make_description(const CLI::App* app) const override { return narrow(CLI::Formatter::make_description(app), 0); }
  std::string make_footer(const CLI::App* app) const override { return narrow(CLI::Formatter::make_footer(app), 0); }
};

}  // namespace

void wrap_help(CLI::App& app) { app.formatter(std::make_shared<NarrowHelp>()); }

}  // namespace gdrperf::app
