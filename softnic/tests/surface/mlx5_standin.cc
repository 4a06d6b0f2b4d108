// Preloaded in front of the software device: its devices are mlx5's in sysfs, and it is the libmlx5.so.1 that programs
// look for. MLX5_OOO says how many receives a QP has that places packets out of order ("": the library knows of none);
// MLX5_LOG is a file that gets a line for each such QP, and each choice of a bonded device's port.
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_driver_link(const char* path) {
  const std::string_view text(path);
  return text.starts_with("/sys/class/infiniband/") && text.ends_with("/device/driver");
}

void note(const char* what, unsigned value) {
  const char* const path = std::getenv("MLX5_LOG");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s=%u\n", what, value);
  std::fclose(file);
}

constexpr std::size_t kCompMask = 16, kOooReceives = 176;  // of struct mlx5dv_context
constexpr std::uint64_t kOoo = 1u << 16;

}  // namespace

extern "C" {

int lstat(const char* path, struct stat* found) {
  if (!is_driver_link(path)) return next<int(const char*, struct stat*)>("lstat")(path, found);
  *found = {};
  found->st_mode = S_IFLNK | 0777;
  return 0;
}

ssize_t readlink(const char* path, char* target, std::size_t size) {
  if (!is_driver_link(path)) return next<ssize_t(const char*, char*, std::size_t)>("readlink")(path, target, size);
  constexpr std::string_view kTarget = "../../bus/pci/drivers/mlx5_core";
  const std::size_t length = kTarget.copy(target, size);
  return static_cast<ssize_t>(length);
}

int mlx5dv_query_device(ibv_context*, unsigned char* attributes) {
  const char* const most = std::getenv("MLX5_OOO");
  std::uint64_t mask = 0;
  std::memcpy(&mask, attributes + kCompMask, sizeof mask);
  mask &= most == nullptr ? ~kOoo : ~std::uint64_t{0};
  std::memcpy(attributes + kCompMask, &mask, sizeof mask);
  const auto rc = static_cast<std::uint32_t>(most == nullptr ? 0 : std::atoi(most));
  if ((mask & kOoo) != 0) std::memcpy(attributes + kOooReceives, &rc, sizeof rc);
  return 0;
}

ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attr, const unsigned char* own) {
  std::uint64_t mask = 0;
  std::uint32_t flags = 0;
  std::memcpy(&mask, own, sizeof mask);
  std::memcpy(&flags, own + sizeof mask, sizeof flags);
  note("create_flags", mask == 1 ? flags : ~0u);
  return ibv_create_qp_ex(context, attr);
}

int mlx5dv_modify_qp_lag_port(ibv_qp*, std::uint8_t port) {
  note("lag_port", port);
  return port <= 2 ? 0 : EINVAL;
}

}  // extern "C"
