#include "export/exporters.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/report/fields.h"

namespace gdrperf::report {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

/// Identifying fields of a run; Prometheus drops labels without a value.
std::string labels_of(const RunRecord& record) {
  std::string text;
  for (const Field& each : fields()) {
    const std::string value = each.identity == Identity::kNo ? std::string() : to_text(each.get(record));
    if (!value.empty()) text += fmt::format(R"({}{}="{}")", text.empty() ? "" : ",", each.name, escaped(value));
  }
  return text;
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.7g}", value);
}

/// Samples of one metric stand together, below its HELP and TYPE.
class Exposition {
 public:
  void declare(const char* name, const char* type, const char* help) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void sample(std::string_view name, const std::string& labels, double value) {
    text_ += fmt::format("{}{{{}}} {}\n", name, labels, value_text(value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

using Runs = std::map<std::string, const RunRecord*>;

void gauge(Exposition& out, const Runs& runs, const char* name, const char* help, double Bandwidth::*member,
           double scale) {
  out.declare(name, "gauge", help);
  for (const auto& [labels, record] : runs) out.sample(name, labels, (*record->measured.bandwidth).*member * scale);
}

void gauge(Exposition& out, const Runs& runs, const char* name, const char* help, double Latency::*member,
           double scale) {
  out.declare(name, "gauge", help);
  for (const auto& [labels, record] : runs) out.sample(name, labels, (*record->measured.latency).*member * scale);
}

void latencies(Exposition& out, const Runs& runs) {
  constexpr const char* kName = "gdrperf_latency_seconds";
  out.declare(kName, "summary", "Latency of a message; write and send: half a round trip.");
  for (const auto& [labels, record] : runs) {
    const Latency& latency = *record->measured.latency;
    const std::pair<const char*, double> quantiles[] = {{"0.5", latency.p50_ns},
                                                        {"0.9", latency.p90_ns},
                                                        {"0.99", latency.p99_ns},
                                                        {"0.999", latency.p999_ns},
                                                        {"0.9999", latency.p9999_ns}};
    for (const auto& [quantile, ns] : quantiles) {
      out.sample(kName, fmt::format(R"({},quantile="{}")", labels, quantile), ns * 1e-9);
    }
    const double samples = static_cast<double>(latency.samples);
    out.sample(fmt::format("{}_sum", kName), labels, latency.mean_ns * 1e-9 * samples);
    out.sample(fmt::format("{}_count", kName), labels, samples);
  }
}

}  // namespace

std::string prometheus(std::span<const RunRecord> runs, const FormatContext&) {
  Runs bandwidth;
  Runs latency;
  Runs all;
  for (const RunRecord& record : runs) {
    const std::string labels = labels_of(record);
    (record.measured.bandwidth ? bandwidth : latency)[labels] = &record;
    all[labels] = &record;
  }
  Exposition out;
  if (!bandwidth.empty()) {
    gauge(out, bandwidth, "gdrperf_bandwidth_bytes_per_second", "Payload moved, median of batches.",
          &Bandwidth::median_gbytes, 1e9);
    gauge(out, bandwidth, "gdrperf_bandwidth_low_bytes_per_second", "Lower end of the median's 95 % interval.",
          &Bandwidth::ci95_low_gbytes, 1e9);
    gauge(out, bandwidth, "gdrperf_bandwidth_high_bytes_per_second", "Upper end of the median's 95 % interval.",
          &Bandwidth::ci95_high_gbytes, 1e9);
    gauge(out, bandwidth, "gdrperf_messages_per_second", "Messages completed, from the median.",
          &Bandwidth::msg_rate_mpps, 1e6);
  }
  if (!latency.empty()) {
    latencies(out, latency);
    gauge(out, latency, "gdrperf_latency_min_seconds", "Least latency of a message.", &Latency::min_ns, 1e-9);
    gauge(out, latency, "gdrperf_latency_max_seconds", "Largest latency of a message.", &Latency::max_ns, 1e-9);
  }
  if (!all.empty()) {
    out.declare("gdrperf_unstable", "gauge", "1 where the figure is not known within the precision asked for, or an end stood still.");
    for (const auto& [labels, record] : all) out.sample("gdrperf_unstable", labels, record->measured.unstable ? 1 : 0);
  }
  return out.take();
}

}  // namespace gdrperf::report
