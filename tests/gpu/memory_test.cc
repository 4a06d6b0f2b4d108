// Memory of real GPUs: what is filled there is found there, and everything that can go wrong with a
// message is seen, by kernels as by the CPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/mem/kind.h"

namespace gdrperf::mem {
namespace {

constexpr std::uint64_t kSizes[] = {1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, 4096, 4097, 65537, (1u << 20) + 3};
constexpr std::uint64_t kSlots = 32;

int gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class GpuMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (gpus() == 0) GTEST_SKIP() << "no GPU";
  }
};

std::vector<std::string> gpu_kinds() {
  std::vector<std::string> kinds;
  for (const std::string& kind : buffers_at_hand()) {
    if (kind.find("cuda") == 0 || kind.find("staged") == 0) kinds.push_back(kind);
  }
  return kinds;
}

PatternRun run_of(std::uint64_t size) {
  PatternRun run;
  run.offset = 4096;
  run.stride = (size + 63) / 64 * 64;
  run.count = kSlots;
  run.size_bytes = size;
  run.key = {11, 1, 2};
  run.iteration = 9;
  return run;
}

/// Host's view of one message, changed and put back.
template <typename Change>
void change(Buffer& buffer, const PatternRun& run, std::uint64_t slot, Change how) {
  std::vector<std::uint8_t> message(run.size_bytes);
  std::byte* at = buffer.data() + run.offset + slot * run.stride;
  ASSERT_EQ(cudaMemcpy(message.data(), at, message.size(), cudaMemcpyDefault), cudaSuccess);
  how(message);
  ASSERT_EQ(cudaMemcpy(at, message.data(), message.size(), cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(GpuMemory, TheKernelsPatternIsTheCpus) {
  for (const std::string& kind : gpu_kinds()) {
    for (const std::uint64_t size : kSizes) {
      const PatternRun run = run_of(size);
      const auto buffer = make_buffer(kind, 4096 + run.stride * kSlots);
      buffer->fill(run);
      std::vector<std::uint64_t> copy((4096 + run.stride * kSlots) / 8);
      ASSERT_EQ(cudaMemcpy(copy.data(), buffer->data(), copy.size() * 8, cudaMemcpyDefault), cudaSuccess);
      EXPECT_EQ(check_pattern(reinterpret_cast<std::byte*>(copy.data()), run).wrong_messages, 0u)
          << kind << ' ' << size;
      EXPECT_EQ(buffer->check(run).wrong_messages, 0u) << kind << ' ' << size;
    }
  }
}

TEST_F(GpuMemory, EveryKindOfWrongMessageIsFound) {
  for (const std::string& kind : gpu_kinds()) {
    for (const std::uint64_t size : kSizes) {
      SCOPED_TRACE(kind + " " + std::to_string(size));
      const PatternRun run = run_of(size);
      const auto buffer = make_buffer(kind, 4096 + run.stride * kSlots);
      PatternRun before = run;
      --before.iteration;

      buffer->fill(before);  // the lap before, all of it lost
      CheckResult result = buffer->check(run);
      EXPECT_EQ(result.wrong_messages, kSlots);
      ASSERT_TRUE(result.first);
      EXPECT_EQ(result.first->slot, 0u);
      EXPECT_NE(explain(run, *result.first).find("stale"), std::string::npos);

      buffer->fill(run);  // every tenth lost
      std::uint64_t lost = 0;
      for (std::uint64_t slot = 9; slot < kSlots; slot += 10, ++lost) {
        PatternRun one = before;
        one.offset += slot * run.stride;
        one.first_slot = slot;
        one.count = 1;
        buffer->fill(one);
      }
      result = buffer->check(run);
      EXPECT_EQ(result.wrong_messages, lost);
      EXPECT_EQ(result.first->slot, 9u);

      for (const std::uint64_t bit : {std::uint64_t{0}, size * 4, size * 8 - 1}) {
        buffer->fill(run);
        change(*buffer, run, 17, [&](auto& message) { message[bit / 8] ^= 1u << bit % 8; });
        result = buffer->check(run);
        EXPECT_EQ(result.wrong_messages, 1u);
        ASSERT_TRUE(result.first);
        EXPECT_EQ(result.first->slot, 17u);
        EXPECT_EQ(result.first->wrong_byte, bit / 8);
      }

      buffer->fill(run);  // a neighbour's message
      std::vector<std::uint8_t> neighbour;
      change(*buffer, run, 4, [&](auto& message) { neighbour = message; });
      change(*buffer, run, 5, [&](auto& message) { message = neighbour; });
      result = buffer->check(run);
      EXPECT_EQ(result.wrong_messages, 1u);
      EXPECT_EQ(result.first->slot, 5u);

      buffer->fill(before);  // the tail not written
      std::vector<std::uint8_t> old;
      change(*buffer, run, 6, [&](auto& message) { old = message; });
      buffer->fill(run);
      change(*buffer, run, 6, [&](auto& message) { message.back() = old.back(); });
      result = buffer->check(run);
      EXPECT_EQ(result.wrong_messages, 1u);
      EXPECT_EQ(result.first->wrong_byte, size - 1);
    }
  }
}

TEST_F(GpuMemory, AGpuIsFoundByIndexAddressAndUuid) {
  const auto buffer = make_buffer("cuda:0", 100);
  ASSERT_NE(buffer->gpu(), nullptr);
  const GpuInfo& gpu = *buffer->gpu();
  EXPECT_FALSE(gpu.name.empty());
  EXPECT_EQ(gpu.uuid.size(), 40u);
  for (const std::string& name : {gpu.uuid, gpu.pci_address, gpu.pci_address.substr(5)}) {
    EXPECT_EQ(make_buffer("cuda:" + name, 100)->gpu()->uuid, gpu.uuid) << name;
  }
  EXPECT_THROW(check_kind("cuda:99", "--buffer"), Error);
  std::printf("%s %s %s BAR1 %llu driver %s (%s)\n", gpu.name.c_str(), gpu.uuid.c_str(), gpu.pci_address.c_str(),
              static_cast<unsigned long long>(gpu.bar1_bytes), gpu.driver.c_str(), gpu.kernel_module.c_str());
}

TEST_F(GpuMemory, TooMuchIsSaidInWords) {
  try {
    make_buffer("cuda:0", std::size_t{1} << 46);
    FAIL() << "64 TiB were allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("cudaMalloc(64 TiB"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("GPU 0"), std::string::npos) << error.what();
  }
  make_buffer("cuda:0", 100);  // and the next one is none the worse
}

}  // namespace
}  // namespace gdrperf::mem
