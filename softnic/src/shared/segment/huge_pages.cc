#include "shared/segment/huge_pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "gdrperf/base/compat/kernel_numbers.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uintptr_t kHugePage = 2u << 20;
constexpr std::uintptr_t kSmallPage = 4096;

std::uintptr_t rounded_up(std::uintptr_t address) { return (address + kHugePage - 1) & ~(kHugePage - 1); }

/// The system call: libc's function is replaced.
bool advise(std::uintptr_t begin, std::size_t bytes, int advice) noexcept {
  return ::syscall(SYS_madvise, begin, bytes, advice) == 0;
}

}  // namespace

void* reserve_for_memfd(std::size_t bytes) noexcept {
  void* const all = raw_mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(all);
  const std::uintptr_t aligned = rounded_up(begin);
  if (aligned != begin) raw_munmap(all, aligned - begin);
  if (begin + kHugePage != aligned) {
    raw_munmap(reinterpret_cast<void*>(aligned + bytes), begin + kHugePage - aligned);
  }
  return reinterpret_cast<void*>(aligned);
}

void back_with_huge_pages(void* begin, std::size_t bytes) noexcept {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
  for (std::uintptr_t page = rounded_up(reinterpret_cast<std::uintptr_t>(begin)); page + kHugePage <= end;
       page += kHugePage) {
    // Of a range without any page the kernel makes no huge one.
    if (!advise(page, kSmallPage, MADV_POPULATE_WRITE) || !advise(page, kHugePage, MADV_COLLAPSE)) return;
  }
}

}  // namespace gdrperf::softnic
