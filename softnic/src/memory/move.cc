#include "memory/move.h"

#include <linux/falloc.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gdrperf/base/compat/kernel_numbers.h"
#include "memory/maps.h"
#include "memory/own_window.h"
#include "memory/surroundings.h"
#include "memory/write_guard.h"
#include "shared/segment/huge_pages.h"
#include "shared/segment/page.h"
#include "shared/segment/sealed.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kCopyBytes = 1u << 30;
constexpr std::uint64_t kPieceBytes = 4u << 20;  // a whole number of huge pages

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

bool write_all(int fd, std::uint64_t from, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    // Not libc's, at which a sanitizer would look: other threads may write to
    // the source and are held up.
    const long put = ::syscall(SYS_pwrite64, fd, pointer(from), bytes < kCopyBytes ? bytes : kCopyBytes,
                               static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    const auto done = static_cast<std::uint64_t>(put);
    from += done, offset += done, bytes -= done;
  }
  return true;
}

bool read_all(int fd, std::uint64_t to, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const long got = ::syscall(SYS_pread64, fd, pointer(to), bytes < kCopyBytes ? bytes : kCopyBytes,
                               static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const auto done = static_cast<std::uint64_t>(got);
    to += done, offset += done, bytes -= done;
  }
  return true;
}

/// A handler that runs in this thread would write behind the copy's back.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

struct PrivateCheck {
  PageRange range;
  std::uint64_t covered;
  bool fits;
};

bool visit_private(const Mapping& mapping, void* argument) {
  auto& check = *static_cast<PrivateCheck*>(argument);
  const bool plain = mapping.path[0] == '\0' || std::strcmp(mapping.path, "[heap]") == 0 ||
                     std::strncmp(mapping.path, "[anon:", 6) == 0;
  check.fits = check.fits && plain && mapping.inode == 0 && mapping.readable && mapping.writable &&
               !mapping.executable && !mapping.shared && mapping.begin <= check.covered;
  check.covered = mapping.end;
  return check.fits;
}

/// Nothing but private, anonymous, readable and writable memory.
bool is_private(PageRange range) {
  PrivateCheck check{range, range.begin, true};
  return visit_mappings(range, &visit_private, &check) && check.fits && check.covered >= range.end;
}

struct OwnSearch {
  PageRange range;
  PageRange offsets;
  std::uint64_t inode;
  PageRange found;
  std::uint64_t offset;
  int protection;
};

bool visit_own(const Mapping& mapping, void* argument) {
  auto& search = *static_cast<OwnSearch*>(argument);
  if (!mapping.shared || mapping.inode != search.inode) return true;
  const std::uint64_t window = own_window.load();
  if (window != 0 && mapping.begin >= window && mapping.end <= window + kWindowBytes) return true;
  std::uint64_t begin = std::max(mapping.begin, search.range.begin);
  std::uint64_t offset = mapping.offset + (begin - mapping.begin);
  if (offset < search.offsets.begin) {
    begin += search.offsets.begin - offset;
    offset = search.offsets.begin;
  }
  if (offset >= search.offsets.end || begin >= std::min(mapping.end, search.range.end)) return true;
  search.found = {begin, std::min({mapping.end, search.range.end, begin + (search.offsets.end - offset)})};
  search.offset = offset;
  search.protection = (mapping.readable ? PROT_READ : 0) | (mapping.writable ? PROT_WRITE : 0) |
                      (mapping.executable ? PROT_EXEC : 0);
  return false;
}

constexpr PageRange kEverywhere{0, ~std::uint64_t{0}};
std::atomic<PageMover*> g_active{nullptr};

}  // namespace

PageMover::PageMover() {
  UniqueFd fd = sealed_memory("softnic-window", kWindowBytes);
  struct stat status = {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return;
  void* table = raw_mmap(nullptr, kMaxIntervals * sizeof(Interval), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return;
  void* parts = raw_mmap(nullptr, kMaxParts * sizeof(OwnPart), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (parts == MAP_FAILED) return;
  intervals_ = static_cast<Interval*>(table);
  parts_ = static_cast<OwnPart*>(parts);
  inode_ = status.st_ino;
  fd_ = std::move(fd);
  map_own_window();
}

/// Without it the device goes by the program's addresses.
void PageMover::map_own_window() {
  void* const place = reserve_for_memfd(kWindowBytes);
  if (place == nullptr) return own_window.store(0);
  void* window = raw_mmap(place, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                          fd_.get(), 0);
  if (window == MAP_FAILED) {
    raw_munmap(place, kWindowBytes);
    return own_window.store(0);
  }
  ::madvise(window, kWindowBytes, MADV_DONTFORK);
  ::madvise(window, kWindowBytes, MADV_DONTDUMP);
  own_window.store(reinterpret_cast<std::uint64_t>(window));
}

PageMover* PageMover::active() noexcept { return g_active.load(std::memory_order_acquire); }

std::uint64_t PageMover::window_bytes() const noexcept { return fd_ ? kWindowBytes : 0; }

std::uint64_t PageMover::offset_of(std::uint64_t address) const noexcept {
  return address & (kWindowBytes - 1);
}

const char* PageMover::obstacle() const {
  if (!fd_) return "no memory to share: memfd_create is refused, or the size of files is limited";
  if (go_loaded()) return "the program has Go in it, whose allocator makes system calls by itself";
  if (cuda_loaded()) return "libcuda is loaded, which may have pinned pages";
  if (WriteGuard::available() || alone()) return nullptr;
  return "the kernel refuses userfaultfd, and the process has other threads";
}

/// The first part of the range, of those places in the window, that the program has mapped.
PageMover::OwnPart PageMover::next_own_part(PageRange range, PageRange offsets) const {
  OwnSearch search{range, offsets, inode_, {}, 0, 0};
  if (!visit_mappings(range, &visit_own, &search)) return {};
  return {search.found, search.offset, search.protection};
}

/// All of it still is the window's mapping, where it was put.
bool PageMover::is_ours(PageRange range) const {
  while (!range.empty()) {
    const OwnPart part = next_own_part(range, kWholeWindow);
    if (part.range.begin != range.begin || part.range.empty() || part.offset != offset_of(range.begin)) return false;
    range.begin = part.range.end;
  }
  return true;
}

/// Another address with the same place in the window?
bool PageMover::collides(PageRange range) const noexcept {
  if (range.bytes() > kWindowBytes || offset_of(range.begin) + range.bytes() > kWindowBytes) return true;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const PageRange& other = intervals_[i].range;
    if (offset_of(other.begin) < offset_of(range.begin) + range.bytes() &&
        offset_of(range.begin) < offset_of(other.begin) + other.bytes() &&
        other.begin - offset_of(other.begin) != range.begin - offset_of(range.begin)) {
      return true;
    }
  }
  return false;
}

PageRange PageMover::acquire(std::uint64_t address, std::size_t length) {
  const std::uint64_t page = page_bytes();
  const PageRange range{address & -page, (address + length + page - 1) & -page};
  if (range.begin >= range.end || obstacle() != nullptr) return {};
  // A guard on this thread's own stack would hold up this thread; so would one on what libc keeps of it.
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (here + page > range.begin && here < range.end + (1u << 20)) return {};
  const PageRange kept = kept_of_thread();
  if (kept.begin < range.end && range.begin < kept.end) return {};
  const MutexLock guard(mutex_);
  if (collides(range)) return {};
  if (cover(range)) {
    add_references(range, +1);
    return range;
  }
  drop_unreferenced();
  return {};
}

/// Moves what is not moved yet; those intervals have no reference yet.
bool PageMover::cover(PageRange range) {
  std::uint64_t at = range.begin;
  while (at < range.end) {
    std::uint32_t next = 0;
    while (next < count_ && intervals_[next].range.end <= at) ++next;
    if (next < count_ && intervals_[next].range.begin <= at) {
      const PageRange known{at, std::min(intervals_[next].range.end, range.end)};
      // The program may have put something else there without deregistering.
      if (!is_ours(known)) return false;
      at = known.end;
      continue;
    }
    // Splitting may take two more entries.
    if (count_ + 3 > kMaxIntervals) return false;
    const PageRange gap{at, next < count_ ? std::min(intervals_[next].range.begin, range.end) : range.end};
    // In pieces: only one of them is there twice at a time. They end where huge pages do.
    for (bool first = true; at < gap.end; first = false) {
      const PageRange piece{at, std::min((at / kPieceBytes + 1) * kPieceBytes, gap.end)};
      if (!move_out(piece)) return false;
      if (first) {
        std::memmove(intervals_ + next + 1, intervals_ + next, (count_ - next) * sizeof(Interval));
        intervals_[next] = {piece, 0};
        ++count_;
      }
      at = intervals_[next].range.end = piece.end;
    }
  }
  return true;
}

bool PageMover::move_out(PageRange gap) {
  const MutexLock pages(pages_mutex_);
  if (!is_private(gap)) return false;
  // The guard holds up writes to pages that are there, not to those to come.
  if (::madvise(pointer(gap.begin), gap.bytes(), MADV_POPULATE_WRITE) != 0) return false;
  if (const std::uint64_t window = own_window.load(); window != 0) {
    back_with_huge_pages(pointer(window + offset_of(gap.begin)), gap.bytes());
  }
  const SignalsBlocked blocked;
  // From here to the mmap nothing may write anywhere but to this stack: it
  // could be a page that is held up, or a lock that a held-up thread has.
  const bool need_guard = WriteGuard::available();
  const WriteGuard guard(gap);
  if (need_guard && !guard.holds()) return false;
  if (!write_all(fd_.get(), gap.begin, gap.bytes(), offset_of(gap.begin))) return false;
  reach(gap);
  void* placed = raw_mmap(pointer(gap.begin), gap.bytes(), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_.get(),
                          static_cast<std::int64_t>(offset_of(gap.begin)));
  if (placed == MAP_FAILED) return false;
  ::madvise(placed, gap.bytes(), MADV_DONTFORK);
  ::madvise(placed, gap.bytes(), MADV_POPULATE_WRITE);
  g_active.store(this, std::memory_order_release);
  return true;
}

void PageMover::release(PageRange range) {
  if (range.empty()) return;
  const MutexLock guard(mutex_);
  add_references(range, -1);
  drop_unreferenced();
}

void PageMover::split_at(std::uint64_t address) noexcept {
  for (std::uint32_t i = 0; i < count_; ++i) {
    Interval& interval = intervals_[i];
    if (interval.range.begin >= address || interval.range.end <= address) continue;
    std::memmove(intervals_ + i + 1, intervals_ + i, (count_ - i) * sizeof(Interval));
    ++count_;
    intervals_[i].range.end = address;
    intervals_[i + 1].range.begin = address;
    return;
  }
}

void PageMover::add_references(PageRange range, int change) noexcept {
  split_at(range.begin);
  split_at(range.end);
  for (std::uint32_t i = 0; i < count_; ++i) {
    Interval& interval = intervals_[i];
    if (interval.range.begin < range.begin || interval.range.end > range.end) continue;
    interval.references += static_cast<std::uint32_t>(change);
  }
}

void PageMover::drop_unreferenced() {
  for (std::uint32_t i = 0; i < count_;) {
    if (intervals_[i].references != 0 || !move_back(intervals_[i].range)) {
      ++i;
      continue;
    }
    std::memmove(intervals_ + i, intervals_ + i + 1, (count_ - i - 1) * sizeof(Interval));
    --count_;
  }
}

/// Leaves alone what the program has unmapped or replaced since.
bool PageMover::move_back(PageRange range) {
  if (!WriteGuard::available() && !alone()) return false;
  const PageRange offsets{offset_of(range.begin), offset_of(range.begin) + range.bytes()};
  while (true) {
    const MutexLock pages(pages_mutex_);
    const PageRange where = relocated_.load() ? kEverywhere : range;
    OwnPart part = next_own_part(where, offsets);
    if (part.range.empty()) break;
    part.range.end = std::min(part.range.end, part.range.begin + kPieceBytes);
    if (!make_private(part)) return false;
    // At once, so that no more than a piece is there twice; mremap() may have left the same pages elsewhere, too.
    const PageRange copied{part.offset, part.offset + part.range.bytes()};
    if (next_own_part(where, copied).range.empty()) give_back(copied);
  }
  give_back(range);
  return true;
}

void PageMover::give_back(PageRange range) const noexcept {
  const auto begin = static_cast<off_t>(offset_of(range.begin));
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, static_cast<off_t>(range.bytes()));
}

bool PageMover::make_private(const OwnPart& part) {
  const std::uint64_t bytes = part.range.bytes();
  void* fresh = raw_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return false;
  bool done = ::madvise(fresh, bytes, MADV_POPULATE_WRITE) == 0;
  if (done) {
    const SignalsBlocked blocked;
    const WriteGuard guard(part.range);
    done = (guard.holds() || !WriteGuard::available()) &&
           read_all(fd_.get(), reinterpret_cast<std::uint64_t>(fresh), bytes, part.offset) &&
           (part.protection == (PROT_READ | PROT_WRITE) || ::mprotect(fresh, bytes, part.protection) == 0) &&
           ::syscall(SYS_mremap, fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(part.range.begin)) != -1;
  }
  if (!done) raw_munmap(fresh, bytes);
  return done;
}

void PageMover::prepare_for_child() noexcept {
  part_count_ = 0;
  if (count_ == 0) return;
  PageRange rest = kEverywhere;
  while (part_count_ < kMaxParts) {
    const OwnPart part = next_own_part(rest, kWholeWindow);
    if (part.range.empty()) return;
    parts_[part_count_++] = part;
    rest.begin = part.range.end;
  }
}

void PageMover::copy_for_child() noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  const auto copy = [this](const OwnPart& part) {
    const std::uint64_t bytes = part.range.bytes();
    void* placed = raw_mmap(pointer(part.range.begin), bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (placed == MAP_FAILED) return false;
    read_all(fd_.get(), part.range.begin, bytes, part.offset);
    if (part.protection != (PROT_READ | PROT_WRITE)) ::mprotect(placed, bytes, part.protection);
    return true;
  };
  for (std::uint32_t i = 0; i < part_count_; ++i) {
    const OwnPart& part = parts_[i];
    if (copy(part)) continue;
    // Another thread has put something else into it since.
    for (std::uint64_t at = 0; at < part.range.bytes(); at += page_bytes()) {
      copy({{part.range.begin + at, part.range.begin + at + page_bytes()}, part.offset + at, part.protection});
    }
  }
  count_ = 0;
  own_window.store(0);
  g_active.store(nullptr);
}

}  // namespace gdrperf::softnic
