#include "objects/memory/mr.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "gdrperf/base/compat/kernel_numbers.h"
#include "gpu/dmabufs.h"
#include "gpu/memory.h"
#include "memory/maps.h"
#include "memory/own_window.h"
#include "objects/queues/failure.h"
#include "objects/memory/mw.h"
#include "shared/segment/page.h"

namespace gdrperf::softnic {
namespace {

constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
                                  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE;

/// All of the process' memory, whatever is there when it is used (implicit paging on demand).
bool is_everything(std::size_t length, unsigned access) {
  return (access & IBV_ACCESS_ON_DEMAND) != 0 && length == SIZE_MAX;
}

int check_arguments(void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  if (is_everything(length, access) && (address != nullptr || iova != 0)) return EINVAL;
  if ((access & ~kKnownAccess) != 0) return EINVAL;
  if ((access & kRemoteWriters) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (length == 0 || begin + length < begin || iova + length < iova) return EINVAL;
  if (((begin ^ iova) & (page_bytes() - 1)) != 0) return EINVAL;
  return 0;
}

/// Kernels since 5.14 can fault pages in on request.
bool can_populate() {
  static const bool can = [] {
    constexpr std::size_t kLargestPage = 64u << 10;
    alignas(kLargestPage) static std::uint8_t page[kLargestPage];
    return ::madvise(page, page_bytes(), MADV_POPULATE_WRITE) == 0;
  }();
  return can;
}

struct RightsCheck {
  std::uint64_t covered;
  bool writable;
  bool fits;
};

bool visit_rights(const Mapping& mapping, void* argument) {
  auto& check = *static_cast<RightsCheck*>(argument);
  check.fits = mapping.begin <= check.covered && mapping.readable && (mapping.writable || !check.writable);
  check.covered = mapping.end;
  return check.fits;
}

/// Faults the pages in, as pinning would, and so finds out whether they are
/// there with the rights that are needed. 0, or EFAULT.
int populate(void* address, std::size_t length, bool writable) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const PageRange pages{begin & ~(page_bytes() - 1), (begin + length + page_bytes() - 1) & ~(page_bytes() - 1)};
  if (!can_populate()) {
    RightsCheck check{pages.begin, writable, true};
    const bool read = visit_mappings(pages, &visit_rights, &check);
    return read && check.fits && check.covered >= pages.end ? 0 : EFAULT;
  }
  auto* first = reinterpret_cast<void*>(pages.begin);
  while (::madvise(first, pages.bytes(), writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0) {
    if (errno != EINTR && errno != EAGAIN) return EFAULT;
  }
  return 0;
}

/// Only the program's mapping leads there, and whatever the program does with it is done to the device.
/// Where no pages move at all, going carefully would slow down all that a process does with itself.
bool needs_care(const Mr& mr, unsigned access) {
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return true;
  if ((access & kGpuMemory) != 0 || mr.addr == nullptr) return false;
  Context& context = Context::of(mr.context);
  if (context.device.config.move == MovePolicy::kNever) return !mr.second.lasts();
  const bool moves = own_window.load() != 0 && context.process.mover().obstacle() == nullptr;
  return moves && mr.moved.empty() && !mr.second.lasts();
}

void publish(Process& process, const Mr& mr, std::uint32_t pd, std::uint64_t iova, unsigned access) {
  MrShared& region = process.known_region(mr.index);
  region.pd = pd;
  region.access = needs_care(mr, access) ? access | kUnpinned : access;
  region.iova = iova;
  region.length = mr.length;
  const auto address = reinterpret_cast<std::uint64_t>(mr.addr);
  region.addr = mr.second.empty() ? device_address(mr.moved, address, mr.length) : mr.second.address();
  region.moved_begin = mr.moved.begin;
  region.moved_end = mr.moved.end;
  process.publish_region(mr.index, mr.lkey);
}

PageRange move_pages(const Context& context, void* address, std::size_t length) {
  if (context.device.config.move == MovePolicy::kNever || context.null_mode()) return {};
  return context.process.mover().acquire(reinterpret_cast<std::uint64_t>(address), length);
}

/// False: windows are bound to the region.
bool withdraw_keys(Pd& pd, const Mr& mr) {
  const MutexLock guard(pd.windows_mutex);
  if (has_windows(pd, mr.index)) return false;
  Process& process = Context::of(mr.context).process;
  withdraw(process.regions(), process.known_region(mr.index));
  return true;
}

/// Makes the region's memory reachable for others. Nobody pins pages on demand: the device finds
/// there what the program has at the time.
void place(Mr& mr, bool gpu_memory, unsigned access) {
  Context& context = Context::of(mr.context);
  if (gpu_memory) {
    gpu::publish(mr.gpu, mr.addr);
    context.process.segment().gpu_regions[mr.index] = mr.gpu;
    std::atomic<GpuMemory>& kind = context.process.segment().header.gpu_memory;
    if (mr.gpu.exported == GpuExport::kNone) {
      kind.store(GpuMemory::kOwn, std::memory_order_release);
    } else {
      GpuMemory before = GpuMemory::kNone;
      kind.compare_exchange_strong(before, GpuMemory::kShared);
    }
  } else if ((access & IBV_ACCESS_ON_DEMAND) == 0) {
    mr.moved = move_pages(context, mr.addr, mr.length);
    if (mr.moved.empty()) mr.second = SecondMapping(reinterpret_cast<std::uint64_t>(mr.addr), mr.length);
  }
}

/// Undoes that.
void displace(Mr& mr) {
  Process& process = Context::of(mr.context).process;
  process.mover().release(mr.moved);
  mr.moved = {};
  mr.second = SecondMapping();
  gpu::forget(process.known_region(mr.index), mr.gpu);
  process.segment().gpu_regions[mr.index].exported = GpuExport::kNone;
}

bool is_dmabuf(int fd) {
  char link[64] = {};
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return ::readlink(path.c_str(), link, sizeof link - 1) > 0 && std::strstr(link, "dmabuf") != nullptr;
}

std::uint64_t base_of(std::uint64_t iova, unsigned access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
}

}  // namespace

Mr* register_memory(Pd& pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  Context& context = Context::of(pd.context);
  int error = context.device.call_fault("reg_mr");
  if (error == 0) error = check_arguments(address, length, iova, access);
  const bool everything = is_everything(length, access);
  const bool gpu_memory = error == 0 && !everything && gpu::recognises(address, length);
  if (error == 0 && !gpu_memory && !everything)
    error = populate(address, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0);
  if (error != 0) throw VerbsFailure{error};
  Process& process = context.process;
  auto mr = std::make_unique<Mr>();
  mr->index = process.mr_indices.take();
  if (mr->index == 0) throw VerbsFailure{ENOMEM};
  mr->context = pd.context;
  mr->pd = &pd;
  mr->addr = address;
  mr->length = length;
  mr->handle = mr->index;
  mr->lkey = mr->rkey = mr->index << 8 | process.next_key.fetch_add(1);
  place(*mr, gpu_memory, access);
  ++pd.users;
  publish(process, *mr, pd.number, base_of(iova, access), gpu_memory ? access | kGpuMemory : access);
  return mr.release();
}

Mr* register_null(Pd& pd) {
  Context& context = Context::of(pd.context);
  Process& process = context.process;
  auto mr = std::make_unique<Mr>();
  mr->index = process.mr_indices.take();
  if (mr->index == 0) throw VerbsFailure{ENOMEM};
  mr->context = pd.context;
  mr->pd = &pd;
  mr->length = SIZE_MAX;
  mr->handle = mr->index;
  mr->lkey = mr->index << 8 | process.next_key.fetch_add(1);
  // The domain may end before it: there is no memory that belongs to it.
  process.known_region(mr->index).window_pd = pd.number;
  publish(process, *mr, kNullDomain, 0, IBV_ACCESS_LOCAL_WRITE);
  return mr.release();
}

Mr* register_dmabuf(Pd& pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, unsigned access) {
  const off_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0 || !is_dmabuf(fd)) throw VerbsFailure{EBADF};
  if (offset + length < length || offset + length > static_cast<std::uint64_t>(end)) throw VerbsFailure{EINVAL};
  // A dma-buf cannot be mapped here. What is behind it is known where CUDA was asked for it through this
  // library; otherwise by its address in this process, which most who register GPU memory give as iova.
  void* address = find_dmabuf(fd, offset, length);
  if (address == nullptr) address = reinterpret_cast<void*>(iova);
  if (!gpu::recognises(address, length)) throw VerbsFailure{EOPNOTSUPP};
  return register_memory(pd, address, length, iova, access);
}

int check_advised(const Pd& pd, const ibv_sge* pieces, std::uint32_t count) {
  Process& process = Context::of(pd.context).process;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = pieces[i].lkey >> 8;
    if (index == 0 || index >= kMaxMrs) return ENOENT;
    const MrShared& region = process.known_region(index);
    if (region.key.load() != pieces[i].lkey || region.pd != pd.number) return ENOENT;
    if (pieces[i].addr < region.iova || pieces[i].addr - region.iova > region.length ||
        pieces[i].length > region.length - (pieces[i].addr - region.iova)) {
      return EFAULT;
    }
  }
  return 0;
}

int deregister_memory(Mr* mr) {
  Process& process = Context::of(mr->context).process;
  if (const MrShared& known = process.known_region(mr->index); known.pd == kNullDomain) {
    withdraw(process.regions(), known);
    process.settle(known.window_pd);
    process.mr_indices.give_back(mr->index);
    delete mr;
    return 0;
  }
  Pd& pd = *static_cast<Pd*>(mr->pd);
  if (!withdraw_keys(pd, *mr)) return EBUSY;
  process.settle(pd.number);
  displace(*mr);
  process.mr_indices.give_back(mr->index);
  --pd.users;
  delete mr;
  return 0;
}

int reregister_memory(Mr& mr, int flags, Pd* pd, void* address, std::size_t length, unsigned access) {
  if (Context::of(mr.context).process.known_region(mr.index).pd == kNullDomain) return EINVAL;
  if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0) return EINVAL;
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == nullptr || pd->context != mr.context)) return EINVAL;
  Process& process = Context::of(mr.context).process;
  const MrShared& known = process.known_region(mr.index);
  Pd& old_pd = *static_cast<Pd*>(mr.pd);
  Pd& new_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? *pd : old_pd;
  void* new_address = mr.addr;
  std::size_t new_length = mr.length;
  std::uint64_t iova = known.iova;
  unsigned new_access = known.access & ~(kGpuMemory | kUnpinned);
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    new_address = address;
    new_length = length;
    iova = reinterpret_cast<std::uint64_t>(address);
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) new_access = access;
  int error = check_arguments(new_address, new_length, reinterpret_cast<std::uint64_t>(new_address),
                              new_access);
  if (is_everything(new_length, new_access) || mr.length == SIZE_MAX) return EINVAL;
  const bool gpu_memory = error == 0 && gpu::recognises(new_address, new_length);
  if (error == 0 && !gpu_memory) error = populate(new_address, new_length, (new_access & IBV_ACCESS_LOCAL_WRITE) != 0);
  if (error != 0) return error;
  if (!withdraw_keys(old_pd, mr)) return EBUSY;
  process.settle(old_pd.number);
  displace(mr);
  --old_pd.users;
  ++new_pd.users;
  mr.pd = &new_pd;
  mr.addr = new_address;
  mr.length = new_length;
  place(mr, gpu_memory, new_access);
  // Other rights or another domain leave the keys as they are; to other memory
  // those that peers still hold must not lead.
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    mr.lkey = mr.rkey = mr.index << 8 | process.next_key.fetch_add(1);
  }
  publish(process, mr, new_pd.number, base_of(iova, new_access), gpu_memory ? new_access | kGpuMemory : new_access);
  return 0;
}

}  // namespace gdrperf::softnic
