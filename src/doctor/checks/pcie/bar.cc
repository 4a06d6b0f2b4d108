// BARs: how much of a GPU's memory NICs reach, and where it lies.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

// Guests and devices address 46 bits and more; from here on some do not.
constexpr std::uint64_t kHigh = std::uint64_t{1} << 45;

struct Regions {
  std::uint64_t largest = 0;
  std::uint64_t highest_end = 0;
};

/// /sys/bus/pci/devices/ADDRESS/resource: "START END FLAGS" of each region.
Regions regions_of(const Machine& machine, const std::string& address) {
  Regions regions;
  const std::string text = machine.read("/sys/bus/pci/devices/" + address + "/resource").text;
  int number = 0;
  for (const std::string_view line : lines_of(text)) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    if (++number > 6 || std::sscanf(std::string(line).c_str(), "%llx %llx", &begin, &end) != 2) continue;
    if (end <= begin) continue;
    regions.largest = std::max<std::uint64_t>(regions.largest, end - begin + 1);
    regions.highest_end = std::max<std::uint64_t>(regions.highest_end, end);
  }
  return regions;
}

}  // namespace

void judge_high_region(const std::string& subject, std::uint64_t end, bool virtual_machine, Findings& findings) {
  const Check check(findings, "mmio",
                    "addresses beyond the reach of guest or device end in errors (syndrome 0x51) after some transfers");
  const double terabytes = static_cast<double>(end) / 1099511627776.0;
  if (end < kHigh) {
    check.ok(subject, fmt::format("below {:.1f} TiB", terabytes));
  } else if (virtual_machine) {
    check.warn(subject, fmt::format("its memory lies at {:.0f} TiB: the hypervisor's MMIO base is too high", terabytes),
               "BIOS of the host: MMIO High Base of 12 TB or lower (not 56 TB); then start the VM again");
  } else {
    check.ok(subject,
             fmt::format("at {:.0f} TiB; in virtual machines that is too high (BIOS: MMIO High Base)", terabytes));
  }
}

void check_bars(const Survey& survey, Findings& findings) {
  const Check bar1(findings, "bar1",
                   "a NIC reaches GPU memory through this window: more than it holds is not registered");
  const Check mmio(findings, "mmio",
                   "addresses beyond the reach of guest or device end in errors (syndrome 0x51) after some transfers");
  std::vector<const PciFunction*> gpus = survey.gpus();
  for (const PciFunction* gpu : survey.amd_gpus()) gpus.push_back(gpu);
  for (const PciFunction* gpu : gpus) {
    const Regions regions = regions_of(survey.machine, gpu->address);
    if (regions.largest == 0) continue;
    if (gpu_shares_memory(survey)) {
      bar1.ok(gpu->address, "no window is needed: GPU and CPU share memory");
    } else {
      judge_bar1_size(gpu->address, regions.largest, findings);
    }
    judge_high_region(gpu->address, regions.highest_end, survey.platform.virtual_machine, findings);
  }
  if (of_this_check(findings, "bar1") == 0) bar1.skip("", "no GPU whose regions can be read");
  if (of_this_check(findings, "mmio") == 0) mmio.skip("", "no GPU whose regions can be read");
}

namespace {

/// In a guest the NIC reaches a GPU straight only with ATS: off is no detail there.
void judge_ats_of_guest(const Survey& survey, const std::vector<LspciFunction>& functions, Findings& findings) {
  const bool gpu = !survey.gpus().empty() || !survey.amd_gpus().empty();
  if (!survey.platform.virtual_machine || survey.platform.cloud != Cloud::kNone || !gpu) return;
  const Check check(
      findings, "ats",
      "without ATS a guest's NIC reaches its GPU through the host's root complex, at a fraction of the rate");
  for (const LspciFunction& function : functions) {
    if (!function.is_network() || function.ats_enabled.value_or(false) || function.max_payload == 0) continue;
    check
        .warn(function.address,
              function.ats_enabled ? "ATS is off, in a virtual machine with a GPU"
                                   : "no ATS capability is shown, in a virtual machine with a GPU",
              "on the host, not in this guest: sudo mlxconfig -d DEVICE set ATS_ENABLED=true, then a power cycle (it "
              "stays), ACS DirectTrans on the bridges above GPU and NIC, and QEMU with ats=on for the device")
        .saw("lspci -vvv -s " + function.address, function.ats_enabled ? "ATSCtl: Enable-" : "no ATSCtl");
  }
}

}  // namespace

void check_pcie_settings(const Survey& survey, Findings& findings) {
  const ProgramResult lspci = survey.machine.run({"lspci", "-D", "-vvv"});
  std::vector<LspciFunction> wanted;
  if (lspci.ok()) {
    for (LspciFunction& function : parse_lspci(lspci.output)) {
      const PciFunction* known = survey.function(full_pci_address(function.address));
      const auto nics = survey.nics();
      const bool nic = std::find(nics.begin(), nics.end(), known) != nics.end();
      if (known == nullptr || !(nic || known->is_gpu())) continue;
      // Those two are read from sysfs, which any user may.
      function.largest_region_bytes = 0;
      function.numa_node = -1;
      wanted.push_back(std::move(function));
    }
  }
  judge_ats_of_guest(survey, wanted, findings);
  judge_pcie_settings(wanted, findings);
  check_write_ordering(survey, findings);
  for (const char* id : {"pcie-requests", "relaxed-ordering", "aer", "ats"}) {
    if (of_this_check(findings, id) > 0) continue;
    const bool shown = std::any_of(wanted.begin(), wanted.end(), [](const auto& each) { return each.max_payload > 0; });
    const Check check(findings, id, "only lspci -vvv as root shows these registers");
    if (shown) {
      check.ok("", std::string(id) == "ats" ? "no ATS capability is shown: as it should be on bare metal"
                                            : "nothing against it");
    } else {
      check.skip("", "needs root and lspci", "sudo gdrperf doctor");
    }
  }
}

}  // namespace gdrperf::doctor
