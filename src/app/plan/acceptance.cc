#include "app/plan/acceptance.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

/// Set-up of a run and its end: registering memory, connecting.
constexpr std::chrono::milliseconds kSetUp(100);

std::string relation_of(const PlannedRun& run) {
  return run.pair ? std::string(to_string(*run.pair->relation)) : "HOST";
}

/// How much a line says of a run: a pair more than a relation, and that more than "all"; 0: nothing.
int telling(const std::string& place, const PlannedRun& run) {
  if (run.pair && place == run.pair->gpu + ":" + run.pair->nic.raw()) return 3;
  if (place == relation_of(run)) return 2;
  return place == "all" ? 1 : 0;
}

bool is_place(const std::string& word) {
  return word == "all" || word == "HOST" || topo::relation_from_token(word) || word.find(':') != word.npos;
}

}  // namespace

Floors Floors::parse(const std::string& text, const std::string& name) {
  Floors floors;
  std::istringstream lines(text);
  std::size_t number = 0;
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}:{}", name, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string place, rate, test, more;
    if (!(words >> place)) continue;
    if (!is_place(place)) {
      throw usage_error(fmt::format("{}: '{:.40}' is no pair of GPU and NIC, no relation and not 'all'", where, place),
                        "like: PIX 22GB/s");
    }
    if (!(words >> rate)) throw usage_error(fmt::format("{}: no rate behind {:.40}", where, place), "like: PIX 22GB/s");
    Line found{place, std::nullopt, gigabits_from_gigabytes(parse_rate(rate, where) / 1e9), where};
    if (words >> test) {
      found.test = parse_test(test);
      if (!found.test || found.test->metric != Metric::kBandwidth) {
        throw usage_error(fmt::format("{}: '{:.40}' is no bandwidth test, like read_bw", where, test));
      }
    }
    if (words >> more)
      throw usage_error(
          fmt::format("{}: '{:.40}' is too much: a line is a place, a rate and maybe a test", where, more));
    if (!seen.insert(place + " " + test).second) throw usage_error(fmt::format("{}: {} comes twice", where, place));
    floors.lines_.push_back(std::move(found));
  }
  if (floors.lines_.empty()) throw usage_error(name + ": it has no required rate", "like: PIX 22GB/s");
  return floors;
}

const Floors::Line* Floors::line_for(const PlannedRun& run) const {
  const Line* best = nullptr;
  int most = 0;
  for (const Line& line : lines_) {
    if (line.test && *line.test != run.spec.test) continue;
    const int place = telling(line.place, run);
    const int worth = place == 0 ? 0 : 2 * place + (line.test ? 1 : 0);
    if (worth <= most) continue;
    most = worth;
    best = &line;
  }
  return best;
}

std::optional<double> Floors::least_gbps(const PlannedRun& run) const {
  const Line* line = line_for(run);
  return line == nullptr ? std::nullopt : std::optional(line->gbps);
}

void Floors::ask(std::vector<PlannedRun>& runs) const {
  std::set<const Line*> used;
  for (PlannedRun& run : runs) {
    const Line* line = line_for(run);
    if (line == nullptr) continue;
    used.insert(line);
    run.required = {};
    run.required.min_gbps = line->gbps;
  }
  for (const Line& line : lines_) {
    const bool meant = used.contains(&line) || std::any_of(runs.begin(), runs.end(), [&](const PlannedRun& run) {
                         return telling(line.place, run) > 0;
                       });
    if (!meant) throw usage_error(fmt::format("{}: no run is of {}", line.where, line.place), "--dry-run lists them");
  }
}

std::chrono::nanoseconds time_of_each(std::size_t runs, std::chrono::nanoseconds within) {
  using namespace std::chrono_literals;
  const auto each =
      within / static_cast<std::int64_t>(std::max<std::size_t>(runs, 1)) - std::chrono::nanoseconds(kSetUp);
  return std::clamp<std::chrono::nanoseconds>(each, 100ms, 1s);
}

}  // namespace gdrperf::app
