#include "memory/null_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <mutex>

#include "device/device.h"

namespace gdrperf::softnic {
namespace {

/// Many times the same memory, so that what is written takes no more than this.
constexpr std::size_t kNowherePieceBytes = std::size_t{2} << 20;
constexpr std::size_t kNowhereBytes = kMaxMessageBytes;

std::atomic<std::uint8_t*> g_to_read{nullptr};
std::atomic<std::uint8_t*> g_to_write{nullptr};

std::uint8_t* reserve(int rights) {
  void* made = ::mmap(nullptr, kNowhereBytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made != MAP_FAILED ? static_cast<std::uint8_t*>(made) : nullptr;
}

std::uint8_t* reserve_writable() {
  void* const piece = ::mmap(nullptr, kNowherePieceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED) return nullptr;
  std::uint8_t* const whole = reserve(PROT_NONE);
  bool all = whole != nullptr;
  for (std::size_t at = 0; all && at < kNowhereBytes; at += kNowherePieceBytes) {
    // An old size of nothing maps shared memory once more.
    all = ::mremap(piece, 0, kNowherePieceBytes, MREMAP_MAYMOVE | MREMAP_FIXED, whole + at) != MAP_FAILED;
  }
  ::munmap(piece, kNowherePieceBytes);
  if (all) return whole;
  if (whole != nullptr) ::munmap(whole, kNowhereBytes);
  return nullptr;
}

}  // namespace

bool prepare_null_memory() {
  static std::mutex mutex;
  const std::lock_guard guard(mutex);
  if (g_to_read.load() == nullptr) g_to_read.store(reserve(PROT_READ));
  if (g_to_write.load() == nullptr) g_to_write.store(reserve_writable());
  return g_to_read.load() != nullptr && g_to_write.load() != nullptr;
}

std::uint8_t* null_memory_to_read() noexcept { return g_to_read.load(std::memory_order_relaxed); }
std::uint8_t* null_memory_to_write() noexcept { return g_to_write.load(std::memory_order_relaxed); }

}  // namespace gdrperf::softnic
