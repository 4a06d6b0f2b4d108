// Cost of the harness itself: recording a latency, condensing a run.

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

#include "gdrperf/stats/histogram.h"
#include "gdrperf/stats/steady.h"
#include "gdrperf/stats/summary.h"

namespace {

using namespace gdrperf::stats;

/// Latencies in ticks: a log-normal body around 5000, a power of two of them.
std::vector<std::uint64_t> latencies(std::size_t count) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> body(std::log(5000.0), 0.3);
  std::vector<std::uint64_t> values(count);
  for (std::uint64_t& value : values) value = static_cast<std::uint64_t>(body(random));
  return values;
}

std::vector<double> batches(std::size_t count) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> rate(12.5, 0.1);
  std::vector<double> values(count);
  for (double& value : values) value = rate(random);
  return values;
}

void record(benchmark::State& state) {
  const std::vector<std::uint64_t> values = latencies(4096);
  auto histogram = std::make_unique<Histogram>();
  std::size_t at = 0;
  for (auto _ : state) {
    histogram->record(values[at]);
    at = (at + 1) & 4095;
  }
  benchmark::DoNotOptimize(histogram->max());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(record);

void summary_of_1e7_samples(benchmark::State& state) {
  const std::vector<std::uint64_t> values = latencies(1 << 16);
  auto histogram = std::make_unique<Histogram>();
  for (std::size_t i = 0; i < 10'000'000; ++i) histogram->record(values[i & 0xffff]);
  for (auto _ : state) benchmark::DoNotOptimize(histogram->summary(0.5));
}
BENCHMARK(summary_of_1e7_samples)->Unit(benchmark::kMicrosecond);

void merge(benchmark::State& state) {
  auto sum = std::make_unique<Histogram>();
  auto part = std::make_unique<Histogram>();
  for (const std::uint64_t value : latencies(4096)) part->record(value);
  for (auto _ : state) {
    sum->merge(*part);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(merge)->Unit(benchmark::kMicrosecond);

void cut_and_decide(benchmark::State& state) {
  const std::vector<double> series = batches(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const std::size_t cut = warmup_cut(series);
    benchmark::DoNotOptimize(stop_decision(std::span(series).subspan(cut), 0.01));
  }
}
BENCHMARK(cut_and_decide)->Arg(30)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
