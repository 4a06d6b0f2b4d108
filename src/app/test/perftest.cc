#include "app/test/perftest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <filesystem>
#include <ostream>

#include <fmt/format.h>

#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/text.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/proto/spec.h"
#include "app/options/late_options.h"
#include "app/output/terminal.h"
#include "gdrperf/perftest/options.h"
#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/driver_qp.h"

namespace gdrperf::app {
namespace {

constexpr const char* kAsPerftest = "--as-perftest";
constexpr const char* kJsonFile = "perftest_out.json";
// perftest's 5000 messages take about as long; 23 sizes of -a are over within 20 s.
constexpr std::chrono::milliseconds kCapAsPerftest{500};

/// perftest reads "100M" as 100, whatever stands behind the number.
double limit_of(const std::string& text, const std::string& flag, PerftestTyped& typed) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = real_from_chars(text.data(), end, value);
  if (error == std::errc() && rest + 1 == end && std::string_view("kKmMgG").find(*rest) != std::string_view::npos) {
    typed.notes.push_back(fmt::format("{} {}: read as {:g}, without its letter, as perftest does", flag, text, value));
    ++rest;
  }
  if (error != std::errc() || rest != end || !std::isfinite(value) || value <= 0) {
    throw usage_error(fmt::format("{} '{:.40}': is no rate", flag, text), "give a number above 0");
  }
  return value;
}

/// What an option that is taken does with its value.
using TakePerftest = void (*)(ClientOptions&, PerftestTyped&, const std::string& text, const std::string& flag);

void take_json(ClientOptions&, PerftestTyped& typed, const std::string& file, const std::string& flag) {
  // --out_json says that there is a file, --out_json_file which, in any order.
  if (typed.json_file.empty() || flag == "--out_json_file") typed.json_file = file.empty() ? kJsonFile : file;
}

void take_least_rate(ClientOptions&, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  typed.least_rate = limit_of(text, flag, typed);
}

void take_least_mpps(ClientOptions&, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  typed.least_mpps = limit_of(text, flag, typed);
}

/// "0-3,8" as numbers. Throws usage_error for CPUs that this process may not use.
std::vector<int> cpus_in(const std::string& text, const std::string& flag) {
  constexpr int kMostCpu = 65535;
  const std::vector<int> allowed = allowed_cpus();
  std::vector<int> cpus;
  for (const std::string_view item : split(text, ',')) {
    const std::string one(item.substr(std::min(item.find_first_not_of(' '), item.size())));
    const std::size_t dash = one.find('-');
    const auto first = static_cast<int>(parse_integer(one.substr(0, dash), flag, 0, kMostCpu));
    const std::string behind = dash == std::string::npos ? one : one.substr(dash + 1);
    const auto last = static_cast<int>(parse_integer(behind, flag, first, kMostCpu));
    for (int cpu = first; cpu <= last; ++cpu) {
      if (std::find(allowed.begin(), allowed.end(), cpu) == allowed.end()) {
        throw usage_error(fmt::format("{} {:.60}: this process may not use CPU {}", flag, text, cpu));
      }
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

void take_cpu(ClientOptions& options, PerftestTyped&, const std::string& text, const std::string& flag) {
  const bool several = text.find_first_of(",-") != std::string::npos && text.front() != '-';
  if (several) return bind_this_thread(cpus_in(text, flag));
  take(setting<&TestSpec::client, &EndSpec::cpu>(), options.spec, text, flag);
}

void take_file(ClientOptions& options, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  if (flag == "--mmap")
    typed.file = text;
  else
    typed.file_offset = parse_integer(text, flag, 0, std::numeric_limits<std::int64_t>::max());
  if (typed.file.empty()) return;
  options.spec.client.buffer =
      "file:" + typed.file + (typed.file_offset > 0 ? fmt::format("@{}", typed.file_offset) : "");
}

void take_rate_limit(ClientOptions&, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  typed.rate_limit = limit_of(text, flag, typed);
}

void take_burst(ClientOptions&, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  typed.burst = parse_integer(text, flag, 1, std::numeric_limits<int>::max());
}

/// QPs have three bits for it; more is typed, and cut, in perftest.
void take_retries(ClientOptions& options, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  constexpr int kMost = 7;
  const std::int64_t asked = parse_integer(text, flag, 0, 255);
  options.spec.retry_count = static_cast<int>(std::min<std::int64_t>(asked, kMost));
  if (asked > kMost) typed.notes.push_back(fmt::format("{} {}: a QP retries {} times at most", flag, asked, kMost));
}

void take_rate_units(ClientOptions&, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  if (text != "M" && text != "g" && text != "p")
    throw usage_error(fmt::format("{} '{:.20}': give M, g or p", flag, text));
  typed.rate_unit = text[0];
}

/// as_own_command() has given writes and sends another test's name.
void take_immediate(ClientOptions&, PerftestTyped&, const std::string&, const std::string& flag) {
  throw usage_error(flag + (flag.starts_with("--send") ? ": sends alone carry it" : ": writes alone carry it"),
                    "gdrperf write_imm_bw or send_imm_bw, or _lat");
}

void take_gap(ClientOptions& options, PerftestTyped&, const std::string& text, const std::string& flag) {
  constexpr std::int64_t kMostMicroseconds = 10'000'000;
  options.spec.latency_gap = std::chrono::microseconds(parse_integer(text, flag, 0, kMostMicroseconds));
}

struct Taken {
  std::string_view name;
  TakePerftest take;
};

void take_dual_port(ClientOptions&, PerftestTyped& typed, const std::string&, const std::string&) {
  typed.dual_port = true;
}

void take_each_port(ClientOptions& options, PerftestTyped&, const std::string&, const std::string&) {
  options.output.each_port = report::PortColumns::kEach;
}

void take_hint(ClientOptions&, PerftestTyped& typed, const std::string& text, const std::string& flag) {
  (flag == "--ph" ? typed.hint : flag == "--tph_mem" ? typed.hint_memory : typed.hint_cpu) = text;
}

constexpr std::array<Taken, 19> kTakers = {{{"ph", take_hint},
                                            {"tph_mem", take_hint},
                                            {"cpu_id", take_hint},
                                            {"latency_gap", take_gap},
                                            {"dualport", take_dual_port},
                                            {"report-per-port", take_each_port},
                                            {"mmap", take_file},
                                            {"mmap-offset", take_file},
                                            {"out_json", take_json},
                                            {"out_json_file", take_json},
                                            {"limit_bw", take_least_rate},
                                            {"limit_msgrate", take_least_mpps},
                                            {"pin_cores", take_cpu},
                                            {"write_with_imm", take_immediate},
                                            {"send_with_imm", take_immediate},
                                            {"rate_limit", take_rate_limit},
                                            {"burst_size", take_burst},
                                            {"retry_count", take_retries},
                                            {"rate_units", take_rate_units}}};

/// Its longest name without dashes: "limit_bw".
std::string_view long_name(const PerftestOption& option) {
  const std::string_view last = split(option.flags, ',').back();
  return last.substr(std::min(last.find_first_not_of('-'), last.size()));
}

void act(const PerftestOption& option, ClientOptions& options, PerftestTyped& typed, const std::string& flag,
         const std::string& text) {
  if (option.fate == PerftestFate::kRefused)
    throw usage_error(fmt::format("{}: {}", flag, option.text), option.instead);
  if (option.fate == PerftestFate::kIgnored) {
    typed.notes.push_back(fmt::format("{} changes nothing: {}", flag, option.text));
    return;
  }
  const auto* found =
      std::find_if(kTakers.begin(), kTakers.end(), [&](const Taken& each) { return each.name == long_name(option); });
  if (found != kTakers.end()) found->take(options, typed, text, flag);
}

/// Those of its spellings that the command does not have.
std::vector<std::string> spellings(const PerftestOption& option, const CLI::App& command) {
  std::vector<std::string> names;
  for (const std::string_view flag : split(option.flags, ',')) {
    if (command.get_option_no_throw(std::string(flag)) == nullptr) names.emplace_back(flag);
  }
  return names;
}

/// "-o 16" is perftest's number of outstanding reads, which is --outs as well.
std::string of_perftest(const std::string& word) {
  if (!word.starts_with("-o")) return word;
  return word.size() == 2 ? "--outs" : "--outs=" + word.substr(2);
}

/// `write_bw --write_with_imm` as write_imm_bw, likewise sends; `test` is at this place.
void name_immediate(Argv& words, std::size_t test) {
  for (const std::string verb : {"write", "send"}) {
    if (words[test] != verb + "_bw" && words[test] != verb + "_lat") continue;
    const auto behind = words.begin() + static_cast<std::ptrdiff_t>(test);
    const auto kept = std::remove(behind, words.end(), "--" + verb + "_with_imm");
    if (kept == words.end()) return;
    words.erase(kept, words.end());
    words[test].replace(0, verb.size(), verb + "_imm");
    return;
  }
}

/// Scripts try each kind that the help lists: DC and SRD are there where a device has them.
bool has_device_for(Transport transport) {
  if (!by_driver(transport)) return true;
  return verbs::device_at_hand(transport == Transport::kDc ? verbs::DriverKind::kDc : verbs::DriverKind::kSrd);
}

/// "RC/UC": kinds of QPs that the test goes over, in perftest's own form, which scripts read from its help.
std::string connections_of(const std::string& test) {
  std::string kinds;
  for (const Transport each :
       {Transport::kRc, Transport::kXrc, Transport::kUc, Transport::kUd, Transport::kDc, Transport::kSrd}) {
    const std::optional<Test> parsed = parse_test(test);
    if (parsed && goes_over(parsed->operation, each) && has_device_for(each))
      kinds += (kinds.empty() ? "" : "/") + std::string(to_string(each));
  }
  return kinds;
}

/// `text` in lines of 80 columns, indented.
void print_wrapped(std::ostream& out, const std::string& text) {
  constexpr std::size_t kWidth = 80;
  constexpr std::string_view kIndent = "      ";
  std::string line;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && kIndent.size() + line.size() + 1 + word.size() > kWidth) {
      out << kIndent << line << '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  out << kIndent << line << '\n';
}

}  // namespace

void add_perftest_options(CLI::App& command, ClientOptions& options, PerftestTyped& typed) {
  if (may_be_typed(kAsPerftest)) options.spec.stop.cap = kCapAsPerftest;
  for (const PerftestOption& each : perftest_options()) {
    // All of them would make a start half as long again.
    if (each.fate == PerftestFate::kSame || !may_be_typed(each.flags)) continue;
    for (const std::string& name : spellings(each, command)) {
      const auto given = [&each, &options, &typed, name](const std::string& text) {
        act(each, options, typed, name, text);
      };
      CLI::Option* option = *each.value == 0
                                ? command.add_flag_callback(name, [given] { given(""); })
                                : command.add_option_function<std::string>(name, given)->type_name(each.value);
      option->group("");
    }
  }
  command.add_flag_callback(kAsPerftest, [&options, &typed] {
    typed.by_name = true;
    if (options.output.format) return;
    options.output.format = report::parse_format("perftest");
    options.output.table = TableFor::kNobody;
  })->group("");
}

std::string own_test(std::string_view perftest_program) {
  const std::string name = std::filesystem::path(perftest_program).filename();
  if (!name.starts_with("ib_")) return {};
  const std::string_view rest = std::string_view(name).substr(3);
  // "ib_write_bw_nongdr": some keep several builds of perftest.
  for (const Test each : all_tests()) {
    const std::string test = to_string(each);
    if (rest == test || (rest.starts_with(test) && rest[test.size()] == '_')) return test;
  }
  return {};
}

Argv as_own_command(Argv words) {
  if (words.empty()) return words;
  const bool link = !own_test(words[0]).empty();
  if (!link && words.size() < 2) return words;
  if (!link && own_test(words[1]).empty()) {
    name_immediate(words, 1);
    return words;
  }
  Argv own = {link ? "gdrperf" : words[0], own_test(words[link ? 0 : 1]), kAsPerftest};
  std::transform(words.begin() + (link ? 1 : 2), words.end(), std::back_inserter(own),
                 [](const std::string& word) { return whole_perftest_option(of_perftest(word)); });
  name_immediate(own, 1);
  return own;
}

bool show_perftest_help(const Argv& words, std::ostream& out) {
  const bool asked =
      std::any_of(words.begin(), words.end(), [](const std::string& word) { return word == "-h" || word == "--help"; });
  if (words.size() < 3 || words[2] != kAsPerftest || !asked) return false;
  out << fmt::format(
      "Usage: gdrperf ib_{0} [OPTION]... [HOST]\n\nRuns 'gdrperf {0}' and prints perftest's columns. Options of "
      "perftest "
      "and\nwhat becomes of them; 'gdrperf {0} --help' has them all.\n\n"
      "  -c, --connection=<{1}> is what QPs are; other kinds are refused.\n\n",
      words[1], connections_of(words[1]));
  for (const PerftestOption& each : perftest_options()) {
    std::string flags;
    for (const std::string_view flag : split(each.flags, ',')) {
      flags += (flags.empty() ? "" : flags.size() > 70 ? ",\n  " : ", ") + std::string(flag);
    }
    out << "  " << flags << (*each.value == 0 ? "" : " ") << each.value << '\n';
    print_wrapped(out, fate_of(each));
  }
  return true;
}

}  // namespace gdrperf::app
