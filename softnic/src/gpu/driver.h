#pragma once

#include <cstddef>
#include <cstdint>

/// The few functions of the CUDA driver that are called, with the types of its
/// ABI (docs.nvidia.com/cuda/cuda-driver-api), for no header of CUDA's is
/// needed to build this.
namespace gdrperf::softnic::gpu {

using Result = int;
using Device = int;
using Address = std::uint64_t;
using ContextHandle = struct ContextTag*;
using Stream = struct StreamTag*;

struct IpcHandle {
  std::uint8_t bytes[64];
};
struct Uuid {
  std::uint8_t bytes[16];
};

inline constexpr Result kSuccess = 0;
inline constexpr unsigned kNonBlocking = 1;        // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kLazyPeerAccess = 1;     // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr unsigned kPortable = 1;           // CU_MEMHOSTREGISTER_PORTABLE
inline constexpr unsigned kMemoryTypeDevice = 2;   // CU_MEMORYTYPE_DEVICE
enum PointerAttribute : int {
  kMemoryType = 2,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
};

// Virtual memory: CUmemLocation, CUmemAccessDesc and what they hold.
using VmmHandle = std::uint64_t;
struct VmmLocation {
  int type;
  int id;
};
struct VmmAccess {
  VmmLocation location;
  int flags;
};
inline constexpr int kVmmDevice = 1;      // CU_MEM_LOCATION_TYPE_DEVICE
inline constexpr int kVmmReadWrite = 3;   // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
inline constexpr int kVmmDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

/// Since CUDA 11; older drivers lack some.
struct VmmFunctions {
  bool complete = false;
  Result (*retain)(VmmHandle* handle, void* address);
  Result (*release)(VmmHandle handle);
  Result (*export_handle)(void* handle, VmmHandle allocation, int type, unsigned long long flags);
  Result (*import_handle)(VmmHandle* allocation, void* handle, int type);
  Result (*reserve)(Address* at, std::size_t bytes, std::size_t alignment, Address wanted, unsigned long long flags);
  Result (*unreserve)(Address at, std::size_t bytes);
  Result (*map)(Address at, std::size_t bytes, std::size_t offset, VmmHandle handle, unsigned long long flags);
  Result (*unmap)(Address at, std::size_t bytes);
  Result (*set_access)(Address at, std::size_t bytes, const VmmAccess* accesses, std::size_t count);
};

struct Driver {
  VmmFunctions vmm;
  Result (*pointer_attribute)(void* value, int attribute, Address pointer);
  Result (*device_count)(int* count);
  Result (*device_uuid)(Uuid* uuid, Device device);
  Result (*retain_primary)(ContextHandle* context, Device device);
  Result (*get_current)(ContextHandle* context);
  Result (*push_current)(ContextHandle context);
  Result (*pop_current)(ContextHandle* context);
  Result (*enable_peer)(ContextHandle context, unsigned flags);
  Result (*stream_create)(Stream* stream, unsigned flags);
  Result (*stream_synchronize)(Stream stream);
  Result (*copy_async)(Address to, Address from, std::size_t bytes, Stream stream);
  Result (*host_register)(void* address, std::size_t bytes, unsigned flags);
  Result (*host_unregister)(void* address);
  Result (*host_alloc)(void** address, std::size_t bytes, unsigned flags);
  Result (*ipc_get)(IpcHandle* handle, Address pointer);
  Result (*ipc_open)(Address* pointer, IpcHandle handle, unsigned flags);
  Result (*ipc_close)(Address pointer);
};

/// Null: the program has not loaded libcuda (yet), or it lacks a function.
const Driver* driver() noexcept;

}  // namespace gdrperf::softnic::gpu
