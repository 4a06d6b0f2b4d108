#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "gdrperf/base/unique_fd.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {

/// mmap that a program cannot have patched (some patch libc's).
void* raw_mmap(void* address, std::size_t length, int protection, int flags, int fd,
               std::int64_t offset);
int raw_munmap(void* address, std::size_t length);

/// This process' segment: a sparse memfd, mapped, and the allocator for what
/// follows the tables. Not inherited by children. Thread-safe.
class SegmentMemory {
 public:
  /// Throws Error(kEnvironment).
  SegmentMemory();

  Segment& segment() noexcept { return *segment_; }
  int fd() const noexcept { return fd_.get(); }
  int release_fd() noexcept { return fd_.release(); }

  /// Zeroed, page-aligned; 0 when the segment is full.
  std::uint64_t allocate(std::uint64_t bytes);
  void free(std::uint64_t offset, std::uint64_t bytes);

 private:
  UniqueFd fd_;
  Segment* segment_ = nullptr;
  std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::vector<std::uint64_t>> free_;
};

}  // namespace gdrperf::softnic
