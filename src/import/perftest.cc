// What perftest (4.4 to 26) says of a run, in the terms of a record.
#include "import/perftest.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/text.h"

namespace gdrperf::report {
namespace {

constexpr double kNotTold = std::numeric_limits<double>::quiet_NaN();
constexpr double kBytesOfMebibyte = 1 << 20;
constexpr double kNsPerUs = 1e3;

struct Verb {
  std::string_view words;  ///< of the title, "_" as a blank
  Operation operation;
  Atomic atomic;
};
/// The longer ones first.
constexpr Verb kVerbs[] = {
    {"RDMA Write imm ", Operation::kWriteImm, Atomic::kFetchAdd},
    {"RDMA Write ", Operation::kWrite, Atomic::kFetchAdd},
    {"RDMA Read ", Operation::kRead, Atomic::kFetchAdd},
    {"Send ", Operation::kSend, Atomic::kFetchAdd},
    {"Atomic CMP AND SWAP ", Operation::kAtomic, Atomic::kCompareSwap},
    {"Atomic FETCH AND ADD ", Operation::kAtomic, Atomic::kFetchAdd},
};

/// Words with one blank between them; "_" is a blank.
std::string plain_words(std::string_view title) {
  std::string text(title);
  std::replace(text.begin(), text.end(), '_', ' ');
  std::string plain;
  for (const std::string_view word : words_of(text)) (plain += word) += ' ';
  return plain;
}

bool take_words(std::string_view& text, std::string_view words) {
  if (!text.starts_with(words)) return false;
  text.remove_prefix(words.size());
  return true;
}

void note_told(RunRecord& run, const char* field) { run.told->insert(field); }

template <auto Member>
void take_count(RunRecord& run, std::string_view value, const char* field) {
  const auto count = count_in(value);
  if (!count || *count == 0 || *count > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return;
  run.spec.*Member = static_cast<int>(*count);
  note_told(run, field);
}

void take_mtu(RunRecord& run, std::string_view value) {
  const auto bytes = count_in(value.substr(0, value.find('[')));
  constexpr std::uint64_t kMtus[] = {256, 512, 1024, 2048, 4096};
  if (!bytes || std::find(std::begin(kMtus), std::end(kMtus), *bytes) == std::end(kMtus)) return;
  run.spec.mtu_bytes = static_cast<int>(*bytes);
  note_told(run, "mtu_bytes");
}

void take_inline(RunRecord& run, std::string_view value) {
  const auto bytes = count_in(value.substr(0, value.find('[')));
  if (!bytes || *bytes > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return;
  run.spec.inline_bytes = static_cast<int>(*bytes);
  note_told(run, "inline_bytes");
}

void take_transport(RunRecord& run, std::string_view value, const ImportPlace& place) {
  for (const Transport each :
       {Transport::kRc, Transport::kUc, Transport::kUd, Transport::kXrc, Transport::kDc, Transport::kSrd}) {
    if (value != to_string(each)) continue;
    run.spec.transport = each;
    return note_told(run, "transport");
  }
  throw place.error(fmt::format(
      "connection type {}: gdrperf has RC, UC, UD, XRC, DC and SRD only, so there is nothing to compare it with",
      printable(value.substr(0, 40))));
}

double bytes_of(PerftestUnit unit) { return unit == PerftestUnit::kMebibytes ? kBytesOfMebibyte : 1e9 / 8; }

/// "Use ROCm memory": "rocm"; "" where it is another setting.
std::string accelerator_in(std::string_view setting) {
  constexpr std::string_view kBefore = "Use ";
  constexpr std::string_view kBehind = " memory";
  if (!setting.starts_with(kBefore) || !setting.ends_with(kBehind) || setting.size() <= kBefore.size() + kBehind.size())
    return {};
  std::string name(
      setting.substr(kBefore.size(), std::min<std::size_t>(setting.size() - kBefore.size() - kBehind.size(), 32)));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

Bandwidth imported_rate(const PerftestFigures& figures, PerftestUnit unit) {
  const double scale = bytes_of(unit) / 1e9;
  const auto gbytes = [&](const std::optional<double>& value) { return value ? *value * scale : kNotTold; };
  Bandwidth rate;
  rate.median_gbytes = rate.mean_gbytes = gbytes(figures.average);
  rate.max_gbytes =
      figures.peak && *figures.peak > 0 ? gbytes(figures.peak) : kNotTold;  // 0.00: it did not look for a peak
  rate.min_gbytes = rate.ci95_low_gbytes = rate.ci95_high_gbytes = kNotTold;
  rate.msg_rate_mpps = figures.rate_mpps.value_or(kNotTold);
  return rate;
}

Latency imported_latency(const PerftestFigures& figures, bool halved) {
  const auto ns = [](const std::optional<double>& us) { return us ? *us * kNsPerUs : kNotTold; };
  Latency latency;
  latency.min_ns = ns(figures.min);
  latency.max_ns = ns(figures.max);
  latency.p50_ns = ns(figures.typical);
  latency.mean_ns = ns(figures.mean);
  latency.stdev_ns = ns(figures.stdev);
  latency.p99_ns = ns(figures.p99);
  latency.p999_ns = ns(figures.p999);
  latency.p90_ns = latency.p9999_ns = latency.ci95_p50_low_ns = latency.ci95_p50_high_ns = kNotTold;
  latency.samples = figures.iterations.value_or(0);
  latency.halved = halved;
  return latency;
}

}  // namespace

std::optional<PerftestSettings> PerftestSettings::of_title(std::string_view title, const ImportPlace& place) {
  const std::string plain = plain_words(title);
  std::string_view rest = plain;
  if (!rest.ends_with(" Test ") ||
      (!rest.starts_with("RDMA ") && !rest.starts_with("Send ") && !rest.starts_with("Atomic "))) {
    return std::nullopt;
  }
  const auto not_ours = [&] {
    return place.error(fmt::format("'{}': gdrperf has no such test", printable(trimmed(title).substr(0, 60))),
                       "RDMA_Write, RDMA_Write_imm, Send, RDMA_Read and Atomic can be imported");
  };
  const auto verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                 [&](const Verb& each) { return take_words(rest, each.words); });
  if (verb == std::end(kVerbs)) throw not_ours();
  PerftestSettings settings;
  RunRecord& run = settings.run_;
  run.device_kind = kImported;
  run.client.buffer = "host";
  run.told = std::set<std::string, std::less<>>{"direction", "wait"};
  run.spec.test.operation = verb->operation;
  run.spec.atomic = verb->atomic;
  if (verb->operation == Operation::kAtomic) note_told(run, "atomic");
  if (take_words(rest, "Bidirectional ")) run.spec.direction = Direction::kBidirectional;
  take_words(rest, "Post List ");
  if (take_words(rest, "Latency ")) {
    run.spec.test.metric = Metric::kLatency;
  } else if (!take_words(rest, "BW ")) {
    throw not_ours();
  }
  if (rest != "Test ") throw not_ours();  // multicast, forwarding
  return settings;
}

void PerftestSettings::take(std::string_view name, std::string_view value, const ImportPlace& place) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '_', ' ');
  value = trimmed(value);
  if ((plain == "Dual-port" || plain == "Dual port") && value == "ON") {
    throw place.error(
        "two ports together (Dual-port: ON): the result is their sum, and gdrperf's results are of one port",
        "measure each port by itself");
  }
  if (const std::string accelerator = accelerator_in(plain); !accelerator.empty() && value == "ON")
    use_memory(accelerator, {});
  if (plain == "Device" && !value.empty()) run_.client.device = std::string(value.substr(0, 64));
  if (plain == "Number of qps") take_count<&TestSpec::qps>(run_, value, "qps");
  if (plain == "TX depth") take_count<&TestSpec::tx_depth>(run_, value, "tx_depth");
  if (plain == "RX depth") take_count<&TestSpec::rx_depth>(run_, value, "rx_depth");
  if (plain == "CQ Moderation") take_count<&TestSpec::cq_mod>(run_, value, "cq_mod");
  if (plain == "Post List") take_count<&TestSpec::post_list>(run_, value, "post_list");
  if (plain == "Connection type") take_transport(run_, value, place);
  if (plain == "Mtu") take_mtu(run_, value);
  if (plain == "Max inline data") take_inline(run_, value);
  if (plain == "GID index") {
    if (const auto index = count_in(value); index && *index < 65536) {
      run_.client.gid_index = static_cast<int>(*index);
      note_told(run_, "client_gid_index");
    }
  }
  if (plain == "rdma cm QPs" && (value == "ON" || value == "OFF")) {
    run_.spec.connector = value == "ON" ? Connector::kRdmaCm : Connector::kExchange;
    note_told(run_, "connection");
  }
}

void PerftestSettings::wait_for_events() { run_.spec.wait = Wait::kEvent; }

void PerftestSettings::use_memory(std::string_view kind, std::optional<std::uint64_t> index) {
  std::string& buffer = run_.client.buffer;
  const std::string known = buffer.substr(0, buffer.find(':'));
  const bool vague = known == "host" || known == "accelerator";
  const std::string name = kind.empty() ? (vague ? "accelerator" : known) : std::string(kind);
  if (name == known && !index) return;
  buffer = index ? fmt::format("{}:{}", name, *index) : name;
}

bool PerftestSettings::halved() const {
  return run_.spec.test.operation != Operation::kRead && run_.spec.test.operation != Operation::kAtomic;
}

bool fits(const PerftestFigures& figures, PerftestUnit unit) {
  if (!figures.average || !figures.rate_mpps || figures.bytes.value_or(0) == 0) return true;
  const auto bytes = static_cast<double>(*figures.bytes);
  const double told = *figures.rate_mpps * 1e6 * bytes;
  return std::abs(*figures.average * bytes_of(unit) - told) <= 0.006 * bytes_of(unit) + 0.6 * bytes + 1e-3 * told;
}

void check_unit(const PerftestFigures& figures, PerftestUnit unit, const ImportPlace& place) {
  if (fits(figures, unit)) return;
  throw place.error(
      fmt::format("BW average {} {} is not what MsgRate {} makes with messages of {} bytes", *figures.average,
                  unit == PerftestUnit::kMebibytes ? "MiB/s" : "Gb/s", *figures.rate_mpps, *figures.bytes),
      "the heading's unit or a number is wrong: give what perftest printed, unchanged");
}

RunRecord perftest_run(const PerftestSettings& settings, const PerftestFigures& figures, PerftestUnit unit,
                       const ImportPlace& place) {
  if (!figures.bytes || *figures.bytes == 0 || !figures.iterations)
    throw place.error("no message size and number of iterations");
  if (settings.bandwidth() ? !figures.average : !figures.mean) {
    throw place.error(fmt::format("no {}", settings.bandwidth() ? "BW average" : "t_avg"));
  }
  RunRecord run = settings.run();
  run.spec.size_bytes = *figures.bytes;
  run.measured.iterations = *figures.iterations;
  note_told(run, "iterations");
  if (settings.bandwidth()) {
    run.measured.bandwidth = imported_rate(figures, unit);
  } else {
    run.measured.latency = imported_latency(figures, settings.halved());
  }
  return run;
}

}  // namespace gdrperf::report
