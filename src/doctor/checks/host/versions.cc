// Versions that must go together: OFED and the kernel's own modules, firmware,
// the peer memory module.

#include <fmt/format.h>

#include <array>
#include <map>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr const char* kReinstall =
    "reinstall OFED for the running kernel (mlnxofedinstall --add-kernel-support, or doca-ofed), then sudo "
    "/etc/init.d/openibd restart; user space of the same release in containers";

/// A module by modinfo, and the loaded one.
struct ModuleFacts {
  std::string filename;
  std::string source;  ///< srcversion of the file
  std::string loaded_source;
  bool from_ofed() const {
    return filename.find("/updates/") != std::string::npos || filename.find("/extra/") != std::string::npos ||
           filename.find("mlnx-ofa") != std::string::npos || filename.find("/weak-updates/") != std::string::npos;
  }
};

ModuleFacts module_facts(const Machine& machine, const std::string& module) {
  ModuleFacts facts;
  const ProgramResult info = machine.run({"modinfo", module});
  if (info.ok()) {
    for (const std::string_view line : lines_of(info.output)) {
      if (const auto value = value_after(line, "filename:")) facts.filename = *value;
      if (const auto value = value_after(line, "srcversion:")) facts.source = *value;
    }
  }
  facts.loaded_source = line_of(machine, "/sys/module/" + module + "/srcversion");
  return facts;
}

/// "24.10-3.2.5.0" of "MLNX_OFED_LINUX-24.10-3.2.5.0:"
std::string ofed_version(const Machine& machine) {
  const ProgramResult info = machine.run({"ofed_info", "-s"});
  const std::string line = info.ok() ? first_line(info.output) : "";
  const std::size_t digit = line.find_first_of("0123456789");
  if (digit == std::string::npos) return {};
  return line.substr(digit, line.find(':') - digit);
}

void judge_source(const Survey& survey, const std::string& ofed, const Check& check) {
  const ModuleFacts facts = module_facts(survey.machine, "mlx5_ib");
  if (!facts.source.empty() && !facts.loaded_source.empty() && facts.source != facts.loaded_source) {
    check.fail("mlx5_ib", "the loaded module is not the one that is installed: it was reinstalled since",
               "sudo /etc/init.d/openibd restart  # or reboot")
        .saw("/sys/module/mlx5_ib/srcversion", facts.loaded_source)
        .saw("modinfo mlx5_ib", "srcversion " + facts.source);
    return;
  }
  if (!ofed.empty() && !facts.filename.empty() && !facts.from_ofed()) {
    check
        .fail("mlx5_ib",
              fmt::format("OFED {} is installed, but the kernel's own (inbox) mlx5_ib is loaded: DEVX, peer "
                          "memory and newer verbs fail",
                          ofed),
              kReinstall)
        .saw("modinfo mlx5_ib", "filename " + facts.filename)
        .saw("ofed_info -s", ofed);
    return;
  }
  const std::string core = line_of(survey.machine, "/sys/module/mlx5_core/version");
  const std::string rdma = line_of(survey.machine, "/sys/module/mlx5_ib/version");
  if (survey.loaded("mlx5_ib") && core != rdma) {
    check
        .fail("mlx5_ib",
              fmt::format("mlx5_core {} and mlx5_ib {} are of two stacks", core.empty() ? "of the kernel" : core,
                          rdma.empty() ? "of the kernel" : rdma),
              kReinstall)
        .saw("/sys/module/mlx5_core/version", core)
        .saw("/sys/module/mlx5_ib/version", rdma);
    return;
  }
  check.ok("", ofed.empty() ? "the kernel's own RDMA modules" : "OFED " + ofed);
}

void judge_combination(const Survey& survey, const std::string& ofed, const Check& check) {
  const NvidiaDriver driver = nvidia_driver(survey.machine);
  const bool old_module = survey.loaded("nv_peer_mem");
  if (old_module && version_at_least(driver.version, "470")) {
    check
        .warn("nv_peer_mem",
              fmt::format("nv_peer_mem with driver {}, which brings nvidia_peermem itself", driver.version),
              "sudo modprobe -r nv_peer_mem && sudo modprobe nvidia_peermem")
        .for_good(
            "remove the package nvidia-peer-memory-dkms; echo nvidia_peermem | sudo tee "
            "/etc/modules-load.d/nvidia_peermem.conf");
  }
  const std::string module = line_of(survey.machine, "/sys/module/nv_peer_mem/version");
  // Release notes of nv_peer_mem 1.2: it needs the peer memory API as fixed in
  // OFED 5.1; 1.1 is the last for the 4.9 LTS.
  if (old_module && version_at_least(module, "1.2") && !ofed.empty() && !version_at_least(ofed, "5.1")) {
    check.fail("nv_peer_mem", fmt::format("nv_peer_mem {} needs OFED 5.1 or later; this is {}", module, ofed),
               "nv_peer_mem 1.1 with OFED 4.9 LTS, or a newer OFED");
  }
  if (!driver.version.empty() && !version_at_least(driver.version, "510") &&
      version_at_least(survey.platform.kernel, "6.0")) {
    check.warn("",
               fmt::format("driver {} with Linux {}: outside of what the driver was made for", driver.version,
                           survey.platform.kernel),
               "a current driver branch; for GPUs that it no longer serves, an older distribution");
  }
}

/// Oldest firmware that is not warned about, by PCI device, and where that is said.
struct Firmware {
  const char* device;
  const char* card;
  const char* least;
  const char* source;
};
// What NVIDIA shipped in 2022 and 2023 with drivers that know dma-buf: the firmware updater mlxup 4.22.1, and 4.24.0,
// the first that lists BlueField-3.
constexpr const char* kMlxup4221 =
    "https://docs.nvidia.com/networking/display/mlxuprnv4221/Supported+Adapters+Cards+and+Firmware+Versions";
constexpr const char* kMlxup4240 =
    "https://docs.nvidia.com/networking/display/mlxuprnv4240/supported+adapters+cards+and+firmware+versions";
constexpr std::array kFirmware = {
    Firmware{"0x1013", "ConnectX-4", "12.28.2006", kMlxup4221},
    Firmware{"0x1015", "ConnectX-4 Lx", "14.32.1010", kMlxup4221},
    Firmware{"0x1017", "ConnectX-5", "16.35.2000", kMlxup4221},
    Firmware{"0x1019", "ConnectX-5 Ex", "16.35.2000", kMlxup4221},
    Firmware{"0x101b", "ConnectX-6", "20.35.2000", kMlxup4221},
    Firmware{"0x101d", "ConnectX-6 Dx", "22.35.2000", kMlxup4221},
    Firmware{"0x101f", "ConnectX-6 Lx", "26.35.2000", kMlxup4221},
    Firmware{"0x1021", "ConnectX-7", "28.35.2000", kMlxup4221},
    Firmware{"0xa2d6", "BlueField-2", "24.35.2000", kMlxup4221},
    Firmware{"0xa2dc", "BlueField-3", "32.37.1014", kMlxup4240},
};

/// Whose firmware an adapter takes: one of another PSID never fits.
std::string firmware_cure(const Survey& survey, const std::string& address, const std::string& psid) {
  if (survey.platform.virtual_machine || survey.container) {
    return "firmware is the host's to update: ask whoever runs it";
  }
  if (psid.starts_with("MT_")) {
    return fmt::format(
        "sudo mlxfwmanager -d {} --online -u  # this adapter alone (PSID {}); then mlxfwreset or reboot; it "
        "stays after a reboot",
        address, psid);
  }
  return fmt::format(
      "the firmware bundle of the server's or switch's maker for PSID {}: leave NVIDIA's generic image off it",
      psid.empty() ? "(sudo mstflint -d " + address + " query)" : psid);
}

}  // namespace

void check_versions(const Survey& survey, Findings& findings) {
  const Check check(findings, "versions",
                    "kernel modules, user space, GPU driver and peer memory module of an RDMA stack must come from one "
                    "source");
  const std::string ofed = ofed_version(survey.machine);
  if (!survey.loaded("mlx5_core") && !survey.loaded("mlx5_ib") && ofed.empty()) {
    check.skip("", "no mlx5 modules");
    return;
  }
  judge_source(survey, ofed, check);
  judge_combination(survey, ofed, check);
}

void check_firmware(const Survey& survey, Findings& findings) {
  const Check check(findings, "firmware",
                    "old firmware lacks features and carries faults that newer drivers trip over");
  std::map<std::string, std::string> by_model;
  for (const RdmaDevice& device : survey.rdma) {
    const PciFunction* function = survey.function(device.pci_address);
    std::string version = line_of(survey.machine, "/sys/class/infiniband/" + device.name.raw() + "/fw_ver");
    if (version.empty() && device.verbs) version = device.verbs->firmware;
    if (function == nullptr || version.empty()) continue;
    if (device.nvswitch) {
      check.ok(
          device.name,
          fmt::format("{}: manages NVSwitches; its firmware comes with the maker's bundle for the baseboard", version));
      continue;
    }
    const std::string psid = line_of(survey.machine, "/sys/class/infiniband/" + device.name.raw() + "/board_id");
    const std::string model = function->vendor + function->device + psid;
    const auto [it, first] = by_model.try_emplace(model, version);
    const Firmware* least = nullptr;
    for (const Firmware& each : kFirmware) {
      if (function->vendor == "0x15b3" && function->device == each.device) least = &each;
    }
    if (least != nullptr && !version_at_least(version, least->least)) {
      check.warn(device.name, fmt::format("{}: firmware {}, older than {}", least->card, version, least->least),
                 firmware_cure(survey, function->address, psid))
          .saw("source", least->source);
    } else if (!first && it->second != version) {
      check.warn(device.name,
                 fmt::format("firmware {}, where another adapter of the same model has {}", version, it->second),
                 firmware_cure(survey, function->address, psid));
    } else {
      check.ok(device.name, version);
    }
  }
  if (of_this_check(findings, "firmware") == 0) check.skip("", "no adapter that reports its firmware");
}

}  // namespace gdrperf::doctor
