// Where a fix holds, and whether it outlives a reboot: a row for each command, so that no text can forget it.

#include "doctor/holds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace gdrperf::doctor {
namespace {

constexpr std::string_view kUntilReboot = "until the next reboot";
constexpr std::string_view kHostUntilReboot = "until the next reboot, on the host (not in a container)";
constexpr std::string_view kLasts = "survives a reboot";
constexpr std::string_view kHostLasts = "survives a reboot; on the host";
constexpr std::string_view kBootLoader =
    "from the next boot on; Debian and Ubuntu: /etc/default/grub, update-grub; RHEL: grubby --update-kernel=ALL "
    "--args; SUSE: grub2-mkconfig; others: their own file";
constexpr std::string_view kForNewPrograms = "for programs started with it; put it into the job's environment";
constexpr std::string_view kContainer = "for containers started with it";
constexpr std::string_view kManifest = "for pods started after it";
constexpr std::string_view kPhysical = "survives a reboot; needs a look or a hand at the machine";
constexpr std::string_view kProgram = "in the program, or its next start";
constexpr std::string_view kLooks = "changes nothing";

/// A command, as fixes spell it.
struct Holds {
  std::string_view spelling;  ///< in lower case
  std::string_view name;      ///< of the command; "": the spelling
  std::string_view clause;
};

// The first spelling of a name that a text has speaks for the name.
constexpr std::array kHolds = {
    Holds{"update-grub", "", "survives a reboot; Debian and Ubuntu, after a reboot"},
    Holds{"grubby", "", "survives a reboot; RHEL and its kin, after a reboot"},
    Holds{"grub2-mkconfig", "", "survives a reboot; SUSE and RHEL, after a reboot"},
    Holds{"kernel's command line", "", kBootLoader},
    Holds{"command line of the kernel", "", kBootLoader},
    Holds{"boot loader", "", kBootLoader},
    Holds{"disable_acs_redir", "", kBootLoader},
    Holds{"pcie_aspm=off", "", kBootLoader},
    Holds{"iommu=pt", "", kBootLoader},
    Holds{"iommu=off", "", kBootLoader},
    Holds{"pci=realloc", "", kBootLoader},
    Holds{"modprobe.d", "",
          "survives a reboot, after an update of the initramfs where the module is in it; on the host"},
    Holds{"modules-load.d", "", kHostLasts},
    Holds{"modprobe -r", "modprobe", kHostUntilReboot},
    Holds{"modprobe", "", kHostUntilReboot},
    Holds{"rmmod", "", kHostUntilReboot},
    Holds{"setpci", "", "until the next reboot or bus reset, on the host (a guest cannot)"},
    Holds{"sysctl.d", "", kHostLasts},
    Holds{"sysctl -w", "sysctl", kHostUntilReboot},
    Holds{"nmcli connection modify", "nmcli", "survives a reboot; NetworkManager"},
    Holds{"netplan", "", "survives a reboot; Ubuntu"},
    Holds{"ip link set", "", kUntilReboot},
    Holds{"ip address add", "", kUntilReboot},
    Holds{"tee /sys", "/sys", kUntilReboot},
    Holds{"/proc/sys", "", kUntilReboot},
    Holds{"mlnx_qos", "", kUntilReboot},
    Holds{"lldptool", "", kUntilReboot},
    Holds{" rx on tx on", "ethtool", kUntilReboot},
    Holds{"ethtool", "", kLooks},
    Holds{"mlxreg", "", "until the next reboot of the card, on the host"},
    Holds{"mlxconfig", "", "survives a reboot, after a reset of the card; on the host, physical function"},
    Holds{"mlxfwreset", "", "resets the card: no job may use it"},
    Holds{"mstflint", "", "a query changes nothing; firmware survives a reboot"},
    Holds{"niccli", "", "survives a reboot; on the host, Broadcom's tool"},
    Holds{"nicctl", "", "on the host, AMD's tool"},
    Holds{"mlxlink", "", kLooks},
    Holds{"mget_temp", "", kLooks},
    Holds{"firmware", "", kHostLasts},
    Holds{"bios", "BIOS", kHostLasts},
    Holds{"apt-get", "", "survives a reboot; Debian and Ubuntu"},
    Holds{"dnf ", "dnf", "survives a reboot; RHEL and its kin"},
    Holds{"zypper", "", "survives a reboot; SUSE"},
    Holds{"dkms", "", kHostLasts},
    Holds{"mokutil", "", "survives a reboot, once enrolled at the console; on the host"},
    Holds{"reinstall", "", kLasts},
    Holds{"install", "", kLasts},
    Holds{"linux-firmware", "", kHostLasts},
    Holds{"rebuild", "", kLasts},
    Holds{"a kernel of", "kernel", kHostLasts},
    Holds{"a kernel from", "kernel", kHostLasts},
    Holds{"a kernel with", "kernel", kHostLasts},
    Holds{"boot a kernel", "kernel", kHostLasts},
    Holds{"a kernel that", "kernel", kHostLasts},
    Holds{"driver branch", "another version", kLasts},
    Holds{"update nvidia driver", "another version", kLasts},
    Holds{"update ofed", "another version", kLasts},
    Holds{"newer", "another version", kLasts},
    Holds{"one release", "another version", kLasts},
    Holds{"another release", "another version", kLasts},
    Holds{"of the release", "another version", kLasts},
    Holds{"exactly the driver's version", "another version", kLasts},
    Holds{"or later", "another version", kLasts},
    Holds{"and later", "another version", kLasts},
    Holds{"systemctl enable", "", kLasts},
    Holds{"systemctl restart", "systemctl", "now; a unit that is enabled starts at each boot"},
    Holds{"systemctl start", "systemctl", "until the next reboot; permanently with enable"},
    Holds{"systemctl disable", "systemctl", kLasts},
    Holds{"systemctl status", "systemctl", kLooks},
    Holds{"systemd unit", "", kLasts},
    Holds{"fixed addresses", "addresses", "survives a reboot where the network's configuration has them"},
    Holds{"firewall-cmd", "", "until the next reboot; permanently with --permanent"},
    Holds{"limitmemlock", "LimitMEMLOCK", "survives a reboot, after a restart of that unit; on the host"},
    Holds{"limits.d", "", "survives a reboot; for logins, not for daemons"},
    Holds{"nccl.conf", "", kLasts},
    Holds{"rdma system set", "", "until the next reboot; before any pod runs"},
    Holds{"driverctl", "", kHostLasts},
    Holds{"chmod", "", kUntilReboot},
    Holds{"udevadm", "", kUntilReboot},
    Holds{"sudo reboot", "reboot", "once; on the host"},
    Holds{"nvidia-smi -r", "", "resets the GPU: no job may use it; on the host"},
    Holds{"nvidia-smi -pm", "", kUntilReboot},
    Holds{"docker", "", kContainer},
    Holds{"podman", "", kContainer},
    Holds{"apptainer", "", kContainer},
    Holds{"enroot", "", kContainer},
    Holds{"container_toolkit", "", kContainer},
    Holds{"in the image", "image", "in the image that is built with it"},
    Holds{"in every image", "image", "in the image that is built with it"},
    Holds{"securitycontext", "securityContext", kManifest},
    Holds{"resources.limits", "", kManifest},
    Holds{"clusterpolicy", "ClusterPolicy", "survives a reboot; by the GPU operator, for all its nodes"},
    Holds{"driver.rdma", "", "survives a reboot; by the GPU operator, for all its nodes"},
    Holds{"helm", "", "survives a reboot; for the cluster"},
    Holds{"configmap", "configMap", "survives a reboot; for the cluster"},
    Holds{"daemonset", "DaemonSet", "survives a reboot; for the cluster"},
    Holds{"hostnetwork", "hostNetwork", kManifest},
    Holds{"device plugin", "", "survives a reboot; for the cluster"},
    Holds{"kubectl", "", kLooks},
    Holds{"drain the node", "", "once; jobs of the node move"},
    Holds{"security group", "", "survives a reboot; at the cloud"},
    Holds{"instance", "", "at the cloud"},
    Holds{"on the switch", "switch", "survives a reboot when saved there"},
    Holds{"the switch", "switch", "survives a reboot when saved there"},
    Holds{"opensm", "", "on one node of the fabric"},
    Holds{"slot", "", kPhysical},
    Holds{"reseat", "", kPhysical},
    Holds{"cable", "", kPhysical},
    Holds{"power the host off", "", kPhysical},
    Holds{"replace", "", kPhysical},
    Holds{"air flow", "", kPhysical},
    Holds{"a card that", "card", kPhysical},
    Holds{"power and cooling", "", kPhysical},
    Holds{"memory of cudamalloc", "program", kProgram},
    Holds{"register ", "program", kProgram},
    Holds{"cudasetdevice", "program", kProgram},
    Holds{"fewer", "program", kProgram},
    Holds{"start the server", "program", kProgram},
    Holds{"same options", "program", kProgram},
    Holds{"same version", "program", kProgram},
    Holds{"same nccl version", "program", kProgram},
    Holds{"the same -r", "program", kProgram},
    Holds{"host memory", "program", kProgram},
    Holds{"host buffers", "program", kProgram},
    Holds{" unset, or", "variables", kForNewPrograms},
    Holds{"--use_cuda", "perftest", kProgram},
    Holds{"-x index", "perftest", kProgram},
    Holds{"stage through host memory", "program", kProgram},
    Holds{"mpirun", "", kProgram},
    Holds{"gdrperf", "", kLooks},
    Holds{"dmesg", "", kLooks},
    Holds{"nvidia-smi", "", kLooks},
    Holds{"rocm-smi", "", kLooks},
    Holds{"lspci", "", kLooks},
    Holds{"lsmod", "", kLooks},
    Holds{"modinfo", "", kLooks},
    Holds{"show_gids", "", kLooks},
    Holds{"ibstat", "", kLooks},
    Holds{"sminfo", "", kLooks},
    Holds{"ibqueryerrors", "", kLooks},
    Holds{"rdma link add", "rdma link", kUntilReboot},
    Holds{"rdma link", "", kLooks},
    Holds{"rdma resource", "", kLooks},
    Holds{"ibv_devices", "", kLooks},
    Holds{"ulimit -l", "", "that shell and what it starts"},
    Holds{"ucx_info", "", kLooks},
    Holds{"fi_info", "", kLooks},
    Holds{"ls -l", "", kLooks},
    Holds{"ping ", "ping", kLooks},
    Holds{"ip route get", "", kLooks},
    Holds{"first error", "log", kLooks},
    Holds{"'s log", "log", kLooks},
    Holds{"look at", "log", kLooks},
    Holds{"read the", "log", kLooks},
};

/// Said only where nothing more exact is: looks, words that any installation has, and boot loaders beside their
/// command.
bool is_general(const Holds& each, const std::vector<std::string_view>& names) {
  if (each.clause == kLooks) return true;
  if (each.clause == kBootLoader) {
    return std::any_of(names.begin(), names.end(), [](std::string_view name) {
      return name == "update-grub" || name == "grubby" || name == "grub2-mkconfig";
    });
  }
  return each.spelling == "install" || each.spelling == "reinstall" || each.name == "another version";
}

bool is_capital(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// "NCCL_IB_TC=106" somewhere in the text.
bool sets_variable(std::string_view text) {
  for (std::size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_capital(text[begin - 1])) --begin;
    const std::string_view name = text.substr(begin, at - begin);
    // Not of this process: of a build, and of an operator's driver.
    const bool of_build =
        name.starts_with("GRUB_") || name.starts_with("CONFIG_") || text.find("river.env") != std::string_view::npos;
    if (name.size() > 4 && !of_build && name.find('_') != std::string_view::npos) return true;
  }
  return text.find("LD_LIBRARY_PATH") != std::string_view::npos || text.find("unset ") != std::string_view::npos;
}

/// Commands with the same clause.
struct Clause {
  std::string names;
  std::string_view text;
};

void add_clause(std::vector<Clause>& clauses, std::string_view name, std::string_view text) {
  auto it = std::find_if(clauses.begin(), clauses.end(), [&](const Clause& each) { return each.text == text; });
  if (it == clauses.end()) it = clauses.insert(clauses.end(), {{}, text});
  if (!it->names.empty()) it->names += ", ";
  it->names += name;
}

}  // namespace

std::string where_it_holds(const Finding& finding) {
  std::string text = finding.fix + " " + finding.for_good;
  const bool variable = sets_variable(text);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::vector<Clause> clauses;
  std::vector<std::string_view> names;
  for (const Holds& each : kHolds) {
    if (text.find(each.spelling) == std::string::npos) continue;
    const std::string_view name = each.name.empty() ? each.spelling : each.name;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const bool exact =
        variable || std::any_of(clauses.begin(), clauses.end(), [](const Clause& it) { return it.text != kLooks; });
    if (is_general(each, names) && exact &&
        !(each.clause == kLasts && !clauses.empty() && clauses.back().text == kLasts))
      continue;
    names.push_back(name);
    add_clause(clauses, name, each.clause);
  }
  if (variable) add_clause(clauses, "variables", kForNewPrograms);
  std::string result;
  for (const Clause& each : clauses)
    result += fmt::format("{}{}: {}", result.empty() ? "" : "; ", each.names, each.text);
  return result;
}

void tell_where_fixes_hold(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (!finding.fix.empty()) finding.holds = where_it_holds(finding);
  }
}

}  // namespace gdrperf::doctor
