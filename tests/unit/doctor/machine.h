#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gdrperf/doctor/doctor.h"

namespace gdrperf::doctor {

/// A made-up machine; what was not put into it is missing.
class FakeMachine : public Machine {
 public:
  FakeMachine& file(const std::string& path, const std::string& text) {
    files_[path] = text;
    return *this;
  }
  FakeMachine& link(const std::string& path, const std::string& target) {
    links_[path] = target;
    return *this;
  }
  FakeMachine& deny(const std::string& path) {
    denied_.insert(path);
    return *this;
  }
  /// A program that writes `output` and exits with `status`.
  FakeMachine& program(const std::string& command, const std::string& output, int status = 0) {
    programs_[command] = {ProgramResult::End::kExited, status, output};
    return *this;
  }
  FakeMachine& hanging_program(const std::string& command) {
    programs_[command] = {ProgramResult::End::kTimedOut, 0, {}};
    return *this;
  }
  FakeMachine& limit(std::optional<std::uint64_t> soft, std::optional<std::uint64_t> hard) {
    limit_ = {soft, hard};
    return *this;
  }
  /// libibverbs' view, in addition.
  FakeMachine& show(verbs::DeviceInfo device) {
    devices_.push_back(std::move(device));
    return *this;
  }

  FileText read(const std::string& path) const override {
    const std::string real = follow(path);
    if (denied_.contains(real)) return {Access::kDenied, {}};
    const auto it = files_.find(real);
    if (it == files_.end()) return {};
    return {Access::kGranted, it->second};
  }
  std::vector<std::string> list(const std::string& path) const override {
    std::string folder = follow(path);
    if (!folder.ends_with('/')) folder += '/';
    std::set<std::string> names;
    const auto take = [&](const std::string& each) {
      if (each.starts_with(folder) && each.size() > folder.size()) {
        names.insert(each.substr(folder.size(), each.find('/', folder.size()) - folder.size()));
      }
    };
    for (const auto& [each, text] : files_) take(each);
    for (const auto& [each, target] : links_) take(each);
    return {names.begin(), names.end()};
  }
  std::string resolve(const std::string& path) const override {
    const std::string real = follow(path);
    const bool exists = files_.contains(real) || !list(real).empty() ||
                        std::any_of(links_.begin(), links_.end(),
                                    [&](const auto& link) { return link.second == real; });
    return exists ? real : "";
  }
  Access read_write(const std::string& path) const override {
    if (denied_.contains(path)) return Access::kDenied;
    return files_.contains(path) ? Access::kGranted : Access::kMissing;
  }
  ProgramResult run(const std::vector<std::string>& argv) const override {
    std::string command;
    for (const std::string& word : argv) command += (command.empty() ? "" : " ") + word;
    const auto it = programs_.find(command);
    return it == programs_.end() ? ProgramResult{} : it->second;
  }
  MemlockLimit memlock() const override { return limit_; }
  std::optional<std::vector<verbs::DeviceInfo>> rdma_devices() const override { return devices_; }

 private:
  /// With the links along the path replaced, the longest prefix first.
  std::string follow(std::string path) const {
    for (int turn = 0; turn < 20; ++turn) {
      std::size_t end = path.size();
      while (end > 0 && !links_.contains(path.substr(0, end))) end = path.rfind('/', end - 1);
      if (end == 0 || end == std::string::npos) return path;
      path = links_.at(path.substr(0, end)) + path.substr(end);
    }
    return path;
  }

  std::map<std::string, std::string> files_;
  std::map<std::string, std::string> links_;
  std::set<std::string> denied_;
  std::map<std::string, ProgramResult> programs_;
  MemlockLimit limit_;
  std::vector<verbs::DeviceInfo> devices_;
};

/// A PCI function below `parents` ("0000:3a:00.0/...", from the root port down).
inline void add_pci(FakeMachine& machine, const std::string& parents, const std::string& address,
                    const std::string& vendor, const std::string& class_code,
                    const std::string& driver = {}) {
  const std::string real =
      "/sys/devices/pci0000:3a/" + (parents.empty() ? "" : parents + "/") + address;
  machine.link("/sys/bus/pci/devices/" + address, real)
      .file(real + "/vendor", vendor + "\n")
      .file(real + "/class", class_code + "\n");
  if (!driver.empty()) machine.link(real + "/driver", "/sys/bus/pci/drivers/" + driver);
}

inline void set_link(FakeMachine& machine, const std::string& address, const std::string& now,
                     const std::string& max) {
  // "32.0 x16"
  const std::string real = machine.resolve("/sys/bus/pci/devices/" + address);
  for (const auto& [which, value] : {std::pair{"current", now}, std::pair{"max", max}}) {
    const std::string prefix = real + "/" + which;
    machine.file(prefix + "_link_speed", value.substr(0, value.find(' ')) + " GT/s PCIe\n")
        .file(prefix + "_link_width", value.substr(value.find('x') + 1) + "\n");
  }
}

/// libibverbs' view of a RoCE device with one ACTIVE port.
inline verbs::DeviceInfo roce_device(const std::string& name, const std::string& netdev) {
  verbs::DeviceInfo device;
  device.name = name;
  device.driver = "mlx5_core";
  verbs::PortDetails details;
  details.port.number = 1;
  details.port.state = IBV_PORT_ACTIVE;
  details.port.link_layer = IBV_LINK_LAYER_ETHERNET;
  details.port.active_mtu_bytes = 4096;
  details.port.max_mtu_bytes = 4096;
  details.port.rate_gbps = 200;
  details.port.netdev = netdev;
  ibv_gid raw{};
  raw.raw[0] = 0xfe;
  raw.raw[1] = 0x80;
  raw.raw[15] = 1;
  details.gids.push_back(verbs::make_gid(1, verbs::GidType::kRoceV2, raw, netdev));
  ibv_gid mapped{};
  mapped.raw[10] = mapped.raw[11] = 0xff;
  mapped.raw[12] = 10;
  mapped.raw[15] = 1;
  details.gids.push_back(verbs::make_gid(3, verbs::GidType::kRoceV2, mapped, netdev));
  device.ports.push_back(std::move(details));
  return device;
}

/// The kernel's side of one: "mlx5_0" at `address`, interface `netdev` up.
inline void add_nic(FakeMachine& machine, const std::string& name, const std::string& parents,
                    const std::string& address, const std::string& netdev) {
  add_pci(machine, parents, address, "0x15b3", "0x020000", "mlx5_core");
  set_link(machine, address, "32.0 x16", "32.0 x16");
  const std::string folder = "/sys/class/infiniband/" + name;
  const std::string number = name.substr(name.rfind('_') + 1);
  machine.link(folder + "/device", "/sys/bus/pci/devices/" + address)
      .file(folder + "/node_type", "1: CA\n")
      .file(folder + "/ports/1/state", "4: ACTIVE\n")
      .file(folder + "/ports/1/phys_state", "5: LinkUp\n")
      .file(folder + "/ports/1/link_layer", "Ethernet\n")
      .file(folder + "/ports/1/rate", "200 Gb/sec (4X HDR)\n")
      .file(folder + "/ports/1/gid_attrs/ndevs/0", netdev + "\n")
      .file("/sys/class/infiniband_verbs/uverbs" + number + "/ibdev", name + "\n")
      .file("/dev/infiniband/uverbs" + number, "")
      .file("/dev/infiniband/rdma_cm", "")
      .file("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n")
      .file("/sys/class/net/" + netdev + "/flags", "0x1003\n")
      .file("/sys/class/net/" + netdev + "/carrier", "1\n")
      .file("/sys/class/net/" + netdev + "/mtu", "9000\n");
}

/// A server as it should be: a GPU and a NIC below one switch, dma-buf.
inline FakeMachine good_server() {
  FakeMachine machine;
  add_pci(machine, "", "0000:3a:00.0", "0x8086", "0x060400");
  add_pci(machine, "0000:3a:00.0", "0000:3b:00.0", "0x1000", "0x060400");
  add_pci(machine, "0000:3a:00.0/0000:3b:00.0", "0000:3c:00.0", "0x1000", "0x060400");
  add_pci(machine, "0000:3a:00.0/0000:3b:00.0", "0000:3c:01.0", "0x1000", "0x060400");
  add_nic(machine, "mlx5_0", "0000:3a:00.0/0000:3b:00.0/0000:3c:00.0", "0000:3d:00.0", "eth2");
  add_pci(machine, "0000:3a:00.0/0000:3b:00.0/0000:3c:01.0", "0000:3e:00.0", "0x10de", "0x030200",
          "nvidia");
  set_link(machine, "0000:3e:00.0", "2.5 x16", "32.0 x16");
  machine
      .file("/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
            "GCC version:  gcc version 13.3.0\n")
      .file("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n")
      .file("/proc/modules",
            "nvidia 14299136 2 nvidia_uvm, Live 0x0 (O)\n"
            "ib_uverbs 200704 1 mlx5_ib, Live 0x0\n")
      .file("/proc/cmdline", "root=/dev/sda1 intel_iommu=on iommu=pt\n")
      .file("/proc/sys/kernel/numa_balancing", "0\n")
      .file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
      .file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n")
      .file("/proc/driver/nvidia/gpus/0000:3e:00.0/information", "Model: \t\t NVIDIA H100\n")
      .program("nvidia-smi -L", "GPU 0: NVIDIA H100\n")
      .program("gdr-probe",
               "gpu 0000:3e:00.0 gdr=1 dmabuf=1 NVIDIA H100\nnic mlx5_0 dmabuf 9 Bad file descriptor\n"
               "reg mlx5_0 0000:3e:00.0 dmabuf 0 ok\nreg mlx5_0 0000:3e:00.0 peermem 14 Bad address\n")
      .program("lspci -D -vvv",
               "0000:3c:00.0 PCI bridge: Broadcom / LSI PEX890xx (prog-if 00 [Normal decode])\n"
               "\tCapabilities: [170 v1] Access Control Services\n"
               "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+\n"
               "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-\n")
      .show(roce_device("mlx5_0", "eth2"));
  for (const char* address : {"0000:3d:00.0", "0000:3e:00.0"}) {
    const std::string real = machine.resolve(std::string("/sys/bus/pci/devices/") + address);
    machine.link(real + "/iommu_group", "/sys/kernel/iommu_groups/7");
  }
  machine.file("/sys/kernel/iommu_groups/7/type", "identity\n");
  return machine;
}

/// The findings of one check.
inline std::vector<Finding> of_check(const std::vector<Finding>& findings,
                                     const std::string& check) {
  std::vector<Finding> found;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(found),
               [&](const Finding& finding) { return finding.check == check; });
  return found;
}

/// The only finding of one check; with an empty check name when there is not
/// exactly one.
inline Finding finding_of(const std::vector<Finding>& findings, const std::string& check) {
  const auto found = of_check(findings, check);
  return found.size() == 1 ? found.front() : Finding{};
}

/// All findings on a machine.
inline std::vector<Finding> findings_on(const Machine& machine, const std::string& softnic = "lib") {
  return examine(machine, {softnic, {}}).findings;
}

inline Finding examine_for(const Machine& machine, const std::string& check) {
  return finding_of(findings_on(machine), check);
}

}  // namespace gdrperf::doctor
