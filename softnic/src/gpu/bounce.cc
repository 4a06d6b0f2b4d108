#include "gpu/bounce.h"

#include <vector>

#include "gdrperf/base/mutex.h"
#include "gpu/driver.h"

namespace gdrperf::softnic::gpu {
namespace {

class Bounces {
 public:
  void reserve() noexcept {
    const MutexLock guard(mutex_);
    while (spare_.size() < kReserved) {
      void* const memory = make();
      if (memory == nullptr) return;
      spare_.push_back(memory);
    }
  }
  void* take() noexcept {
    const MutexLock guard(mutex_);
    if (spare_.empty()) return make();
    void* const memory = spare_.back();
    spare_.pop_back();
    return memory;
  }
  void give_back(void* memory) noexcept {
    const MutexLock guard(mutex_);
    spare_.push_back(memory);
  }

 private:
  static constexpr std::size_t kReserved = 2;
  static void* make() noexcept {
    void* memory = nullptr;
    return driver()->host_alloc(&memory, kBounceBytes, kPortable) == kSuccess ? memory : nullptr;
  }

  Mutex mutex_;
  std::vector<void*> spare_ GUARDED_BY(mutex_);
};

Bounces& bounces() {
  static auto* const all = new Bounces;
  return *all;
}

}  // namespace

void reserve_bounces() noexcept { bounces().reserve(); }

std::uint8_t* bounce() noexcept {
  struct Own {
    ~Own() {
      if (memory != nullptr) bounces().give_back(memory);
    }
    void* memory = nullptr;
  };
  thread_local Own own;
  if (own.memory == nullptr) own.memory = bounces().take();
  return static_cast<std::uint8_t*>(own.memory);
}

}  // namespace gdrperf::softnic::gpu
