#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gdrperf::report {

/// The labels of a sample as text: `op="write_bw",size_bytes="64"`. Names are ours, values come from anywhere.
class MetricLabels {
 public:
  MetricLabels() = default;
  MetricLabels(std::initializer_list<std::pair<std::string_view, std::string_view>> labels);

  /// One without a value is left out, as Prometheus does.
  MetricLabels& add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum class MetricType { kCounter, kGauge, kSummary };

/// Prometheus' text exposition format 0.0.4: the one place that knows its syntax.
class Exposition {
 public:
  /// Begins a metric; its samples follow.
  void declare(std::string_view name, MetricType type, std::string_view help);
  /// A sample of the metric declared last. `suffix`: "_sum" or "_count" of a summary.
  void sample(const MetricLabels& labels, double value, std::string_view suffix = {});
  /// A metric of one sample.
  void metric(std::string_view name, MetricType type, std::string_view help, const MetricLabels& labels, double value);
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  MetricType type_ = MetricType::kGauge;
  std::string text_;
};

}  // namespace gdrperf::report
