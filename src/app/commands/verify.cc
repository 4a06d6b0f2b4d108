// gdrperf verify: is what arrives what was sent, for every test, many sizes and every kind of
// memory at hand.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "app/command.h"
#include "app/client/client.h"
#include "app/client/run_test.h"
#include "app/options/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/verbs/inventory.h"
#include "app/options/late_options.h"
#include "app/options/lists.h"
#include "app/intervals/live_line.h"
#include "app/options/no_effect.h"
#include "app/options/paths.h"
#include "app/output/sink.h"
#include "app/output/terminal.h"
#include "app/output/verify_results.h"

namespace gdrperf::app {
namespace {

struct VerifyOptions : ClientOptions {
  std::vector<Test> tests = default_tests();
  std::vector<std::uint64_t> sizes;
  std::vector<std::string> buffers;  ///< empty: all at hand
  std::vector<std::string> without_effect;
};

constexpr const char* kVerifyFooter = R"(
Every message carries its own pattern, made from the seed, the direction, the
queue, the slot and the lap; every byte that arrives is compared. With --local
and a second device the classic proof is included: the receiver's memory holds
one pattern, and the sender sends another through both devices.

Exit codes: 0 all passed, 5 data was wrong, 3 nothing could be verified. --json FILE
writes the verdicts (results/verify-schema.json; -: standard output).

Examples:
  gdrperf verify --local --softnic
  gdrperf verify node2 --buffers host,cuda:0
  gdrperf verify node2 --ops write_bw,send_bw --sizes 1,4097,64M)";

/// One row of the table: both ends and the test.
struct Case {
  std::string title;
  EndSpec client;
  EndSpec server;
};

std::vector<std::uint64_t> default_sizes() {
  return {1,    2,    3,    7,     8,     9,         15,       63,           64,          65,      1000,
          4095, 4096, 4097, 65536, 65537, (1u << 20) - 1, 1u << 20, (8u << 20) + 5, (64u << 20) - 3, 64u << 20};
}

// Enough that faults which begin after a thousand messages show, at every size that is quick.
std::uint64_t messages_for(const Test& test, std::uint64_t size) {
  if (test.metric == Metric::kLatency) return size <= 65537 ? 50 : 2;
  if (size <= 65537) return 2500;
  return size <= (1u << 20) ? 64 : 4;
}

std::string second_device(const std::string& first) {
  for (const verbs::DeviceInfo& device : verbs::list_devices()) {
    const bool active = std::any_of(device.ports.begin(), device.ports.end(),
                                    [](const auto& port) { return port.port.active(); });
    if (active && device.name != first) return device.name;
  }
  return {};
}

std::string first_device() {
  for (const verbs::DeviceInfo& device : verbs::list_devices()) {
    if (std::any_of(device.ports.begin(), device.ports.end(), [](const auto& port) { return port.port.active(); }))
      return device.name;
  }
  throw verbs::no_device_error();
}

std::vector<Case> cases_of(const VerifyOptions& options) {
  std::vector<std::string> kinds =
      options.buffers.empty() ? mem::buffers_at_hand() : mem::expand_kinds(options.buffers, "--buffers");
  std::vector<Case> cases;
  const auto add = [&](const std::string& client, const std::string& server) {
    Case one{fmt::format("{} to {}", client, server), options.spec.client, options.spec.server};
    one.client.buffer = client;
    one.server.buffer = server;
    one.server.buffer_given = true;
    const bool known = std::any_of(cases.begin(), cases.end(), [&](const Case& c) { return c.title == one.title; });
    if (!known) cases.push_back(std::move(one));
  };
  const bool with_host = std::find(kinds.begin(), kinds.end(), "host") != kinds.end();
  for (const std::string& kind : kinds) {
    for (const std::string& other : {std::string("host"), kind}) {
      if (other == "host" && !with_host) continue;
      add(other, kind);
      add(kind, other);
    }
  }
  for (const std::string& one : kinds) {
    for (const std::string& other : kinds) {
      if (one.starts_with("cuda:") && other.starts_with("cuda:")) add(one, other);
    }
  }
  if (!options.local) return cases;
  const std::string first = options.spec.client.device.empty() ? first_device() : options.spec.client.device;
  const std::string second = options.spec.server.device.empty() ? second_device(first) : options.spec.server.device;
  if (second.empty() || second == first) return cases;
  for (const std::string& kind : kinds) {
    if (kind != "host" && !kind.starts_with("cuda:")) continue;
    Case proof{fmt::format("host of {} to {} of {}", first, kind, second), options.spec.client, options.spec.server};
    proof.client.device = first;
    proof.client.buffer = "host";
    proof.server.device = second;
    proof.server.buffer = kind;
    proof.server.buffer_given = true;
    cases.push_back(std::move(proof));
  }
  return cases;
}

class Verification {
 public:
  Verification(Client& client, const VerifyOptions& options, std::size_t cases, std::ostream& out, Colour colour)
      : client_(client), options_(options), out_(out), colour_(colour),
        live_(live_to(options.output), options.output.rate_unit, cases * runs_of_a_case(options)) {
    client_.set_observer(&live_);
  }

  ExitCode run(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      if (loud()) out_ << printable(each.title) << '\n';
      for (const Test test : options_.tests) {
        row(each, test);
        done_ += sizes_of(test.operation, options_.sizes).size();
      }
    }
    client_.close();
    out_ << fmt::format("{} passed, {} failed, {} not possible here\n", passed_, failed_, impossible_);
    if (failed_ > 0) return ExitCode::kPeer;
    return passed_ > 0 ? ExitCode::kOk : ExitCode::kEnvironment;
  }
  const std::vector<VerifyRow>& rows() const { return rows_; }

 private:
  static std::size_t runs_of_a_case(const VerifyOptions& options) {
    std::size_t runs = 0;
    for (const Test test : options.tests) runs += sizes_of(test.operation, options.sizes).size();
    return runs;
  }
  bool loud() const { return options_.output.talk != Talk::kQuiet; }

  void row(const Case& each, Test test) {
    VerifyRow row{each.title, each.client, each.server, test, VerifyVerdict::kPassed, {}, 0, 0, {}, {}};
    for (const std::uint64_t size : sizes_of(test.operation, options_.sizes)) {
      TestSpec spec = spec_for(options_, test, size);
      const std::string peer_device = spec.server.device;
      spec.client = each.client;
      spec.server = each.server;
      if (spec.server.device.empty()) spec.server.device = peer_device;
      if (!spec.stop.iterations && !spec.stop.duration) spec.stop.iterations = messages_for(test, size);
      try {
        client_.open();
        const LiveScope shown(live_, done_ + row.sizes_bytes.size(),
                              fmt::format("{}: {} {}", each.title, to_string(test), format_size(size)));
        row.messages += run_test(client_, spec).measured.iterations;
        row.sizes_bytes.push_back(size);
      } catch (const Error& error) {
        if (error.code() == ExitCode::kUsage) throw;
        return verdict(each, std::move(row), size, error);
      }
    }
    ++passed_;
    const std::string first = format_size(row.sizes_bytes.front());
    const std::string sizes =
        row.sizes_bytes.size() == 1
            ? first
            : fmt::format("{} sizes from {} to {}", row.sizes_bytes.size(), first, format_size(row.sizes_bytes.back()));
    if (loud()) {
      out_ << fmt::format("  {:<10} {}  {}, {} messages", to_string(test), styled(colour_, Style::kGood, "PASSED"),
                          sizes, row.messages)
           << std::endl;
    }
    rows_.push_back(std::move(row));
  }

  void verdict(const Case& each, VerifyRow row, std::uint64_t size, const Error& error) {
    const bool impossible = error.code() == ExitCode::kEnvironment;
    ++(impossible ? impossible_ : failed_);
    const std::string word =
        impossible ? styled(colour_, Style::kDoubtful, "NOT POSSIBLE") : styled(colour_, Style::kBad, "FAILED");
    if (!loud()) out_ << printable(each.title) << '\n';
    out_ << fmt::format("  {:<10} {}  {}: {}", to_string(row.test), word, format_size(size), printable(error.what()))
         << std::endl;
    if (!error.hint().empty() && told_ != error.hint()) out_ << "             " << printable(error.hint()) << std::endl;
    told_ = error.hint();
    row.verdict = impossible ? VerifyVerdict::kImpossible : VerifyVerdict::kFailed;
    row.failed_size_bytes = size;
    row.reason = error.what();
    row.hint = error.hint();
    rows_.push_back(std::move(row));
  }

  Client& client_;
  const VerifyOptions& options_;
  std::ostream& out_;
  Colour colour_;
  LiveLine live_;
  std::size_t done_ = 0;  ///< runs, those left out after a failure included
  std::vector<VerifyRow> rows_;
  std::size_t passed_ = 0;
  std::size_t failed_ = 0;
  std::size_t impossible_ = 0;
  std::string told_;
};

int run_verify(VerifyOptions options, const Argv& argv) {
  check_one_run(options.spec, 2);
  if (!options.spec.verify_seed) options.spec.verify_seed = 1;
  keep_possible(options.spec, options.tests, options.sizes, default_sizes());
  const Sink json(options.output.json);
  json.check("--json");
  const std::string started = report::rfc3339_utc(std::chrono::system_clock::now());
  const auto client =
      options.local ? make_local_client() : make_remote_client(server_address(options), say);
  client->set_max_memory(options.max_memory_bytes);
  client->set_talk(options.output.talk);
  client->open();
  // The server's name has to be asked for before the last row closes the session.
  const std::optional<report::Environment> server = client->server_environment();
  const std::vector<Case> cases = cases_of(options);
  const Colour colour = colour_for(json.is_stdout() ? STDERR_FILENO : STDOUT_FILENO, options.output.colour);
  Verification verification(*client, options, cases.size(), json.is_stdout() ? std::cerr : std::cout, colour);
  const ExitCode code = verification.run(cases);
  if (json.given()) json.write(verify_json(verification.rows(), report::this_tool(argv), started, server, code));
  return static_cast<int>(code);
}

bool may_use_gpus(const VerifyOptions& options) {
  const std::vector<std::string> kinds = options.buffers.empty() ? mem::buffers_at_hand() : options.buffers;
  return std::any_of(kinds.begin(), kinds.end(), uses_gpu);
}

/// Options without effect: `verify` compares and measures nothing.
std::vector<std::string> typed_in_vain(const VerifyOptions& options, const Typed& typed) {
  std::vector<std::string> sentences = without_effect(options, options.tests, may_use_gpus(options), typed);
  const auto note = [&](const char* flag, const char* why) {
    if (typed(flag)) sentences.push_back(fmt::format("{} changes nothing: {}", flag, why));
  };
  if (!options.spec.stop.iterations && !options.spec.stop.duration) {
    const char* fixed = "verify sends a number of messages that depends on their size (-n, -D)";
    note("--precision", fixed);
    note("--cap", fixed);
  }
  note("--verify", "verify compares every byte anyway");
  const char* kinds = "verify goes through kinds of memory on client and server (--buffers)";
  note("--buffer", kinds);
  note("--peer-buffer", kinds);
  note("--use_cuda", kinds);
  note("--use_cuda_bus_id", kinds);
  return sentences;
}

/// No figures and no table: of the output options only --json is offered.
void leave_out_exports(CLI::App& command) {
  for (const char* name : {"--output", "--report_gbits", "--csv", "--format", "--verbose", flags::kNvidiaSmi,
                           flags::kMinGbps, flags::kMaxP99Us, flags::kMinEfficiency}) {
    command.remove_option(command.get_option(name));
  }
}

void add_options(CLI::App& command, VerifyOptions& options) {
  const auto list = [&](const char* names, const char* type, const char* help, auto take) {
    command.add_option_function<std::string>(names, take, help)->type_name(type)->group("What to verify");
  };
  list("--ops", "TESTS", "tests, like write_bw,read_lat (default: all)",
       [&options](const std::string& text) { options.tests = parse_tests(text); });
  list("-s,--sizes,--size", "SIZES", "a list (1,4097) or a range (1:8M:x2) (default: 1 B to 64 MiB, odd ones too)",
       [&options](const std::string& text) { options.sizes = parse_size_list(text, "--sizes"); });
  list("--buffers", "KINDS", "kinds of memory, for client and server (default: all of this machine)",
       [&options](const std::string& text) { options.buffers = split_list(text, "--buffers"); });
  add_client_options(command, options);
  leave_out_exports(command);
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<VerifyOptions>();
  options->sizes = default_sizes();
  CLI::App* command = app.add_subcommand("verify", "Verify that every byte arrives as it was sent");
  add_when_typed(*command, [options, command] { add_options(*command, *options); });
  command->footer(kVerifyFooter);
  command->final_callback([options, command, &action] {
    options->without_effect = typed_in_vain(*options, typed_on(*command));
    action = [options](const Argv& argv) {
      check_target(*options);
      check_one_qp_count(*options);
      if (options->host.empty() && !options->local) {
        throw usage_error("verify: give HOST, or --local for client and server on this machine",
                          "on the other machine run 'gdrperf serve'");
      }
      note_without_effect(options->without_effect);
      return run_verify(*options, argv);
    };
  });
}

}  // namespace gdrperf::app
