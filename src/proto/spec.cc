#include "gdrperf/proto/spec.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::uint64_t kMaxMessageBytes = 1ull << 31;  // InfiniBand specification vol. 1, 9.7.2
constexpr std::uint64_t kMaxFootprintBytes = 1ull << 40;
constexpr std::uint64_t kMaxIterations = 1'000'000'000'000;
constexpr int kMaxQps = 16384;
constexpr int kMaxDepth = 65536;
constexpr auto kMaxTime = hours(24 * 7);

void require_range(const char* flag, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    throw usage_error(fmt::format("{} {}: must be from {} to {}", flag, value, low, high));
  }
}

void require_name(const char* flag, const std::string& name) {
  const bool printable =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > 0x20 && c != 0x7f; });
  if (name.size() > 128 || !printable) {
    throw usage_error(
        fmt::format("{}: a name has up to 128 printable characters and no blank", flag));
  }
}

struct EndFlags {
  const char *device, *port, *gid_index, *buffer, *cpu, *numa;
};

void validate_end(const EndSpec& end, const EndFlags& flags) {
  require_name(flags.device, end.device);
  require_range(flags.port, end.port, 0, 255);
  require_range(flags.gid_index, end.gid_index, -1, 65535);
  require_name(flags.buffer, end.buffer);
  if (end.buffer.empty())
    throw usage_error(fmt::format("{}: give a kind of buffer, like host", flags.buffer));
  require_range(flags.cpu, end.cpu, -1, 65535);
  require_range(flags.numa, end.numa, -1, 4095);
}

void validate_stop(const StopRule& stop) {
  if (stop.iterations && stop.duration) {
    throw usage_error(
        "-n and -D exclude each other: a run ends after a number of messages or after a time");
  }
  if (stop.iterations && (*stop.iterations < 1 || *stop.iterations > kMaxIterations)) {
    throw usage_error(fmt::format("-n {}: must be from 1 to {}", *stop.iterations, kMaxIterations));
  }
  if (stop.duration && (*stop.duration < milliseconds(1) || *stop.duration > kMaxTime)) {
    throw usage_error("-D: must be from 1ms to 168h");
  }
  if (!(stop.precision > 0 && stop.precision < 1)) {
    throw usage_error(
        fmt::format("--precision {}: must be above 0 and below 100 %, like 1%", stop.precision));
  }
  if (stop.cap < milliseconds(1) || stop.cap > kMaxTime) {
    throw usage_error("--cap: must be from 1ms to 168h");
  }
}

// What only makes sense when messages stream.
void validate_latency(const TestSpec& spec) {
  const std::string test = to_string(spec.test);
  if (spec.direction == Direction::kBidirectional) {
    throw usage_error(fmt::format(
        "-b: {} has one message in flight; only bandwidth tests are bidirectional", test));
  }
  if (spec.qps != 1) throw usage_error(fmt::format("-q {}: {} uses one QP", spec.qps, test));
  if (spec.post_list != 1)
    throw usage_error(fmt::format("-l {}: {} posts one message at a time", spec.post_list, test));
  if (spec.rate_per_s != 0 && !(spec.rate_per_s >= 1 && spec.rate_per_s <= 1e9)) {
    throw usage_error(fmt::format("--rate {:g}: must be from 1 to 1000000000 messages per second", spec.rate_per_s));
  }
  if (spec.wait == Wait::kEvent && spec.test.operation == Operation::kWrite) {
    throw usage_error("-e: write_lat waits for the last byte in memory, which raises no event");
  }
}

void validate_queues(const TestSpec& spec) {
  require_range("-q", spec.qps, 1, kMaxQps);
  require_range("-t", spec.tx_depth, 0, kMaxDepth);
  require_range("-r", spec.rx_depth, 1, kMaxDepth);
  require_range("-Q", spec.cq_mod, 0, kMaxDepth);
  require_range("-l", spec.post_list, 1, kMaxDepth);
  // A depth chosen by itself (0) follows the other two.
  if (spec.tx_depth != 0) {
    for (const auto& [flag, value] : {std::pair{"-Q", spec.cq_mod}, std::pair{"-l", spec.post_list}}) {
      if (value <= spec.tx_depth) continue;
      throw usage_error(fmt::format("{} {}: more than the {} messages in flight of -t {}", flag, value, spec.tx_depth,
                                    spec.tx_depth),
                        fmt::format("give a deeper queue, -t {0}, or {1} {2} at most", value, flag, spec.tx_depth));
    }
  }
  if (spec.tx_depth % spec.post_list != 0) {
    throw usage_error(fmt::format("-l {}: must divide the depth of the send queue, -t {}",
                                  spec.post_list, spec.tx_depth));
  }
  require_range("-I", spec.inline_bytes, -1, 65536);
  if (spec.inline_bytes > 0 && spec.test.operation == Operation::kRead) {
    throw usage_error(fmt::format("-I {}: a read carries no data to inline", spec.inline_bytes));
  }
}

}  // namespace

std::string to_string(Test test) {
  return std::string(to_string(test.operation)) +
         (test.metric == Metric::kBandwidth ? "_bw" : "_lat");
}

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::kWrite:
      return "write";
    case Operation::kSend:
      return "send";
    case Operation::kRead:
      return "read";
  }
  return "?";
}

std::string_view to_string(Connector connector) {
  return connector == Connector::kRdmaCm ? "rdma_cm" : "exchange";
}

std::string_view to_string(Path path) { return path == Path::kStaged ? "staged" : "direct"; }

std::optional<Test> parse_test(std::string_view name) {
  for (const Test test : all_tests()) {
    if (to_string(test) == name) return test;
  }
  return std::nullopt;
}

const std::vector<Test>& all_tests() {
  static const std::vector<Test> tests = {
      {Operation::kWrite, Metric::kBandwidth}, {Operation::kWrite, Metric::kLatency},
      {Operation::kSend, Metric::kBandwidth},  {Operation::kSend, Metric::kLatency},
      {Operation::kRead, Metric::kBandwidth},  {Operation::kRead, Metric::kLatency},
  };
  return tests;
}

EndSpec with_defaults(EndSpec asked, const EndSpec& typed_there) {
  const EndSpec none;
  const auto take = [&](auto EndSpec::* member) {
    if (asked.*member == none.*member) asked.*member = typed_there.*member;
  };
  // Ports and GIDs are those of a device.
  const bool same_device = asked.device.empty() || asked.device == typed_there.device;
  take(&EndSpec::device);
  if (same_device) {
    take(&EndSpec::port);
    take(&EndSpec::gid_index);
  }
  if (!asked.buffer_given) take(&EndSpec::buffer);
  if (asked.cpu < 0 && asked.numa < 0) {
    take(&EndSpec::cpu);
    take(&EndSpec::numa);
  }
  return asked;
}

void validate(const TestSpec& spec) {
  if (spec.size_bytes < 1 || spec.size_bytes > kMaxMessageBytes) {
    throw usage_error(fmt::format("-s {}: a message has from 1 byte to 2 GiB", spec.size_bytes));
  }
  validate_end(spec.client, {"-d", "-i", "-x", "--buffer", "--cpu", "--numa"});
  validate_end(spec.server,
               {"--peer-dev", "--peer-port", "--peer-gid-index", "--peer-buffer", "--peer-cpu",
                "--peer-numa"});
  validate_queues(spec);
  static constexpr int kMtus[] = {0, 256, 512, 1024, 2048, 4096};
  if (std::find(std::begin(kMtus), std::end(kMtus), spec.mtu_bytes) == std::end(kMtus)) {
    throw usage_error(
        fmt::format("-m {}: a path MTU is 256, 512, 1024, 2048 or 4096", spec.mtu_bytes));
  }
  if (spec.footprint_bytes > kMaxFootprintBytes ||
      (spec.footprint_bytes != 0 && spec.footprint_bytes < spec.size_bytes)) {
    throw usage_error(
        fmt::format("--footprint {}: must hold a message of {} bytes and be at most 1 TiB",
                    spec.footprint_bytes, spec.size_bytes));
  }
  require_range("-u", spec.qp_timeout, 0, 31);
  require_range("-S", spec.service_level, 0, 15);
  require_range("-T", spec.traffic_class, 0, 255);
  if (spec.test.metric == Metric::kLatency) {
    validate_latency(spec);
  } else if (spec.rate_per_s != 0) {
    throw usage_error(fmt::format("--rate {:g}: {} posts as fast as messages complete; only latency tests have a rate",
                                  spec.rate_per_s, to_string(spec.test)));
  }
  constexpr std::uint64_t kMaxChunkBytes = 1u << 30;
  if (spec.chunk_bytes > kMaxChunkBytes || (spec.chunk_bytes != 0 && spec.chunk_bytes < 4096)) {
    throw usage_error(fmt::format("--chunk {}: must be from 4 KiB to 1 GiB", spec.chunk_bytes));
  }
  validate_stop(spec.stop);
}

}  // namespace gdrperf
