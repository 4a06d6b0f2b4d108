#include "shared/segment/segment.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "shared/sync/limited.h"
#include "shared/segment/page.h"
#include "shared/segment/sealed.h"

namespace gdrperf::softnic {

void* raw_mmap(void* address, std::size_t length, int protection, int flags, int fd,
               std::int64_t offset) {
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}

int raw_munmap(void* address, std::size_t length) {
  return static_cast<int>(::syscall(SYS_munmap, address, length));
}

namespace {

std::uint64_t rounded(std::uint64_t bytes) {
  return std::bit_ceil(std::max(bytes, page_bytes()));
}

}  // namespace

SegmentMemory::SegmentMemory() : fd_(sealed_memory("softnic-segment", kSegmentBytes)) {
  if (!fd_) throw CallFailure("memfd_create", errno);
  void* mapped = raw_mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE, fd_.get(), 0);
  if (mapped == MAP_FAILED) throw CallFailure("mmap of the segment", errno);
  ::madvise(mapped, kSegmentBytes, MADV_DONTFORK);
  ::madvise(mapped, kSegmentBytes, MADV_DONTDUMP);
  segment_ = static_cast<Segment*>(mapped);
  next_ = (sizeof(Segment) + page_bytes() - 1) & ~(page_bytes() - 1);
}

std::uint64_t SegmentMemory::allocate(std::uint64_t bytes) {
  const std::uint64_t size = rounded(bytes);
  const std::lock_guard guard(mutex_);
  auto& reusable = free_[size];
  if (!reusable.empty()) {
    const std::uint64_t offset = reusable.back();
    reusable.pop_back();
    return offset;
  }
  if (size > kSegmentBytes || next_ > kSegmentBytes - size) return 0;
  const std::uint64_t offset = next_;
  next_ += size;
  return offset;
}

void SegmentMemory::free(std::uint64_t offset, std::uint64_t bytes) {
  if (offset == 0) return;
  const std::uint64_t size = rounded(bytes);
  // Gives the pages back and makes them read as zero again. Not madvise(), which the library
  // stands in front of for the program's memory.
  auto* const begin = segment_->at<volatile std::uint8_t>(offset);
  *begin = 1;
  if (::syscall(SYS_madvise, begin, size, MADV_REMOVE) != 0) return;
  // Some sandboxes agree and do nothing.
  if (*begin != 0) std::memset(const_cast<std::uint8_t*>(begin), 0, size);
  const std::lock_guard guard(mutex_);
  free_[size].push_back(offset);
}

}  // namespace gdrperf::softnic
