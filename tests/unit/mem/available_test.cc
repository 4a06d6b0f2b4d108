#include "gdrperf/mem/available.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../../temporary_folder.h"

namespace gdrperf::mem {
namespace {

class Available : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root() const { return std::filesystem::path(folder_.path()).string(); }
  void memory(const std::string& kib) { write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   " + kib + " kB\n"); }

 private:
  TemporaryFolder folder_;
};

TEST_F(Available, IsWhatTheKernelSays) {
  memory("8192");
  EXPECT_EQ(available_bytes(root()), 8192u * 1024);
  EXPECT_EQ(available_bytes(root() + "/nowhere"), 0u);
}

TEST_F(Available, AGroupOfVersion2LeavesLess) {
  memory("8192");
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/b/memory.current", "1000\n");
  EXPECT_EQ(available_bytes(root()), 8192u * 1024);
  // The group around it counts, and its page cache does not.
  write("/sys/fs/cgroup/a/memory.max", "1000000\n");
  write("/sys/fs/cgroup/a/memory.current", "600000\n");
  write("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\n");
  EXPECT_EQ(available_bytes(root()), 500000u);
}

TEST_F(Available, AGroupOfVersion1LeavesLess) {
  memory("8192");
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/c\n");
  write("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "3000000\n");
  write("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "4000000\n");
  EXPECT_EQ(available_bytes(root()), 0u);
  write("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1000000\n");
  EXPECT_EQ(available_bytes(root()), 2000000u);
}

TEST_F(Available, AContainerSeesItsGroupAtTheMount) {
  memory("8192");
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "5000\n");
  write("/sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(available_bytes(root()), 4000u);
}

TEST(AvailableHere, IsSomething) { EXPECT_GT(available_bytes(), 1u << 20); }

}  // namespace
}  // namespace gdrperf::mem
