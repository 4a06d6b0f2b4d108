#include "mem/cuda/gpu_missing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../../temporary_folder.h"

namespace gdrperf::mem {
namespace {

using ::testing::HasSubstr;

void write(const std::string& path, const char* text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(GpuMissing, NamesWhichOfTheThreeIsMissing) {
  const Error no_gpu = gpu_missing("--buffer cuda:0", {0, "", true});
  EXPECT_EQ(no_gpu.code(), ExitCode::kEnvironment);
  EXPECT_STREQ(no_gpu.what(),
               "--buffer cuda:0: no GPU memory here: no NVIDIA GPU on the PCI bus; no NVIDIA driver is loaded; this "
               "gdrperf was built with CUDA");
  EXPECT_THAT(no_gpu.hint(), HasSubstr("--buffer host"));
  const Error no_driver = gpu_missing("x", {2, "", true});
  EXPECT_THAT(no_driver.what(), HasSubstr("2 NVIDIA GPUs on the PCI bus; no NVIDIA driver is loaded"));
  EXPECT_THAT(no_driver.hint(), HasSubstr("modprobe nvidia"));
  const Error no_cuda = gpu_missing("x", {1, "580.95.05", false});
  EXPECT_THAT(no_cuda.what(),
              HasSubstr("1 NVIDIA GPU on the PCI bus; NVIDIA driver 580.95.05; this gdrperf was built without CUDA"));
  EXPECT_THAT(no_cuda.hint(), HasSubstr("-Dcuda=enabled"));
}

TEST(GpuMissing, LooksAtTheBusAndAtTheDriver) {
  const TemporaryFolder root;
  EXPECT_FALSE(complete(gpu_needs(root.path())));
  const auto function = [&](const char* address, const char* vendor, const char* pci_class) {
    const std::string folder = root.path("sys/bus/pci/devices/") + address;
    write(folder + "/vendor", vendor);
    write(folder + "/class", pci_class);
  };
  function("0000:01:00.0", "0x10de\n", "0x030200\n");
  function("0000:01:00.1", "0x10de\n", "0x040300\n");  // its sound
  function("0000:02:00.0", "0x15b3\n", "0x020000\n");
  EXPECT_EQ(gpu_needs(root.path()).gpus_on_bus, 1);
  EXPECT_EQ(gpu_needs(root.path()).driver, "");
  write(root.path("proc/driver/nvidia/version"),
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release\n");
  EXPECT_EQ(gpu_needs(root.path()).driver, "580.95.05");
}

}  // namespace
}  // namespace gdrperf::mem
