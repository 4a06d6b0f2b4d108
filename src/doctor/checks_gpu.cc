// GPUs and GPUDirect RDMA: the driver, and the two ways in which a NIC can be
// given GPU memory: dma-buf, or NVIDIA's peer memory module.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "checks.h"
#include "text.h"

namespace gdrperf::doctor {
namespace {

constexpr const char* kPeerMemoryWhy =
    "through this module ibv_reg_mr takes GPU memory; without it, or dma-buf, there is no "
    "GPUDirect RDMA";

/// /proc/driver/nvidia/version
struct NvidiaDriver {
  bool loaded = false;
  bool open = false;  ///< the open kernel module
  std::string version;
};

NvidiaDriver nvidia_driver(const Machine& machine) {
  NvidiaDriver driver;
  const std::string line = line_of(machine, "/proc/driver/nvidia/version");
  driver.loaded = !line.empty();
  driver.open = line.find("Open Kernel Module") != std::string::npos;
  for (const std::string_view word : words_of(line)) {
    // "580.65.06"; x86_64 has no dot
    if (leading_number(word) >= 100 && word.find('.') != std::string_view::npos) {
      driver.version = word;
      break;
    }
  }
  return driver;
}

bool kernel_has_dma_buf(const std::string& release) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(release.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major > 5 || (major == 5 && minor >= 12);
}

struct DmaBuf {
  bool possible = false;
  std::string found;
  std::string fix;
};

DmaBuf dma_buf(const Survey& survey) {
  const std::string release = line_of(survey.machine, "/proc/sys/kernel/osrelease");
  const NvidiaDriver driver = nvidia_driver(survey.machine);
  DmaBuf result;
  if (!driver.loaded) {
    result.found = "the nvidia driver is not loaded";
    result.fix = "sudo modprobe nvidia";
  } else if (!kernel_has_dma_buf(release)) {
    result.found =
        fmt::format("Linux {} registers no dma-buf with RDMA devices (5.12 does)", release);
    result.fix = "sudo modprobe nvidia_peermem  # or install a kernel from 5.12 on";
  } else if (!driver.open) {
    result.found = fmt::format(
        "driver {} is not the open kernel module, which alone exports dma-buf", driver.version);
    result.fix = install_command(survey.machine, "nvidia-open", "nvidia-open") +
                 "  # from NVIDIA's repository; Turing GPUs and later";
  } else {
    result.possible = true;
    result.found = fmt::format("Linux {}, open kernel module {}", release, driver.version);
  }
  return result;
}

/// One finding for a driver that is bound: do its programs reach it?
void ask_nvidia_smi(const Survey& survey, const NvidiaDriver& driver, const Check& check) {
  const std::string found =
      fmt::format("{} {}", driver.version,
                  driver.open ? "(open kernel module)" : "(proprietary kernel module)");
  const ProgramResult smi = survey.machine.run({"nvidia-smi", "-L"});
  using End = ProgramResult::End;
  if (smi.ok() || smi.end == End::kNotInstalled) {
    check.ok("", found + (smi.ok() ? "" : "; nvidia-smi is not installed"));
  } else if (smi.end == End::kTimedOut) {
    check.fail("", found + "; nvidia-smi does not answer", "sudo dmesg | grep -i -e nvrm -e xid");
  } else {
    const bool mismatch = smi.output.find("version mismatch") != std::string::npos;
    check.fail("", fmt::format("{}; nvidia-smi: {}", found, first_line(smi.output)),
               mismatch ? "sudo reboot  # the libraries were updated under the running driver"
                        : "sudo dmesg | grep -i -e nvrm -e xid");
  }
}

}  // namespace

void check_nvidia_driver(const Survey& survey, Findings& findings) {
  const Check check(findings, "nvidia-driver",
                    "GPU memory is allocated and exported by this driver");
  const auto gpus = survey.gpus();
  const NvidiaDriver driver = nvidia_driver(survey.machine);
  if (gpus.empty() && !driver.loaded) {
    check.skip("", "no NVIDIA GPU");
    return;
  }
  if (driver.loaded) {
    ask_nvidia_smi(survey, driver, check);
  } else if (std::any_of(gpus.begin(), gpus.end(),
                         [](const auto* gpu) { return gpu->driver == "nvidia"; })) {
    check.fail("", "bound, but /proc/driver/nvidia/version cannot be read",
               survey.container ? "docker run --gpus all ..." : "sudo nvidia-modprobe");
  }
  for (const PciFunction* gpu : gpus) {
    if (gpu->driver == "nvidia") continue;
    if (gpu->driver == "vfio-pci") {
      check.skip(gpu->address, "reserved for a virtual machine (vfio-pci)");
    } else if (gpu->driver.empty()) {
      check.fail(gpu->address, "a GPU without a driver",
                 driver.loaded ? "sudo dmesg | grep -i nvrm" : "sudo modprobe nvidia");
    } else {
      check.fail(gpu->address,
                 fmt::format("its driver is {}, which does no GPUDirect RDMA", gpu->driver),
                 install_command(survey.machine, "nvidia-open", "nvidia-open") +
                     "  # from NVIDIA's repository, then reboot");
    }
  }
}

void check_dma_buf(const Survey& survey, Findings& findings) {
  const Check check(findings, "dma-buf",
                    "the way to give GPU memory to a NIC that needs no further module");
  if (survey.gpus().empty()) {
    check.skip("", "no NVIDIA GPU");
    return;
  }
  const DmaBuf found = dma_buf(survey);
  if (found.possible) {
    check.ok("", found.found);
  } else if (!peer_memory(survey.modules).bound_to.empty()) {
    check.skip("", found.found + "; nvidia_peermem is there instead");
  } else {
    check.warn("", found.found, found.fix);
  }
}

void judge_peer_memory(const PeerMemory& found, Findings& findings) {
  const Check check(findings, "peermem", kPeerMemoryWhy);
  if (!found.bound_to.empty()) {
    check.ok("", fmt::format("{} loaded and registered with {}", found.module, found.bound_to));
  } else if (!found.module.empty() && !found.users_known) {
    check.ok("", found.module + " loaded; this kernel does not say what it is registered with");
  } else if (!found.module.empty()) {
    check.fail("",
               fmt::format("{} is loaded but registered with neither ib_core nor ib_uverbs: it was "
                           "built without this RDMA stack",
                           found.module),
               "sudo modprobe -r nvidia_peermem && sudo modprobe nvidia_peermem  # after "
               "installing DOCA-OFED "
               "and then the NVIDIA driver again; or use dma-buf");
  } else {
    check.fail("", "neither nvidia_peermem nor nv_peer_mem is loaded",
               "sudo modprobe nvidia_peermem");
  }
}

void judge_peer_memory_trouble(PeerMemoryTrouble trouble, Findings& findings) {
  const Check check(findings, "peermem", kPeerMemoryWhy);
  if (trouble == PeerMemoryTrouble::kUnsigned) {
    check.warn("", meaning_of(trouble), "lsmod | grep peermem  # was it loaded in the end?");
  } else {
    check.fail("", meaning_of(trouble), cure_of(trouble));
  }
}

void check_peer_memory(const Survey& survey, Findings& findings) {
  const Check check(findings, "peermem", kPeerMemoryWhy);
  const PeerMemory found = peer_memory(survey.modules);
  if (survey.gpus().empty()) {
    check.skip("", "no NVIDIA GPU");
  } else if (!survey.any_hardware()) {
    check.skip("", "no RDMA NIC to register with");
  } else if (found.bound_to.empty() && dma_buf(survey).possible) {
    check.skip("", fmt::format("{}; not needed with dma-buf",
                               found.module.empty()
                                   ? "not loaded"
                                   : found.module + " is loaded, but registered nowhere"));
  } else if (!found.module.empty()) {
    judge_peer_memory(found, findings);
  } else {
    // Why it is not there, when the kernel's log may be read.
    const ProgramResult log = survey.machine.run({"dmesg"});
    const PeerMemoryTrouble trouble = peer_memory_trouble(log.output);
    if (log.ok() && trouble != PeerMemoryTrouble::kNone &&
        trouble != PeerMemoryTrouble::kUnsigned) {
      judge_peer_memory_trouble(trouble, findings);
    } else {
      judge_peer_memory(found, findings);
    }
  }
}

}  // namespace gdrperf::doctor
