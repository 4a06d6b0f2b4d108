#include "shared/segment/segment.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>

#include <gtest/gtest.h>

namespace gdrperf::softnic {
namespace {

/// From now on the kernel agrees to every MADV_REMOVE and does nothing.
bool ignore_removals() {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_REMOVE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), const_cast<sock_filter*>(filter)};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Gives memory back that is full of ones, and gets it again: 0 if that reads as zero.
int reused_memory_is_dirty() {
  constexpr std::uint64_t kBytes = 100'000;
  SegmentMemory memory;
  const std::uint64_t offset = memory.allocate(kBytes);
  auto* const bytes = memory.segment().at<std::uint8_t>(offset);
  for (std::uint64_t i = 0; i < kBytes; ++i) bytes[i] = 1;
  memory.free(offset, kBytes);
  if (memory.allocate(kBytes) != offset) return 2;
  for (std::uint64_t i = 0; i < kBytes; ++i) {
    if (bytes[i] != 0) return 1;
  }
  return 0;
}

TEST(SegmentMemory, ReadsAsZeroWhenItIsReused) { EXPECT_EQ(reused_memory_is_dirty(), 0); }

TEST(SegmentMemory, ReadsAsZeroWhereTheKernelTakesNoPagesBack) {
  constexpr int kNoFilter = 99;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ignore_removals() ? reused_memory_is_dirty() : kNoFilter);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gdrperf::softnic
