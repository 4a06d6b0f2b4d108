#include "gdrperf/verbs/hints.h"

#include <cerrno>
#include <cstdint>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/hints.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/library.h"
#include "gdrperf/verbs/lookup.h"

namespace gdrperf::verbs {
namespace {

// As in the newest verbs.h: the installed one may be older.
struct DmaHandleAttributes {
  std::uint32_t comp_mask;
  std::uint32_t cpu;
  std::uint8_t hint;
  std::uint8_t memory;
};
constexpr std::uint32_t kHasCpu = 1, kHasHint = 2,
                        kHasMemory = 4;  // IBV_DMAH_INIT_ATTR_MASK_CPU_ID, _PH, _TPH_MEM_TYPE
struct RegionAttributes {
  std::size_t bytes;
  int access;
  std::uint64_t comp_mask;
  std::uint64_t iova;
  void* address;
  int fd;
  std::uint64_t fd_offset;
  void* handle;
  void* buffer;
};
constexpr std::uint64_t kHasAddress = 2, kHasHandle = 16;  // IBV_REG_MR_MASK_ADDR, _DMAH

template <typename Function>
Function* newest(const char* name) {
  if (auto* found = reinterpret_cast<Function*>(look_up(From::kVerbs, name))) return found;
  const std::string version = library().version;
  throw Error(ExitCode::kEnvironment,
              fmt::format("{}: this libibverbs{} has no {} (it takes rdma-core 60)", flag<&TestSpec::tph>(),
                          version.empty() ? "" : ", " + version + ",", name),
              "leave it out, or install a newer rdma-core");
}

}  // namespace

void detail::DmaHandleDeleter::operator()(void* handle) const noexcept {
  if (auto* release = reinterpret_cast<int (*)(void*)>(look_up(From::kVerbs, "ibv_dealloc_dmah"))) release(handle);
}

DmaHandle make_dma_handle(ibv_context* context, const std::string& hints) {
  if (hints.empty()) return nullptr;
  auto* const allocate = newest<void*(ibv_context*, DmaHandleAttributes*)>("ibv_alloc_dmah");
  const TphHints asked = parse_hints(hints, flag<&TestSpec::tph>());
  DmaHandleAttributes attributes{};
  attributes.comp_mask = kHasHint | (asked.cpu >= 0 ? kHasCpu | kHasMemory : 0);
  attributes.hint = static_cast<std::uint8_t>(asked.hint);
  if (asked.cpu >= 0) attributes.cpu = static_cast<std::uint32_t>(asked.cpu);
  if (asked.memory >= 0) attributes.memory = static_cast<std::uint8_t>(asked.memory);
  DmaHandle handle(allocate(context, &attributes));
  if (!handle) {
    throw call_error(
        "ibv_alloc_dmah", errno, ::ibv_get_device_name(context->device),
        fmt::format("the device or its driver may have no processing hints: leave {} out", flag<&TestSpec::tph>()));
  }
  return handle;
}

Mr register_hinted(ibv_pd* pd, void* address, std::size_t bytes, int access, void* handle) {
  auto* const register_with = newest<ibv_mr*(ibv_pd*, RegionAttributes*)>("ibv_reg_mr_ex");
  RegionAttributes attributes{};
  attributes.bytes = bytes;
  attributes.access = access;
  attributes.comp_mask = kHasAddress | kHasHandle;
  attributes.address = address;
  attributes.handle = handle;
  Mr mr(register_with(pd, &attributes));
  if (!mr) throw call_error("ibv_reg_mr_ex", errno, ::ibv_get_device_name(pd->context->device), "");
  return mr;
}

}  // namespace gdrperf::verbs
