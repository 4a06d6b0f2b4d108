#include <unistd.h>

#include "abi/libc/kernel_only.h"
#include "abi/libc/libc_functions.h"
#include "cm/wire/files.h"

/// write(): what goes to /dev/infiniband/rdma_cm is a command, all else goes to libc.

using namespace gdrperf::softnic;

extern "C" {

SOFTNIC_STANDS_FOR(ssize_t, write, (int fd, const void* bytes, std::size_t size)) {
  if (KernelOnly::now() || !is_cm_file(fd)) return SOFTNIC_NEXT(write)(fd, bytes, size);
  return write_cm_file(fd, bytes, size);
}

}  // extern "C"

namespace gdrperf::softnic {
namespace {

/// Found before a signal's handler could be the first to write.
[[gnu::constructor]] void find_next_write() { [[maybe_unused]] const auto found = SOFTNIC_NEXT(write); }

}  // namespace
}  // namespace gdrperf::softnic
