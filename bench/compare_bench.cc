// Cost of the gate: deciding 10,000 cells, reading documents.

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "gdrperf/compare/judge.h"
#include "gdrperf/compare/noise.h"
#include "gdrperf/compare/session.h"

namespace {

using namespace gdrperf::compare;

constexpr std::size_t kCells = 10'000;

/// Figures as documents have them: latencies repeat, as a histogram's buckets do.
double figure(std::mt19937_64& random, bool latency) {
  std::normal_distribution<double> spread(0, 0.01);
  const double value = 2000 * std::exp(spread(random));
  return latency ? std::round(value / 8) * 8 : value;
}

void fill(Side& side, std::size_t sessions, std::mt19937_64& random) {
  for (std::size_t i = 0; i < sessions; ++i) {
    Session session;
    session.digest = random();
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const bool latency = cell % 2 == 1;
      CellKey key{fmt::format("{}/HOST/host:mlx5_0/{}", latency ? "read_lat" : "write_bw", cell),
                  {{"host", "left"}, {"kernel", "Linux 6.1.0"}, {"firmware", "28.39"}, {"tx_depth", "128"}},
                  latency ? Better::kLower : Better::kHigher};
      session.cells.push_back({std::move(key), figure(random, latency)});
    }
    side.add(session);
  }
}

/// 10,000 cells, half of them with ties: baseline and candidate sessions.
void judge_10000_cells(benchmark::State& state) {
  std::mt19937_64 random(7);
  Side baseline, candidates;
  fill(baseline, static_cast<std::size_t>(state.range(0)), random);
  fill(candidates, static_cast<std::size_t>(state.range(1)), random);
  for (auto _ : state) {
    const Comparison comparison = judge(baseline, candidates, {}, {});
    benchmark::DoNotOptimize(comparison.exit_code());
  }
}
BENCHMARK(judge_10000_cells)
    ->ArgNames({"baseline", "new"})
    ->Args({20, 9})
    ->Args({21, 9})
    ->Args({30, 30})
    ->Unit(benchmark::kMillisecond);

/// Collecting 30 sessions of 10,000 cells, as judge() needs them.
void gather_30_sessions(benchmark::State& state) {
  for (auto _ : state) {
    std::mt19937_64 random(7);
    Side side;
    fill(side, 30, random);
    benchmark::DoNotOptimize(side.sessions());
  }
}
BENCHMARK(gather_30_sessions)->Unit(benchmark::kMillisecond);

std::string document(std::size_t runs) {
  std::string batches = "100.5";
  for (int i = 1; i < 100; ++i) batches += fmt::format(", {:.4f}", 100 + 0.01 * i);
  const std::string end = R"({"device": "mlx5_0", "kind": "hardware", "port": 1, "buffer": "host"})";
  std::string list;
  for (std::size_t i = 0; i < runs; ++i) {
    list += fmt::format(R"({}{{"op": "write_bw", "size_bytes": {}, "client": {}, "server": {}, "tx_depth": 128,
 "qps": 1, "bw": {{"median_gbps": 100.1, "batches_gbps": [{}]}}, "latency": null, "warnings": []}})",
                        i == 0 ? "" : ",\n", i + 1, end, end, batches);
  }
  return R"({"schema": "gdrperf-results/1", "started": "2025-01-31T12:00:00Z", "relations": {"HOST": {"write_bw": [)" +
         list + "]}}}";
}

void read_document(benchmark::State& state) {
  const std::string text = document(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(parse_session(text, "x.json").cells.size());
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(read_document)->ArgName("runs")->Arg(138)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
