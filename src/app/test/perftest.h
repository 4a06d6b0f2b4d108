#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/options/options.h"

namespace gdrperf::app {

/// What was typed of perftest's options that are none of this program.
struct PerftestTyped {
  bool by_name = false;  ///< as ib_write_bw or another of its family
  std::vector<std::string> notes;
  std::string json_file;  ///< of --out_json; "": not asked for
  std::optional<double> least_rate;  ///< -w, in the unit that the run is reported in
  std::optional<double> rate_limit;  ///< --rate_limit
  std::int64_t burst = 0;            ///< --burst_size; 0: none
  char rate_unit = 'g';              ///< --rate_units: M, g or p
  std::string file;                  ///< --mmap; "": none
  std::int64_t file_offset = 0;      ///< --mmap-offset
  std::string hint, hint_memory, hint_cpu;  ///< --ph, --tph_mem, --cpu_id; "": none
  bool dual_port = false;            ///< -O
  std::optional<double> least_mpps;  ///< -y, million messages per second
};

/// Adds those options of perftest to a test that it does not have, hidden from its help.
void add_perftest_options(CLI::App& command, ClientOptions& options, PerftestTyped& typed);

/// -w and -y as what a run has to reach; of a latency test a note. Throws usage_error for -y with several sizes.
void require_typed(PerftestTyped& typed, Test test, std::span<const std::uint64_t> sizes, OutputOptions& output);

/// perftest's --run_infinitely, typed under its name: seconds between its lines, which are those of -D or 5, and -D is
/// no end of the run. nullopt: another run.
std::optional<double> settle_endless(const PerftestTyped& typed, StopRule& stop);

/// --out_json: under perftest's names a file with its keys, with this program's document beside it; else that document.
void settle_out_json(PerftestTyped& typed, OutputOptions& output);

/// `spec`, under perftest's names with memory as perftest has it: a page for each QP, or one message where that is
/// larger.
TestSpec as_perftest(const PerftestTyped& typed, TestSpec spec);

/// --rate_limit, --rate_units and --burst_size as the rate of `spec`; a note where they mean nothing.
void settle_rate(PerftestTyped& typed, Test test, TestSpec& spec);

/// --ph, --tph_mem and --cpu_id as one setting. Throws usage_error where one is missing.
void settle_hints(const PerftestTyped& typed, TestSpec& spec);

/// -O as rails: ports 1 and 2 of the device of each end, with -q QPs each. `output` has been asked for each port's
/// rate or not. Throws usage_error where perftest has no such run.
void settle_dual_port(const PerftestTyped& typed, Test test, TestSpec& spec, const OutputOptions& output);

/// "write_bw" of "ib_write_bw", of "ib_write_bw_nongdr" and of a path to them; "" for other words.
std::string own_test(std::string_view perftest_program);

/// `gdrperf ib_write_bw ...`, or the same by a link of that name, as a command line of this program; others as they
/// are.
Argv as_own_command(Argv words);

/// Whether words are of `gdrperf ib_write_bw --help`, by whatever name; prints it then.
bool show_perftest_help(const Argv& words, std::ostream& out);

}  // namespace gdrperf::app
