#include <map>
#include <utility>

#include "gdrperf/export/exposition.h"
#include "gdrperf/export/formats.h"
#include "gdrperf/report/fields.h"

namespace gdrperf::report {
namespace {

/// Identifying fields of a run.
MetricLabels labels_of(const RunRecord& record) {
  MetricLabels labels;
  for (const Field& each : fields()) {
    if (each.identity != Identity::kNo) labels.add(each.name, to_text(each.get(record)));
  }
  return labels;
}

/// By the text of their labels.
using Runs = std::map<std::string, std::pair<MetricLabels, const RunRecord*>>;

void gauge(Exposition& out, const Runs& runs, const char* name, const char* help, double Bandwidth::*member,
           double scale) {
  out.declare(name, MetricType::kGauge, help);
  for (const auto& [text, run] : runs) out.sample(run.first, (*run.second->measured.bandwidth).*member * scale);
}

void gauge(Exposition& out, const Runs& runs, const char* name, const char* help, double Latency::*member,
           double scale) {
  out.declare(name, MetricType::kGauge, help);
  for (const auto& [text, run] : runs) out.sample(run.first, (*run.second->measured.latency).*member * scale);
}

void latencies(Exposition& out, const Runs& runs) {
  out.declare("gdrperf_latency_seconds", MetricType::kSummary,
              "Latency of a message; write and send: half a round trip.");
  for (const auto& [text, run] : runs) {
    const auto& [labels, record] = run;
    const Latency& latency = *record->measured.latency;
    const std::pair<const char*, double> quantiles[] = {{"0.5", latency.p50_ns},
                                                        {"0.9", latency.p90_ns},
                                                        {"0.99", latency.p99_ns},
                                                        {"0.999", latency.p999_ns},
                                                        {"0.9999", latency.p9999_ns}};
    for (const auto& [quantile, ns] : quantiles) out.sample(MetricLabels(labels).add("quantile", quantile), ns * 1e-9);
    const double samples = static_cast<double>(latency.samples);
    out.sample(labels, latency.mean_ns * 1e-9 * samples, "_sum");
    out.sample(labels, samples, "_count");
  }
}

}  // namespace

/// Text exposition format 0.0.4, in base units (bytes, seconds). Of runs with the same labels the last counts.
std::string prometheus(std::span<const RunRecord> runs, const FormatContext&) {
  Runs bandwidth;
  Runs latency;
  Runs all;
  for (const RunRecord& record : runs) {
    const MetricLabels labels = labels_of(record);
    (record.measured.bandwidth ? bandwidth : latency)[labels.text()] = {labels, &record};
    all[labels.text()] = {labels, &record};
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
    out.declare("gdrperf_unstable", MetricType::kGauge,
                "1 where the result is not known within the requested precision, or client or server stood still.");
    for (const auto& [text, run] : all) out.sample(run.first, run.second->measured.unstable ? 1 : 0);
  }
  return out.take();
}

}  // namespace gdrperf::report
