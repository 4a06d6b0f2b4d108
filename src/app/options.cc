#include "gdrperf/app/options.h"

#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "requirements.h"

namespace gdrperf::app {
namespace {

constexpr std::uint64_t kDefaultSeed = 1;
constexpr const char* kBufferHelp =
    "memory: host, hugepage, cuda:N, cuda-vmm:N, cuda-host or staged:N; N is a GPU's index, PCI address or UUID "
    "(default: host)";

// Declares options of one group; each line of the tables below is one option.
class Group {
 public:
  Group(CLI::App& command, std::string name) : command_(command), name_(std::move(name)) {}

  template <typename Take>
  CLI::Option* value(const std::string& names, const char* type, const std::string& help,
                     Take take) {
    // Messages name the option by its first, shortest spelling.
    const std::string flag = names.substr(0, names.find(','));
    return command_
        .add_option_function<std::string>(
            names, [take, flag](const std::string& text) { take(text, flag); }, help)
        ->type_name(type)
        ->group(name_);
  }
  void integer(const std::string& names, int& target, int low, int high, const std::string& help) {
    value(names, "N", help, [&target, low, high](const std::string& text, const std::string& flag) {
      target = static_cast<int>(parse_integer(text, flag, low, high));
    });
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
    command_.add_flag_callback(names, action, help)->group(name_);
  }

 private:
  CLI::App& command_;
  std::string name_;
};

void add_ends(CLI::App& command, ClientOptions& options) {
  EndSpec& client = options.spec.client;
  EndSpec& server = options.spec.server;
  Group own(command, "This end");
  own.text("-d,--ib-dev", "DEVICE", client.device,
           "RDMA device (default: the first with an active port)");
  own.integer("-i,--ib-port", client.port, 1, 255, "its port (default: the first active one)");
  own.integer("-x,--gid-index", client.gid_index, 0, 65535,
              "GID index (default: RoCE v2 over IPv4 first, link-local last)");
  own.text("--buffer", "KIND", client.buffer, kBufferHelp);
  own.integer("--cpu", client.cpu, 0, 65535, "CPU to run on (default: any of --numa)");
  own.integer("--numa", client.numa, 0, 4095,
              "NUMA node of thread and host buffers (default: the NIC's)");
  Group peer(command, "The server's end");
  peer.text("--peer-dev", "DEVICE", server.device,
            "RDMA device (default: the first with an active port; with --local that of -d)");
  peer.integer("--peer-port,--peer-ib-port", server.port, 1, 255,
               "its port (default: the first active one)");
  peer.integer("--peer-gid-index", server.gid_index, 0, 65535, "GID index (default: as for -x)");
  peer.value("--peer-buffer", "KIND", "memory, as for --buffer (default: host, or what was typed where the server was started)",
             [&server](const std::string& text, const std::string& flag) {
               if (text.empty()) throw usage_error(fmt::format("{}: needs a value", flag));
               server.buffer = text;
               server.buffer_given = true;
             });
  peer.integer("--peer-cpu", server.cpu, 0, 65535, "CPU to run on (default: any of --peer-numa)");
  peer.integer("--peer-numa", server.numa, 0, 4095,
               "NUMA node of thread and host buffers (default: the NIC's)");
}

void add_gpus(CLI::App& command, ClientOptions& options) {
  TestSpec& spec = options.spec;
  Group group(command, "GPU memory");
  group.value("--register", "HOW", "how the NIC is given it: dmabuf or peermem (default: dmabuf where that works)",
              [&spec](const std::string& text, const std::string& flag) {
                if (text == "dmabuf") spec.registration = Registration::kDmabuf;
                else if (text == "peermem") spec.registration = Registration::kPeermem;
                else throw usage_error(fmt::format("{} '{}': give dmabuf or peermem", flag, text));
              });
  const auto buffer = [&spec](const std::string& text, const std::string& flag) {
    if (text.empty()) throw usage_error(fmt::format("{}: needs a GPU", flag));
    spec.client.buffer = "cuda:" + text;
  };
  group.value("--path", "WAY",
              "direct (GPUDirect RDMA), staged (through pinned host memory), or both, compared (default: direct)",
              [&options](const std::string& text, const std::string& flag) {
                if (text == "direct") options.paths = {Path::kDirect};
                else if (text == "staged") options.paths = {Path::kStaged};
                else if (text == "both") options.paths = {Path::kDirect, Path::kStaged};
                else throw usage_error(fmt::format("{} '{}': give direct, staged or both", flag, text));
              });
  group.value("--chunk", "SIZE", "staged: bytes per copy (default: the fastest of several, tried before the run)",
              [&spec](const std::string& text, const std::string& flag) { spec.chunk_bytes = parse_size(text, flag); });
  group.flag("--consume", "the receiving GPU computes on each message and copies the result back, within the time",
             [&spec] { spec.consume = true; });
  group.value("--use_cuda", "N", "as --buffer cuda:N", buffer);
  group.value("--use_cuda_bus_id", "ADDRESS", "as --buffer cuda:ADDRESS", buffer);
  group.flag("--use_cuda_dmabuf", "as --register dmabuf", [&spec] { spec.registration = Registration::kDmabuf; });
}

void add_stop(CLI::App& command, StopRule& stop) {
  Group group(command, "How long (default: until the 95 % interval of the median is tight)");
  group.value("-n,--iters", "N", "messages, or round trips of a latency test",
              [&stop](const std::string& text, const std::string& flag) {
                stop.iterations =
                    static_cast<std::uint64_t>(parse_integer(text, flag, 1, 1'000'000'000'000));
              });
  group.value("-D,--duration", "TIME", "time to measure, like 2s, 500ms or 1m",
              [&stop](const std::string& text, const std::string& flag) {
                stop.duration = parse_duration(text, flag);
              });
  group.value("--precision", "PERCENT", "half width of the interval to reach (default: 1%)",
              [&stop](const std::string& text, const std::string& flag) {
                stop.precision = parse_percent(text, flag);
              });
  group.value("--cap", "TIME", "give up on the precision after this time (default: 5s; a run of sweep 1s)",
              [&stop](const std::string& text, const std::string& flag) {
                stop.cap = parse_duration(text, flag);
              });
}

void add_queues(CLI::App& command, TestSpec& spec) {
  Group group(command, "Queues and messages");
  group.value("--rate", "N",
              "latency: N messages are due per second and times count from when they were due (default: the next "
              "when the last is back)",
              [&spec](const std::string& text, const std::string& flag) {
                spec.rate_per_s = static_cast<double>(parse_integer(text, flag, 1, 1'000'000'000));
              });
  group.integer("-q,--qp", spec.qps, 1, 16384, "QPs (default: 1; bandwidth)");
  group.integer("-t,--tx-depth", spec.tx_depth, 1, 65536,
                "messages in flight per QP (default: 128, fewer from 128 KiB on, at least 8 and -Q)");
  group.integer("-r,--rx-depth", spec.rx_depth, 1, 65536,
                "receives posted per QP (default: 512; send)");
  group.integer("-Q,--cq-mod", spec.cq_mod, 1, 65536,
                "signal every N-th message (default: a quarter of -t up to 8 KiB, 1 above)");
  group.integer("-l,--post_list,--post-list", spec.post_list, 1, 65536,
                "messages per ibv_post_send (default: 1; bandwidth)");
  group.integer("-I,--inline_size,--inline-size", spec.inline_bytes, 0, 65536,
                "inline messages up to N bytes (default: latency what the device can, up to 220; "
                "bandwidth 0)");
  group.value("--footprint", "SIZE",
              "memory each QP walks through (default: one slot per message in flight, up to 4 MiB)",
              [&spec](const std::string& text, const std::string& flag) {
                spec.footprint_bytes = parse_size(text, flag);
              });
  group.flag("-b,--bidirectional", "both ends send at once (bandwidth)",
             [&spec] { spec.direction = Direction::kBidirectional; });
  group.flag("--verify", "fill every message with a pattern and compare what arrives, byte by byte",
             [&spec] {
               if (!spec.verify_seed) spec.verify_seed = kDefaultSeed;
             });
  group.value("--seed", "N", "the pattern's seed; implies --verify (default: 1)",
              [&spec](const std::string& text, const std::string& flag) {
                spec.verify_seed = static_cast<std::uint64_t>(
                    parse_integer(text, flag, 0, std::numeric_limits<std::int64_t>::max()));
              });
  group.flag("-e,--events", "sleep on completion events instead of polling",
             [&spec] { spec.wait = Wait::kEvent; });
}

void add_network(CLI::App& command, ClientOptions& options) {
  TestSpec& spec = options.spec;
  Group group(command, "Network");
  group.integer(
      "-m,--mtu", spec.mtu_bytes, 256, 4096,
      "path MTU in bytes: 256, 512, 1024, 2048 or 4096 (default: the lesser of both ports')");
  group.integer("-S,--sl", spec.service_level, 0, 15, "service level (default: 0)");
  group.integer("-T,--tos", spec.traffic_class, 0, 255,
                "traffic class, the IP type of service of RoCE v2 (default: 0)");
  group.integer("-u,--qp-timeout", spec.qp_timeout, 0, 31,
                "local ACK timeout, 4.096 us * 2^N; 0 is none (default: 14, 67 ms)");
  group.flag("-R,--rdma_cm,--rdma-cm", "connect QPs by rdma_cm (default: exchange addresses)",
             [&spec] { spec.connector = Connector::kRdmaCm; });
  group.value("-p,--port", "PORT",
              fmt::format("TCP port of the server (default: {})", kDefaultPort),
              [&options](const std::string& text, const std::string& flag) {
                options.port = static_cast<int>(parse_integer(text, flag, 0, 65535));
              });
  group.text("--bind", "ADDR", options.bind, "address to listen on, without HOST (default: all)");
  group.text("--token", "FILE", options.token,
             "secret shared with the other end (default: GDRPERF_TOKEN_FILE, GDRPERF_TOKEN, or none)");
}

std::string format_names() {
  std::string names;
  for (const report::Format format : report::all_formats()) {
    names += (names.empty() ? "" : ", ") + std::string(report::to_string(format));
  }
  return names;
}

void add_output(CLI::App& command, OutputOptions& output) {
  Group group(command, "Output");
  group.text("-o,--output", "FILE", output.format_file, "where --format goes, written whole (default: standard output)");
  group.flag("--progress", "say once a second what is set up or measured, as lines on standard error (default: one "
             "line, rewritten, on a terminal)",
             [&output] { output.progress_lines = true; });
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
  group.text("--nvidia-smi", "FILE", output.nvidia_smi,
             "take the topology from saved output of 'nvidia-smi topo -m' (default: run it)");
}

}  // namespace

std::int64_t parse_integer(const std::string& text, std::string_view flag, std::int64_t low,
                           std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || rest != end) {
    throw usage_error(
        fmt::format("{} '{}': not a number; give one from {} to {}", flag, text, low, high));
  }
  if (error != std::errc() || value < low || value > high) {
    throw usage_error(fmt::format("{} {}: must be from {} to {}", flag, text, low, high));
  }
  return value;
}

double parse_percent(const std::string& text, std::string_view flag) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || !(unit.empty() || unit == "%") || !(value > 0 && value < 100)) {
    throw usage_error(
        fmt::format("{} '{}': give percent, above 0 and below 100, like 1% or 0.5%", flag, text));
  }
  return value / 100;
}

void add_softnic_flag(CLI::App& command) {
  command
      .add_flag_callback(
          "--softnic", [] {},
          "use the software device (soft0, soft1) that needs no NIC; every record "
          "says so")
      ->group("Devices");
}

void add_client_options(CLI::App& command, ClientOptions& options) {
  command
      .add_option_function<std::string>(
          "HOST",
          [&options](const std::string& text) {
            // An unset variable must not make a client a server on all addresses.
            if (text.empty()) {
              throw usage_error("HOST is empty: is the variable that should name the server unset?",
                                "give a name or an address; without HOST a test serves one client");
            }
            options.host = text;
          },
          "server's name or address ('gdrperf serve' runs there)")
      ->type_name("")
      ->group("Where to");
  command.add_flag("--local", options.local, "both ends in this process: no server needed")
      ->group("Where to");
  add_softnic_flag(command);
  add_ends(command, options);
  add_gpus(command, options);
  add_queues(command, options.spec);
  add_stop(command, options.spec.stop);
  command
      .add_option_function<std::string>(
          "--max-memory",
          [&options](const std::string& text) { options.max_memory_bytes = parse_size(text, "--max-memory"); },
          "memory that a run may take at this end (default: a quarter of what is available)")
      ->type_name("SIZE")
      ->group("Queues and messages");
  add_network(command, options);
  add_output(command, options.output);
  add_required_options(command, options.output.required);
}

ServerAddress server_address(const ClientOptions& options) {
  return {options.host, options.port, proto::read_token(options.token)};
}

void check_target(const ClientOptions& options) {
  if (options.local && !options.host.empty()) {
    throw usage_error(fmt::format("HOST '{}' and --local exclude each other", options.host),
                      "--local runs both ends here; leave one of them out");
  }
  if (!options.bind.empty() && (options.local || !options.host.empty())) {
    throw usage_error("--bind: only an end that serves listens; leave it out");
  }
  if (!options.host.empty() && options.port == 0) {
    throw usage_error("-p 0: must be from 1 to 65535");
  }
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
