// Level changes that are missed, and steady series that are said to have one, over made-up series of batches.
//
// usage: steps [SERIES_OF_A_KIND]

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/stats/levels.h"

namespace {

constexpr double kPrecision = 0.01;

using Random = std::mt19937_64;

/// Rates about 1, neighbours correlated so.
std::vector<double> noise(Random& random, std::size_t n, double deviation, double correlation) {
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> values(n);
  double state = normal(random);
  for (double& value : values) {
    value = 1 + deviation * state;
    state = correlation * state + std::sqrt(1 - correlation * correlation) * normal(random);
  }
  return values;
}

/// `share` of the run at 1, the rest at 1 + change; the batch in which it changes has a part of both.
void change(std::vector<double>& values, double at, double size) {
  const double place = at * static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double after = std::clamp(static_cast<double>(i) + 1 - place, 0.0, 1.0);
    values[i] *= 1 + size * after;
  }
}

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

template <typename T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

std::size_t length(Random& random) { return one_of<std::size_t>(random, {40, 60, 100, 200, 400, 1000}); }

struct Kind {
  const char* name;
  bool changes;
  std::function<std::vector<double>(Random&)> make;
};

std::vector<double> ramp(Random& random) {
  std::vector<double> values = noise(random, length(random), uniform(random, 0, 0.003), uniform(random, 0, 0.8));
  const double depth = uniform(random, 0.02, 0.9);
  const double length = uniform(random, 0.01, 0.3) * static_cast<double>(values.size());
  const int shape = one_of(random, {0, 1});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double at = (static_cast<double>(i) + 0.5) / length;
    values[i] *= 1 - depth * (shape == 0 ? std::max(0.0, 1 - at) : std::exp(-4 * at));
  }
  return values;
}

const std::vector<Kind> kKinds = {
    {"drop of 2 to 50 %", true, [](Random& random) {
       auto values = noise(random, length(random), uniform(random, 0, 0.003), 0);
       change(values, uniform(random, 0.05, 0.95), -uniform(random, 0.02, 0.5));
       return values;
     }},
    {"drop of 2 to 5 %", true, [](Random& random) {
       auto values = noise(random, length(random), uniform(random, 0, 0.003), 0);
       change(values, uniform(random, 0.05, 0.95), -uniform(random, 0.02, 0.05));
       return values;
     }},
    {"drop, correlated noise", true, [](Random& random) {
       auto values = noise(random, length(random), uniform(random, 0, 0.003), uniform(random, 0, 0.8));
       change(values, uniform(random, 0.05, 0.95), -uniform(random, 0.02, 0.5));
       return values;
     }},
    {"rise of 2 to 100 %", true, [](Random& random) {
       auto values = noise(random, length(random), uniform(random, 0, 0.003), 0);
       change(values, uniform(random, 0.1, 0.95), uniform(random, 0.02, 1));
       return values;
     }},
    {"drop for a while", true, [](Random& random) {
       auto values = noise(random, length(random), uniform(random, 0, 0.003), 0);
       const double from = uniform(random, 0.1, 0.6);
       const double size = -uniform(random, 0.02, 0.5);
       change(values, from, size);
       change(values, from + uniform(random, 0.15, 0.3), 1 / (1 + size) - 1);
       return values;
     }},
    {"drop behind a ramp", true, [](Random& random) {
       auto values = ramp(random);
       change(values, uniform(random, 0.4, 0.95), -uniform(random, 0.02, 0.5));
       return values;
     }},
    {"steady, white noise", false, [](Random& random) {
       return noise(random, length(random), uniform(random, 0, 0.003), 0);
     }},
    {"steady, correlated to 0.8", false, [](Random& random) {
       return noise(random, length(random), uniform(random, 0, 0.003), uniform(random, 0, 0.8));
     }},
    {"steady, noise of 1 %", false, [](Random& random) {
       return noise(random, length(random), 0.01, uniform(random, 0, 0.5));
     }},
    {"steady, a hiccup in 200", false, [](Random& random) {
       auto values = noise(random, length(random), uniform(random, 0, 0.003), 0);
       for (double& value : values) value *= uniform(random, 0, 1) < 0.005 ? uniform(random, 0.3, 1) : 1;
       return values;
     }},
    {"steady, in clumps", false, [](Random& random) {
       auto values = noise(random, length(random), 0.001, 0);
       const double period = uniform(random, 2, 9);
       double phase = uniform(random, 0, 1);
       for (double& value : values) {
         const double next = phase + 1 / period;
         value *= 1 + 0.02 * (std::floor(next) - std::floor(phase) - 1 / period);
         phase = next;
       }
       return values;
     }},
    {"warm-up by a ramp", false, [](Random& random) { return ramp(random); }},
};

}  // namespace

int main(int argc, char** argv) {
  const int series = argc > 1 ? std::atoi(argv[1]) : 5000;
  fmt::print("{:<28}{:>9}{:>12}\n", "series", "number", "with levels");
  int missed = 0;
  int changed = 0;
  int flagged = 0;
  int steady = 0;
  for (const Kind& kind : kKinds) {
    Random random(1);
    int found = 0;
    for (int i = 0; i < series; ++i) {
      const std::vector<double> values = kind.make(random);
      found += gdrperf::stats::find_beginning(values, 1.2 * kPrecision).levels.size() > 1;
    }
    fmt::print("{:<28}{:>9}{:>10.2f} %\n", kind.name, series, 100.0 * found / series);
    (kind.changes ? changed : steady) += series;
    missed += kind.changes ? series - found : 0;
    flagged += kind.changes ? 0 : found;
  }
  fmt::print("changes missed: {} of {} ({:.2f} %); steady series flagged: {} of {} ({:.3f} %)\n", missed, changed,
             100.0 * missed / changed, flagged, steady,
             100.0 * flagged / steady);
}
