// gdrperf man, gdrperf completion: what --help says, for man(1) and for shells.
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/version.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/export/formats.h"
#include "app/options/late_options.h"
#include "app/options/parse_words.h"

namespace gdrperf::app {
namespace {

std::vector<CLI::App*> commands_of(const CLI::App& app) {
  // The constant overload of get_subcommands() lists those that were typed.
  return const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; });
}

const CLI::App& named(const CLI::App& app, const std::string& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : commands_of(app)) {
    if (each->get_name() == command) return *each;
    names.push_back(each->get_name());
  }
  throw usage_error(fmt::format("man: there is no command '{}'", command),
                    fmt::format("there are {}", fmt::join(names, ", ")));
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

void print_head(std::ostream& out, const std::string& page) {
  out << fmt::format(".TH {} 1 \"\" \"gdrperf {}\" \"User Commands\"\n", roff(page), roff(tool_version()));
}

/// The page of one command: gdrperf-write_bw(1).
void print_man_of(std::ostream& out, const CLI::App& command) {
  const std::string& name = command.get_name();
  print_head(out, "GDRPERF-" + name);
  out << fmt::format(".SH NAME\ngdrperf\\-{} \\- {}\n", roff(name), roff(command.get_description()));
  out << fmt::format(".SH SYNOPSIS\n.B gdrperf {}\n\\fR[\\fIOPTION\\fR]...\n", roff(name));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) out << fmt::format("[\\fI{}\\fR]\n", roff(option->get_name(true, false)));
  }
  out << ".SH OPTIONS\n";
  print_options(out, command);
  std::map<std::vector<std::string>, std::string> alike;
  const std::vector<CLI::App*> parts = commands_of(command);
  if (!parts.empty()) out << ".SH COMMANDS\n";
  for (const CLI::App* each : parts) print_command(out, *each, name + " " + each->get_name(), alike);
  if (!command.get_footer().empty()) out << ".SH NOTES\n.nf\n" << roff(command.get_footer()) << "\n.fi\n";
  out << ".SH SEE ALSO\n.BR gdrperf (1)\n";
}

void print_man(std::ostream& out, const CLI::App& app, const std::string& command) {
  if (!command.empty()) return print_man_of(out, named(app, command));
  print_head(out, "GDRPERF");
  out << fmt::format(".SH NAME\ngdrperf \\- {}\n", roff(app.get_description()));
  out << ".SH SYNOPSIS\n.B gdrperf\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH COMMANDS\n";
  std::map<std::vector<std::string>, std::string> alike;
  for (const CLI::App* each : commands_of(app)) print_command(out, *each, each->get_name(), alike);
  out << ".SH NOTES\n.nf\n" << roff(app.get_footer()) << "\n.fi\n";
}

std::string joined_words(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// All spellings of a command's options, and of those of its subcommands, with their names.
std::vector<std::string> words_after(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (hidden(*option)) continue;
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
    for (const char* word : {each.every, each.every_more})
      if (*word != 0) words.emplace_back(word);
    values.emplace_back(flag_of(each), std::move(words));
  }
  std::vector<std::string> formats;
  for (const report::Format& format : report::all_formats()) formats.emplace_back(format.name);
  values.emplace_back("--format", std::move(formats));
  return values;
}

/// A case of a shell for each option that takes one of several words, and for each command: `set` makes a list of words
/// a line, like {}.
void print_cases(std::ostream& out, const CLI::App& app, const char* of_option, const char* of_command,
                 const std::string& between) {
  for (const auto& [flag, words] : values_of_options()) {
    out << fmt::format(fmt::runtime(of_option), flag, joined_words(words));
  }
  out << between;
  for (const CLI::App* each : commands_of(app)) {
    out << fmt::format(fmt::runtime(of_command), each->get_name(), joined_words(words_after(*each)));
  }
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : commands_of(app)) names.push_back(each->get_name());
  return names;
}

void complete_bash(std::ostream& out, const CLI::App& app) {
  out << "# Completion of gdrperf for bash, as 'gdrperf completion' prints it.\n_gdrperf() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words=\n  case ${COMP_WORDS[COMP_CWORD-1]} in\n";
  print_cases(out, app, "    {}) words=\"{}\" ;;\n", "        {}) words=\"{}\" ;;\n",
              "    *)\n      case ${COMP_WORDS[1]} in\n");
  out << fmt::format("      esac\n      [ \"$COMP_CWORD\" -eq 1 ] && words=\"{}\" ;;\n  esac\n",
                     joined_words(command_names(app)));
  // Nothing fits: names of files.
  out << "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\ncomplete -o default -F _gdrperf gdrperf\n";
}

void complete_zsh(std::ostream& out, const CLI::App& app) {
  out << "#compdef gdrperf\n# Completion of gdrperf for zsh, as 'gdrperf completion zsh' prints it.\n"
         "local -a choices\ncase ${words[CURRENT-1]} in\n";
  print_cases(out, app, "  {}) choices=({}) ;;\n", "      {}) choices=({}) ;;\n", "  *)\n    case ${words[2]} in\n");
  out << fmt::format("    esac\n    (( CURRENT == 2 )) && choices=({}) ;;\nesac\n", joined_words(command_names(app)));
  out << "compadd -a choices || _files\n";
}

/// Between single quotes of fish.
std::string fish_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "'" + out + "'";
}

void complete_fish(std::ostream& out, const CLI::App& app) {
  out << "# Completion of gdrperf for fish, as 'gdrperf completion fish' prints it.\n";
  std::map<std::string, std::string> values;
  for (const auto& [flag, words] : values_of_options()) values[flag] = joined_words(words);
  for (const CLI::App* each : commands_of(app)) {
    out << fmt::format("complete -c gdrperf -n __fish_use_subcommand -f -a {} -d {}\n", each->get_name(),
                       fish_quoted(each->get_description()));
    for (const CLI::Option* option : each->get_options()) {
      if (hidden(*option) || (option->get_lnames().empty() && option->get_snames().empty())) continue;
      out << fmt::format("complete -c gdrperf -n '__fish_seen_subcommand_from {}'", each->get_name());
      for (const std::string& name : option->get_lnames()) out << " -l " << name;
      for (const std::string& name : option->get_snames()) out << " -s " << name;
      if (option->get_items_expected_max() > 0) out << " -r";
      if (const auto found = values.find(flag_of(*option)); found != values.end())
        out << " -f -a " << fish_quoted(found->second);
      out << " -d " << fish_quoted(option->get_description()) << '\n';
    }
  }
}

void print_completion(std::ostream& out, const CLI::App& app, const std::string& shell) {
  const std::map<std::string, void (*)(std::ostream&, const CLI::App&)> shells = {
      {"bash", complete_bash}, {"fish", complete_fish}, {"zsh", complete_zsh}};
  const auto found = shells.find(shell.empty() ? "bash" : shell);
  if (found == shells.end())
    throw usage_error(fmt::format("completion: there is none for '{}'", shell), "choose bash, fish or zsh");
  found->second(out, app);
}

using Print = void(std::ostream&, const CLI::App&, const std::string&);

void write_text(const std::string& path, Print* print, const CLI::App& app, const std::string& of) {
  std::ostringstream out;
  print(out, app, of);
  write_file_atomic(path, out.str());
}

/// All that is installed of them, from one start of the program: a page of each command and a file for each shell.
void write_all(const CLI::App& app, const std::string& folder) {
  write_text(folder + "/gdrperf.1", print_man, app, "");
  for (const std::string& name : command_names(app))
    write_text(folder + "/gdrperf-" + name + ".1", print_man, app, name);
  for (const auto& [file, shell] : {std::pair("gdrperf.bash", "bash"), {"_gdrperf", "zsh"}, {"gdrperf.fish", "fish"}})
    write_text(folder + "/" + file, print_completion, app, shell);
}

}  // namespace

void add_manual_commands(CLI::App& app, Action& action) {
  const auto add = [&](const char* name, const char* what, const char* word, const char* which,
                       Print* print) {
    const auto chosen = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand(name, what);
    command->add_option(word, *chosen, which);
    if (print == print_man) command->add_option("--all-to", *folder)->group("");  // what the build installs
    command->final_callback([&app, &action, print, chosen, folder] {
      action = [&app, print, chosen, folder](const Argv&) {
        add_all_now();
        if (folder->empty()) {
          print(std::cout, app, *chosen);
        } else {
          write_all(app, *folder);
        }
        return 0;
      };
    });
  };
  add("man", "Print the manual page: gdrperf man | man -l -", "COMMAND", "the page of this one (default: of all)",
      print_man);
  add("completion", "Print shell completion: source <(gdrperf completion)", "SHELL",
      "bash, fish or zsh (default: bash)", print_completion);
}

}  // namespace gdrperf::app
