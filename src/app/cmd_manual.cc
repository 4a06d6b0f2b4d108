// gdrperf man, gdrperf completion: what --help says, for man(1) and for bash.
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.h"
#include "gdrperf/base/version.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/report/formats.h"

namespace gdrperf::app {
namespace {

std::vector<CLI::App*> commands_of(const CLI::App& app) {
  // The constant overload of get_subcommands() lists those that were typed.
  return const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; });
}

/// "-s,--size"; "HOST" of a positional.
std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) names.push_back(option->get_name(true, true));
  return names;
}

/// Text that troff(1) prints as it is.
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else {
      out += c == '-' ? "\\-" : std::string(1, c);
    }
    line_start = c == '\n';
  }
  return out;
}

void print_options(std::ostream& out, const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name(true, true);
    if (name.empty()) continue;  // hidden
    out << fmt::format(".TP\n\\fB{}\\fR", roff(name));
    if (!option->get_type_name().empty()) out << fmt::format(" \\fI{}\\fR", roff(option->get_type_name()));
    out << '\n' << roff(option->get_description()) << '\n';
  }
}

/// `alike`: the first command with the same options, by those.
void print_command(std::ostream& out, const CLI::App& command, const std::string& words,
                   std::map<std::vector<std::string>, std::string>& alike) {
  out << fmt::format(".SS {}\n{}.\n", roff(words), roff(command.get_description()));
  const auto [first, fresh] = alike.emplace(names_of(command), words);
  if (fresh) {
    print_options(out, command);
  } else {
    out << fmt::format(".PP\nOptions as for \\fB{}\\fR.\n", roff(first->second));
  }
  if (!command.get_footer().empty()) out << ".PP\n.nf\n" << roff(command.get_footer()) << "\n.fi\n";
  for (const CLI::App* each : commands_of(command)) print_command(out, *each, words + " " + each->get_name(), alike);
}

int print_man(const CLI::App& app) {
  std::ostream& out = std::cout;
  out << fmt::format(".TH GDRPERF 1 \"\" \"gdrperf {}\" \"User Commands\"\n", roff(tool_version()));
  out << fmt::format(".SH NAME\ngdrperf \\- {}\n", roff(app.get_description()));
  out << ".SH SYNOPSIS\n.B gdrperf\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH COMMANDS\n";
  std::map<std::vector<std::string>, std::string> alike;
  for (const CLI::App* each : commands_of(app)) print_command(out, *each, each->get_name(), alike);
  out << ".SH NOTES\n.nf\n" << roff(app.get_footer()) << "\n.fi\n";
  return 0;
}

std::string joined_words(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// All spellings of a command's options, and of those of its subcommands, with their names.
std::vector<std::string> words_after(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
  for (const CLI::App* each : commands_of(command)) {
    words.push_back(each->get_name());
    for (const std::string& word : words_after(*each)) words.push_back(word);
  }
  return words;
}

/// Options that take one of several words.
std::vector<std::pair<std::string, std::vector<std::string>>> values_of_options() {
  std::vector<std::pair<std::string, std::vector<std::string>>> values;
  for (const Setting& each : settings()) {
    if (each.type != SettingType::kChoice) continue;
    std::vector<std::string> words;
    for (const Choice& choice : each.choices) words.emplace_back(choice.word);
    if (&each == &setting<&TestSpec::path>()) words.emplace_back("both");
    values.emplace_back(flag_of(each), std::move(words));
  }
  std::vector<std::string> formats;
  for (const report::Format& format : report::all_formats()) formats.emplace_back(format.name);
  values.emplace_back("--format", std::move(formats));
  return values;
}

int print_completion(const CLI::App& app) {
  std::ostream& out = std::cout;
  std::vector<std::string> names;
  for (const CLI::App* each : commands_of(app)) names.push_back(each->get_name());
  out << "# Completion of gdrperf for bash, as 'gdrperf completion' prints it.\n_gdrperf() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words=\n  case ${COMP_WORDS[COMP_CWORD-1]} in\n";
  for (const auto& [flag, words] : values_of_options()) out << fmt::format("    {}) words=\"{}\" ;;\n", flag, joined_words(words));
  out << "    *)\n      case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* each : commands_of(app)) {
    out << fmt::format("        {}) words=\"{}\" ;;\n", each->get_name(), joined_words(words_after(*each)));
  }
  out << fmt::format("      esac\n      [ \"$COMP_CWORD\" -eq 1 ] && words=\"{}\" ;;\n  esac\n", joined_words(names));
  // Nothing fits: names of files.
  out << "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\ncomplete -o default -F _gdrperf gdrperf\n";
  return 0;
}

}  // namespace

void add_manual_commands(CLI::App& app, Action& action) {
  const auto add = [&](const char* name, const char* what, int (*print)(const CLI::App&)) {
    app.add_subcommand(name, what)->final_callback([&app, &action, print] {
      action = [&app, print](const Argv&) { return print(app); };
    });
  };
  add("man", "Print the manual page: gdrperf man | man -l -", print_man);
  add("completion", "Print completion for bash: source <(gdrperf completion)", print_completion);
}

}  // namespace gdrperf::app
