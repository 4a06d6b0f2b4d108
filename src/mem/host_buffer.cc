#include "mem/host_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/compat/kernel_numbers.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::mem {
namespace {

constexpr std::size_t kHugepage = 2u << 20;

class MappedBuffer final : public CpuBuffer {
 public:
  MappedBuffer(const char* kind, std::size_t bytes, std::size_t granularity, int flags, const std::string& hint)
      : CpuBuffer(kind, bytes), mapped_((bytes + granularity - 1) / granularity * granularity) {
    const bool reserved = (flags & MAP_HUGETLB) != 0;
    // Of huge pages the kernel gives whole ones only: aligned, and told that they are wanted.
    const bool aligned = !reserved && bytes >= kHugepage;
    void* at = ::mmap(nullptr, mapped_ + (aligned ? kHugepage : 0), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (at == MAP_FAILED) {
      const int error = errno;
      const std::string limit = limit_hint(error);
      throw call_error(fmt::format("mmap({} of {} memory)", format_size(bytes), kind), error, {},
                       limit.empty() ? hint : limit + "; or " + hint);
    }
    data_ = static_cast<std::byte*>(at);
    if (aligned) {
      align();
      ::madvise(data_, mapped_, MADV_HUGEPAGE);  // refused by a kernel without them: pages of the usual size do
    }
    // First touch: the pages come from this thread's NUMA node. Written: what was only read would be
    // one page of zeros. All at once takes half the time of a fault per page.
    // In pieces: this process maps nothing meanwhile, and the heartbeat's thread may have to.
    constexpr std::size_t kPiece = 32u << 20;
    for (std::size_t done = 0; done < mapped_; done += kPiece) {
      const std::size_t piece = std::min(kPiece, mapped_ - done);
      if (::madvise(data_ + done, piece, MADV_POPULATE_WRITE) != 0) std::memset(data_ + done, 0, piece);
    }
  }
  ~MappedBuffer() override { unmap(); }
  void let_go() noexcept override { unmap(); }
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;

 private:
  /// Unmaps what was mapped too much, in front of the first huge page and behind the buffer.
  void align() {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (mapped_ + page - 1) / page * page;
    const std::size_t front = (kHugepage - reinterpret_cast<std::uintptr_t>(data_) % kHugepage) % kHugepage;
    if (front > 0) ::munmap(data_, front);
    data_ += front;
    if (front < kHugepage) ::munmap(data_ + mapped_, kHugepage - front);
  }
  void unmap() noexcept {
    if (data_ != nullptr) ::munmap(data_, mapped_);
    data_ = nullptr;
  }

  std::size_t mapped_;
};

}  // namespace

verbs::Mr CpuBuffer::register_with(ibv_pd* pd, int access) {
  verbs::Mr mr = verbs::register_memory(pd, data_, size(), access);
  registration_ = "host";
  return mr;
}

const std::string& CpuBuffer::checker() const {
  static const std::string kCpu = "cpu";
  return kCpu;
}

std::unique_ptr<Buffer> make_host_buffer(std::size_t bytes) {
  return std::make_unique<MappedBuffer>("host", bytes, 1, 0,
                                        less_memory_hint());
}

std::string less_memory_hint() {
  return fmt::format("use a smaller size ({}), fewer QPs ({}) or a smaller {}", flag<&TestSpec::size_bytes>(),
                     flag<&TestSpec::qps>(), flag<&TestSpec::footprint_bytes>());
}

std::unique_ptr<Buffer> make_hugepage_buffer(std::size_t bytes) {
  return std::make_unique<MappedBuffer>(
      "hugepage", bytes, kHugepage, MAP_HUGETLB,
      "huge pages have to be set aside first, as root: sysctl vm.nr_hugepages=512");
}

bool hugepages_at_hand() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  std::uint64_t value = 0;
  while (meminfo >> name >> value) {
    if (name == "HugePages_Free:") return value >= 256;
    meminfo.ignore(64, '\n');
  }
  return false;
}

}  // namespace gdrperf::mem
