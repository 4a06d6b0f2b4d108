// The columns of perftest, for scripts that read them.
#include <cmath>

#include <fmt/format.h>

#include "gdrperf/export/perftest.h"
#include "export/perftest.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

constexpr double kMebibyte = 1 << 20;

const std::string& dashes() {
  static const std::string line(87, '-');
  return line;
}

/// "RDMA_Write", as perftest names it.
std::string verb_of(const TestSpec& spec) {
  switch (spec.test.operation) {
    case Operation::kWrite: return "RDMA_Write";
    case Operation::kWriteImm: return "RDMA_Write_imm";
    case Operation::kRead: return "RDMA_Read";
    case Operation::kSend: return "Send";
    case Operation::kSendImm: return "Send_imm";
    case Operation::kAtomic: break;
  }
  return spec.atomic == Atomic::kFetchAdd ? "Atomic_FETCH_AND_ADD" : "Atomic_CMP_AND_SWAP";
}

/// perftest has a page of 4 KiB for each QP, or one message where that is larger: its messages stay in the CPU's
/// caches.
std::string footprint_of(const TestSpec& spec) {
  constexpr std::uint64_t kPage = 4096;
  if (spec.footprint_bytes <= std::max(kPage, (spec.size_bytes + 63) / 64 * 64))
    return "one message per QP, as perftest's";
  return fmt::format("{} per QP (perftest's: one message)", format_size(spec.footprint_bytes));
}

/// What a whole block has in common, one setting to a line. Depths are those of its first row.
std::string settings_of(const RunRecord& record) {
  const TestSpec& spec = record.spec;
  std::string text = fmt::format("                    {}\n", perftest_title(spec));
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format(" {:<16}: {}\n", name, value);
  };
  const EndRecord& own = record.client.program.empty() ? record.client : record.server;
  line("Device", printable(own.device));
  line("Number of qps", std::to_string(spec.qps));
  line("Connection type", std::string(to_string(spec.transport)));
  if (spec.test.metric == Metric::kBandwidth) {
    line("TX depth", std::to_string(spec.tx_depth));
    line("CQ Moderation", std::to_string(spec.cq_mod));
    // Data that stays in the CPU's caches is faster: whoever compares the two programs has to know.
    if (spec.footprint_bytes > 0)
      line("Memory walked", fmt::format("{} per QP (perftest: one message)", format_size(spec.footprint_bytes)));
  }
  line("Mtu", fmt::format("{}[B]", spec.mtu_bytes));
  line("Link type", perftest_link(own));
  line("GID index", std::to_string(own.gid_index));
  line("Max inline data", fmt::format("{}[B]", std::max(spec.inline_bytes, 0)));
  if (spec.test.metric == Metric::kBandwidth) line("Footprint", footprint_of(spec));
  line("rdma_cm QPs", spec.connector == Connector::kRdmaCm ? "ON" : "OFF");
  line("Measured by", fmt::format("gdrperf, device kind {}", printable(record.device_kind)));
  const Outside& program = record.server.program.empty() ? record.client.program : record.server.program;
  if (!program.empty()) line("Peer", printable(program));
  return text;
}

std::string headings_of(const TestSpec& spec, RateUnit unit, PortColumns ports) {
  if (spec.test.metric == Metric::kBandwidth) {
    const char* name = unit == RateUnit::kGigabits ? "Gb" : "MiB";
    std::string text =
        fmt::format(" #bytes     #iterations    BW peak[{0}/sec]    BW average[{0}/sec]   MsgRate[Mpps]", name);
    for (int port = 1; port <= 2 && ports == PortColumns::kEach; ++port)
      text += fmt::format("   BW Port{1}[{0}/sec]   MsgRate Port{1}[Mpps]", name, port);
    return text;
  }
  if (spec.stop.duration) return " #bytes        #iterations       t_avg[usec]    tps average";
  return " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
         "99% percentile[usec]   99.9% percentile[usec] ";
}

/// perftest has 0 where nothing is known.
double or_zero(double value) { return std::isfinite(value) ? value : 0; }

std::string rate_row(const RunRecord& record, RateUnit unit, PortColumns ports) {
  const Bandwidth& rate = *record.measured.bandwidth;
  const double average = or_zero(rate.mean_gbytes);
  const double scale = perftest_scale(unit);
  const double mpps = 1e3 / static_cast<double>(record.spec.size_bytes);
  // As perftest's: two decimals of 0.001 Gb/s would be 0.00.
  const int decimals = unit == RateUnit::kGigabits && average * scale < 0.1 ? 6 : 2;
  std::string row = fmt::format(" {:<7}    {:<10}       {:<10.{}f}         {:<10.{}f}            {:<.6f}",
                                record.spec.size_bytes, record.measured.iterations, or_zero(rate.max_gbytes) * scale,
                                decimals, average * scale, decimals, average * mpps);
  for (std::size_t port = 0; port < record.measured.parts.size() && ports == PortColumns::kEach; ++port) {
    const double own = or_zero(record.measured.parts[port].gbytes);
    row += fmt::format("        {:<10.2f}          {:<.6f}", own * scale, own * mpps);
  }
  return row;
}

std::string round_trip_row(const RunRecord& record) {
  const Latency& latency = *record.measured.latency;
  std::string row = fmt::format(" {:<7} {:<10}", record.spec.size_bytes, latency.samples);
  if (record.spec.stop.duration) {
    const double seconds = record.measured.duration_s;
    return row + fmt::format("       {:<12.2f}   {:.2f}", or_zero(latency.mean_ns) / 1e3,
                             seconds > 0 ? static_cast<double>(latency.samples) / seconds : 0);
  }
  for (const double ns : {latency.min_ns, latency.max_ns, latency.p50_ns, latency.mean_ns, latency.stdev_ns,
                          latency.p99_ns, latency.p999_ns}) {
    row += fmt::format("     {:<10.2f}", or_zero(ns) / 1e3);
  }
  return row;
}

double rate_of(const RunRecord& record, RateUnit unit) {
  const double scale = perftest_scale(unit);
  return or_zero(record.measured.bandwidth->mean_gbytes) * scale;
}

std::string bandwidth_alone(std::span<const RunRecord> runs, const FormatContext& context) {
  std::string text;
  for (const RunRecord& record : runs) {
    if (record.measured.bandwidth) text += fmt::format("{:.6f}\n", rate_of(record, context.rate_unit));
  }
  return text;
}

std::string message_rate_alone(std::span<const RunRecord> runs, const FormatContext&) {
  std::string text;
  for (const RunRecord& record : runs) {
    if (!record.measured.bandwidth) continue;
    text += fmt::format("{:.6f}\n", or_zero(record.measured.bandwidth->mean_gbytes) * 1e3 /
                                        static_cast<double>(record.spec.size_bytes));
  }
  return text;
}

std::string latency_alone(std::span<const RunRecord> runs, const FormatContext&) {
  std::string text;
  for (const RunRecord& record : runs) {
    if (record.measured.latency) text += fmt::format("{:.6f}\n", or_zero(record.measured.latency->mean_ns) / 1e3);
  }
  return text;
}

constexpr Format kFigures[] = {
    {"bandwidth", bandwidth_alone}, {"message_rate", message_rate_alone}, {"latency", latency_alone}};

}  // namespace

std::optional<Format> perftest_figure(std::string_view word) {
  for (const Format& figure : kFigures) {
    if (figure.name == word) return figure;
  }
  return std::nullopt;
}

std::string perftest_title(const TestSpec& spec) {
  if (spec.test.metric == Metric::kLatency) return verb_of(spec) + " Latency Test";
  return fmt::format("{} {}BW Test", verb_of(spec),
                     spec.direction == Direction::kBidirectional ? "Bidirectional " : "");
}

const char* perftest_link(const EndRecord& end) {
  if (end.gid_type.empty()) return "Unknown";
  return end.gid_type.starts_with("RoCE") ? "Ethernet" : "IB";
}

double perftest_scale(RateUnit unit) {
  return unit == RateUnit::kGigabits ? gigabits_from_gigabytes(1) : 1e9 / kMebibyte;
}

std::string PerftestColumns::add(const RunRecord& record) {
  std::string text;
  // Rows of one block differ in size and what follows from it.
  const std::string block = fmt::format("{}\n{}\n{}\n{}\n{}", perftest_title(record.spec), record.client.device.raw(),
                                        record.server.device.raw(), record.client.buffer, record.server.buffer);
  if (block != block_)
    text = fmt::format("{0}\n{1}{0}\n{2}\n", dashes(), settings_of(record), headings_of(record.spec, unit_, ports_));
  block_ = block;
  return text + (record.measured.bandwidth ? rate_row(record, unit_, ports_) : round_trip_row(record)) + "\n";
}

std::string PerftestColumns::end() const { return block_.empty() ? std::string() : dashes() + "\n"; }

std::string perftest_columns(std::span<const RunRecord> runs, const FormatContext& context) {
  std::string text;
  PerftestColumns columns(context.rate_unit);
  for (const RunRecord& record : runs) text += columns.add(record);
  return text + columns.end();
}

}  // namespace gdrperf::report
