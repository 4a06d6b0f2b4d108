#include "gdrperf/verbs/library.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/text.h"

namespace gdrperf::verbs {

Library library() {
  Dl_info where{};
  Library result;
  if (::dladdr(reinterpret_cast<const void*>(&ibv_get_device_list), &where) == 0 || where.dli_fname == nullptr) return result;
  std::error_code unresolved;
  const std::filesystem::path file = std::filesystem::canonical(where.dli_fname, unresolved);
  result.file = unresolved ? where.dli_fname : file.string();
  // libibverbs.so.1.14.44.0: the version of the ABI, then that of rdma-core.
  const std::string name = file.filename().string();
  constexpr std::string_view kBefore = "libibverbs.so.";
  if (!name.starts_with(kBefore)) return result;
  result.version = name.substr(kBefore.size());
  const std::string abi = result.version;
  const std::vector<std::string_view> parts = split(abi, '.');
  if (parts.size() == 4) result.version += fmt::format(" of rdma-core {}.{}", parts[2], parts[3]);
  return result;
}

}  // namespace gdrperf::verbs
