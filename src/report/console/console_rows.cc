#include "report/console/console_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

constexpr double kGoodShare = 0.9;  // as on the page
constexpr double kBadShare = 0.7;

bool all_columns(const ConsoleOptions& options) { return options.columns == 0 || options.columns >= kAllColumns; }

/// Nanoseconds as microseconds: to the nanosecond; a tenth is enough from 1 ms on, a whole one from 0.1 s on.
std::string microseconds(double ns) {
  if (!std::isfinite(ns)) return "-";
  return fmt::format("{:.{}f}", ns / 1e3, ns < 1e6 ? 3 : ns < 1e8 ? 1 : 0);
}

/// Farther end of the 95 % interval from the median, in percent; NaN when there is no interval.
double half_width_percent(double low, double median, double high) {
  return 100.0 * std::max(high - median, median - low) / median;
}

std::string interval_text(double percent) {
  if (!std::isfinite(percent)) return "-";
  if (percent > 100) return "not known";
  return fmt::format("+-{:.{}f} %", percent, percent < 9.995 ? 2 : percent < 99.95 ? 1 : 0);
}

bool has_ceiling(const RunRecord& record) {
  return record.path.ceiling_gbps > 0 && record.measured.bandwidth.has_value();
}

std::string share_cell(const RunRecord& record, const ConsoleOptions& options) {
  const std::optional<double> share = efficiency(record);
  if (!share) return fmt::format(" {:>10}", "-");
  return styled(options.colour, *style_of_share(share), fmt::format(" {:>10}", fmt::format("{:.1f} %", 100 * *share)));
}

std::string bandwidth_row(const RunRecord& record, const ConsoleOptions& options, Marks& marks) {
  const Bandwidth& bandwidth = *record.measured.bandwidth;
  const double scale = scale_of(options.rate_unit);
  const double half_width =
      half_width_percent(bandwidth.ci95_low_gbytes, bandwidth.median_gbytes, bandwidth.ci95_high_gbytes);
  const bool few = !std::isfinite(half_width);
  marks.few_batches = marks.few_batches || few;
  std::string row = fmt::format("{:>10}", format_size(record.spec.size_bytes));
  if (all_columns(options)) {
    row += fmt::format(" {:>12} {:>8}", record.measured.iterations,
                       fmt::format("{}/{}", record.spec.tx_depth, record.spec.cq_mod));
  }
  row += fmt::format(" {:>11} {:>9}{}", four_digits(bandwidth.median_gbytes * scale), interval_text(half_width),
                     few ? kFewBatches : ' ');
  for (const double figure : {bandwidth.min_gbytes * scale, bandwidth.max_gbytes * scale, bandwidth.msg_rate_mpps}) {
    row += fmt::format(" {:>9}", four_digits(figure));
  }
  return has_ceiling(record) ? row + share_cell(record, options) : row;
}

std::string latency_row(const RunRecord& record, const ConsoleOptions& options, Marks& marks) {
  const Latency& latency = *record.measured.latency;
  const bool all = all_columns(options);
  const int width = all ? 9 : 7;
  std::string row = fmt::format("{:>10}", format_size(record.spec.size_bytes));
  if (all) row += fmt::format(" {:>11}", latency.samples);
  row += fmt::format(" {:>{}} ", microseconds(latency.min_ns), width);
  const std::array<std::pair<double, double>, 5> percentiles = {{{latency.p50_ns, 50},
                                                                 {latency.p90_ns, 90},
                                                                 {latency.p99_ns, 99},
                                                                 {latency.p999_ns, 99.9},
                                                                 {latency.p9999_ns, 99.99}}};
  for (const auto& [ns, percent] : percentiles) {
    const bool few = samples_beyond(percent, latency.samples) < kEnoughBeyond;
    marks.few_samples = marks.few_samples || few;
    row += fmt::format(" {:>{}}{}", microseconds(ns), width, few ? kFewSamples : ' ');
  }
  return row + fmt::format(" {:>{}}", microseconds(latency.max_ns), width);
}

std::string bandwidth_names(const RunRecord& record, const ConsoleOptions& options) {
  const auto rate = [&](const char* name) { return fmt::format("{} {}", name, rate_unit_name(options.rate_unit)); };
  std::string names = fmt::format("{:>10}", "size");
  if (all_columns(options)) names += fmt::format(" {:>12} {:>8}", "iterations", "tx/cq");
  names +=
      fmt::format(" {:>11} {:>9}  {:>9} {:>9} {:>9}", rate("median"), "+-95 % CI", rate("min"), rate("max"), "Mpps");
  return has_ceiling(record) ? names + fmt::format(" {:>10}", "of max") : names;
}

std::string latency_names(const ConsoleOptions& options) {
  if (all_columns(options)) {
    return fmt::format("{:>10} {:>11} {:>9}  {:>9}  {:>9}  {:>9}  {:>9} {:>10}  {:>9}", "size", "samples", "min us",
                       "p50 us", "p90 us", "p99 us", "p99.9 us", "p99.99 us", "max us");
  }
  return fmt::format("{:>10} {:>7}  {:>7}  {:>7}  {:>7}  {:>7}  {:>7}  {:>7}", "size", "us: min", "p50", "p90", "p99",
                     "p99.9", "p99.99", "max");
}

}  // namespace

std::optional<Style> style_of_share(std::optional<double> share) {
  if (!share) return std::nullopt;
  return *share >= kGoodShare ? Style::kGood : *share < kBadShare ? Style::kBad : Style::kDoubtful;
}

std::string not_of_hardware(std::string_view kind) {
  if (kind == "hardware") return {};
  if (kind == kImported) return "Results of another program, whose output does not describe its device.";
  if (kind == "rxe") return "Results of the kernel's Soft-RoCE (rxe), not of hardware.";
  if (kind == "siw") return "Results of the kernel's software iWARP (siw), not of hardware.";
  if (kind == "software") return "Results of gdrperf's software device, not of hardware.";
  if (kind == "simulated") {
    return "Results of the software device's simulated link, not of hardware.";
  }
  return fmt::format("Results of a device of kind {}, not of hardware.", printable(kind));
}

const char* rate_unit_name(RateUnit unit) { return unit == RateUnit::kGigabits ? "Gb/s" : "GB/s"; }

double scale_of(RateUnit unit) { return unit == RateUnit::kGigabits ? gigabits_from_gigabytes(1) : 1; }

std::string column_names(const RunRecord& record, const ConsoleOptions& options) {
  return record.spec.test.metric == Metric::kBandwidth ? bandwidth_names(record, options) : latency_names(options);
}

std::string columns_left_out(Metric metric, const ConsoleOptions& options) {
  if (all_columns(options) || options.detail == Detail::kAll) return {};
  return fmt::format("{} left out below {} columns; -v shows them",
                     metric == Metric::kLatency ? "samples are" : "iterations and tx/cq are", kAllColumns);
}

std::string row_of(const RunRecord& record, const ConsoleOptions& options, Marks& marks) {
  std::string row;
  if (record.measured.bandwidth) row = bandwidth_row(record, options, marks);
  if (record.measured.latency) row = latency_row(record, options, marks);
  if (!record.measured.unstable) return row;
  marks.unstable = true;
  return row + styled(options.colour, Style::kDoubtful, fmt::format(" {}", kUnstable));
}

std::string details_of(const RunRecord& record, const ConsoleOptions& options) {
  const Measurement& measured = record.measured;
  std::string text = fmt::format("            {} messages in {} s after {} s of warm-up; ended by {}",
                                 measured.iterations, plain_digits(measured.duration_s, 3),
                                 plain_digits(measured.warmup_cut_s, 3), to_string(measured.stop));
  if (measured.unstable && !measured.unstable_reason.empty())
    text += fmt::format("; unstable: {}", measured.unstable_reason);
  if (measured.bandwidth) {
    text += fmt::format("; tx depth {}, completion every {}; {} batches, mean {} {}", record.spec.tx_depth,
                        record.spec.cq_mod, measured.bandwidth->batches_gbytes.size(),
                        four_digits(measured.bandwidth->mean_gbytes * scale_of(options.rate_unit)),
                        rate_unit_name(options.rate_unit));
  }
  if (measured.latency) {
    const Latency& latency = *measured.latency;
    text += fmt::format(
        "; {} samples, mean {} us, p50 {}", latency.samples, microseconds(latency.mean_ns),
        interval_text(half_width_percent(latency.ci95_p50_low_ns, latency.p50_ns, latency.ci95_p50_high_ns)));
  }
  const auto cpu = [&](const char* end, const std::optional<double>& ns) {
    if (ns) text += fmt::format("; {}: {} of CPU time per message", end, format_duration_ns(*ns));
  };
  cpu("client", measured.client_cpu_per_message_ns);
  cpu("server", measured.server_cpu_per_message_ns);
  const auto end = [&](const char* which, const EndRecord& each) {
    if (!each.interrupt_cpus.empty())
      text += fmt::format("; {} interrupted on CPU {} (completion vector {})", which, printable(each.interrupt_cpus),
                          record.spec.comp_vector);
    if (!each.relaxed_ordering.empty())
      text += fmt::format("; {} relaxed ordering {}", which, printable(each.relaxed_ordering));
  };
  end("client", record.client);
  end("server", record.server);
  if (record.client.ooo) text += "; packets placed out of order";
  if (!record.client.ece.empty()) text += fmt::format("; ECE {}", record.client.ece);
  return wrapped(text, options.columns, 12);
}

}  // namespace gdrperf::report
