// Failures of others, each as a small recording or paste: the finding that
// names its cause.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "machine.h"
#include "gdrperf/base/file.h"

namespace gdrperf::doctor {
namespace {

using testing::HasSubstr;

struct Story {
  const char* files;  ///< below tests/data/doctor/stories, separated by blanks
  const char* check;
  Verdict verdict;
  const char* found;
  const char* fix;  ///< in one of fix, for_good and undo
};

std::string folder() {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  return std::string(root == nullptr ? "." : root) + "/tests/data/doctor/stories/";
}

std::vector<Finding> findings_of(const std::string& files) {
  if (files.ends_with(".machine")) return findings_on(*recorded_machine(folder() + files));
  std::vector<Capture> captures;
  for (std::size_t at = 0; at < files.size();) {
    const std::size_t end = std::min(files.find(' ', at), files.size());
    const std::string name = files.substr(at, end - at);
    captures.push_back({name, read_file(folder() + name, 1u << 20)});
    at = end + 1;
  }
  return read_captures(captures);
}

std::string cures(const Finding& finding) { return finding.fix + " / " + finding.for_good + " / " + finding.undo; }

class Stories : public testing::TestWithParam<Story> {};

TEST_P(Stories, AreUnderstood) {
  const Story& story = GetParam();
  std::string all;
  for (const Finding& finding : findings_of(story.files)) {
    if (finding.check == story.check && finding.verdict == story.verdict &&
        finding.found.find(story.found) != std::string::npos &&
        cures(finding).find(story.fix) != std::string::npos) {
      EXPECT_THAT(finding.why, testing::Not(testing::IsEmpty()));
      return;
    }
    all += std::string(to_string(finding.verdict)) + " " + finding.check + " " + finding.subject + ": " +
           finding.found + " => " + cures(finding) + "\n";
  }
  FAIL() << all;
}

constexpr Verdict kIsWarn = Verdict::kWarn;
constexpr Verdict kIsFail = Verdict::kFail;

INSTANTIATE_TEST_SUITE_P(
    Doctor, Stories,
    testing::Values(
        Story{"gh200-c2c.machine", "c2c", kIsWarn, "leaves GPUDirect RDMA off", "NCCL_NET_GDR_LEVEL=SYS"},
        Story{"nv-peer-mem-other-driver.txt", "peermem", kIsFail, "another NVIDIA driver", "rebuild"},
        Story{"rail-only-fabric.txt", "nccl", kIsFail, "rail-only", "NCCL_CROSS_NIC=0"},
        Story{"azure-aks.machine", "cloud", kIsWarn, "topology file", "NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml"},
        Story{"invalid-page-table.txt", "nvidia-driver", kIsFail, "invalid page table", "R470"},
        Story{"invalid-page-table.txt", "nvidia-driver", kIsWarn, "driver 465.19.01: nvidia_p2p_get_pages",
              "driver 470 or later"},
        Story{"ucx-roce-retry.txt", "roce-loss", kIsFail, "lost on a RoCE fabric", "roce_adp_retrans_en=1"},
        Story{"vm-mmio-too-high.machine", "mmio", kIsWarn, "MMIO base is too high", "MMIO High Base"},
        Story{"amd-symbol-without-client.machine", "amd-gpu", kIsFail, "no peer client registered", "dma-buf"},
        Story{"aws-g6-efa.machine", "gpu-registration", kIsFail, "not registered", "host memory"},
        Story{"too-few-outstanding-reads.machine", "nic-config", kIsWarn, "too few outstanding reads",
              "MAX_ACC_OUT_READ=128"},
        Story{"geforce.machine", "gpu-registration", kIsFail, "GeForce RTX 4090 does no GPUDirect RDMA",
              "data-centre or professional GPU"},
        Story{"emerald-rapids-ordering.machine", "relaxed-ordering", Verdict::kOk, "UCX_IB_PCI_RELAXED_ORDERING=y", ""},
        Story{"lossy-roce.machine", "flow-control", kIsWarn, "neither PFC nor pause, and packets were lost", "--pfc"},
        Story{"inbox-mlx5-below-ofed.machine", "versions", kIsFail, "inbox", "reinstall OFED"},
        Story{"far-nic.machine", "pair", kIsWarn, "SYS: direct path ready, at most", "NCCL_NET_GDR_LEVEL=SYS"},
        Story{"mtu-1500.machine", "mtu", kIsWarn, "1024 of 4096", "netplan"},
        Story{"no-peer-memory-api.machine", "peermem", kIsFail, "no peer memory API", "install MLNX_OFED"},
        Story{"limit-of-the-daemon.machine", "memlock", kIsFail, "handed down by orted", "daemons that start ranks"},
        Story{"container-without-devices.machine", "container", kIsFail, "no /dev/infiniband",
              "--device=/dev/infiniband --cap-add=IPC_LOCK"},
        Story{"numa-balancing.machine", "numa-balancing", kIsWarn, "2 NUMA nodes", "/etc/sysctl.d/90-rdma.conf"},
        Story{"link-x1.machine", "nic-link", kIsWarn, "5 GT/s x1 of 8 GT/s x4", "riser"},
        Story{"peermem-not-loaded.machine", "peermem", kIsFail, "neither nvidia_peermem", "modules-load.d"},
        Story{"old-module-new-kernel.machine", "peermem", kIsFail, "combination of kernel, OFED and driver", "OFED"},
        Story{"old-module-new-kernel.machine", "versions", kIsWarn, "driver 470.199.02 with Linux 6.2",
              "older distribution"},
        Story{"image-without-provider.machine", "provider", kIsFail, "not installed", "host's OFED 4.9-0.1.7"},
        Story{"peermem-not-registered.machine", "peermem", kIsFail, "without registering", "NCCL_DMABUF_ENABLE=1"},
        Story{"nccl-error-12.txt", "nccl", kIsFail, "GID index", "NCCL_IB_GID_INDEX=3"},
        Story{"mtu-differs-a.txt mtu-differs-b.txt", "mtu", kIsFail, "the two hosts differ", "both hosts"},
        Story{"mtu-differs-a.txt", "nccl", kIsFail, "error 4", "differing MTU on both hosts"},
        Story{"path-mtu-above-interface.machine", "mtu", kIsWarn, "eth2 has 1500", "mtu 9000"},
        Story{"pod-with-gid-holes.machine", "gid-index", kIsWarn, "begins with empty entries", "NCCL_IB_GID_INDEX=7"},
        Story{"io-page-faults.machine", "iommu-faults", kIsFail, "data corruption", "iommu=pt"},
        Story{"rccl-on-hyper-v.machine", "numa-balancing", kIsWarn, "RCCL turns GPUDirect RDMA off",
              "kernel.numa_balancing=0"},
        Story{"macvlan-pod.machine", "netns", kIsFail, "not in this network namespace", "hostNetwork"}),
    [](const auto& info) {
      std::string name = std::string(info.param.files) + "_" + info.param.check + "_" + std::to_string(info.index);
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace gdrperf::doctor
