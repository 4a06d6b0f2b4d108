#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Ways of copying bytes from one process's memory to another's.
namespace gdrperf::softnic {

struct MrShared;

/// A run of bytes in this process' address space. Without initial values: arrays of
/// them stand on the data path.
struct Piece {
  std::uint8_t* address;
  std::uint64_t length;
  const MrShared* region;  ///< it is in; null: plain host memory
};

/// Copies so that whoever polls the last byte of `to` finds everything before
/// it in place: programs that measure write latency rely on it. Up to 8
/// aligned bytes arrive in one store. The two may overlap: a member of a multicast
/// group that sends to it receives as well.
[[gnu::always_inline]] inline void copy_last_byte_last(std::uint8_t* to, const std::uint8_t* from,
                                                       std::size_t length) noexcept {
  const auto misaligned = reinterpret_cast<std::uintptr_t>(to) & 7;
  if (length == 8 && misaligned == 0) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
        .store(word, std::memory_order_release);
    return;
  }
  if (length <= 256 && misaligned == 0 && (length & 7) == 0 && length != 0) {
    std::size_t at = 0;
    for (; at + 16 < length; at += 16) std::memcpy(to + at, from + at, 16);
    if (at + 8 < length) {
      std::memcpy(to + at, from + at, 8);
      at += 8;
    }
    std::uint64_t word;
    std::memcpy(&word, from + at, 8);
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to + at))
        .store(word, std::memory_order_release);
    return;
  }
  if (length == 0) return;
  if (length > 1) std::memmove(to, from, length - 1);
  std::atomic_ref<std::uint8_t>(to[length - 1]).store(from[length - 1], std::memory_order_release);
}

/// Copies `pieces` in order to `to`, the last byte last.
inline void copy_pieces_to(std::uint8_t* to, const Piece* pieces, unsigned count) noexcept {
  for (unsigned i = 0; i + 1 < count; ++i) {
    std::memmove(to, pieces[i].address, pieces[i].length);
    to += pieces[i].length;
  }
  if (count > 0) copy_last_byte_last(to, pieces[count - 1].address, pieces[count - 1].length);
}

inline void copy_pieces_from(const std::uint8_t* from, const Piece* pieces, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    std::memmove(pieces[i].address, from, pieces[i].length);
    from += pieces[i].length;
  }
}

/// Whether other CPUs see a CPU's stores in their order. If not, a fence has to be between the bytes of a message and
/// its last one, and so between two system calls.
enum class Stores { kInOrder, kInAnyOrder };
#if defined(__x86_64__)
inline constexpr Stores kStores = Stores::kInOrder;
#else
inline constexpr Stores kStores = Stores::kInAnyOrder;
#endif

/// The kernel copies between this process and `pid`. Returns 0, or an errno:
/// ESRCH when the process is gone, EPERM when it may not be reached, EFAULT
/// when memory is not there. The last byte is written last.
int copy_to_process(int pid, std::uint64_t to, const Piece* pieces, unsigned count, std::uint64_t total,
                    Stores stores = kStores) noexcept;
int copy_from_process(int pid, std::uint64_t from, const Piece* pieces, unsigned count,
                      std::uint64_t total) noexcept;
/// 0 where the kernel copies between this process and `pid`, as far as it can be
/// known without memory to copy; or why it refuses.
int kernel_refusal(int pid) noexcept;
/// Of an error of the above: the kernel refuses, whatever the memory.
inline bool is_refusal(int error) noexcept { return error == EPERM || error == ENOSYS || error == ESRCH; }

}  // namespace gdrperf::softnic
