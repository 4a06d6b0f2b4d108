#include "mem/accelerator/buffer.h"

#include <dlfcn.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/compat.h"
#include "mem/accelerator/library.h"

namespace gdrperf::mem {
namespace {

class AcceleratorBuffer final : public Buffer {
 public:
  AcceleratorBuffer(const AcceleratorLibrary& library, std::string kind, int device, std::size_t bytes,
                    Registration wanted)
      : library_(library),
        kind_(std::move(kind)),
        device_(device),
        size_(bytes),
        wanted_(wanted),
        gpu_(library.describe(device)),
        at_(library.allocate(device, bytes)) {}
  ~AcceleratorBuffer() override { library_.release(device_, at_); }
  AcceleratorBuffer(const AcceleratorBuffer&) = delete;
  AcceleratorBuffer& operator=(const AcceleratorBuffer&) = delete;

  std::byte* data() override { return static_cast<std::byte*>(at_); }
  std::size_t size() const override { return size_; }
  const std::string& kind() const override { return kind_; }
  bool cpu_reachable() const override { return false; }
  const std::string& registration() const override { return registration_; }
  const GpuInfo* gpu() const override { return &gpu_; }

  verbs::Mr register_with(ibv_pd* pd, int access) override {
    std::string why_dmabuf;
    std::string why_peer;
    verbs::Mr mr;
    if (wanted_ != Registration::kPeermem) mr = by_dmabuf(pd, access, why_dmabuf);
    registration_ = "dmabuf";
    if (mr) return mr;
    if (wanted_ != Registration::kDmabuf) mr.reset(ibv_reg_mr(pd, at_, size_, access));
    registration_ = "peermem";
    if (mr) return mr;
    if (wanted_ != Registration::kDmabuf)
      why_peer = fmt::format("ibv_reg_mr: {} (it takes {})", std::strerror(errno), library_.peer_module());
    throw Error(ExitCode::kEnvironment,
                fmt::format("{} cannot reach the memory of {}: {}{}{}", ibv_get_device_name(pd->context->device), kind_,
                            why_dmabuf, why_dmabuf.empty() || why_peer.empty() ? "" : "; ", why_peer));
  }

  const std::string& checker() const override {
    static const std::string kCopy = "copy";
    return kCopy;
  }
  void fill(const PatternRun& run) override {
    // What is between the messages stays.
    std::vector<std::byte>& host = copied(run);
    fill_pattern(host.data(), at_front(run));
    library_.to_device(device_, data() + run.offset, host.data(), host.size());
  }
  CheckResult check(const PatternRun& run) override { return check_pattern(copied(run).data(), at_front(run)); }

 private:
  verbs::Mr by_dmabuf(ibv_pd* pd, int access, std::string& why_not) const {
    std::uint64_t offset = 0;
    const UniqueFd fd = library_.export_dmabuf(at_, size_, offset, why_not);
    if (!why_not.empty()) return nullptr;
    verbs::Mr mr(ibv_reg_dmabuf_mr(pd, offset, size_, reinterpret_cast<std::uint64_t>(at_), fd.get(), access));
    if (!mr)
      why_not =
          fmt::format("ibv_reg_dmabuf_mr: {} (it takes Linux 5.12 and a NIC driver that can)", std::strerror(errno));
    return mr;
  }
  std::vector<std::byte>& copied(const PatternRun& run) {
    copy_.resize(run.stride * (run.count - 1) + run.size_bytes);
    library_.to_host(device_, copy_.data(), data() + run.offset, copy_.size());
    return copy_;
  }
  static PatternRun at_front(PatternRun run) {
    run.offset = 0;
    return run;
  }

  const AcceleratorLibrary& library_;
  std::string kind_;
  int device_;
  std::size_t size_;
  Registration wanted_;
  GpuInfo gpu_;
  void* at_;
  std::string registration_;
  std::vector<std::byte> copy_;
};

const AcceleratorLibrary& library_of(const Kind& kind) { return kind.place == Place::kZe ? level_zero() : rocm(); }

int device_of(const AcceleratorLibrary& library, const Kind& kind, const std::string& asked) {
  int index = -1;
  const char* end = kind.gpu.data() + kind.gpu.size();
  const auto [rest, error] = std::from_chars(kind.gpu.data(), end, index);
  const int count = library.count();
  if (error == std::errc() && rest == end && index >= 0 && index < count) return index;
  if (count == 0) {
    throw Error(ExitCode::kEnvironment, fmt::format("{}: there is no {} GPU here", asked, library.maker()),
                fmt::format("'{}' lists them", library.lister()));
  }
  throw usage_error(fmt::format("{}: there are {} GPUs 0 to {}", asked, library.maker(), count - 1),
                    fmt::format("give {}:N", library.kind()));
}

}  // namespace

void* open_first(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

void check_accelerator(const Kind& kind, const std::string& asked) { device_of(library_of(kind), kind, asked); }

int accelerator_count(const Kind& kind) { return library_of(kind).count(); }

std::unique_ptr<Buffer> make_accelerator_buffer(const Kind& kind, std::size_t bytes, Registration registration) {
  if (registration == Registration::kDataDirect || registration == Registration::kDmabufPcie) {
    throw usage_error(fmt::format("{} {}: that is for NVIDIA's GPUs", flag<&TestSpec::registration>(),
                                  to_text(setting<&TestSpec::registration>(), static_cast<std::int64_t>(registration))),
                      "give dmabuf or peermem, or leave it out");
  }
  const AcceleratorLibrary& library = library_of(kind);
  const std::string name = fmt::format("{}:{}", library.kind(), kind.gpu);
  return std::make_unique<AcceleratorBuffer>(library, name, device_of(library, kind, name), bytes, registration);
}

}  // namespace gdrperf::mem
