#include "app/intervals/interval_metrics.h"

#include <fmt/format.h>

namespace gdrperf::app {

void IntervalMetrics::add(const engine::IntervalState& state, const std::string& device, const gdrperf::Counters& risen) {
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
  std::string text;
  const std::string labels = fmt::format(R"(op="{}",size_bytes="{}",device="{}")", to_string(last_.test), last_.size_bytes, device_);
  const auto declare = [&](const char* name, const char* type, const char* help) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  };
  const auto sample = [&](const char* name, const char* type, const char* help, double value) {
    declare(name, type, help);
    text += fmt::format("{}{{{}}} {:.15g}\n", name, labels, value);
  };
  sample("gdrperf_measured_seconds_total", "counter", "Time of all intervals.", seconds_);
  sample("gdrperf_messages_total", "counter", "Messages of this end, or round trips.", messages_);
  sample("gdrperf_slow_stretches_total", "counter", "Stretches below 0.7 of the level before.", slow_);
  sample("gdrperf_slow_seconds_total", "counter", "Their time.", slow_s_);
  if (last_.seconds <= 0) return text;
  if (last_.test.metric == Metric::kBandwidth) {
    sample("gdrperf_payload_bytes_total", "counter", "Payload that this end sent or read.", bytes_);
    sample("gdrperf_payload_bytes_per_second", "gauge", "Mean of the last interval.",
           static_cast<double>(last_.messages) * static_cast<double>(last_.size_bytes) / last_.seconds);
  } else {
    declare("gdrperf_latency_seconds", "gauge", "Of the last interval; quantile 1 is the largest.");
    const std::pair<const char*, double> quantiles[] = {{"0.5", last_.p50_ns}, {"0.99", last_.p99_ns}, {"0.999", last_.p999_ns}, {"1", last_.max_ns}};
    for (const auto& [quantile, ns] : quantiles) text += fmt::format("gdrperf_latency_seconds{{{},quantile=\"{}\"}} {:.9g}\n", labels, quantile, ns * 1e-9);
  }
  if (counters_.empty()) return text;
  declare("gdrperf_port_counter_total", "counter", "What counters of the port rose by.");
  for (const auto& [name, count] : counters_) text += fmt::format("gdrperf_port_counter_total{{device=\"{}\",counter=\"{}\"}} {}\n", device_, name, count);
  return text;
}

}  // namespace gdrperf::app
