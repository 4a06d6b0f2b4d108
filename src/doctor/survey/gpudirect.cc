#include "doctor/survey/gpudirect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "gdrperf/topo/nvidia_proc.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

/// Red Hat's 4.18 and 5.14 carry RDMA from later kernels: the number says nothing.
bool kernel_may_have_dma_buf(const Platform& platform) {
  return platform.kernel.find(".el8") != std::string::npos ||
         platform.kernel.find(".el9") != std::string::npos ||
         version_at_least(platform.kernel, "5.12");
}

const GpuProbe::Try* first_failure(const GpuProbe& probe, std::string_view way) {
  const auto it = std::find_if(probe.tries.begin(), probe.tries.end(), [&](const auto& each) {
    return each.way == way && !each.gpu.empty() && each.error != 0;
  });
  return it == probe.tries.end() ? nullptr : &*it;
}

const GpuProbe::Try* refusing_nic(const GpuProbe& probe) {
  const auto it = std::find_if(probe.tries.begin(), probe.tries.end(), [](const auto& each) {
    return each.gpu.empty() && each.way == "dmabuf" && each.error != EBADF;
  });
  return it == probe.tries.end() ? nullptr : &*it;
}

std::string open_driver_command(const Survey& survey) {
  return install_command(survey.machine, "nvidia-open", "nvidia-open") +
         "  # from NVIDIA's repository; Turing GPUs and later";
}

/// From the probe's answers.
DmaBuf asked_dma_buf(const Survey& survey, const GpuProbe& probe) {
  DmaBuf result;
  const bool driver_can = std::any_of(probe.gpus.begin(), probe.gpus.end(),
                                      [](const auto& gpu) { return gpu.dma_buf; });
  const auto registered = probe.registers("dmabuf");
  if (registered.value_or(false)) {
    result.works = true;
    result.found = "GPU memory was registered with a NIC this way";
  } else if (!probe.gpus.empty() && !driver_can) {
    result.works = false;
    result.found = "the GPU's driver reports that it exports none (DMA_BUF_SUPPORTED is 0)";
    const bool shared = shares_memory_with_cpu(probe.gpus.front().name);
    result.fix = shared ? "register host memory: GPU and CPU share it here"
                 : nvidia_driver(survey.machine).open
                     ? "a kernel with CONFIG_DMA_SHARED_BUFFER and CONFIG_PCI_P2PDMA; or load "
                       "nvidia_peermem"
                     : open_driver_command(survey);
  } else if (const auto* failed = first_failure(probe, "dmabuf")) {
    result.works = false;
    result.found = fmt::format("{} does not take GPU memory as dma-buf: errno {} {}", failed->nic,
                               failed->error, failed->words);
    result.fix = "sudo dmesg | tail  # the NIC's driver logs more; or use nvidia_peermem";
  } else if (const auto* nic = refusing_nic(probe)) {
    result.works = false;
    result.found = fmt::format("the driver of {} registers no dma-buf: errno {} {}", nic->nic,
                               nic->error, nic->words);
    result.fix = "a newer kernel or OFED for this NIC; or nvidia_peermem";
  } else if (driver_can) {
    result.found = "the GPU's driver exports dma-buf; no NIC was asked";
  }
  return result;
}

/// What registers GPU memory on a kernel without dma-buf.
std::string peer_memory_instead(const Survey& survey, const NvidiaDriver& driver) {
  if (survey.container) return "a kernel from 5.12 on, or nvidia_peermem: both on the host, not in this container";
  if (!driver.version.empty() && !version_at_least(driver.version, "470")) {
    return fmt::format("nv_peer_mem for this OFED: driver {} brings no nvidia_peermem; or a kernel from 5.12 on",
                       driver.version);
  }
  return "sudo modprobe nvidia_peermem  # until reboot; or install a kernel from 5.12 on";
}

}  // namespace

NvidiaDriver nvidia_driver(const Machine& machine) {
  NvidiaDriver driver;
  const std::string line = line_of(machine, "/proc/driver/nvidia/version");
  driver.loaded = !line.empty();
  driver.open = line.find("Open Kernel Module") != std::string::npos;
  driver.version = topo::nvidia_version_in(line);
  return driver;
}

GpuProbe ask_gpus(const Machine& machine) {
  const ProgramResult answer = machine.run({kGpuProbe});
  if (answer.end == ProgramResult::End::kTimedOut) {
    GpuProbe probe;
    probe.why_none = "the GPUs did not answer in time";
    return probe;
  }
  return parse_gpu_probe(answer.output);
}

std::vector<std::string> gpu_names(const Survey& survey) {
  std::vector<std::string> names;
  for (const GpuProbe::Gpu& gpu : ask_gpus(survey.machine).gpus) names.push_back(gpu.name);
  if (!names.empty()) return names;
  const std::string folder = "/proc/driver/nvidia/gpus/";
  for (const std::string& address : survey.machine.list(folder)) {
    const std::string information = survey.machine.read(folder + address + "/information").text;
    for (const std::string_view line : lines_of(information)) {
      if (const auto model = value_after(line, "Model:")) names.emplace_back(*model);
    }
  }
  if (!names.empty()) return names;
  // "GPU 0: NVIDIA H100 PCIe (UUID: GPU-...)"
  const std::string listed = survey.machine.run({"nvidia-smi", "-L"}).output;
  for (const std::string_view line : lines_of(listed)) {
    if (!line.starts_with("GPU ")) continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(colon + 2);
    names.emplace_back(trimmed(name.substr(0, name.find(" (UUID"))));
  }
  return names;
}

bool is_geforce(std::string_view name) {
  return name.find("GeForce") != std::string_view::npos ||
         name.find("TITAN") != std::string_view::npos;
}

bool is_vgpu(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || name.size() < dash + 3) return false;
  const std::string_view type = name.substr(dash + 1);
  const std::string_view number = type.substr(0, type.size() - 1);
  return std::string_view("QCAB").find(type.back()) != std::string_view::npos &&
         number.find_first_not_of("0123456789") == std::string_view::npos;
}

bool shares_memory_with_cpu(std::string_view name) {
  for (const char* word : {"GB10", "Orin", "Thor", "Xavier", "Tegra", "Spark"}) {
    const std::size_t at = name.find(word);
    // GB100 is another GPU.
    if (at != std::string_view::npos &&
        (at + std::string_view(word).size() == name.size() ||
         name[at + std::string_view(word).size()] != '0')) {
      return true;
    }
  }
  return false;
}

bool gpu_shares_memory(const Survey& survey) {
  const auto names = gpu_names(survey);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return shares_memory_with_cpu(std::string_view(name)); });
}

DmaBuf dma_buf(const Survey& survey) {
  const NvidiaDriver driver = nvidia_driver(survey.machine);
  const GpuProbe probe = ask_gpus(survey.machine);
  DmaBuf result = asked_dma_buf(survey, probe);
  if (result.works || !result.found.empty()) return result;
  const auto names = gpu_names(survey);
  const auto odd = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return is_geforce(name) || shares_memory_with_cpu(name);
  });
  if (!driver.loaded) {
    result.works = false;
    result.found = "the nvidia driver is not loaded";
    result.fix = "sudo modprobe nvidia";
  } else if (odd != names.end()) {
    result.works = false;
    result.found = fmt::format("{} exports no memory to NICs", *odd);
    result.fix = is_geforce(*odd) ? "a data-centre or professional GPU, or staging through host memory"
                                  : "register host memory: GPU and CPU share it here";
  } else if (!kernel_may_have_dma_buf(survey.platform)) {
    result.works = false;
    result.found = fmt::format("Linux {} registers no dma-buf with RDMA devices (5.12 does)",
                               survey.platform.kernel);
    result.fix = peer_memory_instead(survey, driver);
  } else if (!driver.open) {
    result.works = false;
    result.found = fmt::format(
        "driver {} is not the open kernel module, which alone exports dma-buf", driver.version);
    result.fix = open_driver_command(survey);
  } else {
    result.found =
        fmt::format("Linux {} with the open kernel module {} may do it; nobody was asked ({})",
                    survey.platform.kernel, driver.version, probe.why_none);
  }
  return result;
}

std::optional<std::string> kernel_log(const Machine& machine) {
  const ProgramResult log = machine.run({"dmesg"});
  if (log.ok()) return log.output;
  return std::nullopt;
}

}  // namespace gdrperf::doctor
