#include "gdrperf/topo/nvidia_proc.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "../../temporary_folder.h"

namespace gdrperf::topo {
namespace {

class NvidiaProc : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = root_ + "/proc/driver/nvidia/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  TemporaryFolder folder_;
  const std::string& root_ = folder_.path();
};

TEST_F(NvidiaProc, NothingWithoutTheDriver) {
  EXPECT_TRUE(nvidia_gpus(root_).empty());
  EXPECT_EQ(nvidia_driver_version(root_), "");
}

TEST_F(NvidiaProc, GpusInTheOrderOfTheBus) {
  write("gpus/0000:86:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 16\n");
  write("gpus/0000:3b:00.0/information", "IRQ: 17\nModel: NVIDIA A100-SXM4-80GB\r\n");
  write("gpus/0000:af:00.0/power", "");
  const std::vector<NvidiaGpu> gpus = nvidia_gpus(root_);
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[0].pci_address, "0000:3b:00.0");
  EXPECT_EQ(gpus[0].model, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gpus[1].model, "NVIDIA H200");
  EXPECT_EQ(gpus[2].model, "");
}

TEST_F(NvidiaProc, VersionOfEitherKernelModule) {
  write("version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)\nGCC 12.2.0\n");
  EXPECT_EQ(nvidia_driver_version(root_), "580.95.05");
  write("version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n");
  EXPECT_EQ(nvidia_driver_version(root_), "535.129.03");
  write("version", "something else\n");
  EXPECT_EQ(nvidia_driver_version(root_), "");
}

}  // namespace
}  // namespace gdrperf::topo
