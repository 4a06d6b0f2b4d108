#pragma once

#include <string>

namespace gdrperf::verbs {

/// The libibverbs that this process uses: its version and that of its rdma-core, as its file's name has
/// them ("1.14.44.0 of rdma-core 44.0"), and the file. Any thread.
struct Library {
  std::string version;  ///< "" where the name has none
  std::string file;
};
Library library();

/// "libibverbs.so.1 is not installed", or librdmacm, or why one that is there does not load; "" where both are in use.
std::string missing_library();
/// What to type where one is missing.
inline constexpr const char* kInstallLibraries =
    "install it: apt install libibverbs1 librdmacm1 ibverbs-providers (Debian, Ubuntu), dnf install libibverbs "
    "librdmacm "
    "(Rocky, RHEL), or zypper install libibverbs1 librdmacm1 (SLES)";

}  // namespace gdrperf::verbs
