#pragma once

namespace gdrperf::softnic {

/// While one lives, this thread's calls of libc see what the kernel has, and
/// nothing of ours: the real libibverbs looks for devices as other programs do.
class KernelOnly {
 public:
  KernelOnly() noexcept { ++depth; }
  ~KernelOnly() { --depth; }
  KernelOnly(const KernelOnly&) = delete;
  KernelOnly& operator=(const KernelOnly&) = delete;
  static bool now() noexcept { return depth != 0; }

 private:
  inline static thread_local int depth = 0;
};

}  // namespace gdrperf::softnic
