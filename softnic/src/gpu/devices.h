#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gdrperf/base/mutex.h"
#include "gpu/driver.h"

/// The GPUs of this process, and the context in which its driver copies.
namespace gdrperf::softnic::gpu {

inline constexpr int kMaxDevices = 64;

/// The primary contexts, retained for good, and what is known of the devices.
class Devices {
 public:
  /// Takes the lock the first time only, as enable_peer() does.
  ContextHandle context(Device device) {
    std::atomic<ContextHandle>& kept = contexts_[static_cast<std::size_t>(device)];
    ContextHandle found = kept.load(std::memory_order_acquire);
    if (found != nullptr) return found;
    const MutexLock guard(mutex_);
    found = kept.load(std::memory_order_acquire);
    if (found == nullptr && driver()->retain_primary(&found, device) == kSuccess)
      kept.store(found, std::memory_order_release);
    return kept.load(std::memory_order_acquire);
  }
  /// The current context is that of `from`.
  void enable_peer(Device from, Device to) {
    std::atomic<std::uint64_t>& enabled = enabled_[static_cast<std::size_t>(from)];
    const std::uint64_t bit = std::uint64_t{1} << to;
    if ((enabled.load(std::memory_order_acquire) & bit) != 0) return;
    const ContextHandle other = context(to);
    if (other == nullptr) return;
    const MutexLock guard(mutex_);
    // Where this is refused, the driver goes through host memory by itself.
    if ((enabled.load(std::memory_order_acquire) & bit) == 0) driver()->enable_peer(other, 0);
    enabled.fetch_or(bit, std::memory_order_release);
  }

 private:
  Mutex mutex_;  ///< of changes; both are read without it
  std::array<std::atomic<ContextHandle>, kMaxDevices> contexts_{};
  std::array<std::atomic<std::uint64_t>, kMaxDevices> enabled_{};  ///< of each device, a bit for each other
};

inline Devices& devices() {
  static auto* const all = new Devices;
  return *all;
}

/// Makes a device's primary context current for a while.
class Scope {
 public:
  explicit Scope(Device device) noexcept {
    const ContextHandle wanted = devices().context(device);
    if (wanted == nullptr) return;
    ContextHandle current = nullptr;
    good_ = driver()->get_current(&current) == kSuccess;
    if (!good_ || current == wanted) return;
    good_ = pushed_ = driver()->push_current(wanted) == kSuccess;
  }
  ~Scope() {
    ContextHandle popped = nullptr;
    if (pushed_) driver()->pop_current(&popped);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  bool good() const noexcept { return good_; }

 private:
  bool good_ = false;
  bool pushed_ = false;
};

}  // namespace gdrperf::softnic::gpu
