#include "gdrperf/mem/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf::mem {
namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t bytes) : size_(bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      throw call_error(fmt::format("mmap({} of host memory)", format_size(bytes)), errno, {},
                       "use a smaller size (-s), fewer QPs (-q) or a smaller --footprint");
    }
    data_ = static_cast<std::byte*>(at);
    // First touch: the pages come from this thread's NUMA node.
    std::memset(data_, 0, bytes);
  }
  ~HostBuffer() override { ::munmap(data_, size_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* data() override { return data_; }
  std::size_t size() const override { return size_; }
  const std::string& kind() const override {
    static const std::string kKind = "host";
    return kKind;
  }
  bool cpu_reachable() const override { return true; }
  verbs::Mr register_with(ibv_pd* pd, int access) override {
    return verbs::register_memory(pd, data_, size_, access);
  }
  void fill(const PatternRun& run) override { fill_pattern(data_, run); }
  CheckResult check(const PatternRun& run) override { return check_pattern(data_, run); }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_;
};

}  // namespace

void check_kind(const std::string& kind, const char* flag) {
  if (kind != "host") throw usage_error(fmt::format("{} '{}': this build knows: host", flag, kind));
}

std::vector<std::string> buffers_at_hand() { return {"host"}; }

std::unique_ptr<Buffer> make_buffer(const std::string& kind, std::size_t bytes) {
  check_kind(kind, "--buffer");
  return std::make_unique<HostBuffer>(bytes);
}

}  // namespace gdrperf::mem
