#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "gdrperf/base/printable.h"
#include "gdrperf/doctor/doctor.h"

namespace gdrperf::doctor {
namespace {

constexpr const char* kHead = R"(#!/bin/sh
# Written by 'gdrperf doctor --fix-script'. It was not run. Read it first: each
# step says what it cures and what takes it back, and asks before it runs.
# usage: sh THIS_FILE            asks before each step
#        sh THIS_FILE --dry-run  only prints the steps
set -u
dry=no
[ "${1-}" = --dry-run ] && dry=yes
step() {
  printf '\n%s\n  %s\n' "$1" "$2"
  [ "$dry" = yes ] && return 0
  printf 'run it? [y/N] '
  read -r answer || answer=n
  case $answer in
    y | Y) sh -c "$2" || { echo "it failed: stopping here" >&2; exit 1; } ;;
    *) echo "left out" ;;
  esac
}
)";

/// Something that a shell can run: a command, not advice in words.
bool is_command(const std::string& text) {
  for (const char* begin : {"sudo ", "for b in ", "for p in ", "printf ", "echo ", "ulimit "}) {
    if (text.rfind(begin, 0) == 0) {
      // A command that goes on in words is advice.
      const std::string command = text.substr(0, text.find(" #"));
      for (const char* words :
           {" or ", "; or", "; then ", ", then", " on the host", ": ", "; else", "; the ", "; check", "; a ", ", "}) {
        if (command.find(words) != std::string::npos) return false;
      }
      // Words in capitals are for a person to fill in.
      for (const char* blank : {"NETDEV", "ADDRESS", "VERSION", "DEVICE", "HOST", "MOK.der", "..."}) {
        if (text.find(blank) != std::string::npos) return false;
      }
      return true;
    }
  }
  return false;
}

/// What a kernel may call a device, with the port behind it: nothing of it means more than itself to a shell.
bool plain_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-.:/@+, ").find(c) != std::string_view::npos;
  });
}

/// Names come from recordings too: what a shell could take for more than a word is left to who reads it.
bool may_run(const Finding& finding, const std::string& command) {
  constexpr std::string_view kReplaced = "\xef\xbf\xbd";  // by printable(): a name that was another
  const std::array<std::string_view, 4> unsafe = {"$(", "${", "`", kReplaced};
  return is_command(command) && plain_name(finding.subject) &&
         std::none_of(unsafe.begin(), unsafe.end(),
                      [&](std::string_view each) { return command.find(each) != std::string::npos; });
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

void add_step(std::string& script, const Finding& finding, const std::string& command, const char* when,
              std::set<std::string>& done) {
  if (command.empty() || !done.insert(command).second) return;
  const std::string title = printable(fmt::format("# {}{}{}: {}{}", finding.check, finding.subject.empty() ? "" : " ",
                                                  finding.subject, finding.found, when));
  if (may_run(finding, command)) {
    script += fmt::format("step {} {}\n", quoted(title), quoted(command));
  } else {
    script += fmt::format("\n{}\n# by hand: {}\n", title, printable(command));
  }
}

}  // namespace

std::string fix_script(const std::vector<Finding>& findings) {
  std::string script = kHead;
  std::set<std::string> done;
  for (const Finding& finding : findings) {
    if (finding.verdict != Verdict::kFail && finding.verdict != Verdict::kWarn) continue;
    add_step(script, finding, finding.fix, "", done);
    add_step(script, finding, finding.for_good, " (permanently)", done);
    if (!finding.undo.empty()) script += fmt::format("# takes it back: {}\n", printable(finding.undo));
  }
  if (done.empty()) script += "echo 'nothing to fix'\n";
  // A script that ran to its end in silence would say that all is done.
  if (script.find("\n# by hand: ") != std::string::npos)
    script += "echo 'some steps are to be done by hand: the lines \"by hand\" of this script'\n";
  return script;
}

}  // namespace gdrperf::doctor
