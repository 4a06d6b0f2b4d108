#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "page/escape.h"
#include "gdrperf/base/units.h"
#include "gdrperf/page/curves.h"
#include "gdrperf/page/page.h"

namespace gdrperf::page {
namespace {

constexpr double kWidth = 460;   // of one panel, with its labels
constexpr double kHeight = 300;
constexpr double kLeft = 58;
constexpr double kRight = 12;
constexpr double kTop = 34;
constexpr double kBottom = 40;

/// Okabe and Ito's colours, which colour-blind people tell apart.
const char* colour_of(const std::string& relation) {
  static const std::map<std::string, const char*> colours = {{"PIX", "#0072b2"}, {"PXB", "#009e73"},
                                                             {"PHB", "#e69f00"}, {"NODE", "#cc79a7"},
                                                             {"SYS", "#d55e00"}, {"HOST", "#6b7280"}};
  const auto found = colours.find(relation);
  return found == colours.end() ? "#6b7280" : found->second;
}

/// A logarithmic axis over [low, high], widened to whole decades or powers of two.
struct Axis {
  double low;
  double high;
  double from;
  double to;
  double at(double value) const { return from + (std::log(value / low) / std::log(high / low)) * (to - from); }
};

std::string tick_words(double value, bool bandwidth) {
  return bandwidth ? fmt::format("{:g}", value) : format_duration_ns(value);
}

class Panel {
 public:
  Panel(std::vector<const Curve*> curves, double left) : curves_(std::move(curves)), left_(left) {
    double least = 1e300, most = 0, smallest = 1e300, largest = 0;
    for (const Curve* curve : curves_) {
      for (const Curve::Point& point : curve->points) {
        least = std::min(least, shown(point.low));
        most = std::max(most, shown(point.high));
        smallest = std::min(smallest, static_cast<double>(point.bytes));
        largest = std::max(largest, static_cast<double>(point.bytes));
      }
      if (curve->ceiling_gbps > 0) most = std::max(most, shown(curve->ceiling_gbps));
    }
    const double low = std::pow(10, std::floor(std::log10(least)));
    const double high = std::pow(10, std::ceil(std::log10(most * 1.001)));
    y_ = {low, std::max(high, low * 10), kHeight - kBottom, kTop};
    x_ = {smallest, std::max(largest, smallest * 2), left + kLeft, left + kWidth - kRight};
  }

  std::string draw() const {
    const bool bandwidth = curves_.front()->bandwidth();
    std::string out = fmt::format(R"(<text x="{:.0f}" y="20" class="t">{} ({})</text>)", left_ + kLeft,
                                  html_text(curves_.front()->op), bandwidth ? "GB/s" : "p50");
    for (double tick = y_.low; tick <= y_.high * 1.001; tick *= 10) {
      out += fmt::format(
          R"(<line class="g" x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"/><text x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5}</text>)",
          x_.from, x_.to, y_.at(tick), x_.from - 6, y_.at(tick) + 4, tick_words(tick, bandwidth));
    }
    const double steps = std::log2(x_.high / x_.low);
    const double stride = std::max(1.0, std::ceil(steps / 6));
    for (double step = 0; step <= steps + 0.01; step += stride) {
      const double bytes = x_.low * std::exp2(step);
      out += fmt::format(R"(<text x="{:.1f}" y="{:.0f}" text-anchor="middle">{}</text>)", x_.at(bytes),
                         kHeight - kBottom + 18, format_size(static_cast<std::uint64_t>(bytes)));
    }
    double legend = left_ + kLeft + 110;
    for (const Curve* curve : curves_) out += draw_curve(*curve, legend);
    return out;
  }

 private:
  double shown(double value) const { return curves_.front()->bandwidth() ? value / 8 : value; }

  std::string draw_curve(const Curve& curve, double& legend) const {
    std::string line, upper, lower;
    for (const Curve::Point& point : curve.points) {
      const double x = x_.at(static_cast<double>(point.bytes));
      line += fmt::format("{:.1f},{:.1f} ", x, y_.at(shown(point.middle)));
      upper += fmt::format("{:.1f},{:.1f} ", x, y_.at(shown(point.high)));
      lower.insert(0, fmt::format("{:.1f},{:.1f} ", x, y_.at(shown(point.low))));
    }
    const char* colour = colour_of(curve.relation);
    const char* dashes = curve.staged ? R"( stroke-dasharray="5 4")" : "";
    std::string out = fmt::format(R"(<polygon points="{}{}" fill="{}" fill-opacity=".15"/>)", upper, lower, colour);
    out += fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"{}/>)", line, colour, dashes);
    if (curve.ceiling_gbps > 0 && !curve.staged) {
      out += fmt::format(
          R"(<line x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}" stroke="{3}" stroke-dasharray="2 3"/>)", x_.from,
          x_.to, y_.at(shown(curve.ceiling_gbps)), colour);
    }
    const std::string words = curve.relation + (curve.staged ? " staged" : "");
    out += fmt::format(
        R"(<line x1="{0:.0f}" x2="{1:.0f}" y1="16" y2="16" stroke="{2}" stroke-width="2"{3}/><text x="{4:.0f}" y="20">{5}</text>)",
        legend, legend + 16, colour, dashes, legend + 20, html_text(words));
    legend += 30 + 7.0 * static_cast<double>(words.size());
    return out;
  }

  std::vector<const Curve*> curves_;
  double left_;
  Axis x_{};
  Axis y_{};
};

}  // namespace

std::string to_svg(const Page& page) {
  if (page.documents.empty()) return {};
  const std::vector<Curve> curves = curves_of(page.documents.back().runs);
  std::string panels;
  double left = 0;
  for (const bool bandwidth : {true, false}) {
    std::vector<const Curve*> wanted;
    for (const Curve& each : curves) {
      if (each.bandwidth() == bandwidth && (wanted.empty() || wanted.front()->op == each.op)) wanted.push_back(&each);
    }
    if (wanted.empty()) continue;
    panels += Panel(wanted, left).draw();
    left += kWidth;
  }
  const std::string what = page.documents.back().simulated ? "Simulated: bandwidth and latency over message size"
                                                           : "Bandwidth and latency over message size";
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img" aria-label="{2}"><title>{2}</title><style>text{{font:11px system-ui,sans-serif;fill:#4b5563}}.t{{font-weight:600;fill:#111827}}.g{{stroke:#e5e7eb}}</style><rect width="100%" height="100%" fill="#fff"/>{3}</svg>)",
             std::max(left, kWidth), kHeight, what, panels) +
         "\n";
}

}  // namespace gdrperf::page
