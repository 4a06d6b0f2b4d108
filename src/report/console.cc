#include "gdrperf/report/console.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/report/reference.h"

namespace gdrperf::report {
namespace {

constexpr const char* kBold = "\033[1m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kYellow = "\033[33m";

constexpr char kFewSamples = '~';
constexpr char kFewBatches = '?';
constexpr char kUnstable = '!';

/// Four significant digits, the tiniest as 6.579e-06; "-" for what is not a number.
std::string four_digits(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (magnitude < -5) return fmt::format("{:.3e}", value);
  return fmt::format("{:.{}f}", value, std::clamp(3 - magnitude, 0, 9));
}

/// Nanoseconds as microseconds to the nanosecond; a tenth is enough from 1 ms on.
std::string microseconds(double ns) {
  if (!std::isfinite(ns)) return "-";
  return fmt::format("{:.{}f}", ns / 1e3, ns < 1e6 ? 3 : 1);
}

std::string end_text(const EndRecord& end) {
  return fmt::format("{} port {} ({} buffer)", printable(end.device), end.port, printable(end.buffer));
}

std::string gid_text(const EndRecord& end) {
  return end.gid.empty() ? std::string("no GID") : fmt::format("GID {} {}", end.gid_index, printable(end.gid));
}

/// Why the figures are not those of a NIC; "" for hardware.
std::string kind_text(std::string_view kind) {
  if (kind == "hardware") return {};
  if (kind == "rxe") return "Figures of the kernel's Soft-RoCE (rxe), not of hardware.";
  if (kind == "software") return "Figures of gdrperf's software device, not of hardware.";
  if (kind == "simulated") {
    return "Figures of the software device's simulated link, not of hardware.";
  }
  return fmt::format("Figures of a device of kind {}, not of hardware.", printable(kind));
}

std::string path_text(const RunRecord& record) {
  const EndRecord& client = record.client;
  const EndRecord& server = record.server;
  const std::string types = client.gid_type == server.gid_type
                                ? client.gid_type
                                : client.gid_type + " and " + server.gid_type;
  return fmt::format("{}{}{} to {}, MTU {} B", printable(types), types.empty() ? "" : ": ", gid_text(client),
                     gid_text(server), record.spec.mtu_bytes);
}

std::string settings_text(const RunRecord& record, RateUnit unit) {
  const TestSpec& spec = record.spec;
  const bool bandwidth = spec.test.metric == Metric::kBandwidth;
  std::string text = fmt::format(
      "RC by {}, {} QP{}, {}",
      spec.connector == Connector::kRdmaCm ? "rdma_cm" : "address exchange", spec.qps,
      spec.qps == 1 ? "" : "s", spec.wait == Wait::kPoll ? "polling" : "completion events");
  if (bandwidth && spec.post_list > 1) text += fmt::format(", post list {}", spec.post_list);
  if (bandwidth && facts_of(spec.test.operation).receives) {
    text += fmt::format(", rx depth {}", spec.rx_depth);
  }
  if (spec.verify_seed) text += ", every message verified";
  // Settings that the name of a run shows and nothing else here does.
  if (to_text(field("path").get(record)) == "staged") text += ", staged through host memory";
  if (to_text(field("consume").get(record)) == "true") text += ", consumed by the receiving GPU";
  if (spec.rate_per_s > 0) text += fmt::format(", {:.7g} messages due per second", spec.rate_per_s);
  if (spec.direction == Direction::kBidirectional) text += ", both ways (rates are the sum)";
  if (bandwidth && unit == RateUnit::kGigabytes) text += ", rates in GB/s (JSON and CSV: Gb/s, 8 times that)";
  if (!bandwidth) {
    const auto& latency = record.measured.latency;
    text += latency && latency->halved ? ", half round trips" : ", full round trips";
  }
  return text;
}

/// "PIX GPU0/mlx5_0", "HOST (remote node)".
std::string relation_text(const RunRecord& record) {
  const RunPath& path = record.path;
  if (!path.pair.empty()) return record.relation + " " + printable(path.pair);
  if (!path.host_node.empty()) return fmt::format("{} ({} node)", record.relation, path.host_node);
  return record.relation;
}

/// Everything rows of one table have in common.
std::string heading_text(const RunRecord& record, RateUnit unit) {
  std::string text = fmt::format("{}  {}: client {}, server {}\n", to_string(record.spec.test),
                                 relation_text(record), end_text(record.client), end_text(record.server));
  text += "  " + path_text(record) + "\n  " + settings_text(record, unit) + "\n";
  const std::string kind = kind_text(record.device_kind);
  if (!kind.empty()) text += "  " + kind + "\n";
  return text;
}

/// Farther end of the 95 % interval from the median, in percent; NaN when
/// there is no interval.
double half_width_percent(const Bandwidth& bandwidth) {
  const double up = bandwidth.ci95_high_gbytes - bandwidth.median_gbytes;
  const double down = bandwidth.median_gbytes - bandwidth.ci95_low_gbytes;
  return 100.0 * std::max(up, down) / bandwidth.median_gbytes;
}

std::string percentile_cell(double ns, double percent, std::uint64_t samples, bool& few) {
  const bool marked = samples_beyond(percent, samples) < kEnoughBeyond;
  few = few || marked;
  return fmt::format("{:>10}{}", microseconds(ns), marked ? kFewSamples : ' ');
}

}  // namespace

Colour colour_for(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return Colour::kOff;
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") return Colour::kOff;
  return ::isatty(fd) != 0 ? Colour::kOn : Colour::kOff;
}

std::string ConsoleTable::styled(const char* code, const std::string& text) const {
  return options_.colour == Colour::kOn ? code + text + "\033[0m" : text;
}

void ConsoleTable::print_heading(const RunRecord& record, const std::string& heading) {
  const std::size_t first_line = heading.find('\n');
  out_ << styled(kBold, heading.substr(0, first_line)) << heading.substr(first_line) << '\n';
  with_ceiling_ = record.path.ceiling_gbps > 0 && record.measured.bandwidth.has_value();
  if (with_ceiling_) {
    const double scale = options_.rate_unit == RateUnit::kGigabits ? 1 : 1 / gigabits_from_gigabytes(1);
    out_ << fmt::format("  Ceiling at {}: {} {}, {}\n", format_size(record.spec.size_bytes),
                        four_digits(record.path.ceiling_gbps * scale),
                        options_.rate_unit == RateUnit::kGigabits ? "Gb/s" : "GB/s",
                        printable(record.path.limited_by));
  }
  if (record.spec.test.metric == Metric::kBandwidth) {
    const char* unit = options_.rate_unit == RateUnit::kGigabits ? "Gb/s" : "GB/s";
    const auto rate = [&](const char* name) { return fmt::format("{} {}", name, unit); };
    out_ << styled(
        kDim, fmt::format("{:>10}{:>13}{:>9}{:>13}{:>8} {:>11}{:>11}{:>11}", "size", "iterations",
                          "tx/cq", rate("median"), "+-95 %", rate("min"), rate("max"), "Mpps") +
                 (with_ceiling_ ? fmt::format("{:>11}", "of ceiling") : ""));
  } else {
    out_ << styled(kDim, fmt::format("{:>10}{:>12}{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
                                     "size", "samples", "min us", "p50 us", "p90 us", "p99 us",
                                     "p99.9 us", "p99.99 us", "max us"));
  }
  out_ << '\n';
}

std::string ConsoleTable::bandwidth_row(const RunRecord& record) {
  const Bandwidth& bandwidth = *record.measured.bandwidth;
  const double scale = options_.rate_unit == RateUnit::kGigabits ? gigabits_from_gigabytes(1) : 1;
  const double half_width = half_width_percent(bandwidth);
  const bool few = !std::isfinite(half_width);
  notes_.few_batches = notes_.few_batches || few;
  return fmt::format(
      "{:>10} {:>12} {:>8} {:>12} {:>7}{} {:>10} {:>10} {:>10}", format_size(record.spec.size_bytes),
      record.measured.iterations, fmt::format("{}/{}", record.spec.tx_depth, record.spec.cq_mod),
      four_digits(bandwidth.median_gbytes * scale),
      few ? std::string("-") : fmt::format("{:.2f}", half_width), few ? kFewBatches : ' ',
      four_digits(bandwidth.min_gbytes * scale), four_digits(bandwidth.max_gbytes * scale),
      four_digits(bandwidth.msg_rate_mpps));
}

std::string ConsoleTable::latency_row(const RunRecord& record) {
  const Latency& latency = *record.measured.latency;
  std::string row = fmt::format("{:>10} {:>11} {:>9} ", format_size(record.spec.size_bytes),
                                latency.samples, microseconds(latency.min_ns));
  const std::pair<double, double> percentiles[] = {{latency.p50_ns, 50},
                                                   {latency.p90_ns, 90},
                                                   {latency.p99_ns, 99},
                                                   {latency.p999_ns, 99.9},
                                                   {latency.p9999_ns, 99.99}};
  for (const auto& [ns, percent] : percentiles) {
    row += percentile_cell(ns, percent, latency.samples, notes_.few_samples);
  }
  return row + fmt::format("{:>10}", microseconds(latency.max_ns));
}

void ConsoleTable::note_warnings(const RunRecord& record) {
  const auto note = [&](const std::string& warning) {
    auto& sizes = notes_.warnings[warning];
    if (sizes.empty()) notes_.warning_order.push_back(warning);
    sizes.push_back(format_size(record.spec.size_bytes));
  };
  std::for_each(record.measured.warnings.begin(), record.measured.warnings.end(), note);
  std::for_each(record.warnings.begin(), record.warnings.end(), note);
}

void ConsoleTable::note_best(const RunRecord& record) {
  constexpr std::uint64_t kLargeMessage = 65536;
  // A link model's prediction is no match for published figures.
  if (record.device_kind != "hardware" || record.path.pair.empty() || !record.measured.bandwidth ||
      record.spec.size_bytes < kLargeMessage ||
      record.spec.direction == Direction::kBidirectional) {
    return;
  }
  const double gbytes = record.measured.bandwidth->median_gbytes;
  if (gbytes <= notes_.best_gbytes) return;
  notes_.best_gbytes = gbytes;
  notes_.standing = standing(record.relation, record.path.link_gbps, gbytes);
}

void ConsoleTable::add(const RunRecord& record) {
  const std::string heading = heading_text(record, options_.rate_unit);
  if (heading != heading_) {
    const bool first = heading_.empty();
    finish();
    if (!first) out_ << '\n';
    print_heading(record, heading);
    heading_ = heading;
  }
  std::string row;
  if (record.measured.bandwidth) row = bandwidth_row(record);
  if (with_ceiling_) {
    const std::optional<double> share = efficiency(record);
    row += fmt::format(" {:>10}", share ? fmt::format("{:.1f} %", 100 * *share) : "-");
  }
  if (record.measured.latency) row = latency_row(record);
  if (record.measured.unstable) {
    notes_.unstable = true;
    row += fmt::format(" {}", kUnstable);
  }
  note_warnings(record);
  note_best(record);
  out_ << row << std::endl;  // a row is read as soon as its run has ended
}

void ConsoleTable::finish() {
  const auto note = [&](char mark, const std::string& text) {
    out_ << styled(kDim, fmt::format("  {} {}", mark, text)) << '\n';
  };
  const std::string duration = stop_flag<&StopRule::duration>();
  const std::string longer = fmt::format("measure longer ({} or a larger {}).", duration, stop_flag<&StopRule::iterations>());
  if (notes_.unstable) {
    note(kUnstable, fmt::format("unstable: not known within the asked precision, or held up; measure longer ({}, {}) or "
                                "quieten the machine.",
                                duration, stop_flag<&StopRule::cap>()));
  }
  if (notes_.few_batches) {
    note(kFewBatches, "fewer than 6 batches, so no interval; " + longer);
  }
  if (notes_.few_samples) {
    note(kFewSamples, "fewer than 10 samples lie beyond this percentile; " + longer);
  }
  for (const std::string& warning : notes_.warning_order) {
    const auto& sizes = notes_.warnings[warning];
    constexpr std::size_t kNamed = 4;
    std::string where = fmt::format(
        "{}", fmt::join(sizes.begin(),
                        sizes.begin() + static_cast<std::ptrdiff_t>(std::min(sizes.size(), kNamed)),
                        ", "));
    if (sizes.size() > kNamed) where += fmt::format(" and {} more", sizes.size() - kNamed);
    out_ << styled(kYellow, fmt::format("  warning ({}): {}", where, printable(warning))) << '\n';
  }
  if (!notes_.standing.empty()) out_ << styled(kDim, "  " + notes_.standing) << '\n';
  out_.flush();
  notes_ = {};
  heading_.clear();
}

}  // namespace gdrperf::report
