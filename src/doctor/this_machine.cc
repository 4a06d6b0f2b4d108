#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "gdrperf/base/run_program.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/doctor/machine.h"

namespace gdrperf::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = 4u << 20;
// nvidia-smi takes seconds where the driver is not kept loaded.
constexpr std::chrono::seconds kPatience{10};

Access from_errno(int error) {
  return error == ENOENT || error == ENOTDIR ? Access::kMissing : Access::kDenied;
}

std::optional<std::uint64_t> limit_from(rlim_t value) {
  if (value == RLIM_INFINITY) return std::nullopt;
  return value;
}

class ThisMachine : public Machine {
 public:
  FileText read(const std::string& path) const override {
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
    return run_program(argv, kPatience);
  }

  MemlockLimit memlock() const override {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};
    return {limit_from(limit.rlim_cur), limit_from(limit.rlim_max)};
  }

  std::vector<verbs::DeviceInfo> rdma_devices() const override { return verbs::list_devices(); }
};

}  // namespace

std::unique_ptr<Machine> this_machine() { return std::make_unique<ThisMachine>(); }

}  // namespace gdrperf::doctor
