#include "paths/report.h"

#include <unistd.h>

#include <cstring>

#include <fmt/format.h>

#include "device/device.h"
#include "gpu/driver.h"
#include "host/process.h"
#include "memory/copy.h"
#include "memory/write_guard.h"

namespace gdrperf::softnic {
namespace {

class Ways {
 public:
  void add(const char* way, const std::string& words) {
    line(way, first_ ? "first" : "fallback", words);
    first_ = false;
  }
  void add_off(const char* way, const std::string& why) { line(way, "off", why); }
  std::string text() const { return text_; }

 private:
  void line(const char* way, const char* state, const std::string& words) {
    if (!text_.empty()) text_ += '\n';
    text_ += fmt::format("{} {} {}", way, state, words);
  }
  std::string text_;
  bool first_ = true;
};

void add_window(const Device& device, Ways& ways) {
  const char* obstacle = Process::get().mover().obstacle();
  if (device.config.move == MovePolicy::kNever) {
    ways.add_off("window", "move=never");
  } else if (obstacle != nullptr) {
    ways.add_off("window", obstacle);
  } else {
    ways.add("window", fmt::format("registered pages are shared, the initiator copies{}",
                                   WriteGuard::available() ? "" : " (while a process has one thread: the kernel "
                                                                  "refuses userfaultfd)"));
  }
}

void add_kernel(const Device& device, Ways& ways) {
  // What is refused even with oneself; with a peer more may be.
  const int refusal = kernel_refusal(::getpid());
  if (device.config.kernel == KernelPolicy::kNever) {
    ways.add_off("kernel", "kernel=never");
  } else if (refusal != 0) {
    ways.add_off("kernel", fmt::format("process_vm_readv: {}", std::strerror(refusal)));
  } else {
    ways.add("kernel", "memory that is not shared, by process_vm_writev and process_vm_readv");
  }
}

}  // namespace

std::string data_path_text(const Device& device) {
  Ways ways;
  if (device.config.mode == DeviceMode::kNull) {
    ways.add_off("window", "mode=null: nothing is moved");
    return ways.text();
  }
  add_window(device, ways);
  add_kernel(device, ways);
  ways.add("agent", "what the kernel may not copy either: a thread of the target does");
  if (gpu::driver() != nullptr) ways.add("gpu", "memory of GPUs: CUDA's driver copies");
  return ways.text();
}

}  // namespace gdrperf::softnic
