#include "objects/memory/device_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "objects/queues/failure.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kWordBytes = 4;

int copy_to(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t length) {
  DeviceMemory& ours = DeviceMemory::of(dm);
  if (!ours.holds(offset, length)) return EFAULT;
  std::memcpy(ours.memory + offset, from, length);
  return 0;
}

int copy_from(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  DeviceMemory& ours = DeviceMemory::of(dm);
  if (!ours.holds(offset, length)) return EFAULT;
  std::memcpy(to, ours.memory + offset, length);
  return 0;
}

}  // namespace

DeviceMemory::DeviceMemory(ibv_context* owner, const ibv_alloc_dm_attr& attr) : ibv_dm{}, length(attr.length) {
  if (attr.comp_mask != 0) throw VerbsFailure{EINVAL};
  if (length == 0 || length > kMaxDeviceMemory) throw VerbsFailure{length == 0 ? EINVAL : ENOMEM};
  void* made = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) throw VerbsFailure{ENOMEM};
  memory = static_cast<std::uint8_t*>(made);
  context = owner;
  memcpy_to_dm = &copy_to;
  memcpy_from_dm = &copy_from;
}

DeviceMemory::~DeviceMemory() { ::munmap(memory, length); }

bool DeviceMemory::holds(std::uint64_t offset, std::size_t length_bytes) const noexcept {
  return offset % kWordBytes == 0 && length_bytes % kWordBytes == 0 && offset <= length &&
         length_bytes <= length - offset;
}

Mr* DeviceMemory::make_region(Pd& pd, std::uint64_t offset, std::size_t length_bytes, unsigned access) {
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || offset > length || length_bytes > length - offset)
    throw VerbsFailure{EINVAL};
  // Regions of nothing are allowed here, and reach the word that follows.
  const std::size_t reach = length_bytes != 0 ? length_bytes : 1;
  if (offset == length) throw VerbsFailure{EINVAL};
  std::uint8_t* begin = memory + offset;
  Mr* mr = register_memory(pd, begin, reach, reinterpret_cast<std::uint64_t>(begin), access);
  mr->length = length_bytes;
  return mr;
}

}  // namespace gdrperf::softnic
