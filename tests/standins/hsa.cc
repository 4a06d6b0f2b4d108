// Stands in for AMD's libhsa-runtime64.so, beside hip.cc.
#include <cstddef>
#include <cstdint>

extern "C" {

int rocm_standin_export(const void* at, std::size_t bytes, int* fd, std::uint64_t* offset);

int hsa_init() { return 0; }
int hsa_amd_portable_export_dmabuf(const void* at, std::size_t bytes, int* fd, std::uint64_t* offset) {
  return rocm_standin_export(at, bytes, fd, offset);
}

}  // extern "C"
