// Accuracy of the judge of `gdrperf cluster`: which slow parts it finds in simulated
// clusters, what it says of healthy ones, and what judging 10,000 nodes costs.
//
// usage: cluster_judge [CLEAN_RUNS [FAULT_RUNS [DISTURBED_RUNS]]]; 0 leaves that part out

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"
#include "gdrperf/cluster/simulator.h"

namespace {

using namespace gdrperf::cluster;

constexpr int kNodes = 512;
constexpr int kRails = 8;
constexpr int kPerLeaf = 32;

struct Outcome {
  Judgement judgement;
  std::vector<Sample> samples;
};

Outcome run(const World& world) {
  Simulator simulator(world);
  ScheduleOptions schedule;
  schedule.seed = world.seed;
  JudgeOptions options;
  options.seed = world.seed;
  Outcome outcome;
  for (const Round& round : make_schedule(simulator.fabric(), schedule)) {
    simulator.measure(round, outcome.samples);
  }
  outcome.judgement = judge(simulator.fabric(), outcome.samples, options);
  std::vector<Sample> retests;
  settle(simulator.fabric(), outcome.samples, options, simulator.measurer(), retests, outcome.judgement);
  return outcome;
}

// Share of the measurements that "below 93 % of the fastest, measured once" calls slow.
double below_93_percent(const std::vector<Sample>& samples) {
  float fastest = 0;
  for (const Sample& sample : samples) fastest = std::max(fastest, sample.gbytes);
  const auto slow = std::count_if(samples.begin(), samples.end(),
                                  [&](const Sample& sample) { return sample.gbytes < 0.93F * fastest; });
  return static_cast<double>(slow) / static_cast<double>(samples.size());
}

// Slow parts that `is_planted` does not know, and whether one that it knows is there.
struct Count {
  int found = 0;
  int false_alarms = 0;  ///< runs with one
  int cannot_tell = 0;   ///< runs without anything slow, and with something undecided
  double below = 0;      ///< share of measurements that the other rule calls slow, of all runs
};

void print_alarm(const World& world, const Suspect& suspect) {
  fmt::print("  false alarm, seed {}: {} leaf {} node {} rail {} nic {} peer {} ({}), {:.2f} % and {:.1f} sigma in {}, "
             "{:.2f} % in {} retests\n",
             world.seed, to_string(suspect.part), suspect.leaf, suspect.node, suspect.rail, suspect.nic, suspect.peer,
             to_string(suspect.way), 100 * (std::exp(suspect.shift) - 1), suspect.sigmas, suspect.samples,
             100 * (std::exp(suspect.retest_shift) - 1), suspect.retests);
}

Count count(World world, int runs, const std::function<void(World&, std::mt19937_64&)>& plant,
            const std::function<bool(const World&, const Suspect&)>& is_planted) {
  Count count;
  std::mt19937_64 random(7);
  for (int i = 0; i < runs; ++i) {
    world.seed = static_cast<std::uint64_t>(i) + 1;
    world.faults.clear();
    plant(world, random);
    const Outcome outcome = run(world);
    count.below += below_93_percent(outcome.samples) / runs;
    bool found = false;
    bool alarm = false;
    bool undecided = false;
    for (const Suspect& suspect : outcome.judgement.suspects) {
      undecided = undecided || suspect.verdict == Verdict::kUndecided;
      if (suspect.verdict != Verdict::kSlow) continue;
      const bool planted = is_planted(world, suspect);
      (planted ? found : alarm) = true;
      if (!planted) print_alarm(world, suspect);
    }
    count.found += int{found};
    count.false_alarms += int{alarm};
    count.cannot_tell += int{undecided && !found && !alarm};
  }
  return count;
}

int pick(std::mt19937_64& random, int below) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(below));
}

void print(const char* what, const Count& count, int runs, const char* wanted) {
  fmt::print("{:<48} found {:.4f}  runs with a false alarm {} of {}   ({}); \"below 93 %\": {:.1f} % of measurements\n",
             what, static_cast<double>(count.found) / runs, count.false_alarms, runs, wanted, 100 * count.below);
}

void faults(int runs) {
  World world{.nodes = kNodes, .rails = kRails, .nodes_per_leaf = kPerLeaf, .collided = 0.2};
  for (const double factor : {0.90, 0.95}) {
    const Count nic = count(
        world, runs,
        [&](World& w, std::mt19937_64& random) {
          w.faults.push_back(
              {.node = pick(random, kNodes), .rail = pick(random, kRails), .factor = factor});
        },
        [](const World& w, const Suspect& suspect) {
          return suspect.part == Part::kNic && suspect.node == w.faults[0].node &&
                 suspect.rail == w.faults[0].rail;
        });
    print(fmt::format("NIC {:+.0f} %, 20 % of measurements collide", 100 * (factor - 1)).c_str(), nic,
          runs, factor < 0.92 ? "wanted >= 0.99" : "wanted >= 0.95");
  }
  for (const bool uplink : {false, true}) {
    const Count leaf = count(
        world, runs,
        [&](World& w, std::mt19937_64& random) {
          w.faults.push_back({.rail = pick(random, kRails),
                              .leaf = pick(random, kNodes / kPerLeaf),
                              .factor = 0.95,
                              .uplink = uplink});
        },
        [&](const World& w, const Suspect& suspect) {
          return suspect.part == (uplink ? Part::kUplink : Part::kLeafRail) && suspect.leaf == w.faults[0].leaf &&
                 suspect.rail == w.faults[0].rail;
        });
    print(uplink ? "uplinks of leaf x rail -5 %, 20 % collide" : "leaf x rail -5 %, 20 % collide", leaf, runs,
          "wanted >= 0.99");
  }
}

void clean(int runs) {
  World world{.nodes = kNodes, .rails = kRails, .nodes_per_leaf = kPerLeaf, .collided = 0.2};
  const Count none = count(
      world, runs, [](World&, std::mt19937_64&) {},
      [](const World&, const Suspect&) { return false; });
  fmt::print(
      "{:<48} runs with a false alarm {} of {}, that undecided {}   (wanted 0 of 3000); \"below 93 %\": {:.1f} % of "
      "measurements\n",
      "healthy, 20 % collide", none.false_alarms, runs, none.cannot_tell, 100 * none.below);
}

constexpr struct {
  int nodes;
  int rails;
} kSizes[] = {{8, 1}, {8, 8}, {16, 8}, {64, 8}};

// Healthy clusters that something disturbs: nothing may be named, undecided is allowed.
void disturbed(int runs) {
  fmt::print("healthy and disturbed, {} runs each: with a false alarm, undecided\n", runs);
  for (const auto& size : kSizes) {
    const World world{.nodes = size.nodes, .rails = size.rails};
    const auto row = [&](const char* what, const World& with) {
      const Count none = count(
          with, runs, [](World&, std::mt19937_64&) {}, [](const World&, const Suspect&) { return false; });
      fmt::print("  {:>2} x {}  {:<44} {:>4} {:>5}   (wanted 0)\n", size.nodes, size.rails, what, none.false_alarms,
                 none.cannot_tell);
    };
    World one = world;
    row("quiet", one);
    one.drift = 0.95;
    one.drift_from = size.nodes - 2;
    row("all 5 % slower from the last round on", one);
    one.drift_from = size.nodes / 2;
    row("all 5 % slower from the middle on", one);
    one.drift = 0.7;
    row("all 30 % slower from the middle on", one);
    one = world;
    one.collided = 0.5;
    row("50 % of measurements collide", one);
    one = world;
    one.tenants = 0.2;
    row("20 % of nodes slowed in each round", one);
    one = world;
    one.nic_scatter = 0;
    one.pair_scatter = 0.02;
    one.step = 0.06;
    row("values in steps of 6 %", one);
  }
}

// Nodes of one NIC are that NIC, and the other way round.
bool is_part(const Suspect& suspect, const World& world, bool of_node) {
  const Fault& fault = world.faults[0];
  if (of_node && world.rails > 1) return suspect.part == Part::kNode && suspect.node == fault.node;
  return suspect.part == Part::kNic && suspect.node == fault.node && suspect.rail == fault.rail;
}

void print_found(const World& world, const std::string& what, const Count& count) {
  fmt::print("  {:>2} x {}  {:<44} {:>4} {:>5} {:>5}\n", world.nodes, world.rails, what, count.found,
             count.false_alarms, count.cannot_tell);
}

// What is slow on quiet links, always or half of the time.
void quiet_faults(int runs) {
  fmt::print("one slow part, {} runs each: found, with a false alarm, undecided\n", runs);
  for (const auto& size : kSizes) {
    const World world{.nodes = size.nodes, .rails = size.rails, .nic_scatter = 0.002, .pair_scatter = 0.005};
    for (const double factor : {0.8, 0.9, 0.95}) {
      for (const bool of_node : {false, true}) {
        if (of_node && size.rails == 1) continue;
        const auto plant = [&](World& w, std::mt19937_64& random) {
          w.faults.push_back(
              {.node = pick(random, w.nodes), .rail = of_node ? -1 : pick(random, w.rails), .factor = factor});
        };
        const Count found = count(world, runs, plant,
                                  [&](const World& w, const Suspect& suspect) { return is_part(suspect, w, of_node); });
        print_found(world, fmt::format("{} {:+.0f} %", of_node ? "node" : "NIC", 100 * (factor - 1)), found);
      }
    }
    for (const double share : {0.0, 0.1}) {
      World some = world;
      some.collided = share;
      const auto plant = [&](World& w, std::mt19937_64& random) {
        w.faults.push_back({.node = pick(random, w.nodes), .rail = pick(random, w.rails), .factor = 0.5, .duty = 0.5});
      };
      const Count found =
          count(some, runs, plant, [&](const World& w, const Suspect& suspect) { return is_part(suspect, w, false); });
      print_found(some, fmt::format("NIC -50 % half of the time, {:.0f} % collide", 100 * share), found);
    }
  }
}

// A link between a leaf and one of eight spines.
void spines(int runs) {
  for (const int nodes : {64, 512}) {
    for (const double collided : {0.0, 0.1}) {
      const World world{
          .nodes = nodes, .rails = kRails, .nodes_per_leaf = nodes / 8, .collided = collided, .spines = 8};
      const auto plant = [](World& w, std::mt19937_64& random) {
        w.faults.push_back({.rail = pick(random, w.rails),
                            .leaf = pick(random, 8),
                            .factor = 0.5,
                            .uplink = true,
                            .spine = pick(random, 8)});
      };
      const Count found = count(world, runs, plant, [](const World& w, const Suspect& suspect) {
        return suspect.part == Part::kUplink && suspect.leaf == w.faults[0].leaf && suspect.rail == w.faults[0].rail;
      });
      print_found(world, fmt::format("1 of 8 uplinks of a leaf -50 %, {:.0f} % collide", 100 * collided), found);
    }
  }
}

// Uplinks of a pod, and a path between two: a link of a dragonfly.
void levels(int runs) {
  const World world{.nodes = 512, .rails = kRails, .nodes_per_leaf = 16, .leaves_per_pod = 4, .collided = 0.1};
  for (const double factor : {0.5, 0.8, 0.9}) {
    const auto plant_pod = [&](World& w, std::mt19937_64& random) {
      w.faults.push_back({.rail = pick(random, w.rails), .factor = factor, .pod = pick(random, 8)});
    };
    print_found(world, fmt::format("uplinks of a pod on a rail {:+.0f} %", 100 * (factor - 1)),
                count(world, runs, plant_pod, [](const World& w, const Suspect& suspect) {
                  return suspect.part == Part::kPodUplink && suspect.pod == w.faults[0].pod &&
                         suspect.rail == w.faults[0].rail;
                }));
    const auto plant_path = [&](World& w, std::mt19937_64& random) {
      const int pod = pick(random, 7);
      w.faults.push_back({.factor = factor, .path = pod, .other = pod + 1});
    };
    print_found(world, fmt::format("path between two pods {:+.0f} %", 100 * (factor - 1)),
                count(world, runs, plant_path, [](const World& w, const Suspect& suspect) {
                  return suspect.part == Part::kPath && suspect.pod == w.faults[0].path &&
                         suspect.other == w.faults[0].other && suspect.rail < 0;
                }));
  }
  const auto plant_nothing = [](World&, std::mt19937_64&) {};
  const auto none_is_planted = [](const World&, const Suspect&) { return false; };
  print_found(world, "healthy pods", count(world, runs, plant_nothing, none_is_planted));
}

// Everything below 93 % of the fastest is called slow, as it was measured once.
void share_of_the_fastest() {
  for (const double scatter : {0.01, 0.02}) {
    const Outcome outcome = run({.nodes = kNodes, .rails = kRails, .pair_scatter = scatter});
    const auto judged = std::count_if(
        outcome.judgement.suspects.begin(), outcome.judgement.suspects.end(),
        [](const Suspect& suspect) { return suspect.verdict == Verdict::kSlow; });
    fmt::print("healthy, scatter {:.0f} %, no collisions: \"below 93 % of the fastest\" calls {:.1f} % of "
               "measurements slow; the judge: {} parts\n",
               100 * scatter, 100 * below_93_percent(outcome.samples), judged);
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void large() {
  Simulator simulator({.nodes = 10000,
                       .rails = kRails,
                       .nodes_per_leaf = kPerLeaf,
                       .collided = 0.2,
                       .faults = {{.node = 4321, .rail = 5, .factor = 0.9}}});
  auto start = std::chrono::steady_clock::now();
  const std::vector<Round> rounds = make_schedule(simulator.fabric(), {});
  const double planned_s = seconds_since(start);
  std::vector<Sample> samples;
  for (const Round& round : rounds) simulator.measure(round, samples);
  start = std::chrono::steady_clock::now();
  const JudgeOptions options;
  Judgement judgement = judge(simulator.fabric(), samples, options);
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, options, simulator.measurer(), retests, judgement);
  const double judged_s = seconds_since(start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("10,000 nodes x {} rails x {} rounds, {} measurements: planned in {:.2f} s, judged in "
             "{:.2f} s, {:.2f} GB at most   (wanted < 5 s, < 1 GB)\n",
             kRails, rounds.size(), samples.size(), planned_s, judged_s,
             static_cast<double>(usage.ru_maxrss) * 1024e-9);
  for (const Suspect& suspect : judgement.suspects) {
    if (suspect.verdict != Verdict::kSlow) continue;
    fmt::print("  slow: {} node {} rail {}, {:.1f} % (planted: nic node 4321 rail 5, -10 %)\n",
               to_string(suspect.part), suspect.node, suspect.rail,
               100 * (std::exp(suspect.retest_shift) - 1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int clean_runs = argc > 1 ? std::atoi(argv[1]) : 3000;
  const int fault_runs = argc > 2 ? std::atoi(argv[2]) : 400;
  const int disturbed_runs = argc > 3 ? std::atoi(argv[3]) : 1000;
  if (clean_runs < 0 || fault_runs < 0 || disturbed_runs < 0) {
    fmt::print(stderr, "usage: cluster_judge [CLEAN_RUNS [FAULT_RUNS [DISTURBED_RUNS]]]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (disturbed_runs > 0) disturbed(disturbed_runs);
  if (fault_runs > 0) {
    quiet_faults(fault_runs);
    spines(std::min(fault_runs, 100));
    levels(std::min(fault_runs, 100));
    fmt::print("{} nodes x {} rails, {} nodes a leaf, 16 matchings, scatter 1 %, NICs 0.5 %\n", kNodes, kRails,
               kPerLeaf);
    faults(fault_runs);
  }
  if (clean_runs > 0) {
    large();
    share_of_the_fastest();
    clean(clean_runs);
  }
  return 0;
}
