#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "abi/libc/libc_functions.h"
#include "memory/move.h"
#include "shared/segment/page.h"

/// madvise() and mremap(), where pages of registered memory were moved. munmap(),
/// mprotect() and mmap() over them need nobody: the device has a mapping of its own.
namespace gdrperf::softnic {
namespace {

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

std::uint64_t page_mask() { return page_bytes() - 1; }

PageRange pages_of(const void* address, std::size_t length) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  return {begin, (begin + length + page_mask()) & ~page_mask()};
}

/// 0 or 1: whether something is left for the kernel; or a negative errno.
int advise_moved(PageMover& mover, PageRange range, int advice) {
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_DONTNEED_LOCKED:
      mover.discard(range);
      return 1;
    // Pinned pages are never freed.
    case MADV_FREE: return mover.has_pages_in(range) ? 0 : 1;
    // Private memory has no file behind it.
    case MADV_REMOVE: return mover.has_pages_in(range) ? -EINVAL : 1;
    default: return 1;
  }
}

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

extern "C" {

SOFTNIC_STANDS_FOR(int, madvise, (void* address, std::size_t length, int advice) noexcept) {
  PageMover* mover = PageMover::active();
  const PageRange range = pages_of(address, length);
  if (mover != nullptr && (range.begin & page_mask()) == 0 && range.begin < range.end) {
    const int left = advise_moved(*mover, range, advice);
    if (left < 0) errno = -left;
    if (left <= 0) return left < 0 ? -1 : 0;
  }
  const int result = SOFTNIC_NEXT(madvise)(address, length, advice);
  if (mover != nullptr && result == 0 && advice == MADV_DOFORK) mover->keep_from_children(range);
  return result;
}

SOFTNIC_STANDS_FOR(void*, mremap, (void* old, std::size_t old_bytes, std::size_t new_bytes, int flags, ...) noexcept) {
  va_list arguments;
  va_start(arguments, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  PageMover* mover = PageMover::active();
  const PageRange from = pages_of(old, old_bytes);
  const bool plain =
      (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) == 0 && (from.begin & page_mask()) == 0 && from.begin < from.end;
  if (mover != nullptr && plain && mover->has_pages_in(from)) {
    return mover->relocate(from, (new_bytes + page_mask()) & ~page_mask(), flags, reinterpret_cast<std::uint64_t>(to));
  }
  return SOFTNIC_NEXT(mremap)(old, old_bytes, new_bytes, flags, to);
}

}  // extern "C"

namespace gdrperf::softnic {
namespace {

/// Found before an allocator asks from inside its own locks.
[[gnu::constructor]] void find_next_calls() {
  [[maybe_unused]] const auto advise = SOFTNIC_NEXT(madvise);
  [[maybe_unused]] const auto move = SOFTNIC_NEXT(mremap);
}

}  // namespace
}  // namespace gdrperf::softnic
