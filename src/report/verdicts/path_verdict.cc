#include "gdrperf/report/path_verdict.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

Outside end_name(const EndRecord& end) { return end.device.raw() + " " + end.buffer; }

bool latency(const PathVerdict& verdict) { return verdict.test.metric == Metric::kLatency; }

}  // namespace

double PathVerdict::ratio(const PathPoint& point) const {
  return test.metric == Metric::kLatency ? point.direct / point.staged : point.staged / point.direct;
}

std::uint64_t PathVerdict::crossover_bytes() const {
  std::uint64_t crossover = 0;
  std::optional<bool> last;
  for (const auto& [size, point] : points) {
    if (!point.counts()) continue;
    const bool staged = ratio(point) > 1;
    if (last && staged != *last) {
      if (crossover != 0) return 0;
      crossover = size;
    }
    last = staged;
  }
  return crossover;
}

std::string PathVerdict::words() const {
  std::size_t staged = 0, all = 0, unstable = 0;
  double first_ratio = 0;
  for (const auto& [size, point] : points) {
    if (!point.both()) continue;
    if (point.unstable) {
      ++unstable;
      continue;
    }
    if (all == 0) first_ratio = ratio(point);
    ++all;
    staged += ratio(point) > 1 ? 1 : 0;
  }
  if (all == 0) return unstable == 0 ? "" : "not known: no size is stable both ways";
  const std::string left_out =
      unstable == 0 ? "" : fmt::format(" ({} unstable size{} left out)", unstable, unstable == 1 ? "" : "s");
  if (staged == 0) return "direct at every size" + left_out;
  if (staged == all) return "staged at every size" + left_out;
  const std::uint64_t crossover = crossover_bytes();
  if (crossover == 0)
    return fmt::format("not the same at every size: staged at {} of {} sizes{}", staged, all, left_out);
  const bool staged_first = first_ratio > 1;
  return fmt::format("{} below {}, {} from there on{}", staged_first ? "staged" : "direct", format_size(crossover),
                     staged_first ? "direct" : "staged", left_out);
}

void PathVerdicts::add(const RunRecord& record) {
  if ((!record.client.gpu && !record.server.gpu) || record.spec.consume) return;
  PathVerdict fresh{record.spec.test, end_name(record.client), end_name(record.server), record.relation, {}};
  const auto same = [&](const PathVerdict& one) {
    return one.test == fresh.test && one.client == fresh.client && one.server == fresh.server;
  };
  auto found = std::find_if(verdicts_.begin(), verdicts_.end(), same);
  if (found == verdicts_.end()) found = verdicts_.insert(verdicts_.end(), std::move(fresh));
  PathPoint& point = found->points[record.spec.size_bytes];
  point.unstable = point.unstable || record.measured.unstable;
  double& value = record.spec.path == Path::kStaged ? point.staged : point.direct;
  if (record.measured.bandwidth) value = record.measured.bandwidth->median_gbytes;
  if (record.measured.latency) value = record.measured.latency->p50_ns / 1e3;
}

std::vector<PathVerdict> PathVerdicts::all() const {
  std::vector<PathVerdict> result;
  std::copy_if(verdicts_.begin(), verdicts_.end(), std::back_inserter(result), [](const PathVerdict& one) {
    return std::any_of(one.points.begin(), one.points.end(), [](const auto& point) { return point.second.both(); });
  });
  return result;
}

std::string to_text(const std::vector<PathVerdict>& verdicts) {
  std::string text;
  for (const PathVerdict& verdict : verdicts) {
    const char* unit = latency(verdict) ? "us" : "GB/s";
    text += fmt::format("\n{} {} to {}: direct or staged\n{:>10}{:>14}{:>14}{:>9}\n", to_string(verdict.test),
                        printable(verdict.client), printable(verdict.server), "size", fmt::format("direct {}", unit),
                        fmt::format("staged {}", unit), "staged x");
    for (const auto& [size, point] : verdict.points) {
      if (!point.both()) continue;
      text += fmt::format("{:>10}{:>14}{:>14}{:>9.2f}{}\n", format_size(size), plain_digits(point.direct),
                          plain_digits(point.staged), verdict.ratio(point), point.unstable ? " !" : "");
    }
    text += fmt::format("  better: {}\n", verdict.words());
  }
  return text;
}

std::string words_of(const std::vector<PathVerdict>& verdicts) {
  std::string text = verdicts.empty() ? "" : "\nDirect or staged\n";
  for (const PathVerdict& verdict : verdicts) {
    text += fmt::format("  {} {} to {}: {}\n", to_string(verdict.test), printable(verdict.client),
                        printable(verdict.server), verdict.words());
  }
  return text;
}

}  // namespace gdrperf::report
