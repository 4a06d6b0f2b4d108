#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/client/client.h"
#include "app/output/output.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::app {

inline constexpr int kDefaultPort = 18515;

/// Options that the tests and the sweep have in common, as typed.
struct ClientOptions {
  std::string host;         ///< server; empty with `local` or when serving
  bool local = false;       ///< both ends in this process
  int port = kDefaultPort;  ///< TCP
  std::string bind;         ///< address of this host to connect from, or to listen on when serving one client
  std::string token;        ///< file with the secret shared with the other end; "": the environment's, if any
  TestSpec spec;            ///< but test and size, which differ from run to run
  std::vector<int> qps = {};           ///< -q as a list or a range: a run with each; empty: that of `spec`
  std::uint64_t max_memory_bytes = 0;  ///< of a run at this end; 0: a quarter of what is available
  std::vector<Path> paths = {Path::kDirect};  ///< --path; both: one run each
  std::vector<const Setting*> every;          ///< of which one run with each value was asked for
  std::vector<const Setting*> every_more;     ///< the same by Setting::every_more
  OutputOptions output;

  /// Whether one run with each value of that setting was asked for ("--relaxed-ordering both").
  template <auto Member>
  bool asks_every() const {
    return std::find(every.begin(), every.end(), &setting<Member>()) != every.end();
  }
  template <auto Member>
  bool asks_every_more() const {
    return std::find(every_more.begin(), every_more.end(), &setting<Member>()) != every_more.end();
  }
};

/// Adds all of `options` but the message sizes to a command. Values are parsed
/// and their ranges checked while the command line is read: usage_error names
/// the flag. `options` must outlive the parsing.
void add_client_options(CLI::App& command, ClientOptions& options);

/// Address that a client with these options connects to. Reads the token: throws as proto::read_token().
ServerAddress server_address(const ClientOptions& options);

/// Adds --color.
void add_colour_option(CLI::App& command, ColourChoice& choice);

/// Adds --softnic, for commands that use devices; run_command_line() finds it before parsing and starts anew.
void add_softnic_flag(CLI::App& command);

/// What `read` gives; its errors begin with the option that named the file.
template <typename Read>
auto of_option(std::string_view flag, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw error.in(flag);
  }
}

/// --json [FILE]: `file` is "-" without FILE, and empty where it was not given.
void add_json_option(CLI::App& command, std::string& file, const char* what);

/// Throws usage_error for options that exclude each other.
void check_target(const ClientOptions& options);

/// Throws usage_error where -q is a list: the tests alone have a run for each.
void check_one_qp_count(const ClientOptions& options);

/// 2 B to 8 MiB in powers of two: what -a and a sweep cover.
std::vector<std::uint64_t> all_sizes();

/// The specification of one run: `options.spec` for this test and size, with
/// what concerns bandwidth alone (-q, -l, -b, ...) left out of latency tests
/// and inlining left out of reads when `options` serve several tests.
TestSpec spec_for(const ClientOptions& options, Test test, std::uint64_t size_bytes);

}  // namespace gdrperf::app
