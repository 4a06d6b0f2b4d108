// What a GPU needs to ring a NIC's doorbell itself: NVSHMEM's IBGDA, NCCL's GIN, DOCA GPUNetIO, UCX's GDAKI.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr const char* kParameters = "/proc/driver/nvidia/params";
/// Mellanox's numbers of PCI functions; those before are of ConnectX-4 and older.
constexpr unsigned kConnectX5 = 0x1017;

/// ConnectX-5 or later, or a BlueField: the fifth generation and its queues.
bool rings_itself(const PciFunction& nic) {
  if (nic.device.empty()) return true;
  unsigned number = 0;
  const std::string_view digits = std::string_view(nic.device).substr(std::min<std::size_t>(2, nic.device.size()));
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number >= kConnectX5;
}

/// The driver's settings that open a NIC's registers to a GPU.
struct DoorbellSettings {
  bool known = false;
  bool peer_mapping = false;
  bool stream_memory = false;
};

DoorbellSettings settings_of(const Machine& machine) {
  DoorbellSettings settings;
  const std::string parameters = machine.read(kParameters).text;
  for (const std::string_view line : lines_of(parameters)) {
    settings.known = true;
    if (const auto value = value_after(line, "RegistryDwords:")) {
      settings.peer_mapping = settings.peer_mapping || value->find("PeerMappingOverride=1") != std::string_view::npos;
    }
    // Where the driver lists no such setting, it is not in the way.
    if (const auto value = value_after(line, "EnableStreamMemOPs:")) settings.stream_memory = *value == "1";
  }
  if (parameters.find("EnableStreamMemOPs") == std::string::npos) settings.stream_memory = settings.known;
  return settings;
}

}  // namespace

void check_gpu_initiated(const Survey& survey, Findings& findings) {
  const Check check(findings, "gpu-initiated",
                    "a GPU that posts messages itself (IBGDA, GIN, GPUNetIO, GDAKI) writes to the NIC's registers");
  std::vector<const PciFunction*> nics;
  for (const PciFunction* nic : survey.nics()) {
    if (nic->vendor == "0x15b3") nics.push_back(nic);
  }
  if (survey.gpus().empty() || nics.empty()) {
    check.skip("", survey.gpus().empty() ? "no NVIDIA GPU" : "no ConnectX");
    return;
  }
  for (const PciFunction* nic : nics) {
    if (!rings_itself(*nic)) check.skip(nic->address, "older than ConnectX-5: a GPU cannot ring it");
  }
  if (std::none_of(nics.begin(), nics.end(), [](const PciFunction* nic) { return rings_itself(*nic); })) return;
  const DoorbellSettings settings = settings_of(survey.machine);
  const std::string seen =
      fmt::format("PeerMappingOverride=1 {}, EnableStreamMemOPs {}", settings.peer_mapping ? "set" : "not set",
                  settings.stream_memory ? "on" : "off");
  constexpr const char* kSet =
      "echo 'options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' | sudo tee "
      "/etc/modprobe.d/nvidia-doorbells.conf  # rebuild the initramfs, reboot";
  if (!settings.known) {
    check.skip("", fmt::format("{} cannot be read", kParameters));
  } else if (!settings.peer_mapping) {
    check
        .skip("",
              "the driver is not set to let GPUs ring NICs: programs leave it to a CPU thread, or refuse; others need "
              "it not",
              kSet)
        .undo("sudo rm /etc/modprobe.d/nvidia-doorbells.conf")
        .saw(kParameters, seen);
  } else if (!settings.stream_memory) {
    check
        .warn("", "the driver lets GPUs map a NIC's registers, but not write to them in streams (EnableStreamMemOPs)",
              kSet)
        .undo("sudo rm /etc/modprobe.d/nvidia-doorbells.conf")
        .saw(kParameters, seen);
  } else if (!survey.loaded("nvidia_peermem") && !survey.loaded("nv_peer_mem") &&
             !dma_buf(survey).works.value_or(true)) {
    check
        .warn("",
              "the driver lets GPUs ring NICs, but queues in GPU memory cannot be registered: neither dma-buf nor "
              "nvidia_peermem",
              "sudo modprobe nvidia_peermem  # or the open kernel module, for dma-buf")
        .saw(kParameters, seen);
  } else {
    check.ok("", "the driver lets GPUs ring NICs (PeerMappingOverride=1)").saw(kParameters, seen);
  }
}

}  // namespace gdrperf::doctor
