#include "gdrperf/report/console.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/report/fields.h"
#include "report/console/parts.h"
#include "gdrperf/report/reference.h"
#include "gdrperf/report/spread.h"
#include "report/console/under_load.h"
#include "report/console/console_rows.h"
#include "report/console/sparkline.h"

namespace gdrperf::report {
namespace {

std::string end_text(const EndRecord& end) {
  return fmt::format("{} port {} ({} buffer)", printable(end.device), end.port, printable(end.buffer));
}

std::string gid_text(const EndRecord& end) {
  return end.gid.empty() ? std::string("no GID") : fmt::format("GID {} {}", end.gid_index, printable(end.gid));
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
      "{} by {}, {} QP{}, {}", to_string(spec.transport),
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
  if (rate_of(spec) > 0) text += fmt::format(", {} messages due per second", plain_digits(rate_of(spec), 7));
  if (spec.burst > 1) text += fmt::format(" in bursts of {}", spec.burst);
  if (spec.reverse)
    text += spec.test.operation == Operation::kRead ? ", reversed: the server reads" : ", reversed: the server sends";
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
  const std::string kind = not_of_hardware(record.device_kind);
  if (!kind.empty()) text += "  " + kind + "\n";
  return text;
}

/// CPU time of client or server: "310 ns per message, 4.7 ms per GB"; "" where it is not known.
std::string cpu_of(const RunRecord& record, const char* end, const std::optional<double>& per_message_ns) {
  if (!per_message_ns) return {};
  std::string text = fmt::format("{} {} per {}", end, format_duration_ns(*per_message_ns),
                                 record.measured.latency ? "round trip" : "message");
  if (record.measured.bandwidth)
    text += fmt::format(", {} per GB",
                        format_duration_ns(*per_message_ns / static_cast<double>(record.spec.size_bytes) * 1e9));
  return text;
}

std::string cpu_text(const RunRecord& record) {
  const std::string client = cpu_of(record, "client", record.measured.client_cpu_per_message_ns);
  const std::string server = cpu_of(record, "server", record.measured.server_cpu_per_message_ns);
  if (client.empty() && server.empty()) return {};
  return fmt::format("CPU time at {}: {}{}{}", format_size(record.spec.size_bytes), client,
                     client.empty() || server.empty() ? "" : "; ", server);
}

/// Each direction of a bidirectional run.
std::string directions_text(const RunRecord& record, RateUnit unit) {
  const Measurement& measured = record.measured;
  if (!measured.client_sent_gbytes || !measured.server_sent_gbytes) return {};
  return fmt::format("            client sent {}, server sent {} {}\n",
                     four_digits(*measured.client_sent_gbytes * scale_of(unit)),
                     four_digits(*measured.server_sent_gbytes * scale_of(unit)), rate_unit_name(unit));
}

}  // namespace

void ConsoleTable::print_heading(const RunRecord& record, const std::string& heading) {
  const std::string fitting = wrapped(heading, options_.columns, 4);
  const std::size_t first_line = fitting.find('\n');
  out_ << styled(options_.colour, Style::kBold, fitting.substr(0, first_line)) << fitting.substr(first_line) << '\n';
  if (record.path.ceiling_gbps > 0 && record.measured.bandwidth) {
    const double scale = scale_of(options_.rate_unit) / gigabits_from_gigabytes(1);
    print_line(fmt::format("  Maximum at {}: {} {}, {}", format_size(record.spec.size_bytes),
                           four_digits(record.path.ceiling_gbps * scale), rate_unit_name(options_.rate_unit),
                           printable(record.path.limited_by)));
  }
  out_ << styled(options_.colour, Style::kDim, column_names(record, options_)) << '\n';
}

void ConsoleTable::print_line(const std::string& text, std::optional<Style> style) {
  const std::string fitting = wrapped(text, options_.columns, 4);
  out_ << (style ? styled(options_.colour, *style, fitting) : fitting) << '\n';
}

std::string warning_kind(const std::string& warning) {
  const auto has = [&](const char* text) { return warning.find(text) != std::string::npos; };
  std::size_t begin = 0;
  if (has("known within +-") || has("not known (") || has("mean and median differ")) {
    if (const std::size_t colon = warning.rfind(": "); colon != std::string::npos) begin = colon;
  }
  std::string kind;
  std::copy_if(warning.begin() + static_cast<std::ptrdiff_t>(begin), warning.end(), std::back_inserter(kind),
               [](char each) { return each != '.' && (each < '0' || each > '9'); });
  return kind;
}

void ConsoleTable::note_warnings(const RunRecord& record) {
  const auto note = [&](const std::string& warning) {
    std::string reason = warning_kind(warning);
    auto& all = notes_.warnings;
    auto group = std::find_if(all.begin(), all.end(), [&](const GroupedWarning& one) { return one.reason == reason; });
    if (group == all.end()) group = all.insert(all.end(), {std::move(reason), warning, false, {}});
    group->numbers_differ = group->numbers_differ || group->first != warning;
    group->sizes.push_back(format_size(record.spec.size_bytes));
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

void ConsoleTable::note_point(const RunRecord& record) {
  notes_.metric = record.spec.test.metric;
  const Measurement& measured = record.measured;
  if (measured.bandwidth) notes_.points[record.spec.size_bytes] = measured.bandwidth->median_gbytes;
  if (measured.latency) notes_.points[record.spec.size_bytes] = measured.latency->p50_ns;
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
  const std::string row = row_of(record, options_, notes_.marks);
  note_warnings(record);
  note_best(record);
  note_point(record);
  notes_.cpu = cpu_text(record);
  out_ << row << std::endl;  // a row is read as soon as its run has ended
  if (options_.detail == Detail::kAll)
    out_ << styled(options_.colour, Style::kDim, details_of(record, options_)) << std::endl;
  out_ << directions_text(record, options_.rate_unit) << spread_text(record)
       << under_load_text(record, options_.rate_unit) << parts_text(record, options_.rate_unit);
}

void ConsoleTable::finish() {
  if (const std::string spark = sparkline(notes_.points, notes_.metric, options_); !spark.empty())
    print_line("  " + spark);
  const auto note = [&](char mark, const std::string& text) {
    print_line(fmt::format("  {} {}", mark, text), Style::kDim);
  };
  const std::string duration = stop_flag<&StopRule::duration>();
  const std::string longer =
      fmt::format("measure longer ({} or a larger {}).", duration, stop_flag<&StopRule::iterations>());
  if (notes_.marks.unstable) {
    note(kUnstable,
         fmt::format("unstable: not known within the requested precision, or interrupted; measure longer ({}, {}) "
                     "or stop other work on the machine.",
                     duration, stop_flag<&StopRule::cap>()));
  }
  if (notes_.marks.few_batches) {
    note(kFewBatches, "fewer than 6 batches, so no interval; " + longer);
  }
  if (notes_.marks.few_samples) {
    note(kFewSamples, "fewer than 10 samples lie beyond this percentile; " + longer);
  }
  for (const GroupedWarning& group : notes_.warnings) {
    constexpr std::size_t kNamed = 4;
    const auto named = static_cast<std::ptrdiff_t>(std::min(group.sizes.size(), kNamed));
    std::string where = fmt::format("{}", fmt::join(group.sizes.begin(), group.sizes.begin() + named, ", "));
    if (group.sizes.size() > kNamed) where += fmt::format(" and {} more", group.sizes.size() - kNamed);
    if (group.numbers_differ) where += fmt::format("; values of {}", group.sizes.front());
    print_line(fmt::format("  warning ({}): {}", where, printable(group.first)), Style::kDoubtful);
  }
  if (!notes_.cpu.empty()) print_line("  " + notes_.cpu, Style::kDim);
  if (const std::string left_out = columns_left_out(notes_.metric, options_); !heading_.empty() && !left_out.empty())
    print_line("  " + left_out, Style::kDim);
  if (!notes_.standing.empty()) print_line("  " + notes_.standing, Style::kDim);
  out_.flush();
  notes_ = {};
  heading_.clear();
}

}  // namespace gdrperf::report
