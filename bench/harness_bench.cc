// Cost of the harness beside the hot loop: messages between the ends, the
// matrix of nvidia-smi, patterns of verified runs.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "gdrperf/mem/pattern.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/topo/matrix.h"
#include "gdrperf/topo/nvidia_smi.h"

namespace {

using namespace gdrperf;

proto::Message run_request() {
  proto::RunRequest request;
  request.gid_families = {"RoCE v2/IPv4", "RoCE v2/IPv6"};
  request.active_mtu_bytes = 4096;
  return request;
}

/// The longest message there is: the series of a bidirectional run.
proto::Message done_with_series() {
  proto::Done done;
  for (int i = 0; i < 4096; ++i) done.series.emplace_back(1e9 + i * 2e6, static_cast<std::uint64_t>(i) << 20);
  return done;
}

void encode(benchmark::State& state, const proto::Message& message) {
  std::size_t bytes = 0;
  for (auto _ : state) bytes = proto::encode(message).size();
  state.counters["frame_bytes"] = static_cast<double>(bytes);
}
BENCHMARK_CAPTURE(encode, run_request, run_request())->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(encode, done_with_4096_points, done_with_series())->Unit(benchmark::kMicrosecond);

void decode(benchmark::State& state, const proto::Message& message) {
  const std::string text = proto::encode(message);
  for (auto _ : state) benchmark::DoNotOptimize(proto::decode(text));
}
BENCHMARK_CAPTURE(decode, run_request, run_request())->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(decode, done_with_4096_points, done_with_series())->Unit(benchmark::kMicrosecond);

/// Eight GPUs and eight NICs, as `nvidia-smi topo -m` prints them.
std::string matrix_text() {
  std::vector<std::string> names;
  for (const char* kind : {"GPU", "NIC"}) {
    for (int i = 0; i < 8; ++i) names.push_back(kind + std::to_string(i));
  }
  std::string text;
  for (const std::string& name : names) text += "\t" + name;
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (const std::string& row : names) {
    text += row;
    for (const std::string& column : names) {
      const bool gpus = row[0] == 'G' && column[0] == 'G';
      text += row == column ? "\t X " : gpus ? "\tNV18" : row.back() == column.back() ? "\tPIX" : "\tSYS";
    }
    text += row[0] == 'G' ? "\t0-63\t0\n" : "\t\t\n";
  }
  text += "\nNIC Legend:\n\n";
  for (int i = 0; i < 8; ++i) text += "  NIC" + std::to_string(i) + ": mlx5_" + std::to_string(i) + "\n";
  return text;
}

void parse_nvidia_smi_matrix(benchmark::State& state) {
  const std::string text = matrix_text();
  for (auto _ : state) benchmark::DoNotOptimize(topo::parse_nvidia_smi(text, "matrix").gpus.size());
}
BENCHMARK(parse_nvidia_smi_matrix)->Unit(benchmark::kMicrosecond);

mem::PatternRun whole(std::uint64_t bytes) {
  mem::PatternRun run;
  run.size_bytes = run.stride = bytes;
  return run;
}

/// Aligned memory of one message.
struct Memory {
  explicit Memory(std::size_t bytes)
      : at(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) & ~4095ull))) {}
  ~Memory() { std::free(at); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* at;
};

void pattern_fill(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const Memory memory(bytes);
  for (auto _ : state) {
    mem::fill_pattern(memory.at, whole(bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(pattern_fill)->Arg(64)->Arg(65536)->Arg(8 << 20);

void pattern_verify(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const Memory memory(bytes);
  mem::fill_pattern(memory.at, whole(bytes));
  for (auto _ : state) benchmark::DoNotOptimize(mem::check_pattern(memory.at, whole(bytes)).wrong_messages);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(pattern_verify)->Arg(64)->Arg(65536)->Arg(8 << 20);

}  // namespace

BENCHMARK_MAIN();
