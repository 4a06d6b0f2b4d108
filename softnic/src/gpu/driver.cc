#include "gpu/driver.h"

#include <dlfcn.h>

#include <atomic>

#include "gdrperf/base/mutex.h"

namespace gdrperf::softnic::gpu {
namespace {

template <typename F>
bool find(void* library, F& function, const char* name) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

bool load(void* library, VmmFunctions& v) {
  return find(library, v.retain, "cuMemRetainAllocationHandle") && find(library, v.release, "cuMemRelease") &&
         find(library, v.export_handle, "cuMemExportToShareableHandle") &&
         find(library, v.import_handle, "cuMemImportFromShareableHandle") &&
         find(library, v.reserve, "cuMemAddressReserve") && find(library, v.unreserve, "cuMemAddressFree") &&
         find(library, v.map, "cuMemMap") && find(library, v.unmap, "cuMemUnmap") &&
         find(library, v.set_access, "cuMemSetAccess");
}

bool load(Driver& d) {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  d.vmm.complete = load(library, d.vmm);
  return find(library, d.pointer_attribute, "cuPointerGetAttribute") &&
         find(library, d.device_count, "cuDeviceGetCount") &&
         (find(library, d.device_uuid, "cuDeviceGetUuid_v2") || find(library, d.device_uuid, "cuDeviceGetUuid")) &&
         find(library, d.retain_primary, "cuDevicePrimaryCtxRetain") &&
         find(library, d.get_current, "cuCtxGetCurrent") && find(library, d.push_current, "cuCtxPushCurrent_v2") &&
         find(library, d.pop_current, "cuCtxPopCurrent_v2") && find(library, d.enable_peer, "cuCtxEnablePeerAccess") &&
         find(library, d.stream_create, "cuStreamCreate") &&
         find(library, d.stream_synchronize, "cuStreamSynchronize") && find(library, d.copy_async, "cuMemcpyAsync") &&
         find(library, d.host_register, "cuMemHostRegister_v2") &&
         find(library, d.host_unregister, "cuMemHostUnregister") && find(library, d.host_alloc, "cuMemHostAlloc") &&
         find(library, d.ipc_get, "cuIpcGetMemHandle") && find(library, d.ipc_open, "cuIpcOpenMemHandle_v2") &&
         find(library, d.ipc_close, "cuIpcCloseMemHandle");
}

}  // namespace

const Driver* driver() noexcept {
  static Mutex mutex;
  static std::atomic<const Driver*> loaded{nullptr};
  static Driver functions;
  if (const Driver* found = loaded.load(std::memory_order_acquire)) return found;
  const MutexLock guard(mutex);
  if (loaded.load() == nullptr && load(functions)) loaded.store(&functions, std::memory_order_release);
  return loaded.load();
}

}  // namespace gdrperf::softnic::gpu
