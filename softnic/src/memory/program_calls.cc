#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "memory/maps.h"
#include "memory/move.h"
#include "shared/segment/segment.h"

/// What a program does to memory of which pages were moved, where shared memory
/// would answer otherwise than the private memory that the program knows of.
namespace gdrperf::softnic {
namespace {

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

struct FirstMapping {
  PageRange range;
  int protection;
};

bool visit_first(const Mapping& mapping, void* argument) {
  *static_cast<FirstMapping*>(argument) = {{mapping.begin, mapping.end},
      (mapping.readable ? PROT_READ : 0) | (mapping.writable ? PROT_WRITE : 0) | (mapping.executable ? PROT_EXEC : 0)};
  return false;
}

/// The mapping that `address` is in; empty: none.
FirstMapping mapping_at(std::uint64_t address) {
  FirstMapping found{};
  visit_mappings({address, address + 1}, &visit_first, &found);
  return found;
}

void* refuse_memory(int error) {
  errno = error;
  return MAP_FAILED;
}

}  // namespace

void PageMover::reach(PageRange range) noexcept {
  reach_begin_.store(std::min(reach_begin_.load(), range.begin));
  reach_end_.store(std::max(reach_end_.load(), range.end));
}

bool PageMover::reaches(PageRange range) const noexcept {
  return range.begin < reach_end_.load() && range.end > reach_begin_.load();
}

bool PageMover::has_pages_in(PageRange range) {
  if (!reaches(range)) return false;
  const MutexLock pages(pages_mutex_);
  return !next_own_part(range, kWholeWindow).range.empty();
}

void PageMover::discard(PageRange range) {
  if (!reaches(range)) return;
  const MutexLock pages(pages_mutex_);
  while (true) {
    const OwnPart part = next_own_part(range, kWholeWindow);
    if (part.range.empty()) return;
    raw_mmap(at(part.range.begin), part.range.bytes(), part.protection,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    range.begin = part.range.end;
  }
}

void PageMover::keep_from_children(PageRange range) {
  if (!reaches(range)) return;
  const MutexLock pages(pages_mutex_);
  while (range.begin < range.end) {
    const OwnPart part = next_own_part(range, kWholeWindow);
    if (part.range.empty()) return;
    ::syscall(SYS_madvise, part.range.begin, part.range.bytes(), MADV_DONTFORK);
    range.begin = part.range.end;
  }
}

/// Mapping by mapping: to the kernel it is not one mapping any more.
bool PageMover::move_parts(PageRange from, std::uint64_t to) {
  while (!from.empty()) {
    const FirstMapping found = mapping_at(from.begin);
    if (found.range.empty()) return false;
    const std::uint64_t bytes = std::min(found.range.end, from.end) - from.begin;
    if (::syscall(SYS_mremap, from.begin, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == -1) return false;
    from.begin += bytes;
    to += bytes;
  }
  return true;
}

void* PageMover::relocate(PageRange from, std::uint64_t new_bytes, int flags, std::uint64_t to) {
  const bool fixed = (flags & MREMAP_FIXED) != 0;
  if (from.empty() || new_bytes == 0 || (fixed && (flags & MREMAP_MAYMOVE) == 0)) return refuse_memory(EINVAL);
  if (fixed && to < from.end && from.begin < to + new_bytes) return refuse_memory(EINVAL);
  const MutexLock pages(pages_mutex_);
  for (std::uint64_t next = from.begin; next < from.end;) {
    const PageRange found = mapping_at(next).range;
    if (found.empty()) return refuse_memory(EFAULT);
    next = found.end;
  }
  const int protection = mapping_at(from.end - 1).protection;
  if (new_bytes < from.bytes()) {
    raw_munmap(at(from.begin + new_bytes), from.bytes() - new_bytes);
    from.end = from.begin + new_bytes;
  }
  const std::uint64_t more = new_bytes - from.bytes();
  if (!fixed && more == 0) return at(from.begin);
  constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  if (!fixed) {
    void* behind = raw_mmap(at(from.end), more, protection, kAnonymous | MAP_FIXED_NOREPLACE, -1, 0);
    if (behind == at(from.end)) return at(from.begin);
    if (behind != MAP_FAILED) raw_munmap(behind, more);
    if ((flags & MREMAP_MAYMOVE) == 0) return refuse_memory(ENOMEM);
  }
  void* place = raw_mmap(fixed ? at(to) : nullptr, new_bytes, protection, kAnonymous | (fixed ? MAP_FIXED : 0), -1, 0);
  if (place == MAP_FAILED) return place;
  relocated_.store(true);
  reach({reinterpret_cast<std::uint64_t>(place), reinterpret_cast<std::uint64_t>(place) + new_bytes});
  return move_parts(from, reinterpret_cast<std::uint64_t>(place)) ? place : refuse_memory(ENOMEM);
}

}  // namespace gdrperf::softnic
