#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "page/escape.h"
#include "page/headline.h"
#include "gdrperf/compare/render.h"
#include "gdrperf/page/page.h"
#include "gdrperf/page/verdict.h"
#include "gdrperf/report/reference.h"

namespace gdrperf::page {
namespace {

using Data = nlohmann::ordered_json;

/// So many values of batches a page takes at most; longer series are thinned.
constexpr std::size_t kSeriesBudget = 300'000;
constexpr std::size_t kShortestSeries = 20;

Data number_or_null(double value) { return std::isfinite(value) ? Data(value) : Data(nullptr); }

/// A column in the shortest of three forms: {"all": "x"}, {"numbers": "1,,3"} or
/// {"of": [...], "at": "0,1,0"}.
Data column(const RunTable& runs, std::size_t place) {
  std::unordered_map<std::string, std::size_t> distinct;
  std::vector<std::string> order;
  std::size_t repeated = 0;
  bool numeric = true;
  for (std::size_t row = 0; row < runs.rows(); ++row) {
    const std::string& text = runs.text_at(row, place);
    if (distinct.emplace(text, order.size()).second) {
      order.push_back(text);
      numeric = numeric && (text.empty() || !std::isnan(number_of(text)));
    } else {
      ++repeated;
    }
  }
  if (order.size() <= 1) return {{"all", order.empty() ? "" : order[0]}};
  if (numeric && repeated < 7 * order.size()) {
    std::string all;
    for (std::size_t row = 0; row < runs.rows(); ++row) {
      if (row > 0) all += ',';
      all += runs.text_at(row, place);
    }
    return {{"numbers", all}};
  }
  std::string at;
  for (std::size_t row = 0; row < runs.rows(); ++row) {
    if (row > 0) at += ',';
    at += std::to_string(distinct[runs.text_at(row, place)]);
  }
  return {{"of", order}, {"at", at}};
}

/// Neighbours averaged until no more than `most` are left.
std::vector<double> thinned(const std::vector<double>& values, std::size_t most) {
  const std::size_t together = (values.size() + most - 1) / most;
  if (together <= 1) return values;
  std::vector<double> result;
  for (std::size_t at = 0; at < values.size(); at += together) {
    const std::size_t end = std::min(at + together, values.size());
    double sum = 0;
    for (std::size_t i = at; i < end; ++i) sum += values[i];
    result.push_back(sum / static_cast<double>(end - at));
  }
  return result;
}

/// Batches in ten-thousandths of the run's figure, one blank between, runs by commas.
std::string series_of(const RunTable& runs) {
  const std::size_t most =
      std::clamp(kSeriesBudget / std::max<std::size_t>(runs.rows(), 1), kShortestSeries, std::size_t{1000});
  std::string all;
  for (std::size_t row = 0; row < runs.rows(); ++row) {
    if (row > 0) all += ',';
    double figure = runs.number(row, "median_gbps");
    if (!(figure > 0)) figure = runs.number(row, "p50_ns");
    if (!(figure > 0)) continue;
    std::string one;
    for (const double value : thinned(runs.series(row), most)) {
      if (!one.empty()) one += ' ';
      one += fmt::format("{:.0f}", value / figure * 10000);
    }
    all += one;
  }
  return all;
}

Data document_data(const PageDocument& document) {
  Data columns = Data::object();
  for (std::size_t place = 0; place < RunTable::columns().size(); ++place) {
    columns[RunTable::columns()[place]] = column(document.runs, place);
  }
  Data counters = Data::array();
  for (const PageCounter& each : document.counters)
    counters.push_back({each.end, each.device, each.name, each.rise, each.runs});
  return {{"path", document.path},
          {"head", Data::parse(document.head)},
          {"rows", document.runs.rows()},
          {"columns", std::move(columns)},
          {"series", series_of(document.runs)},
          {"counters", std::move(counters)}};
}

Data comparison_data(const PageComparison& each) {
  Data cells = Data::array();
  for (const compare::CellResult& cell : each.result.cells) {
    cells.push_back({cell.key.name, to_string(cell.verdict), cell.key.better == compare::Better::kHigher ? 1 : 0,
                     number_or_null(cell.baseline_median), number_or_null(cell.candidate_median),
                     number_or_null(std::round(cell.change * 1e5) / 1e5), cell.worse() ? 1 : 0,
                     cell.baseline_sessions, cell.candidate_sessions, cell.why});
  }
  return {{"before", each.before}, {"after", each.after}, {"remarks", compare::remarks(each.result)},
          {"summary", compare::summary_line(each.result)}, {"cells", std::move(cells)}};
}

Data trend_data(const PageTrend& trend) {
  Data sessions = Data::array();
  for (const auto& [started, path] : trend.sessions) sessions.push_back({started, path});
  std::map<Outside, Data> changes;
  for (const compare::CellTrend& cell : trend.trends.changed) {
    for (const compare::TrendChange& each : cell.changes) {
      const auto at = std::find_if(trend.sessions.begin(), trend.sessions.end(),
                                   [&](const auto& one) { return one.second == each.path; });
      changes[cell.cell].push_back({{"at", at - trend.sessions.begin()},
                                    {"before", each.before},
                                    {"after", each.after},
                                    {"change", each.change}});
    }
  }
  Data cells = Data::array();
  for (const PageTrend::Cell& cell : trend.cells) {
    Data values = Data::array();
    for (const double value : cell.values) values.push_back(number_or_null(value));
    const auto found = changes.find(cell.name);
    cells.push_back({{"name", cell.name},
                     {"higher", cell.better == compare::Better::kHigher},
                     {"values", std::move(values)},
                     {"changes", found == changes.end() ? Data::array() : found->second}});
  }
  return {{"folder", trend.folder},
          {"machine", trend.machine},
          {"sessions", std::move(sessions)},
          {"cells", std::move(cells)}};
}

Data published_data() {
  Data all = Data::array();
  for (const report::PublishedFigure& each : report::published_figures()) {
    if (!each.gpudirect_rdma || each.gbytes <= 0 || each.relations.empty()) continue;
    all.push_back({{"relations", each.relations},
                   {"gbps", each.gbytes * 8},
                   {"link_gbps", each.link_gbps},
                   {"op", each.op},
                   {"gpu", each.gpu},
                   {"nic", each.nic},
                   {"source", each.source}});
  }
  return all;
}

Data verdict_data(const Page& page) {
  const Verdict verdict = judge(page);
  Data findings = Data::array();
  for (const Finding& each : verdict.findings) {
    findings.push_back(
        {{"level", to_string(each.level)}, {"subject", each.subject}, {"text", each.text}, {"todo", each.todo}});
  }
  return {{"level", to_string(verdict.level)}, {"headline", verdict.headline}, {"findings", std::move(findings)}};
}

}  // namespace

std::string page_data(const Page& page) {
  Data documents = Data::array();
  for (const PageDocument& each : page.documents) documents.push_back(document_data(each));
  Data comparisons = Data::array();
  for (const PageComparison& each : page.comparisons) comparisons.push_back(comparison_data(each));
  Data trends = Data::array();
  for (const PageTrend& each : page.trends) trends.push_back(trend_data(each));
  Data clusters = Data::array();
  for (const PageCluster& each : page.clusters) clusters.push_back(Data::parse(each.data));
  const Data all = {{"tool", page.tool},
                    {"title", title_of(page)},
                    {"verdict", verdict_data(page)},
                    {"documents", std::move(documents)},
                    {"comparisons", std::move(comparisons)},
                    {"trends", std::move(trends)},
                    {"clusters", std::move(clusters)},
                    {"published", published_data()}};
  return script_safe(all.dump(-1, ' ', false, Data::error_handler_t::replace));
}

}  // namespace gdrperf::page
