#include "cluster/ranks/collective.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/output/terminal.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

// As nccl-tests: rounds that count.
constexpr int kTimed = 20;
// So many messages of -s are a size that saturates.
constexpr std::uint64_t kLarge = 128;
// A collective that is so many times slower than pairs promise is given up.
constexpr double kTimesSlower = 10;
constexpr std::chrono::seconds kStart{60};
constexpr std::chrono::seconds kUnknown{120};

struct JobGpu {
  int rank = 0;
  std::string gpu;  ///< as --buffer takes it
};

std::string with_rank(const Star& star, int rank, const std::string& text) {
  return fmt::format("rank {} on {}: {}", rank, star.members()[static_cast<std::size_t>(rank)].card.host, text);
}

/// NCCL takes a GPU once: of the ranks that see it, the one that has fewest so far has it.
std::vector<JobGpu> shared_out(const Star& star, const std::map<int, CollectiveReady>& answers) {
  std::map<std::pair<std::string, std::string>, std::vector<int>> seen;
  for (const auto& [rank, ready] : answers) {
    const std::string& host = star.members()[static_cast<std::size_t>(rank)].card.host_id;
    for (const std::string& gpu : ready.gpus) seen[{host, gpu}].push_back(rank);
  }
  std::map<int, int> taken;
  std::vector<JobGpu> gpus;
  for (const auto& [gpu, ranks] : seen) {
    const auto fewest = [&](int one, int other) { return taken[one] < taken[other]; };
    const int rank = *std::min_element(ranks.begin(), ranks.end(), fewest);
    ++taken[rank];
    gpus.push_back({rank, gpu.second});
  }
  return gpus;
}

/// Of the first maker of whom ranks see two. Throws as check_collective().
std::vector<JobGpu> find_gpus(Star& star) {
  std::map<int, CollectiveReady> none;
  for (const char* maker : {"cuda", "rocm"}) {
    std::map<int, AskCollective> orders;
    for (const Member& member : star.members()) {
      if (member.here && !member.devices.empty()) orders[member.card.rank] = {maker, false};
    }
    const std::map<int, CollectiveReady> answers = star.ask(orders);
    const std::vector<JobGpu> gpus = shared_out(star, answers);
    if (none.empty()) none = answers;
    if (gpus.size() < 2) continue;
    for (const JobGpu& each : gpus) {
      const CollectiveReady& ready = answers.at(each.rank);
      if (ready.why_not.empty()) continue;
      throw Error(ExitCode::kEnvironment, "--patterns nccl: " + with_rank(star, each.rank, ready.why_not),
                  "install NCCL (libnccl.so.2, 2.14 or later; AMD: librccl.so.1) on every host, or let LD_LIBRARY_PATH "
                  "name its folder");
    }
    return gpus;
  }
  const auto [rank, ready] = none.empty() ? std::pair<const int, CollectiveReady>() : *none.begin();
  const std::string found = ready.why_not.empty() ? "it has one" : ready.why_not;
  throw Error(ExitCode::kEnvironment, "--patterns nccl: it takes two GPUs or more; " + with_rank(star, rank, found),
              "'gdrperf doctor' on each host explains missing GPUs; leave nccl out to measure NICs alone");
}

/// NICs that are measured of each host; by host.
std::map<std::string, std::size_t> nics_by_host(const Star& star) {
  std::map<std::string, std::size_t> counts;
  for (const Member& member : star.members()) {
    if (member.here && !member.devices.empty()) counts[member.card.host_id] += member.devices.size();
  }
  return counts;
}

std::chrono::nanoseconds limit_of(std::uint64_t bytes, double typical_gbytes) {
  if (!(typical_gbytes > 0)) return kStart + kUnknown;
  const double seconds = kTimesSlower * 2 * kTimed * 2 * static_cast<double>(bytes) / (typical_gbytes * 1e9);
  if (seconds > std::chrono::duration<double>(kLongestCollective - kStart).count()) return kLongestCollective;
  return kStart + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

/// What nccl-tests calls the bus bandwidth: as if each GPU's data crossed one link, whatever their number.
double bus_gbytes(std::uint64_t bytes, double seconds, std::size_t gpus) {
  const auto count = static_cast<double>(gpus);
  return static_cast<double>(bytes) / 1e9 / seconds * 2 * (count - 1) / count;
}

/// With the bus bandwidth that the slowest host's NICs would carry at pairs' rate.
void compare_with_pairs(const std::map<std::string, std::size_t>& nics, double typical_gbytes, CollectiveStep& step) {
  std::size_t least = ~std::size_t{0};
  for (const auto& [host, count] : nics) least = std::min(least, count);
  // On one host GPUs have better ways than NICs.
  if (nics.size() < 2 || !(typical_gbytes > 0)) return;
  step.share_of_pairs = step.bus_gbytes / (static_cast<double>(least) * typical_gbytes);
}

CollectiveStep measure(Star& star, const std::vector<JobGpu>& gpus, std::uint64_t bytes, double typical_gbytes,
                       int id) {
  CollectiveStep step;
  step.label = "all_reduce " + format_size(bytes);
  step.size_bytes = bytes;
  step.gpus = gpus.size();
  step.hosts = nics_by_host(star).size();
  const int first = gpus.front().rank;
  const std::string maker = gpus.front().gpu.substr(0, gpus.front().gpu.find(':'));
  const auto ready = star.ask({{first, {maker, true}}});
  const auto named = ready.find(first);
  if (named == ready.end() || !named->second.why_not.empty()) {
    step.failed.push_back(with_rank(star, first, named == ready.end() ? "is lost" : named->second.why_not));
    return step;
  }
  step.library = named->second.version;
  std::map<int, Collective> orders;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    Collective& order = orders[gpus[i].rank];
    order.id = id;
    order.unique_id = named->second.unique_id;
    order.ranks = static_cast<int>(gpus.size());
    order.size_bytes = bytes;
    order.timed = kTimed;
    order.limit_ns = limit_of(bytes, typical_gbytes).count();
    order.ends.push_back({static_cast<int>(i), gpus[i].gpu});
  }
  double seconds = 0;
  std::size_t measured = 0;
  for (const auto& [rank, rates] : star.measure(orders)) {
    for (const ClusterRate& rate : rates.rates) {
      if (rate.gbytes > 0) {
        seconds += static_cast<double>(bytes) / 1e9 / rate.gbytes;
        ++measured;
      } else {
        step.failed.push_back(with_rank(star, rank, rate.error));
      }
    }
  }
  if (measured < gpus.size()) return step;
  step.seconds = seconds / static_cast<double>(measured);
  step.bus_gbytes = bus_gbytes(bytes, step.seconds, gpus.size());
  return step;
}

}  // namespace

bool has_collective(const std::vector<cluster::Pattern>& patterns) {
  return std::find(patterns.begin(), patterns.end(), cluster::Pattern::kNccl) != patterns.end();
}

void check_collective(Star& star) { find_gpus(star); }

void run_collective(Star& star, const ClusterTest& test, ClusterResult& result) {
  std::vector<JobGpu> gpus;
  try {
    gpus = find_gpus(star);
  } catch (const Error& error) {
    // Since check_collective() ranks were lost. What the pairs told is told.
    CollectiveStep& step = result.collectives.emplace_back();
    step.label = "all_reduce";
    step.failed.push_back(error.what());
    return;
  }
  int id = 1 << 21;
  for (const std::uint64_t bytes : {test.size_bytes, kLarge * test.size_bytes}) {
    if (star.stopped()) return;
    const std::uint64_t taken = std::min(bytes, kMostCollectiveBytes);
    result.collectives.push_back(measure(star, gpus, taken, result.judgement.typical_gbytes, ++id));
  }
  // A small one takes as long as its many messages, whatever the rate.
  if (CollectiveStep& large = result.collectives.back(); large.bus_gbytes > 0)
    compare_with_pairs(nics_by_host(star), result.judgement.typical_gbytes, large);
}

std::string collective_lines(const ClusterResult& result) {
  std::string out;
  for (const CollectiveStep& step : result.collectives) {
    out += fmt::format("nccl, {}: {} GPUs of {} host{}", step.label, step.gpus, step.hosts, step.hosts == 1 ? "" : "s");
    if (!step.library.empty()) out += ", " + step.library;
    if (step.seconds > 0)
      out += fmt::format("; {} us, bus bandwidth {} GB/s", plain_digits(step.seconds * 1e6),
                         plain_digits(step.bus_gbytes));
    if (step.share_of_pairs > 0) out += fmt::format("; {:.0f} % of pairs' rate", 100 * step.share_of_pairs);
    out += "\n";
    for (const std::string& why : step.failed) out += fmt::format("nccl, {}, failed: {}\n", step.label, why);
    if (step.share_of_pairs > 0 && step.share_of_pairs < kAsPairs)
      out += fmt::format(
          "SLOWER TOGETHER nccl, {}: {:.0f} % of what each host's NICs carry in pairs: NCCL uses other NICs or host "
          "memory (NCCL_DEBUG=INFO prints which), or links are shared above the leaves\n",
          step.label, 100 * step.share_of_pairs);
  }
  return out;
}

}  // namespace gdrperf::app
