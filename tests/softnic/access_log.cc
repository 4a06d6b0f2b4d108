// Preloaded in front of a verbs library: appends the access flags of each registration to the file that
// ACCESS_LOG names, a line each.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#undef ibv_reg_mr

namespace {

void note(int access) {
  const char* const path = std::getenv("ACCESS_LOG");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%#x\n", static_cast<unsigned>(access));
  std::fclose(file);
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  note(access);
  return next<ibv_mr*(ibv_pd*, void*, std::size_t, int)>("ibv_reg_mr")(pd, address, length, access);
}

extern "C" ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  note(static_cast<int>(access));
  return next<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned)>("ibv_reg_mr_iova2")(pd, address, length, iova, access);
}
