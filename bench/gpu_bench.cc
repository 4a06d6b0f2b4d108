// Figures of GPU memory as ratios, all from one run, over the software device (preloaded):
//   LD_PRELOAD=.../libgdrperf_softnic.so gpu_bench
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/proto/channel.h"

namespace {

using namespace gdrperf;
using namespace std::chrono_literals;

constexpr std::size_t kBytes = 64u << 20;
constexpr std::size_t kLarge = 1u << 30;

void ok(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw Error(ExitCode::kEnvironment, cudaGetErrorString(error));
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Median of nine, GB/s.
double rate(std::size_t bytes, const std::function<void()>& work) {
  work();
  std::vector<double> rates;
  for (int i = 0; i < 9; ++i) rates.push_back(static_cast<double>(bytes) / seconds_of(work) * 1e-9);
  std::nth_element(rates.begin(), rates.begin() + 4, rates.end());
  return rates[4];
}

/// Eight copies in a row, so that starting them is no part of the figure.
double copy_rate(void* to, const void* from, std::size_t bytes) {
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreate(&stream));
  const double result = rate(8 * bytes, [&] {
    for (int i = 0; i < 8; ++i) ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    ok(cudaStreamSynchronize(stream));
  });
  ok(cudaStreamDestroy(stream));
  return result;
}

double run(const std::string& from, const std::string& to, Path path, std::uint64_t size, bool consume = false,
           std::uint64_t chunk = 0, Operation operation = Operation::kWrite) {
  auto [client, server] = proto::local_channel_pair();
  const std::atomic<bool> cancelled{false};
  std::thread serving([&, channel = std::move(server)]() mutable {
    try {
      engine::serve_run(channel, proto::expect<proto::RunRequest>(channel, 10s), cancelled);
    } catch (const Error&) {
    }
  });
  TestSpec spec;
  spec.test.operation = operation;
  spec.size_bytes = size;
  spec.client.buffer = from;
  spec.server.buffer = to;
  spec.path = path;
  spec.consume = consume;
  spec.chunk_bytes = chunk;
  spec.stop.duration = 700ms;
  double result = 0;
  try {
    result = engine::run_client(client, spec).measured.bandwidth->median_gbytes;
  } catch (const Error& error) {
    fmt::print("  {} to {}: {}\n", from, to, error.what());
  }
  { const proto::Channel gone = std::move(client); }
  serving.join();
  return result;
}

void line(const char* name, double figure, double reference, const char* against, double wanted) {
  fmt::print("{:<44}{:>9.4g} GB/s  {:>6.3f} of {} ({:.4g} GB/s)  {}\n", name, figure, figure / reference, against,
             reference, figure >= wanted * reference ? fmt::format("reached {:g}", wanted)
                                                     : fmt::format("BELOW {:g}", wanted));
  std::fflush(stdout);
}

struct Copies {
  double to_host, to_gpu, within;
};

Copies measure_copies() {
  void *host = nullptr, *one = nullptr, *other = nullptr;
  ok(cudaHostAlloc(&host, kBytes, cudaHostAllocPortable));
  ok(cudaMalloc(&one, kLarge));
  ok(cudaMalloc(&other, kLarge));
  Copies copies{copy_rate(host, one, kBytes), copy_rate(one, host, kBytes), copy_rate(other, one, kLarge)};
  ok(cudaFreeHost(host));
  ok(cudaFree(one));
  ok(cudaFree(other));
  fmt::print(
      "pinned copies of 64 MiB: to host {:.4g}, to GPU {:.4g} GB/s; within the GPU, 1 GiB: {:.4g} GB/s one way\n",
      copies.to_host, copies.to_gpu, copies.within);
  return copies;
}

void measure_checks(const Copies& copies) {
  const auto buffer = mem::make_buffer("cuda:0", 4 * kLarge);
  mem::PatternRun pattern;
  pattern.stride = pattern.size_bytes = 4 * kLarge;
  const double touched = 2 * copies.within;
  line("fill, 4 GiB", rate(4 * kLarge, [&] { buffer->fill(pattern); }), touched, "the copy, bytes touched", 0.8);
  line("verify, 4 GiB", rate(4 * kLarge, [&] { buffer->check(pattern); }), touched, "the copy, bytes touched", 0.8);
}

void measure_staged(const Copies& copies) {
  // On a shared machine it wanders: the highest of three.
  double wire = 0;
  for (int i = 0; i < 3; ++i) wire = std::max(wire, run("host", "host", Path::kDirect, kBytes));
  fmt::print("software device, host to host, 64 MiB: {:.4g} GB/s\n", wire);
  const double slowest = std::min({copies.to_host, copies.to_gpu, wire});
  line("staged, GPU to GPU's host and back, 64 MiB", run("cuda:0", "cuda:0", Path::kStaged, kBytes), slowest,
       "the slowest stage", 0.9);
  line("staged, GPU to host, 64 MiB", run("cuda:0", "host", Path::kStaged, kBytes), slowest, "the slowest stage", 0.9);
  line("staged, host to GPU, 64 MiB", run("host", "cuda:0", Path::kStaged, kBytes), slowest, "the slowest stage", 0.9);
  line("staged read, GPU to GPU, 64 MiB", run("cuda:0", "cuda:0", Path::kStaged, kBytes, false, 0, Operation::kRead),
       slowest, "the slowest stage", 0.9);
  for (const std::uint64_t chunk : {256u << 10, 512u << 10, 1u << 20, 2u << 20, 4u << 20, 16u << 20}) {
    fmt::print("  in chunks of {:>5} KiB: {:.4g} GB/s\n", chunk >> 10,
               run("cuda:0", "cuda:0", Path::kStaged, kBytes, false, chunk));
  }
  for (const Path path : {Path::kDirect, Path::kStaged}) {
    fmt::print("with --consume, host to GPU, {}, 64 MiB: {:.4g} GB/s\n", to_string(path),
               run("host", "cuda:0", path, kBytes, true));
  }
}

void measure_peers() {
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  const int other = count > 1 ? 1 : 0;
  void *one = nullptr, *two = nullptr;
  ok(cudaSetDevice(other));
  if (other != 0) cudaDeviceEnablePeerAccess(0, 0);
  ok(cudaMalloc(&two, kBytes));
  ok(cudaSetDevice(0));
  if (other != 0) cudaDeviceEnablePeerAccess(other, 0);
  ok(cudaMalloc(&one, kBytes));
  const double peer = rate(kBytes, [&] {
    ok(cudaMemcpyPeer(two, other, one, 0, kBytes));
    ok(cudaDeviceSynchronize());
  });
  ok(cudaFree(one));
  ok(cudaFree(two));
  const std::string to = fmt::format("cuda:{}", other);
  line(fmt::format("software device, cuda:0 to {}, 64 MiB", to).c_str(), run("cuda:0", to, Path::kDirect, kBytes), peer,
       "cudaMemcpyPeer", 0.8);
}

}  // namespace

int main() {
  try {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
      fmt::print("skipped: no GPU\n");
      return 77;
    }
    const Copies copies = measure_copies();
    measure_checks(copies);
    measure_peers();
    measure_staged(copies);
    return 0;
  } catch (const gdrperf::Error& error) {
    fmt::print(stderr, "gpu_bench: {}\n", error.what());
    return 3;
  }
}
