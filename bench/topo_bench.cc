// `gdrperf topo` on a recorded machine, as a user waits for it, and what of that is reading:
//   topo_bench GDRPERF CAPTURE.xml [options of Google Benchmark]
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "gdrperf/base/run_program.h"
#include "gdrperf/topo/readers.h"

namespace {

std::string program;  // NOLINT: benchmarks take no arguments
std::string capture;  // NOLINT

void whole_command(benchmark::State& state) {
  for (auto _ : state) {
    const auto result = gdrperf::run_program({program, "topo", "--hwloc", capture, "--json"},
                                             std::chrono::seconds(10));
    if (!result.ok()) state.SkipWithError(result.output.c_str());
  }
}
BENCHMARK(whole_command)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(20);

void reading(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(gdrperf::topo::read_hwloc_file(capture));
}
BENCHMARK(reading)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 77;
  program = argv[1];
  capture = argv[2];
  argv[2] = argv[0];
  argc -= 2;
  benchmark::Initialize(&argc, argv + 2);
  benchmark::RunSpecifiedBenchmarks();
}
