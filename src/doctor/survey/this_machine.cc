#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "gdrperf/base/run_program.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/doctor/machine.h"
#include "gdrperf/verbs/library.h"

namespace gdrperf::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = 4u << 20;
constexpr std::chrono::seconds kPatience{2};
// CUDA takes seconds to start where many GPUs are, or the driver is not kept loaded.
constexpr std::chrono::seconds kProbePatience{15};
constexpr const char* kSymbols = "/proc/kallsyms";
constexpr const char* kEnvironment = "/proc/self/environ";

Access from_errno(int error) {
  return error == ENOENT || error == ENOTDIR ? Access::kMissing : Access::kDenied;
}

std::optional<std::uint64_t> limit_from(rlim_t value) {
  if (value == RLIM_INFINITY) return std::nullopt;
  return value;
}

bool keeps_symbol(std::string_view line) {
  return line.find("peer_memory_client") != std::string_view::npos ||
         line.find(" nvidia_p2p_get_pages") != std::string_view::npos;
}

/// Variables that say how RDMA programs and containers are set up; others are
/// nobody's business.
bool keeps_variable(std::string_view variable) {
  for (const char* name :
       {"NCCL_", "UCX_", "RCCL_", "FI_", "OFI_", "MLX5_", "IBV_",
        "CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=", "KUBERNETES_SERVICE_HOST=", "ENROOT_ROOTFS=",
        "APPTAINER_CONTAINER=", "SINGULARITY_CONTAINER=", "container=", "HSA_", "PCIDEVICE_", "NVSHMEM_"}) {
    if (variable.starts_with(name)) return true;
  }
  return false;
}

/// Pieces between `separator`s that are kept, a line each. The whole file may be
/// larger than what else is read of one.
template <typename Keeps>
FileText filtered(const std::string& path, char separator, Keeps keeps) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {from_errno(errno), {}};
  FileText file{Access::kGranted, {}};
  std::string piece;
  while (std::getline(in, piece, separator)) {
    if (keeps(piece)) file.text += piece + "\n";
  }
  return file;
}

class ThisMachine : public Machine {
 public:
  explicit ThisMachine(std::string own_program) : own_program_(std::move(own_program)) {}

  FileText read(const std::string& path) const override {
    if (path == kEnvironment) return filtered(path, '\0', keeps_variable);
    if (path == kSymbols) {
      FileText symbols = filtered(path, '\n', keeps_symbol);
      // Not to look empty, which would be read as a kernel that hides it.
      if (symbols.access == Access::kGranted) symbols.text += "(others left out)\n";
      return symbols;
    }
    // Not to be held up by a FIFO.
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return {from_errno(errno), {}};
    FileText file{Access::kGranted, {}};
    std::array<char, 16384> block;
    while (file.text.size() < kMostText) {
      const ssize_t got = ::read(fd.get(), block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      // Attributes of sysfs refuse in their own way: EINVAL, ENODEV, ...
      if (got < 0) return {Access::kDenied, {}};
      if (got == 0) break;
      file.text.append(block.data(), static_cast<std::size_t>(got));
    }
    return file;
  }

  std::vector<std::string> list(const std::string& path) const override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string resolve(const std::string& path) const override {
    std::error_code error;
    const fs::path target = fs::canonical(path, error);
    return error ? std::string() : target.string();
  }

  Access read_write(const std::string& path) const override {
    if (::access(path.c_str(), R_OK | W_OK) == 0) return Access::kGranted;
    return from_errno(errno);
  }

  ProgramResult run(const std::vector<std::string>& argv) const override {
    if (argv.front() != kGpuProbe) return run_program(argv, kPatience);
    if (own_program_.empty()) return {};
    return run_program({own_program_, "doctor", "--probe-gpus"}, kProbePatience);
  }

  MemlockLimit memlock() const override {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};
    return {limit_from(limit.rlim_cur), limit_from(limit.rlim_max)};
  }

  std::optional<std::vector<verbs::DeviceInfo>> rdma_devices() const override {
    if (!libibverbs_error().empty()) return std::nullopt;
    return verbs::list_devices();
  }
  std::string libibverbs_error() const override {
    const std::string missing = verbs::missing_library();
    return missing.empty() ? missing : missing + ": no RDMA program runs here";
  }

 private:
  std::string own_program_;
};

}  // namespace

std::unique_ptr<Machine> this_machine(std::string own_program) {
  return std::make_unique<ThisMachine>(std::move(own_program));
}

}  // namespace gdrperf::doctor
