#include "gdrperf/report/pair_matrix.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/report/fields.h"
#include "report/console/console_rows.h"

namespace gdrperf::report {
namespace {

std::string value_text(double value, Metric metric, RateUnit unit) {
  return fmt::format("{}", plain_digits(value * (metric == Metric::kLatency ? 1e-3 : scale_of(unit)), 3));
}

void append_new(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

double middle_of(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

}  // namespace

/// One grid: its name and what stands in it.
struct PairMatrix::Drawn {
  std::string title;
  std::function<std::pair<std::string, std::optional<Style>>(const Place&)> cell;
};

std::pair<std::string, std::string> matrix_place(const std::string& pair, const EndSpec& client,
                                                 const EndSpec& server) {
  const std::string peer = server.buffer == "host" ? "" : " to " + server.buffer;
  if (const std::size_t slash = pair.find('/'); slash != std::string::npos) {
    return {pair.substr(0, slash) + peer, pair.substr(slash + 1)};
  }
  return {client.buffer + peer, client.device.empty() ? "any device" : client.device};
}

void PairMatrix::add(const RunRecord& record) {
  EndSpec client;
  client.buffer = record.client.buffer;
  client.device = record.client.device.raw();
  EndSpec server;
  server.buffer = record.server.buffer;
  const Place place = matrix_place(record.path.pair.raw(), client, server);
  append_new(rows_, place.first);
  append_new(columns_, place.second);
  relations_[place] = record.relation;
  kind_ = not_of_hardware(record.device_kind);
  for (const std::string& each : record.measured.warnings) note(each);
  for (const std::string& each : record.warnings) note(each);
  const std::string name = series_name(record);
  auto test = std::find_if(tests_.begin(), tests_.end(), [&](const TestCells& one) { return one.name == name; });
  if (test == tests_.end()) test = tests_.insert(tests_.end(), {name, record.spec.test.metric, {}});
  Cell cell{0, record.spec.size_bytes, efficiency(record), record.measured.unstable};
  if (record.measured.bandwidth) cell.value = record.measured.bandwidth->median_gbytes;
  if (record.measured.latency) cell.value = record.measured.latency->p50_ns;
  if (!(cell.value > 0) || !std::isfinite(cell.value)) return;
  const auto [known, fresh] = test->cells.try_emplace(place, cell);
  const bool better =
      test->metric == Metric::kLatency ? cell.size_bytes < known->second.size_bytes : cell.value > known->second.value;
  if (!fresh && better) known->second = cell;
}

void PairMatrix::note(const std::string& warning) {
  Warning& known = warnings_.try_emplace(warning_kind(warning), Warning{warning, 0}).first->second;
  ++known.runs;
}

void PairMatrix::draw(std::ostream& out, const Drawn& drawn, const ConsoleOptions& options) const {
  std::size_t label = 0;
  for (const std::string& row : rows_) label = std::max(label, printable(row).size());
  std::size_t width = 0;
  for (const std::string& column : columns_) {
    width = std::max(width, printable(column).size());
    for (const std::string& row : rows_) width = std::max(width, drawn.cell({row, column}).first.size());
  }
  const std::size_t room =
      options.columns == 0 ? columns_.size() * (width + 2) : options.columns - std::min(options.columns, label + 2);
  const std::size_t together = std::max<std::size_t>(1, room / (width + 2));
  out << styled(options.colour, Style::kBold, wrapped(drawn.title, options.columns, 4)) << '\n';
  for (std::size_t first = 0; first < columns_.size(); first += together) {
    const std::size_t end = std::min(columns_.size(), first + together);
    std::string line = fmt::format("  {:<{}}", "", label);
    for (std::size_t at = first; at < end; ++at) line += fmt::format("  {:>{}}", printable(columns_[at]), width);
    out << styled(options.colour, Style::kDim, line) << '\n';
    for (const std::string& row : rows_) {
      out << fmt::format("  {:<{}}", printable(row), label);
      for (std::size_t at = first; at < end; ++at) {
        const auto [text, style] = drawn.cell({row, columns_[at]});
        const std::string cell = fmt::format("  {:>{}}", text, width);
        out << (style ? styled(options.colour, *style, cell) : cell);
      }
      out << '\n';
    }
  }
}

std::string PairMatrix::words(const TestCells& test, const ConsoleOptions& options) const {
  const auto by_value = [](const auto& one, const auto& other) { return one.second.value < other.second.value; };
  const auto [least, most] = std::minmax_element(test.cells.begin(), test.cells.end(), by_value);
  const bool latency = test.metric == Metric::kLatency;
  const auto& worst = latency ? *most : *least;
  std::vector<double> values;
  std::optional<double> lowest, highest;
  for (const auto& [place, cell] : test.cells) {
    values.push_back(cell.value);
    if (!cell.share) continue;
    lowest = std::min(lowest.value_or(*cell.share), *cell.share);
    highest = std::max(highest.value_or(*cell.share), *cell.share);
  }
  const auto text = [&](double value) { return value_text(value, test.metric, options.rate_unit); };
  std::string line = fmt::format("  median {}, {} {} ({}/{}, {})", text(middle_of(values)),
                                 latency ? "slowest" : "lowest", text(worst.second.value), printable(worst.first.first),
                                 printable(worst.first.second), relations_.at(worst.first));
  if (lowest) line += fmt::format("; {:.0f} % to {:.0f} % of the maximum", *lowest * 100, *highest * 100);
  return wrapped(line, options.columns, 4);
}

void PairMatrix::print_warnings(std::ostream& out, const ConsoleOptions& options) const {
  for (const auto& [kind, each] : warnings_) {
    const std::string runs = each.runs == 1 ? "1 run" : fmt::format("{} runs, like this one", each.runs);
    const std::string line = fmt::format("  warning ({}): {}", runs, printable(each.text));
    out << styled(options.colour, Style::kDoubtful, wrapped(line, options.columns, 4)) << '\n';
  }
}

void PairMatrix::print(std::ostream& out, const ConsoleOptions& options) const {
  if (tests_.empty()) return;
  out << '\n';
  draw(out, {"relation", [this](const Place& place) {
               const auto found = relations_.find(place);
               return std::pair(found == relations_.end() ? "-" : found->second, std::optional<Style>());
             }}, options);
  if (!kind_.empty()) out << "  " << kind_ << '\n';
  bool unstable = false;
  for (const TestCells& test : tests_) {
    if (test.cells.empty()) continue;
    const bool latency = test.metric == Metric::kLatency;
    const std::string unit = latency ? "us" : rate_unit_name(options.rate_unit);
    std::uint64_t smallest = test.cells.begin()->second.size_bytes;
    for (const auto& [place, cell] : test.cells) smallest = std::min(smallest, cell.size_bytes);
    const std::string what = latency ? fmt::format("p50 at {}", format_size(smallest)) : "best size of each";
    out << '\n';
    draw(out, {fmt::format("{}, {}, {}", test.name, unit, what), [&](const Place& place) {
                 const auto found = test.cells.find(place);
                 if (found == test.cells.end()) return std::pair(std::string("-"), std::optional<Style>());
                 const Cell& cell = found->second;
                 unstable = unstable || cell.unstable;
                 return std::pair(
                     value_text(cell.value, test.metric, options.rate_unit) + (cell.unstable ? kUnstable : ' '),
                     style_of_share(cell.share));
               }}, options);
    out << words(test, options) << '\n';
  }
  if (unstable)
    out << styled(options.colour, Style::kDim,
                  fmt::format("  {} unstable: not known within the requested precision", kUnstable))
        << '\n';
  print_warnings(out, options);
  out.flush();
}

}  // namespace gdrperf::report
