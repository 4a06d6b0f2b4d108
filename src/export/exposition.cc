#include "gdrperf/export/exposition.h"

#include <cmath>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"

namespace gdrperf::report {
namespace {

std::string label_value(std::string_view value) {
  std::string result;
  for (const char c : printable_lines(value)) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

const char* type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter: return "counter";
    case MetricType::kGauge: return "gauge";
    case MetricType::kSummary: break;
  }
  return "summary";
}

// Counters are exact, measured values are not.
std::string value_text(double value, MetricType type) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return type == MetricType::kCounter ? fmt::format("{:.15g}", value) : fmt::format("{:.7g}", value);
}

}  // namespace

MetricLabels::MetricLabels(std::initializer_list<std::pair<std::string_view, std::string_view>> labels) {
  for (const auto& [name, value] : labels) add(name, value);
}

MetricLabels& MetricLabels::add(std::string_view name, std::string_view value) {
  if (!value.empty()) text_ += fmt::format(R"({}{}="{}")", text_.empty() ? "" : ",", name, label_value(value));
  return *this;
}

void Exposition::declare(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  type_ = type;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type_name(type));
}

void Exposition::sample(const MetricLabels& labels, double value, std::string_view suffix) {
  const std::string braces = labels.text().empty() ? std::string() : "{" + labels.text() + "}";
  text_ += fmt::format("{}{}{} {}\n", name_, suffix, braces, value_text(value, type_));
}

void Exposition::metric(std::string_view name, MetricType type, std::string_view help, const MetricLabels& labels,
                        double value) {
  declare(name, type, help);
  sample(labels, value);
}

}  // namespace gdrperf::report
