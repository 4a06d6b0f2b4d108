#include "gdrperf/report/csv.h"

#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

/// One name and one cell per column, in this order.
class Row {
 public:
  void text(const char* name, std::string_view value) {
    const bool quote = value.find_first_of("\",\r\n") != std::string_view::npos;
    std::string cell;
    for (const char c : value) {
      if (c == '"') cell += '"';
      cell += c;
    }
    put(name, quote ? '"' + cell + '"' : std::string(value));
  }
  template <typename Integer>
  void integer(const char* name, Integer value) {
    put(name, fmt::format("{}", value));
  }
  void real(const char* name, double value) {
    put(name, std::isfinite(value) ? fmt::format("{:.7g}", value) : std::string());
  }
  void gbps(const char* name, double gbytes) { real(name, gigabits_from_gigabytes(gbytes)); }

  std::string names;
  std::string cells;

 private:
  void put(const char* name, const std::string& cell) {
    if (!names.empty()) {
      names += ',';
      cells += ',';
    }
    names += name;
    cells += cell;
  }
};

void add_settings(Row& row, const RunRecord& record) {
  const TestSpec& spec = record.spec;
  row.text("relation", record.relation);
  row.text("op", to_string(spec.test));
  row.integer("size_bytes", spec.size_bytes);
  row.text("device_kind", record.device_kind);
  row.text("pair", record.path.pair);
  row.text("host_node", record.path.host_node);
  row.text("client_device", record.client.device);
  row.text("client_buffer", record.client.buffer);
  row.text("server_device", record.server.device);
  row.text("server_buffer", record.server.buffer);
  row.text("direction",
           spec.direction == Direction::kBidirectional ? "bidirectional" : "unidirectional");
  row.text("connection", to_string(spec.connector));
  row.integer("qps", spec.qps);
  row.text("rate_per_s", spec.rate_per_s == 0 ? "" : fmt::format("{:.7g}", spec.rate_per_s));
  row.integer("tx_depth", spec.tx_depth);
  row.integer("rx_depth", spec.rx_depth);
  row.integer("cq_mod", spec.cq_mod);
  row.integer("post_list", spec.post_list);
  row.integer("inline_bytes", spec.inline_bytes);
  row.integer("footprint_bytes", spec.footprint_bytes);
  row.integer("mtu_bytes", spec.mtu_bytes);
  const double ceiling = record.path.ceiling_gbps;
  row.real("ceiling_gbps", ceiling > 0 ? ceiling : std::numeric_limits<double>::quiet_NaN());
  row.real("efficiency", efficiency(record).value_or(std::numeric_limits<double>::quiet_NaN()));
}

void add_bandwidth(Row& row, const Bandwidth& bandwidth) {
  row.gbps("median_gbps", bandwidth.median_gbytes);
  row.gbps("ci95_low_gbps", bandwidth.ci95_low_gbytes);
  row.gbps("ci95_high_gbps", bandwidth.ci95_high_gbytes);
  row.gbps("mean_gbps", bandwidth.mean_gbytes);
  row.gbps("min_gbps", bandwidth.min_gbytes);
  row.gbps("max_gbps", bandwidth.max_gbytes);
  row.real("msg_rate_mpps", bandwidth.msg_rate_mpps);
}

void add_latency(Row& row, const Latency& latency, bool measured) {
  row.real("min_ns", latency.min_ns);
  row.real("p50_ns", latency.p50_ns);
  row.real("p90_ns", latency.p90_ns);
  row.real("p99_ns", latency.p99_ns);
  row.real("p999_ns", latency.p999_ns);
  row.real("p9999_ns", latency.p9999_ns);
  row.real("max_ns", latency.max_ns);
  row.real("mean_ns", latency.mean_ns);
  row.real("ci95_p50_low_ns", latency.ci95_p50_low_ns);
  row.real("ci95_p50_high_ns", latency.ci95_p50_high_ns);
  row.text("samples", measured ? fmt::format("{}", latency.samples) : std::string());
  row.text("halved", !measured ? "" : latency.halved ? "true" : "false");
}

Row row_of(const RunRecord& record) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Bandwidth no_bandwidth{kNan, kNan, kNan, kNan, kNan, kNan, {}, kNan};
  const Latency no_latency{kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan, 0, false, kNan, kNan, {}};
  const Measurement& measured = record.measured;
  Row row;
  add_settings(row, record);
  row.integer("iterations", measured.iterations);
  row.real("duration_s", measured.duration_s);
  row.text("stop", to_string(measured.stop));
  row.text("unstable", measured.unstable ? "true" : "false");
  row.text("unstable_reason", measured.unstable_reason);
  add_bandwidth(row, measured.bandwidth.value_or(no_bandwidth));
  add_latency(row, measured.latency.value_or(no_latency), measured.latency.has_value());
  std::vector<std::string> warnings = measured.warnings;
  warnings.insert(warnings.end(), record.warnings.begin(), record.warnings.end());
  row.text("warnings", fmt::format("{}", fmt::join(warnings, "; ")));
  return row;
}

}  // namespace

std::string csv_header() { return row_of(RunRecord{}).names + "\n"; }

std::string csv_line(const RunRecord& record) { return row_of(record).cells + "\n"; }

}  // namespace gdrperf::report
