#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "memory/page_range.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {

inline constexpr PageRange kWholeWindow{0, kWindowBytes};

/// Puts pages of private memory onto a memfd (the window) that peers map, so
/// that they can copy without the kernel, and back onto private memory when
/// the last registration ends. The page at address a has offset a modulo the
/// window's size, so that one mapping serves all. Thread-safe.
///
/// While a page is on its way a write by another thread must not be lost:
/// userfaultfd holds it up; without that, only a process with no other thread
/// moves pages. Nothing else is safe, so everything else stays where it is:
/// stacks, file mappings, shared memory, and memory that CUDA may have pinned.
///
/// A NIC's pages are pinned. So that a program cannot tell the difference, the
/// device has a mapping of its own (own_window.h), and what would look different
/// to the program is done for it: discard() and relocate().
class PageMover {
 public:
  PageMover();

  int fd() const noexcept { return fd_.get(); }
  std::uint64_t window_bytes() const noexcept;
  /// In a forked child.
  void close_window() { fd_.reset(); }

  /// Moves the pages that [address, address + length) is in, the first and the last
  /// as a whole. Empty when they have to stay. Otherwise to be released.
  PageRange acquire(std::uint64_t address, std::size_t length);
  void release(PageRange range);

  /// Why pages cannot be moved now, in words; null: they can.
  const char* obstacle() const;

  Mutex& mutex() noexcept RETURN_CAPABILITY(mutex_) { return mutex_; }
  /// Its caller, before a fork, holds the lock.
  bool any_moved() const noexcept NO_THREAD_SAFETY_ANALYSIS { return count_ > 0; }
  /// Before a fork: notes where moved pages are mapped and with what rights.
  void prepare_for_child() noexcept REQUIRES(mutex_);
  /// In a forked child, before anything else: a private copy of every moved
  /// page, in its place. Uses no heap, which may be among them.
  void copy_for_child() noexcept NO_THREAD_SAFETY_ANALYSIS;  // the only thread, the lock held since before the fork

  /// The mover of this process, if it may have moved pages; null otherwise.
  static PageMover* active() noexcept;
  /// madvise(MADV_DONTNEED): fresh pages of zeros for the program, in place of
  /// moved ones; the device keeps the others.
  void discard(PageRange range);
  /// After madvise(MADV_DOFORK): a child gets copies of moved pages, and not the pages.
  void keep_from_children(PageRange range);
  /// Does the program have moved pages there?
  bool has_pages_in(PageRange range);
  /// mremap() of memory with moved pages in it, which stay the device's as well.
  /// MAP_FAILED and errno.
  void* relocate(PageRange from, std::uint64_t new_bytes, int flags, std::uint64_t to);

 private:
  /// Moved pages as the program has them mapped.
  struct OwnPart {
    PageRange range;
    std::uint64_t offset;  ///< in the window
    int protection;
  };
  struct Interval {
    PageRange range;
    std::uint32_t references;
  };
  static constexpr std::uint32_t kMaxIntervals = 4096;
  static constexpr std::uint32_t kMaxParts = 1u << 16;

  bool collides(PageRange range) const noexcept REQUIRES(mutex_);
  bool cover(PageRange range) REQUIRES(mutex_);
  bool move_out(PageRange gap);
  /// False: left as it is, to be tried again.
  bool move_back(PageRange range);
  void give_back(PageRange range) const noexcept;
  bool make_private(const OwnPart& part);
  OwnPart next_own_part(PageRange range, PageRange offsets) const;
  void map_own_window();
  bool move_parts(PageRange from, std::uint64_t to);
  void split_at(std::uint64_t address) noexcept REQUIRES(mutex_);
  void add_references(PageRange range, int change) noexcept REQUIRES(mutex_);
  void drop_unreferenced() REQUIRES(mutex_);
  bool is_ours(PageRange range) const;
  /// Before pages appear in `range`.
  void reach(PageRange range) noexcept;
  /// False: no moved page was ever mapped there, which takes no look at the mappings.
  bool reaches(PageRange range) const noexcept;
  std::uint64_t offset_of(std::uint64_t address) const noexcept;

  UniqueFd fd_;
  std::uint64_t inode_ = 0;
  Mutex mutex_;
  /// In memory of its own, sorted, without overlaps.
  Interval* intervals_ GUARDED_BY(mutex_) = nullptr;
  std::uint32_t count_ GUARDED_BY(mutex_) = 0;
  /// For the child of a fork, in memory of its own.
  OwnPart* parts_ = nullptr;
  std::uint32_t part_count_ = 0;
  /// Held while pages change their place, and never across a fork: an allocator
  /// that gives memory back holds its own locks meanwhile, and wants them before a fork.
  Mutex pages_mutex_;
  /// All places where moved pages were ever mapped lie between these two. Written
  /// under pages_mutex_.
  std::atomic<std::uint64_t> reach_begin_{~std::uint64_t{0}};
  std::atomic<std::uint64_t> reach_end_{0};
  /// Moved pages may be anywhere in the program's addresses.
  std::atomic<bool> relocated_{false};
};

}  // namespace gdrperf::softnic
