#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/compare/render.h"
#include "gdrperf/page/curves.h"
#include "gdrperf/page/page.h"
#include "gdrperf/page/verdict.h"

namespace gdrperf::page {
namespace {

const Curve::Point& best_of(const Curve& curve) {
  const auto less = [](const Curve::Point& one, const Curve::Point& other) { return one.middle < other.middle; };
  return curve.bandwidth() ? *std::max_element(curve.points.begin(), curve.points.end(), less)
                           : *std::min_element(curve.points.begin(), curve.points.end(), less);
}

std::string figure(const Curve& curve, double value) {
  return curve.bandwidth() ? fmt::format("{:.2f} GB/s", value / 8) : format_duration_ns(value);
}

std::string best_table(const std::vector<Curve>& curves) {
  std::string out =
      "| test | relation | path | best | at | lowest to highest pair | of the maximum |\n"
      "| :--- | :--- | :--- | ---: | ---: | ---: | ---: |\n";
  for (const Curve& each : curves) {
    const Curve::Point& best = best_of(each);
    out += fmt::format("| {} | {} | {} | {} | {} | {} to {} | {} |\n", markdown_text(each.op),
                       markdown_text(each.relation), each.staged ? "staged" : "direct", figure(each, best.middle),
                       format_size(best.bytes), figure(each, best.low), figure(each, best.high),
                       each.share > 0 ? fmt::format("{:.0f} %", each.share * 100) : "-");
  }
  return out;
}

}  // namespace

std::string to_markdown(const Page& page) {
  const Verdict verdict = judge(page);
  std::string out = fmt::format("## {}\n\n", markdown_text(verdict.headline));
  for (const Finding& each : verdict.findings) {
    out += fmt::format("- **{}** {}{}{}\n", to_string(each.level),
                       each.subject.empty() ? "" : markdown_text(each.subject) + ": ", markdown_text(each.text),
                       each.todo.empty() ? "" : " - " + markdown_text(each.todo));
  }
  for (const PageCluster& each : page.clusters)
    out += fmt::format("\n{}, {}\n", markdown_text(each.path), markdown_text(each.started));
  if (page.documents.empty()) return out;
  const PageDocument& shown = page.documents.back();
  out += fmt::format("\n{}, {}{}\n\n", markdown_text(shown.path), markdown_text(shown.started),
                     shown.simulated ? ", simulated" : "");
  const std::vector<Curve> curves = curves_of(shown.runs);
  if (!curves.empty()) out += best_table(curves);
  for (const PageComparison& each : page.comparisons) {
    out += fmt::format("\n### {} compared with {}\n\n", markdown_text(each.after), markdown_text(each.before));
    out += compare::to_markdown(each.result);
  }
  return out;
}

}  // namespace gdrperf::page
