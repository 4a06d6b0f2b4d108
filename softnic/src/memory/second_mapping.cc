#include "memory/second_mapping.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "memory/maps.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint64_t kPageLow = 4095;

struct SharedSearch {
  PageRange range;
  bool fits;
  bool nameless;
};

bool visit_shared(const Mapping& mapping, void* argument) {
  auto& search = *static_cast<SharedSearch*>(argument);
  search.fits = mapping.shared && mapping.begin <= search.range.begin && mapping.end >= search.range.end;
  search.nameless = std::strcmp(mapping.path, "/dev/zero (deleted)") == 0;
  return false;
}

}  // namespace

SecondMapping::SecondMapping(std::uint64_t address, std::size_t length) {
  const PageRange pages{address & ~kPageLow, (address + length + kPageLow) & ~kPageLow};
  SharedSearch search{pages, false, false};
  if (!visit_mappings(pages, &visit_shared, &search) || !search.fits) return;
  // An old size of nothing maps shared memory once more. The system call: libc's function is replaced.
  const long placed = ::syscall(SYS_mremap, pages.begin, 0, pages.bytes(), MREMAP_MAYMOVE, 0);
  if (placed == -1) return;
  pages_ = static_cast<std::uint64_t>(placed);
  bytes_ = pages.bytes();
  address_ = pages_ + (address & kPageLow);
  lasts_ = search.nameless;
  ::syscall(SYS_madvise, pages_, bytes_, MADV_DONTFORK);
  ::syscall(SYS_madvise, pages_, bytes_, MADV_DONTDUMP);
}

SecondMapping& SecondMapping::operator=(SecondMapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(pages_, other.pages_);
  std::swap(bytes_, other.bytes_);
  std::swap(lasts_, other.lasts_);
  return *this;
}

SecondMapping::~SecondMapping() {
  if (bytes_ != 0) raw_munmap(reinterpret_cast<void*>(pages_), bytes_);
}

}  // namespace gdrperf::softnic
