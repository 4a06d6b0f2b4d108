#include "gpu/memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "gpu/bounce.h"
#include "gpu/devices.h"
#include "gpu/driver.h"
#include "gpu/vmm.h"
#include "gdrperf/base/mutex.h"

namespace gdrperf::softnic::gpu {
namespace {

/// The device whose memory `address` is in; -1: none.
Device device_of(const void* address) noexcept {
  const Driver* d = driver();
  if (d == nullptr) return -1;
  const auto pointer = reinterpret_cast<Address>(address);
  unsigned type = 0;
  if (d->pointer_attribute(&type, kMemoryType, pointer) != kSuccess || type != kMemoryTypeDevice) return -1;
  unsigned managed = 0;
  if (d->pointer_attribute(&managed, kIsManaged, pointer) == kSuccess && managed != 0) return -1;
  int device = -1;
  return d->pointer_attribute(&device, kDeviceOrdinal, pointer) == kSuccess && device < kMaxDevices ? device : -1;
}

/// This thread's stream on the current context, which is `device`'s.
Stream stream_of(Device device) noexcept {
  thread_local std::array<Stream, kMaxDevices> streams{};
  Stream& stream = streams[static_cast<std::size_t>(device)];
  if (stream == nullptr && driver()->stream_create(&stream, kNonBlocking) != kSuccess) stream = nullptr;
  return stream;
}

/// Host memory of regions that took part in copies is pinned, as a NIC would
/// have it, when it is first used.
class Pinned {
 public:
  void pin(const MrShared& region) {
    if (in_gpu(region) || seen(region).load(std::memory_order_acquire)) return;
    const MutexLock guard(mutex_);
    seen(region).store(true, std::memory_order_release);
    if (!known_.emplace(&region, false).second) return;
    // Refused where the program has pinned it itself: just as well.
    known_[&region] =
        driver()->host_register(reinterpret_cast<void*>(region.addr), region.length, kPortable) == kSuccess;
  }
  void forget(const MrShared& region) {
    const MutexLock guard(mutex_);
    seen(region).store(false, std::memory_order_release);
    const auto found = known_.find(&region);
    if (found == known_.end()) return;
    if (found->second) driver()->host_unregister(reinterpret_cast<void*>(region.addr));
    known_.erase(found);
  }

 private:
  /// Regions lie in one table of kMaxMrs: no two of them share this.
  std::atomic<bool>& seen(const MrShared& region) noexcept {
    return seen_[reinterpret_cast<std::uintptr_t>(&region) / sizeof(MrShared) % kMaxMrs];
  }

  Mutex mutex_;
  std::map<const MrShared*, bool> known_ GUARDED_BY(mutex_);
  std::array<std::atomic<bool>, kMaxMrs> seen_{};  ///< looked at without the lock
};

Pinned& pinned() {
  static auto* const all = new Pinned;
  return *all;
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

/// The device that drives a copy: the one that the data comes from, if it is
/// in a GPU. -1: no GPU takes part.
Device driving(const Copy& copy, Device& other) noexcept {
  const Device from = device_of(copy.from);
  const Device to = device_of(copy.to);
  other = from >= 0 && to >= 0 && from != to ? to : -1;
  return from >= 0 ? from : to;
}

bool start(const Copy& copy, Device device, Device other) noexcept {
  if (other >= 0) devices().enable_peer(device, other);
  const Stream stream = stream_of(device);
  return stream != nullptr &&
         driver()->copy_async(reinterpret_cast<Address>(copy.to), reinterpret_cast<Address>(copy.from), copy.bytes,
                              stream) == kSuccess;
}

int copy_now(const Copy& copy) noexcept;

/// Between GPUs without peer access: bounces through the host.
int copy_by_host(const Copy& copy) noexcept {
  std::uint8_t* const memory = bounce();
  if (memory == nullptr) return EIO;
  for (std::size_t done = 0; done < copy.bytes;) {
    const std::size_t bytes = std::min(copy.bytes - done, kBounceBytes);
    int error = copy_now({memory, static_cast<const std::uint8_t*>(copy.from) + done, bytes});
    if (error == 0) error = copy_now({static_cast<std::uint8_t*>(copy.to) + done, memory, bytes});
    if (error != 0) return error;
    done += bytes;
  }
  return 0;
}

/// One copy, ended.
int copy_now(const Copy& copy) noexcept {
  Device other = -1;
  const Device device = driving(copy, other);
  if (device < 0) {
    std::memcpy(copy.to, copy.from, copy.bytes);
    return 0;
  }
  const Scope scope(device);
  if (!scope.good()) return EIO;
  // Memory of cuMemCreate is open to those GPUs only that its maker named.
  if (!start(copy, device, other)) return other >= 0 ? copy_by_host(copy) : EIO;
  return driver()->stream_synchronize(stream_of(device)) == kSuccess ? 0 : EIO;
}

void pin_all(const MrShared* region, const Piece* pieces, unsigned count) noexcept {
  if (region != nullptr) pinned().pin(*region);
  for (unsigned i = 0; i < count; ++i) {
    if (pieces[i].region != nullptr) pinned().pin(*pieces[i].region);
  }
}

/// Opened IPC handles, by peer and region. An entry whose handle changes
/// belongs to memory that is gone.
class Opened {
 public:
  /// The mapping that this thread opened last is found without the lock, as long as nothing
  /// was closed.
  void* open(const void* peer, int pid, const GpuRegion& shared, std::uint64_t address, std::uint64_t length) {
    thread_local std::array<Recent, kRecent> recent{};
    Recent& last = recent[(shared.base >> 21) % kRecent];
    const std::uint64_t offset = address - shared.base;
    if (last.peer == peer && last.base == shared.base && last.closings == closings_.load(std::memory_order_acquire) &&
        std::memcmp(&last.handle, shared.handle, sizeof last.handle) == 0 && offset <= last.bytes &&
        length <= last.bytes - offset) {
      return reinterpret_cast<void*>(last.at + offset);
    }
    const MutexLock guard(mutex_);
    Entry& entry = entries_[{peer, shared.base}];
    if (entry.at != 0 && std::memcmp(&entry.handle, shared.handle, sizeof entry.handle) != 0) close(entry);
    if (entry.at == 0 && !map(entry, pid, shared)) return nullptr;
    // The driver's mapping counts, not what the peer says of it.
    if (offset > entry.bytes || length > entry.bytes - offset) return nullptr;
    last = {peer, shared.base, entry.at, entry.handle, entry.bytes, closings_.load(std::memory_order_acquire)};
    return reinterpret_cast<void*>(entry.at + offset);
  }
  void close_all_of(const void* peer) {
    const MutexLock guard(mutex_);
    const auto begin = entries_.lower_bound({peer, 0});
    const auto end = entries_.upper_bound({peer, ~std::uint64_t{0}});
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second.at != 0) close(entry->second);
    }
    entries_.erase(begin, end);
  }

 private:
  struct Entry {
    Address at = 0;
    IpcHandle handle{};
    Device device = -1;
    bool by_descriptor = false;  ///< not by an IPC handle
    std::size_t bytes = 0;       ///< mapped
  };
  static constexpr std::size_t kRecent = 8;
  struct Recent {
    const void* peer = nullptr;
    std::uint64_t base = 0;
    Address at = 0;
    IpcHandle handle{};
    std::size_t bytes = 0;
    std::uint64_t closings = 0;
  };

  static Device find(const GpuRegion& shared) {
    int count = 0;
    driver()->device_count(&count);
    for (Device device = 0; device < std::min(count, kMaxDevices); ++device) {
      Uuid uuid{};
      if (driver()->device_uuid(&uuid, device) == kSuccess && std::memcmp(&uuid, shared.uuid, sizeof uuid) == 0) {
        return device;
      }
    }
    return -1;
  }
  bool map(Entry& entry, int pid, const GpuRegion& shared) {
    entry.device = find(shared);
    if (entry.device < 0) return false;
    const Scope scope(entry.device);
    if (!scope.good()) return false;
    std::memcpy(&entry.handle, shared.handle, sizeof entry.handle);
    if (shared.exported == GpuExport::kIpc) {
      if (driver()->ipc_open(&entry.at, entry.handle, kLazyPeerAccess) != kSuccess) return false;
      if (driver()->pointer_attribute(&entry.bytes, kRangeSize, entry.at) == kSuccess) return true;
      close(entry);
      return false;
    }
    entry.by_descriptor = true;
    entry.bytes = shared.bytes;
    entry.at = import_vmm(pid, shared.descriptor, shared.bytes, entry.device);
    return entry.at != 0;
  }
  void close(Entry& entry) {
    closings_.fetch_add(1, std::memory_order_release);
    const Scope scope(entry.device);
    if (entry.by_descriptor) {
      unmap_vmm(entry.at, entry.bytes);
    } else {
      driver()->ipc_close(entry.at);
    }
    entry = {};
  }

  Mutex mutex_;
  std::map<std::pair<const void*, std::uint64_t>, Entry> entries_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> closings_{1};
};

std::atomic<bool> g_any_opened{false};

Opened& opened() {
  static auto* const all = [] {
    g_any_opened.store(true, std::memory_order_release);
    return new Opened;
  }();
  return *all;
}

}  // namespace

/// NICs map whole pages of a GPU, and programs round lengths up.
constexpr Address kGpuPage = 65536;

bool recognises(const void* address, std::size_t length) noexcept {
  if (device_of(address) < 0) return false;
  const auto pointer = reinterpret_cast<Address>(address);
  Address begin = 0;
  std::size_t bytes = 0;
  return driver()->pointer_attribute(&begin, kRangeStart, pointer) == kSuccess &&
         driver()->pointer_attribute(&bytes, kRangeSize, pointer) == kSuccess &&
         pointer + length <= (begin + bytes + kGpuPage - 1) / kGpuPage * kGpuPage;
}

void publish(GpuRegion& shared, const void* address) noexcept {
  shared = {};
  const Driver* d = driver();
  const auto pointer = reinterpret_cast<Address>(address);
  const Device device = device_of(address);
  const Scope scope(device);
  IpcHandle handle{};
  Uuid uuid{};
  Address begin = 0;
  std::size_t bytes = 0;
  if (!scope.good() || d->pointer_attribute(&begin, kRangeStart, pointer) != kSuccess ||
      d->pointer_attribute(&bytes, kRangeSize, pointer) != kSuccess || d->device_uuid(&uuid, device) != kSuccess) {
    return;
  }
  reserve_bounces();
  shared.base = begin;
  shared.bytes = bytes;
  std::memcpy(shared.uuid, &uuid, sizeof uuid);
  if (d->ipc_get(&handle, pointer) == kSuccess) {
    shared.exported = GpuExport::kIpc;
  } else if ((shared.descriptor = export_vmm(begin)) >= 0) {
    static std::atomic<std::uint64_t> exports{0};
    const std::uint64_t number = ++exports;
    std::memcpy(&handle, &number, sizeof number);
    shared.exported = GpuExport::kDescriptor;
  }
  std::memcpy(shared.handle, &handle, sizeof handle);
}

void forget(const MrShared& region, GpuRegion& shared) noexcept {
  if (driver() == nullptr) return;
  pinned().forget(region);
  if (in_gpu(region) && shared.exported == GpuExport::kDescriptor) ::close(shared.descriptor);
  shared.exported = GpuExport::kNone;
}

void* open(const void* peer, int pid, const GpuRegion& shared, std::uint64_t address, std::uint64_t length) noexcept {
  if (driver() == nullptr || shared.exported == GpuExport::kNone) return nullptr;
  return opened().open(peer, pid, shared, address, length);
}

void close_all_of(const void* peer) noexcept {
  // Without a driver nothing was opened; it is not looked for here.
  if (g_any_opened.load(std::memory_order_acquire)) opened().close_all_of(peer);
}

int copy_to(void* memory, const MrShared* region, const Piece* pieces, unsigned count) noexcept {
  if (driver() == nullptr) return EIO;
  pin_all(region, pieces, count);
  auto* to = static_cast<std::uint8_t*>(memory);
  for (unsigned i = 0; i < count; ++i) {
    if (const int error = copy_now({to, pieces[i].address, pieces[i].length}); error != 0) return error;
    to += pieces[i].length;
  }
  return 0;
}

int copy_from(const void* memory, const MrShared* region, const Piece* pieces, unsigned count) noexcept {
  if (driver() == nullptr) return EIO;
  pin_all(region, pieces, count);
  const auto* from = static_cast<const std::uint8_t*>(memory);
  for (unsigned i = 0; i < count; ++i) {
    if (const int error = copy_now({pieces[i].address, from, pieces[i].length}); error != 0) return error;
    from += pieces[i].length;
  }
  return 0;
}

int copy_to_process(int pid, std::uint64_t to, const Piece* pieces, unsigned count) noexcept {
  std::uint8_t* const memory = driver() == nullptr ? nullptr : bounce();
  if (memory == nullptr) return EIO;
  for (unsigned i = 0; i < count; ++i) {
    for (std::uint64_t done = 0; done < pieces[i].length;) {
      Piece part{memory, std::min<std::uint64_t>(pieces[i].length - done, kBounceBytes), nullptr};
      int error = copy_now({memory, pieces[i].address + done, part.length});
      if (error == 0) error = softnic::copy_to_process(pid, to, &part, 1, part.length);
      if (error != 0) return error;
      done += part.length;
      to += part.length;
    }
  }
  return 0;
}

int copy_from_process(int pid, std::uint64_t from, const Piece* pieces, unsigned count) noexcept {
  std::uint8_t* const memory = driver() == nullptr ? nullptr : bounce();
  if (memory == nullptr) return EIO;
  for (unsigned i = 0; i < count; ++i) {
    for (std::uint64_t done = 0; done < pieces[i].length;) {
      Piece part{memory, std::min<std::uint64_t>(pieces[i].length - done, kBounceBytes), nullptr};
      int error = softnic::copy_from_process(pid, from, &part, 1, part.length);
      if (error == 0) error = copy_now({pieces[i].address + done, memory, part.length});
      if (error != 0) return error;
      done += part.length;
      from += part.length;
    }
  }
  return 0;
}

}  // namespace gdrperf::softnic::gpu
