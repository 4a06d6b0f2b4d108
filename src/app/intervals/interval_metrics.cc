#include "app/intervals/interval_metrics.h"

#include <utility>

#include "gdrperf/export/exposition.h"

namespace gdrperf::app {

void IntervalMetrics::add(const engine::IntervalState& state, const std::string& device,
                          const gdrperf::Counters& risen) {
  last_ = state;
  device_ = device;
  const auto messages = static_cast<double>(state.messages);
  messages_ += messages;
  if (state.test.metric == Metric::kBandwidth) bytes_ += messages * static_cast<double>(state.size_bytes);
  seconds_ += state.seconds;
  for (const engine::Dip& dip : state.dips) {
    slow_s_ += dip.seconds;
    slow_ += 1;
  }
  for (const auto& [name, count] : risen) counters_[name] += count;
}

std::string IntervalMetrics::text() const {
  using report::MetricLabels;
  using report::MetricType;
  report::Exposition out;
  const MetricLabels labels = {
      {"op", to_string(last_.test)}, {"size_bytes", std::to_string(last_.size_bytes)}, {"device", device_}};
  out.metric("gdrperf_measured_seconds_total", MetricType::kCounter, "Time of all intervals.", labels, seconds_);
  out.metric("gdrperf_messages_total", MetricType::kCounter, "Messages of this process, or round trips.", labels,
             messages_);
  out.metric("gdrperf_slow_stretches_total", MetricType::kCounter, "Stretches below 0.7 of the level before.", labels,
             slow_);
  out.metric("gdrperf_slow_seconds_total", MetricType::kCounter, "Their time.", labels, slow_s_);
  if (last_.seconds <= 0) return out.take();
  if (last_.test.metric == Metric::kBandwidth) {
    out.metric("gdrperf_payload_bytes_total", MetricType::kCounter, "Payload that this process sent or read.", labels,
               bytes_);
    out.metric("gdrperf_payload_bytes_per_second", MetricType::kGauge, "Mean of the last interval.", labels,
               last_.unrounded_messages() * static_cast<double>(last_.size_bytes) / last_.seconds);
  } else {
    out.declare("gdrperf_latency_seconds", MetricType::kGauge, "Of the last interval; quantile 1 is the largest.");
    const std::pair<const char*, double> quantiles[] = {
        {"0.5", last_.p50_ns}, {"0.99", last_.p99_ns}, {"0.999", last_.p999_ns}, {"1", last_.max_ns}};
    for (const auto& [quantile, ns] : quantiles) out.sample(MetricLabels(labels).add("quantile", quantile), ns * 1e-9);
  }
  if (counters_.empty()) return out.take();
  out.declare("gdrperf_port_counter_total", MetricType::kCounter, "What counters of the port rose by.");
  for (const auto& [name, count] : counters_)
    out.sample({{"device", device_}, {"counter", name}}, static_cast<double>(count));
  return out.take();
}

}  // namespace gdrperf::app
