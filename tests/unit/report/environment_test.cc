#include "gdrperf/report/environment.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/version.h"

namespace gdrperf::report {
namespace {

/// A folder that stands in for / and goes away with the test.
class Root {
 public:
  void write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = folder_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST(Environment, ReadsTheMachineBelowItsRoot) {
  const Root root;
  root.write("/etc/os-release",
             "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n");
  root.write(
      "/proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\nflags\t\t: fpu hypervisor tsc\n\n"
      "processor\t: 1\nmodel name\t: Another\n");
  root.write("/proc/meminfo", "MemTotal:       16384000 kB\nMemFree:  1 kB\n");
  for (const char* node : {"node0", "node1", "node12"}) {
    root.write(std::string("/sys/devices/system/node/") + node + "/cpulist", "0");
  }
  root.write("/sys/devices/system/node/possible", "0-1");
  for (const int cpu : allowed_cpus()) {
    root.write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor",
               cpu == allowed_cpus().front() ? "powersave\n" : "performance\n");
  }
  const Environment environment = collect_environment(root.path());
  EXPECT_EQ(environment.os, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(environment.cpu_model, "Example CPU @ 2.00GHz");
  EXPECT_TRUE(environment.hypervisor);
  EXPECT_EQ(environment.memory_bytes, 16'777'216'000u);
  EXPECT_EQ(environment.numa_nodes, 3);
  EXPECT_EQ(environment.governor,
            allowed_cpus().size() > 1 ? "performance, powersave" : "powersave");
}

TEST(Environment, ValuesNeedNoQuotesAndOnlyNodesCount) {
  const Root root;
  root.write("/etc/os-release", "NAME='A'\nPRETTY_NAME=Plain\n");
  root.write("/proc/cpuinfo", "model name:X\n");
  for (const char* folder : {"node0", "node", "nodex1", "node1x", "other"}) {
    root.write(std::string("/sys/devices/system/node/") + folder + "/cpulist", "0");
  }
  const Environment environment = collect_environment(root.path());
  EXPECT_EQ(environment.os, "Plain");
  EXPECT_EQ(environment.cpu_model, "X");
  EXPECT_EQ(environment.numa_nodes, 1);
}

TEST(Environment, TheLimitOfLockedMemoryIsThatOfThisProcess) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 12288;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
  EXPECT_EQ(collect_environment().memlock_limit_bytes, 12288u);
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  const bool unlimited = before.rlim_cur == RLIM_INFINITY;
  EXPECT_EQ(collect_environment().memlock_limit_bytes,
            unlimited ? std::nullopt : std::optional<std::uint64_t>(before.rlim_cur));
}

TEST(Environment, NothingToReadIsNoError) {
  const Root root;
  const Environment environment = collect_environment(root.path());
  EXPECT_EQ(environment.os, "");
  EXPECT_EQ(environment.cpu_model, "");
  EXPECT_EQ(environment.governor, "");
  EXPECT_EQ(environment.memory_bytes, 0u);
  EXPECT_EQ(environment.numa_nodes, 1);
  EXPECT_FALSE(environment.hypervisor);
}

TEST(Environment, ThisMachine) {
  const Environment environment = collect_environment();
  char hostname[256] = {};
  ASSERT_EQ(::gethostname(hostname, sizeof hostname - 1), 0);
  EXPECT_EQ(environment.hostname, hostname);
  EXPECT_THAT(environment.kernel, testing::StartsWith("Linux "));
  EXPECT_EQ(environment.cpus_allowed, static_cast<int>(allowed_cpus().size()));
  EXPECT_GE(environment.cpus_online, 1);
  EXPECT_GT(environment.memory_bytes, 1u << 20);
  EXPECT_EQ(environment.tool_version, tool_version());
  EXPECT_THAT(environment.clock_source, testing::AnyOf("tsc", "cntvct", "clock_gettime"));
}

TEST(EnvironmentJson, GoesThereAndBack) {
  Environment environment = collect_environment();
  environment.memlock_limit_bytes = 65536;
  EXPECT_EQ(environment_from_json(to_json(environment)), environment);
  environment.memlock_limit_bytes.reset();
  EXPECT_EQ(environment_from_json(to_json(environment)), environment);
  EXPECT_EQ(environment_from_json(to_json(Environment{})), Environment{});
}

TEST(EnvironmentJson, IsOneLineOfTextInUtf8) {
  Environment environment;
  environment.hostname = "hôte\xff";
  environment.kernel = "Linux";
  environment.cpus_online = 8;
  environment.cpus_allowed = 4;
  environment.numa_nodes = 2;
  environment.memory_bytes = 1024;
  environment.hypervisor = true;
  EXPECT_EQ(
      to_json(environment),
      R"({"hostname":"hôte�","kernel":"Linux","os":null,"cpu_model":null,"cpus_online":8,"cpus_allowed":4,)"
      R"("numa_nodes":2,)"
      R"("memory_bytes":1024,"governor":null,"hypervisor":true,"memlock_limit_bytes":null,)"
      R"("gpu_driver":null,"clock_source":null,)"
      R"("tool_version":null})");
}

TEST(EnvironmentJson, TakesMoreAndLessThanItKnows) {
  const Environment environment = environment_from_json(R"({"hostname": "a", "colour": "blue"})");
  EXPECT_EQ(environment.hostname, "a");
  EXPECT_EQ(environment.numa_nodes, 1);
}

TEST(EnvironmentJson, RefusesNonsenseAsThePeersFault) {
  for (const char* text : {"", "{", "[]", "1", R"({"hostname": 1})", R"({"cpus_online": "two"})",
                           R"({"memlock_limit_bytes": []})"}) {
    try {
      environment_from_json(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPeer) << text;
      EXPECT_THAT(error.what(), testing::StartsWith("environment: "));
    }
  }
}

}  // namespace
}  // namespace gdrperf::report
