// The GPUs' drivers.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

/// Drivers from `first` up to but without `fixed` have a fault that concerns GPUDirect RDMA.
struct DriverFault {
  const char* first;
  const char* fixed;
  const char* what;
  const char* source;
};
constexpr std::array kDriverFaults = {
    DriverFault{"0", "470",
                "nvidia_p2p_get_pages may answer with an invalid page table (fixed in R470 from May 2021 on)",
                "https://github.com/Mellanox/nv_peer_memory/issues/112"},
    DriverFault{
        "0", "470", "it brings no nvidia_peermem of its own",
        "https://docs.nvidia.com/cuda/archive/12.4.0/gpudirect-rdma/ (Changes in CUDA 11.4, which comes with R470)"},
    DriverFault{
        "535.129.03", "560.35.03",
        "'nv_get_p2p_free_callback ... detected invalid context' in the log comes from its workaround and is harmless",
        "https://github.com/Mellanox/nv_peer_memory/issues/120"},
};

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
    check.warn("", found + "; nvidia-smi does not answer within seconds",
               "sudo dmesg | grep -i -e nvrm -e xid  # a GPU that hangs; else sudo nvidia-smi -pm 1")
        .for_good("sudo systemctl enable --now nvidia-persistenced");
  } else {
    const bool mismatch = smi.output.find("version mismatch") != std::string::npos;
    check.fail("", fmt::format("{}; nvidia-smi: {}", found, first_line(smi.output)),
               mismatch ? "sudo reboot  # the libraries were updated under the running driver"
                        : "sudo dmesg | grep -i -e nvrm -e xid");
  }
}

}  // namespace

void judge_driver_version(const std::string& version, Findings& findings) {
  const Check check(findings, "nvidia-driver",
                    "GPU memory is allocated and exported by this driver");
  for (const DriverFault& fault : kDriverFaults) {
    if (version.empty() || !version_at_least(version, fault.first) || version_at_least(version, fault.fixed)) continue;
    if (std::string_view(fault.what).find("harmless") != std::string_view::npos) {
      check.ok("", fmt::format("driver {}: {}", version, fault.what));
      continue;
    }
    check.warn("", fmt::format("driver {}: {}", version, fault.what),
               fmt::format("install driver {} or later, best of a current branch (R570, R580)", fault.fixed))
        .saw("source", fault.source);
  }
}

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
    judge_driver_version(driver.version, findings);
  } else if (std::any_of(gpus.begin(), gpus.end(),
                         [](const auto* gpu) { return gpu->driver == "nvidia"; })) {
    check.fail("", "bound, but /proc/driver/nvidia/version cannot be read",
               survey.container ? container_gpus(survey.platform) : "sudo nvidia-modprobe");
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
                 fmt::format("its driver is {}, which does no GPUDirect RDMA", printable(gpu->driver)),
                 install_command(survey.machine, "nvidia-open", "nvidia-open") +
                     "  # from NVIDIA's repository, then reboot");
    }
  }
}

}  // namespace gdrperf::doctor
