// A program with a registration cache: what it frees stays registered. Counts blocks from calloc() that are not
// zero, and blocks whose bytes are not as the program wrote them.
#include <infiniband/verbs.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int kRounds = 20;
constexpr int kBlocks = 16;
constexpr std::size_t kSizes[] = {1000, 8192, 70000, 300000, 2 << 20};

bool all(const unsigned char* bytes, std::size_t size, int value) {
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

struct Counts {
  int blocks = 0;
  int dirty = 0;
  int wrong = 0;
};

// Not of the enumeration: the macro joins it with another's, of which clang warns.
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;

struct Block {
  unsigned char* at;
  std::size_t size;
  int value;
};

/// Registers blocks, frees them, and takes others in their place.
void use_blocks(ibv_pd* pd, unsigned seed, Counts& counts) {
  std::mt19937 random(seed);
  std::vector<ibv_mr*> cache;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < kBlocks; ++i) {
      const std::size_t size = kSizes[random() % std::size(kSizes)];
      auto* const at = static_cast<unsigned char*>(std::calloc(1, size));
      ++counts.blocks;
      if (!all(at, size, 0)) ++counts.dirty;
      const int value = static_cast<int>(random() % 255 + 1);
      std::memset(at, value, size);
      cache.push_back(ibv_reg_mr(pd, at, size, kAccess));
      if (cache.back() == nullptr) std::abort();
      blocks.push_back({at, size, value});
    }
    for (const Block& block : blocks) {
      if (!all(block.at, block.size, block.value)) ++counts.wrong;
      std::free(block.at);
    }
    // The cache makes room, in no order.
    while (cache.size() > 100) {
      const std::size_t victim = random() % cache.size();
      if (ibv_dereg_mr(cache[victim]) != 0) std::abort();
      cache[victim] = cache.back();
      cache.pop_back();
    }
  }
  for (ibv_mr* mr : cache) ibv_dereg_mr(mr);
}

}  // namespace

int main() {
  ibv_device** const list = ibv_get_device_list(nullptr);
  ibv_context* const context = list == nullptr || list[0] == nullptr ? nullptr : ibv_open_device(list[0]);
  ibv_pd* const pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  if (pd == nullptr) return 1;
  constexpr unsigned kThreads = 2;
  Counts counts[kThreads];
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(use_blocks, pd, i + 1, std::ref(counts[i]));
  for (std::thread& thread : threads) thread.join();
  int blocks = 0;
  int dirty = 0;
  int wrong = 0;
  for (const Counts& it : counts) {
    blocks += it.blocks;
    dirty += it.dirty;
    wrong += it.wrong;
  }
  std::printf("%d blocks, %d not zero, %d changed\n", blocks, dirty, wrong);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(list);
  return dirty == 0 && wrong == 0 ? 0 : 1;
}
