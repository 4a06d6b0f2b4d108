#include "gdrperf/verbs/library.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/text.h"
#include "gdrperf/verbs/lookup.h"

namespace gdrperf::verbs {

Library library() {
  Dl_info where{};
  Library result;
  const void* const found = look_up(From::kVerbs, "ibv_get_device_list");
  if (found == nullptr || ::dladdr(found, &where) == 0 || where.dli_fname == nullptr) return result;
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

std::string missing_library() {
  for (const auto& [library, first] :
       {std::pair(From::kVerbs, "ibv_get_device_list"), std::pair(From::kRdmaCm, "rdma_create_id")}) {
    if (look_up(library, first) != nullptr) continue;
    const char* const name = library == From::kVerbs ? "libibverbs.so.1" : "librdmacm.so.1";
    ::dlerror();
    if (::dlopen(name, RTLD_LAZY) != nullptr) return fmt::format("{} has no {}", name, first);
    const char* const error = ::dlerror();
    const std::string why = error == nullptr ? "" : error;
    // glibc's words where there is none; others are about one that is there.
    if (why.empty() || why.find("No such file") != std::string::npos) return fmt::format("{} is not installed", name);
    return why;
  }
  return {};
}

}  // namespace gdrperf::verbs
