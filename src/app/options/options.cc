#include "app/options/options.h"

#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/proto/tcp_port.h"
#include "app/options/requirements.h"

namespace gdrperf::app {
namespace {

/// While it lives, an option that is added is not compared with those before: CLI11 compares the names of each with all
/// names that there are, a fifth of the time of a short sanitized run. manual_test looks for names that come twice.
class Apart {
 public:
  explicit Apart(CLI::App& command) : all_(Access::options(command)), before_(std::exchange(all_, {})) {}
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;
  ~Apart() {
    before_.insert(before_.end(), std::make_move_iterator(all_.begin()), std::make_move_iterator(all_.end()));
    all_ = std::move(before_);
  }

 private:
  struct Access : CLI::App {
    static std::vector<CLI::Option_p>& options(CLI::App& command) { return command.*(&Access::options_); }
  };
  std::vector<CLI::Option_p>& all_;
  std::vector<CLI::Option_p> before_;
};

// Declares options of one group.
class Group {
 public:
  Group(CLI::App& command, std::string name) : command_(command), name_(std::move(name)) {}

  template <typename Take>
  CLI::Option* value(const std::string& names, const char* type, const std::string& help,
                     Take take) {
    // Messages name the option by its first, shortest spelling.
    const std::string flag = names.substr(0, names.find(','));
    const Apart apart(command_);
    return command_
        .add_option_function<std::string>(
            names, [take, flag](const std::string& text) { take(text, flag); }, help)
        ->type_name(type)
        ->group(name_);
  }
  void text(const std::string& names, const char* type, std::string& target,
            const std::string& help) {
    value(names, type, help, [&target](const std::string& text, const std::string& flag) {
      if (text.empty()) throw usage_error(fmt::format("{}: needs a value", flag));
      target = text;
    });
  }
  template <typename Do>
  void flag(const std::string& names, const std::string& help, Do action) {
    const Apart apart(command_);
    command_.add_flag_callback(names, action, help)->group(name_);
  }

 private:
  CLI::App& command_;
  std::string name_;
};

// Commands have their own -s, and all the ways of --path in a list; the rest is as the table says.
/// "-q 1,8,64", "-q 1:4096:x2", "-q 1..4096": in powers of two.
void take_qp_counts(const Setting& each, ClientOptions& options, std::string text, const std::string& flag) {
  if (const std::size_t dots = text.find(".."); dots != std::string::npos)
    text = text.substr(0, dots) + ":" + text.substr(dots + 2) + ":x2";
  options.qps.clear();
  for (const std::uint64_t count : parse_size_list(text, flag)) {
    take(each, options.spec, std::to_string(count), flag);
    options.qps.push_back(options.spec.qps);
  }
  options.spec.qps = options.qps.front();
}

void take_typed(const Setting& each, ClientOptions& options, const std::string& text, const std::string& flag) {
  const bool path = &each == &setting<&TestSpec::path>();
  if (*each.every != 0 && text == each.every) {
    options.every.push_back(&each);
    if (path) options.paths = {Path::kDirect, Path::kStaged};
    return;
  }
  if (*each.every_more != 0 && text == each.every_more) return options.every_more.push_back(&each);
  if (&each == &setting<&TestSpec::qps>() && text.find_first_of(",:.") != std::string::npos)
    return take_qp_counts(each, options, text, flag);
  take(each, options.spec, text, flag);
  if (path) options.paths = {options.spec.path};
}

void add_settings(CLI::App& command, ClientOptions& options) {
  for (const Setting& each : settings()) {
    if (*each.group == 0) continue;
    Group group(command, each.group);
    const auto typed = [&each, &options](const std::string& text, const std::string& flag) {
      take_typed(each, options, text, flag);
    };
    if (*each.placeholder == 0) {
      group.flag(each.flags, help_of(each), [typed, &each] { typed("", flag_of(each)); });
    } else {
      group.value(each.flags, each.placeholder, help_of(each), typed);
    }
  }
}

void add_connection(CLI::App& command, ClientOptions& options) {
  Group group(command, "Network");
  group.value(std::string(flags::kPort) + ",--port", "PORT",
              fmt::format("TCP port of the server (default: {})", kDefaultPort),
              [&options](const std::string& text, const std::string& flag) {
                options.port = static_cast<int>(parse_integer(text, flag, 0, proto::kMaxTcpPort));
              });
  group.text(std::string(flags::kBind) + ",--source_ip,--bind_source_ip", "ADDR", options.bind,
             "address of this host to connect from; without HOST to listen on (default: any, all)");
  group.text(flags::kToken, "FILE", options.token,
             "file with the secret shared with the server (default: GDRPERF_TOKEN_FILE, GDRPERF_TOKEN, or none)");
}

std::string format_names() {
  std::string names;
  for (const report::Format& format : report::all_formats()) {
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  return names;
}

void add_output(CLI::App& command, OutputOptions& output) {
  Group group(command, "Output");
  group.text("-o,--output", "FILE", output.format_file,
             "file for --format, replaced as a whole (default: standard output)");
  group.flag("--progress", "report progress once a second, as lines on standard error (default: one "
             "line, rewritten, on a terminal)",
             [&output] { output.progress_lines = true; });
  group.flag("--quiet", "print no table and no progress: only files, missed requirements and errors",
             [&output] { output.talk = Talk::kQuiet; });
  group.flag("-v,--verbose", "print how each row was measured", [&output] { output.talk = Talk::kVerbose; });
  add_colour_option(command, output.colour);
  group.flag("--report_gbits,--report-gbits", "rates in Gb/s, 1e9 bits (default: GB/s, 1e9 bytes)",
             [&output] { output.rate_unit = report::RateUnit::kGigabits; });
  group.text("--json", "FILE", output.json, "write the JSON document ('-': standard output)");
  group.text("--csv", "FILE", output.csv, "write one line per run ('-': standard output)");
  group.value("--format", "NAME",
              fmt::format("print the results for another tool: {} (the table goes to standard error)", format_names()),
              [&output](const std::string& text, const std::string& flag) {
                output.format = report::parse_format(text);
                if (!output.format) {
                  throw usage_error(fmt::format("{} '{}': there are {}", flag, text, format_names()));
                }
              });
  group.text(flags::kNvidiaSmi, "FILE", output.nvidia_smi,
             "take the topology from saved output of 'nvidia-smi topo -m' (default: run it)");
}

}  // namespace

void add_colour_option(CLI::App& command, ColourChoice& choice) {
  command
      .add_option_function<std::string>(
          "--color,--colour",
          [&choice](const std::string& text) {
            if (text == "auto") choice = ColourChoice::kAuto;
            else if (text == "always") choice = ColourChoice::kAlways;
            else if (text == "never") choice = ColourChoice::kNever;
            else throw usage_error(fmt::format("--color '{:.40}': there are auto, always, never", text));
          },
          "colour: auto, always, never (default: auto, on a terminal unless NO_COLOR is set)")
      ->type_name("WHEN")
      ->group("Output");
}

void add_softnic_flag(CLI::App& command) {
  command
      .add_flag_callback(
          flags::kSoftnic, [] {},
          "use the software device (soft0, soft1), which needs no NIC; every record is marked")
      ->group("Devices");
}

void add_json_option(CLI::App& command, std::string& file, const char* what) {
  command
      .add_option_function<std::string>(
          "--json", [&file](const std::string& text) { file = text.empty() ? "-" : text; }, what)
      ->expected(0, 1)
      ->type_name("[FILE]");
}

void add_client_options(CLI::App& command, ClientOptions& options) {
  CLI::Option* const host = command.add_option_function<std::string>(
      "HOST",
      [&options](const std::string& text) {
        // An unset variable must not make a client a server on all addresses.
        if (text.empty()) {
          throw usage_error("HOST is empty: is the variable that should name the server unset?",
                            "give a name or an address; without HOST a test serves one client");
        }
        options.host = text;
      },
      "server: HOST or HOST:PORT ('gdrperf serve' runs there)");
  host->type_name("")->group("Where to");
  command.add_flag("--local", options.local, "client and server in this process: no server needed")
      ->group("Where to")
      ->excludes(host);
  add_softnic_flag(command);
  add_settings(command, options);
  command
      .add_option_function<std::string>(
          flags::kMaxMemory,
          [&options](const std::string& text) { options.max_memory_bytes = parse_size(text, flags::kMaxMemory); },
          "memory that a run may take here (default: a quarter of what is available)")
      ->type_name("SIZE")
      ->group("Queues and messages");
  add_connection(command, options);
  add_output(command, options.output);
  add_required_options(command, options.output.required);
}

ServerAddress server_address(const ClientOptions& options) {
  return {options.host, options.port, proto::read_token(options.token), options.bind};
}

void check_target(const ClientOptions& options) {
  if (!options.bind.empty() && options.local) {
    throw usage_error("--bind: --local needs no address; leave it out");
  }
  if (!options.host.empty() && options.port == 0) {
    throw usage_error(fmt::format("-p 0: a port to connect to is from 1 to {}", proto::kMaxTcpPort));
  }
}

void check_one_qp_count(const ClientOptions& options) {
  if (options.qps.size() > 1)
    throw usage_error("-q: a list is for one test, which has a run with each",
                      "give one number, or 'gdrperf write_bw -q 1:4096:x4'");
}

std::vector<std::uint64_t> all_sizes() { return parse_size_list("2:8M:x2", "-a"); }

TestSpec spec_for(const ClientOptions& options, Test test, std::uint64_t size_bytes) {
  TestSpec spec = options.spec;
  spec.test = test;
  spec.size_bytes = size_bytes;
  if (options.local && spec.server.device.empty()) {
    spec.server.device = spec.client.device;
    if (spec.server.port == 0) spec.server.port = spec.client.port;
  }
  return spec;
}

}  // namespace gdrperf::app
