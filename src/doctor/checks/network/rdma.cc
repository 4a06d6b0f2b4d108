// Is there an RDMA device, and can this user open it?

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

/// Network adapters whose RDMA part is a module of its own.
struct Adapter {
  const char* vendor;
  const char* net_driver;
  const char* rdma_driver;
};
constexpr std::array kAdapters = {
    Adapter{"0x15b3", "mlx5_core", "mlx5_ib"},
    Adapter{"0x15b3", "mlx4_core", "mlx4_ib"},
    Adapter{"0x14e4", "bnxt_en", "bnxt_re"},
    Adapter{"0x8086", "ice", "irdma"},
    Adapter{"0x1425", "cxgb4", "iw_cxgb4"},
    Adapter{"0x1077", "qede", "qedr"},
    Adapter{"0x19e5", "hns3", "hns_roce_hw_v2"},
    Adapter{"0x1d0f", "efa", "efa"},
    Adapter{"0x1414", "mana", "mana_ib"},
    Adapter{"0x1dd8", "ionic", "ionic_rdma"},
};

/// The libibverbs provider of a kernel driver, as named in /etc/libibverbs.d.
struct Provider {
  const char* kernel_driver;
  const char* provider;
};
constexpr std::array kProviders = {
    Provider{"mlx5_core", "mlx5"},
    Provider{"mlx4_core", "mlx4"},
    Provider{"bnxt_en", "bnxt_re"},
    Provider{"ice", "irdma"},
    Provider{"i40e", "irdma"},
    Provider{"cxgb4", "cxgb4"},
    Provider{"qede", "qedr"},
    Provider{"hns3", "hns"},
    Provider{"efa", "efa"},
    Provider{"mana", "mana"},
    Provider{"ionic", "ionic"},
    Provider{"rdma_rxe", "rxe"},
    Provider{"siw", "siw"},
};

constexpr const char* kNoNic =
    "gdrperf sweep --local --softnic  # the software device; or the kernel's: sudo modprobe "
    "rdma_rxe && sudo rdma link add rxe0 type rxe netdev NETDEV";
std::string describe(const RdmaDevice& device) {
  std::vector<std::string> about;
  if (!device.driver.empty()) about.push_back(printable(device.driver));
  if (!device.pci_address.empty()) about.push_back(device.pci_address);
  if (about.empty() && device.verbs) about.emplace_back(verbs::to_string(device.verbs->kind));
  return about.empty() ? printable(device.name)
                       : fmt::format("{} ({})", printable(device.name), fmt::join(about, ", "));
}

void explain_driverless(const Survey& survey, const PciFunction& function, const Adapter& adapter, const Check& check) {
  const ProgramResult info = survey.machine.run({"modinfo", adapter.net_driver});
  if (info.end == ProgramResult::End::kExited && !info.ok() && info.output.find("not found") != std::string::npos) {
    check
        .fail(function.address,
              fmt::format(
                  "an adapter of NVIDIA (Mellanox) without a driver: {} has no file for the kernel that runs ({})",
                  adapter.net_driver, survey.platform.kernel),
              "build OFED (DOCA-OFED) again for 'uname -r' (dkms status), or install the kernel's own extra modules "
              "(Ubuntu: "
              "linux-modules-extra, RHEL: kernel-modules-extra); it stays after a reboot")
        .saw("modinfo", first_line(info.output));
    return;
  }
  check
      .fail(function.address, "an adapter of NVIDIA (Mellanox) without a driver",
            fmt::format("sudo modprobe -a {} {}", adapter.net_driver, adapter.rdma_driver))
      .for_good(
          fmt::format("grep -r {} /etc/modprobe.d /proc/cmdline  # at boot it loads by itself unless it is blacklisted",
                      adapter.net_driver));
}

/// Adapters that could be RDMA devices and are not. True when there are any.
bool explain_adapters(const Survey& survey, const Check& check) {
  bool any = false;
  for (const PciFunction& function : survey.pci) {
    if (!function.is_network()) continue;
    const auto it = std::find_if(kAdapters.begin(), kAdapters.end(), [&](const Adapter& adapter) {
      return function.vendor == adapter.vendor &&
             (function.driver.empty() ? function.vendor == std::string("0x15b3")
                                      : function.driver == adapter.net_driver);
    });
    const bool given_away = function.driver == "vfio-pci" && function.vendor == "0x15b3";
    if (it == kAdapters.end() && !given_away) continue;
    any = true;
    if (given_away) {
      check.fail(function.address, "the adapter is reserved for a virtual machine (vfio-pci)",
                 fmt::format("sudo driverctl unset-override {}", function.address));
    } else if (function.driver.empty()) {
      explain_driverless(survey, function, *it, check);
    } else {
      check.fail(
          function.address,
          fmt::format("adapter with driver {}, but no RDMA device: {} is {}", it->net_driver,
                      it->rdma_driver,
                      survey.loaded(it->rdma_driver) ? "loaded and did not take it" : "not loaded"),
          survey.loaded(it->rdma_driver) ? fmt::format("sudo dmesg | grep {}", it->rdma_driver)
                                         : fmt::format("sudo modprobe {}", it->rdma_driver));
    }
  }
  return any;
}

/// "/dev/infiniband/uverbs0" of a device, "" when there is none.
std::string device_file(const Machine& machine, const Outside& device) {
  const std::string folder = "/sys/class/infiniband_verbs";
  for (const std::string& name : machine.list(folder)) {
    if (device == line_of(machine, folder + "/" + name + "/ibdev")) {
      return "/dev/infiniband/" + name;
    }
  }
  return {};
}

void check_device_file(const Survey& survey, const RdmaDevice& device, const Check& check) {
  const std::string path = device_file(survey.machine, device.name);
  if (path.empty() && survey.machine.recorded() && survey.machine.list("/sys/class/infiniband_verbs").empty()) {
    check.skip(device.name, "the recording has no /sys/class/infiniband_verbs");
    return;
  }
  if (path.empty()) {
    check.fail(device.name, "no uverbs device belongs to it", "sudo modprobe ib_uverbs");
    return;
  }
  switch (survey.machine.read_write(path)) {
    case Access::kMissing:
      check.fail(device.name, fmt::format("{} does not exist", path),
                 survey.container ? container_devices(survey.platform)
                                  : "sudo udevadm trigger --subsystem-match=infiniband_verbs");
      return;
    case Access::kDenied:
      check.fail(device.name, fmt::format("this user may not read and write {}", path),
                 survey.container ? container_devices(survey.platform)
                                  : fmt::format("sudo chmod a+rw {}", shell_word(path)))
          .for_good(survey.container ? "" : "install rdma-core: its udev rules set the mode at every boot")
          .saw(path, "not readable and writable");
      return;
    case Access::kGranted:
      break;
  }
  if (device.verbs && !device.verbs->error.empty()) {
    check.fail(device.name, fmt::format("{} cannot be opened: {}", path, device.verbs->error),
               survey.container ? container_devices(survey.platform) : "sudo dmesg | grep -i -e infiniband -e uverbs");
  } else {
    check.ok(device.name, path);
  }
}

/// In a container the user space is the image's, and must fit the host's kernel
/// modules.
std::string provider_cure(const Survey& survey, bool listed) {
  const std::string install = install_command(
      survey.machine, listed ? "--reinstall ibverbs-providers" : "ibverbs-providers", "rdma-core libibverbs");
  const std::string ofed = line_of(survey.machine, "/sys/module/mlx5_core/version");
  if (!survey.container) return install;
  if (ofed.empty() || ofed.find('-') == std::string::npos) return install + "  # in the image";
  return fmt::format(
      "install the user space of the host's OFED {} in the image (mlnxofedinstall --user-space-only): the "
      "image's does not match it",
      ofed);
}

}  // namespace

void check_libibverbs(const Survey& survey, Findings& findings) {
  const Check check(findings, "libibverbs", "RDMA programs, this one too, reach devices through this library");
  const std::string error = survey.machine.libibverbs_error();
  if (!error.empty()) {
    check.fail("", error,
               install_command(survey.machine, "libibverbs1 librdmacm1 ibverbs-providers", "libibverbs librdmacm"));
  } else if (survey.machine.recorded()) {
    check.skip("", "a recording does not show it");
  } else {
    check.ok("", "loads");
  }
}

void check_rdma_device(const Survey& survey, Findings& findings) {
  const Check check(findings, "rdma-device", "without an RDMA device nothing can be measured");
  if (survey.machine.recorded() && survey.machine.list("/sys").empty()) {
    check.skip("", "the recording has no /sys");
    return;
  }
  if (survey.rdma.empty()) {
    if (!explain_adapters(survey, check)) {
      check.fail("", "no RDMA device, and no network adapter known to be one", kNoNic);
    }
    return;
  }
  std::vector<std::string> names;
  for (const RdmaDevice& device : survey.rdma) names.push_back(describe(device));
  check.ok("", fmt::format("{}", fmt::join(names, ", ")));
}

void check_softnic(const Survey& survey, const Settings& settings, Findings& findings) {
  const Check check(findings, "softnic",
                    "the software device runs every test without a NIC, for trying things out");
  const bool active = std::any_of(survey.rdma.begin(), survey.rdma.end(), [](const auto& device) {
    return device.verbs &&
           (device.verbs->kind == verbs::DeviceKind::kSoftware ||
            device.verbs->kind == verbs::DeviceKind::kSimulated) &&
           !device.in_kernel;
  });
  if (active) {
    check.ok("", "in use");
  } else if (settings.softnic_library.empty()) {
    check.warn("", "its library is not next to this program",
               "ninja -C BUILD  # all of it, not the program alone");
  } else {
    check.ok("", "at hand: add --softnic to a command");
  }
}

void check_rdma_modules(const Survey& survey, Findings& findings) {
  const Machine& machine = survey.machine;
  const bool needed = survey.any_kernel_device();
  const Check uverbs(findings, "ib_uverbs",
                     "programs reach RDMA devices through this kernel module");
  const Check ucm(findings, "rdma_ucm", "rdma_cm (-R) goes through this kernel module");
  if (!needed) {
    uverbs.skip("", "no RDMA device of the kernel's");
    ucm.skip("", "no RDMA device of the kernel's");
    return;
  }
  // A copy of /sys alone tells neither.
  if (machine.recorded() && survey.modules.empty() && machine.list("/dev/infiniband").empty()) {
    uverbs.skip("", "the recording lists no modules");
    ucm.skip("", "the recording lists no modules");
    return;
  }
  // Built into the kernel, neither is in the list of modules.
  if (!machine.list("/sys/class/infiniband_verbs").empty() || survey.loaded("ib_uverbs")) {
    uverbs.ok("", "present");
  } else {
    const Cure cure = load_module("ib_uverbs");
    uverbs.fail("", "not loaded", cure.now).for_good(cure.for_good).undo(cure.undo);
  }
  const std::string file = "/dev/infiniband/rdma_cm";
  const Access access = machine.read_write(file);
  if (access == Access::kGranted) {
    ucm.ok("", file);
  } else if (access == Access::kDenied) {
    ucm.warn("", fmt::format("this user may not read and write {}", file),
             survey.container ? container_devices(survey.platform) : "sudo chmod a+rw " + file);
  } else if (survey.loaded("rdma_ucm")) {
    ucm.warn("", fmt::format("loaded, but {} does not exist", file),
             survey.container ? container_devices(survey.platform) : "sudo udevadm trigger --subsystem-match=misc");
  } else {
    const Cure cure = load_module("rdma_ucm");
    ucm.warn("", "not loaded", survey.container ? cure.now + "  # on the host" : cure.now)
        .for_good(cure.for_good)
        .undo(cure.undo);
  }
}

void check_device_files(const Survey& survey, Findings& findings) {
  const Check check(findings, "device-file", "RDMA programs open this file, as an ordinary user");
  if (!survey.any_kernel_device()) check.skip("", "no RDMA device of the kernel's");
  for (const RdmaDevice& device : survey.rdma) {
    if (device.in_kernel) check_device_file(survey, device, check);
  }
}

void check_provider(const Survey& survey, Findings& findings) {
  const Check check(findings, "provider",
                    "libibverbs shows only devices it has a user-space driver (provider) for");
  if (!survey.any_kernel_device()) check.skip("", "no RDMA device of the kernel's");
  for (const RdmaDevice& device : survey.rdma) {
    if (!device.in_kernel) continue;
    const auto it = std::find_if(kProviders.begin(), kProviders.end(), [&](const Provider& each) {
      return device.driver == each.kernel_driver;
    });
    const std::string provider = it == kProviders.end() ? "" : it->provider;
    if (device.verbs) {
      check.ok(device.name, provider.empty() ? "found" : provider);
    } else if (!survey.verbs_known) {
      check.skip(device.name, survey.machine.recorded() ? "what libibverbs shows is not in the recording"
                                                        : "libibverbs is missing");
    } else if (device_file(survey.machine, device.name).empty()) {
      check.skip(device.name, "libibverbs needs ib_uverbs first");
    } else {
      const bool listed = !provider.empty() &&
                          survey.machine.read("/etc/libibverbs.d/" + provider + ".driver").access !=
                              Access::kMissing;
      check.fail(device.name,
                 fmt::format("libibverbs does not show it: the provider for {} is {}",
                             device.driver.empty() ? "its driver" : printable(device.driver),
                             listed ? "listed, but its library does not load" : "not installed"),
                 provider_cure(survey, listed));
    }
  }
}

}  // namespace gdrperf::doctor
