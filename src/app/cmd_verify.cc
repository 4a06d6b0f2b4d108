// gdrperf verify: is what arrives what was sent, for every test, many sizes and every kind of
// memory at hand.
#include <algorithm>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "command.h"
#include "gdrperf/app/client.h"
#include "gdrperf/app/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/verbs/inventory.h"
#include "lists.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

struct VerifyOptions : ClientOptions {
  std::vector<Test> tests = all_tests();
  std::vector<std::uint64_t> sizes;
  std::vector<std::string> buffers;  ///< empty: all at hand
};

constexpr const char* kVerifyFooter = R"(
Every message carries a pattern of its own, from the seed, the direction, the
queue, the slot and the lap; every byte that arrives is compared. With --local
and a second device the classic proof is included: memory at one end holds one
pattern, the other end sends another through both devices.

Exit codes: 0 all passed, 5 data was wrong, 3 nothing could be verified.

Examples:
  gdrperf verify --local --softnic
  gdrperf verify node2 --buffers host,cuda:0
  gdrperf verify node2 --ops write_bw,send_bw --sizes 1,4097,64M)";

/// What is verified in one row: which ends, and which test.
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
  std::vector<std::string> kinds = options.buffers.empty() ? mem::buffers_at_hand() : mem::expand_kinds(options.buffers, "--buffers");
  std::vector<Case> cases;
  const auto add = [&](const std::string& client, const std::string& server) {
    Case one{fmt::format("{} to {}", client, server), options.spec.client, options.spec.server};
    one.client.buffer = client;
    one.server.buffer = server;
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
    cases.push_back(std::move(proof));
  }
  return cases;
}

class Verification {
 public:
  Verification(Client& client, const VerifyOptions& options) : client_(client), options_(options) {}

  int run(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      std::cout << each.title << '\n';
      for (const Test test : options_.tests) {
        row(each, test);
      }
    }
    client_.close();
    std::cout << fmt::format("{} passed, {} failed, {} not possible here\n", passed_, failed_, impossible_);
    if (failed_ > 0) return static_cast<int>(ExitCode::kPeer);
    return static_cast<int>(passed_ > 0 ? ExitCode::kOk : ExitCode::kEnvironment);
  }

 private:
  void row(const Case& each, Test test) {
    std::uint64_t messages = 0;
    std::size_t sizes = 0;
    for (const std::uint64_t size : options_.sizes) {
      TestSpec spec = spec_for(options_, test, size);
      const std::string peer_device = spec.server.device;
      spec.client = each.client;
      spec.server = each.server;
      if (spec.server.device.empty()) spec.server.device = peer_device;
      if (!spec.verify_seed) spec.verify_seed = 1;
      if (!spec.stop.iterations && !spec.stop.duration) spec.stop.iterations = messages_for(test, size);
      try {
        client_.open();
        messages += client_.run(spec).measured.iterations;
        ++sizes;
      } catch (const Error& error) {
        if (error.code() == ExitCode::kUsage) throw;
        return verdict(test, size, error);
      }
    }
    ++passed_;
    std::cout << fmt::format("  {:<10} PASSED  {} sizes from {} to {}, {} messages", to_string(test), sizes,
                             format_size(options_.sizes.front()), format_size(options_.sizes.back()), messages)
              << std::endl;
  }

  void verdict(Test test, std::uint64_t size, const Error& error) {
    const bool impossible = error.code() == ExitCode::kEnvironment;
    ++(impossible ? impossible_ : failed_);
    std::cout << fmt::format("  {:<10} {}  {}: {}", to_string(test), impossible ? "NOT POSSIBLE" : "FAILED",
                             format_size(size), error.what())
              << std::endl;
    if (!error.hint().empty() && told_ != error.hint()) std::cout << "             " << error.hint() << std::endl;
    told_ = error.hint();
  }

  Client& client_;
  const VerifyOptions& options_;
  std::size_t passed_ = 0;
  std::size_t failed_ = 0;
  std::size_t impossible_ = 0;
  std::string told_;
};

int run_verify(const VerifyOptions& options) {
  const auto client =
      options.local ? make_local_client() : make_remote_client(server_address(options), say);
  client->set_max_memory(options.max_memory_bytes);
  client->open();
  return Verification(*client, options).run(cases_of(options));
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<VerifyOptions>();
  options->sizes = default_sizes();
  CLI::App* command = app.add_subcommand("verify", "Compare every byte that arrives with what was sent");
  const auto list = [&](const char* names, const char* type, const char* help, auto take) {
    command->add_option_function<std::string>(names, take, help)->type_name(type)->group("What to verify");
  };
  list("--ops", "TESTS", "tests, like write_bw,read_lat (default: all)",
       [options](const std::string& text) { options->tests = parse_tests(text); });
  list("-s,--sizes,--size", "SIZES", "a list (1,4097) or a range (1:8M:x2) (default: 1 B to 64 MiB, odd ones too)",
       [options](const std::string& text) { options->sizes = parse_size_list(text, "--sizes"); });
  list("--buffers", "KINDS", "kinds of memory, each at either end (default: all at hand)",
       [options](const std::string& text) { options->buffers = split_list(text, "--buffers"); });
  add_client_options(*command, *options);
  command->footer(kVerifyFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) {
      check_target(*options);
      if (options->host.empty() && !options->local) {
        throw usage_error("verify: give HOST, or --local for both ends on this machine",
                          "on the other machine run 'gdrperf serve'");
      }
      return run_verify(*options);
    };
  });
}

}  // namespace gdrperf::app
