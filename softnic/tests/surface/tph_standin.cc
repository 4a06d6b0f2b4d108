// Preloaded in front of the software device: the newest libibverbs's DMA handles, and registration with one. HINTS_LOG
// is a file that gets a line for each. Refuses what the kernel does: a CPU without a kind of memory, an unknown mask.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#undef ibv_reg_mr

namespace {

template <typename T>
T at(const void* structure, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(structure) + offset, sizeof value);
  return value;
}

void append(const char* line) {
  const char* const path = std::getenv("HINTS_LOG");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", line);
  std::fclose(file);
}

struct Handle {
  ibv_context* context;
  int regions;
};

}  // namespace

extern "C" {

void* ibv_alloc_dmah(ibv_context* context, const void* attributes) {
  const auto mask = at<std::uint32_t>(attributes, 0);
  if ((mask & 2) == 0 || (mask & ~7u) != 0 || ((mask & 1) != 0) != ((mask & 4) != 0)) {
    errno = EINVAL;
    return nullptr;
  }
  char line[80];
  std::snprintf(line, sizeof line, "alloc mask=%u ph=%d mem=%d cpu=%u", mask, at<std::uint8_t>(attributes, 8),
                at<std::uint8_t>(attributes, 9), at<std::uint32_t>(attributes, 4));
  append(line);
  return new Handle{context, 0};
}

int ibv_dealloc_dmah(void* handle) {
  append("dealloc");
  delete static_cast<Handle*>(handle);
  return 0;
}

ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, const void* attributes) {
  auto* const handle = at<Handle*>(attributes, 56);
  if (at<std::uint64_t>(attributes, 16) != (2 | 16) || handle == nullptr || handle->context != pd->context) {
    errno = EINVAL;
    return nullptr;
  }
  append("reg");
  return ibv_reg_mr(pd, at<void*>(attributes, 32), at<std::size_t>(attributes, 0), at<int>(attributes, 8));
}

}  // extern "C"
