// ACS in pasted lspci text: with the buses that bridges lead to, the text itself
// tells which of them stand between a GPU and a NIC.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/checks/checks.h"

namespace gdrperf::doctor {
namespace {

struct Place {
  std::string domain;
  int bus = -1;
};

Place place_of(const std::string& address) {
  const std::string full = full_pci_address(address);
  const std::size_t colon = full.find(':');
  if (colon == std::string::npos) return {};
  return {full.substr(0, colon), static_cast<int>(std::strtoul(full.c_str() + colon + 1, nullptr, 16))};
}

/// Bridges above a function, from the root port down.
std::vector<const LspciFunction*> bridges_above(const std::vector<LspciFunction>& functions,
                                                const LspciFunction& below) {
  const Place place = place_of(below.address);
  std::vector<const LspciFunction*> bridges;
  for (const LspciFunction& each : functions) {
    if (each.secondary_bus > 0 && place_of(each.address).domain == place.domain &&
        each.secondary_bus <= place.bus && place.bus <= each.subordinate_bus) {
      bridges.push_back(&each);
    }
  }
  std::sort(bridges.begin(), bridges.end(), [](const auto* one, const auto* other) {
    return one->subordinate_bus - one->secondary_bus > other->subordinate_bus - other->secondary_bus ||
           (one->subordinate_bus - one->secondary_bus ==
                other->subordinate_bus - other->secondary_bus &&
            one->secondary_bus < other->secondary_bus);
  });
  return bridges;
}

/// PCI addresses of GPUs, NICs, bridges as a survey has them.
std::string class_of(const LspciFunction& function) {
  if (function.is_nvidia_gpu()) return "0x030200";
  if (function.is_network()) return "0x020000";
  return function.is_bridge() ? "0x060400" : "0x000000";
}

/// A machine of what the text shows: its functions, and the text as lspci's.
class PastedMachine : public Machine {
 public:
  FileText read(const std::string&) const override { return {}; }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  std::string resolve(const std::string&) const override { return {}; }
  Access read_write(const std::string&) const override { return Access::kMissing; }
  ProgramResult run(const std::vector<std::string>& argv) const override {
    if (argv.front() == "lspci") return {ProgramResult::End::kExited, 0, text};
    return {};
  }
  MemlockLimit memlock() const override { return {}; }
  std::optional<std::vector<verbs::DeviceInfo>> rdma_devices() const override { return {}; }
  bool recorded() const override { return true; }

  std::string text;
};

Survey survey_of(const std::vector<LspciFunction>& functions, const Machine& machine) {
  Survey survey{machine, {}, {}, {}, {}, {}, false, false, {}};
  for (const LspciFunction& each : functions) {
    if (each.address.empty()) continue;
    PciFunction function;
    function.address = full_pci_address(each.address);
    const bool ids = each.ids.size() == 9;
    function.vendor = ids ? "0x" + each.ids.substr(0, 4) : each.is_nvidia_gpu() ? "0x10de" : "";
    if (each.name.find("NVIDIA") != std::string::npos && !ids) function.vendor = "0x10de";
    function.device = ids ? "0x" + each.ids.substr(5) : "";
    // lspci's database names it without its number.
    if (each.name.find("Data Direct") != std::string::npos ||
        (each.name.find("DMA Controller") != std::string::npos &&
         each.name.find("ConnectX") != std::string::npos)) {
      function.vendor = "0x15b3";
      function.device = "0x2100";
    }
    function.class_code = class_of(each);
    function.driver = each.driver;
    for (const LspciFunction* bridge : bridges_above(functions, each)) {
      function.bridges.push_back(full_pci_address(bridge->address));
    }
    if (each.is_network()) {
      RdmaDevice device;
      device.name = each.address;
      device.pci_address = function.address;
      survey.rdma.push_back(std::move(device));
    }
    survey.pci.push_back(std::move(function));
  }
  return survey;
}

/// Without GPU and NIC in the text: what it shows, and what it takes to judge.
void judge_without_pair(const std::vector<LspciFunction>& functions, const Check& check) {
  std::vector<std::string> redirecting;
  bool unnamed = false;
  bool any_acs = false;
  bool denied = false;
  for (const LspciFunction& function : functions) {
    any_acs = any_acs || function.acs;
    denied = denied || (function.denied && !function.acs);
    if (!function.acs || !function.acs->redirects()) continue;
    if (function.address.empty()) {
      unnamed = true;
    } else {
      redirecting.push_back(function.address);
    }
  }
  if (!redirecting.empty()) {
    check.warn("", fmt::format("redirect is on at {}; whether a GPU and its NIC are below them, this "
                               "text does not show",
                               fmt::join(redirecting, ", ")),
               "sudo lspci -D -vvv | gdrperf doctor --read -  # all of it: then only the bridges between "
               "GPU and NIC are named");
  } else if (unnamed) {
    check.warn("", "redirect is on at a bridge that this text does not name",
               "sudo lspci -D -vvv | gdrperf doctor --read -");
  } else if (denied) {
    check.skip("", "needs root: lspci did not show capabilities to that user", "sudo lspci -D -vvv");
  } else {
    check.ok("", any_acs ? "no redirect" : "the bridges have no ACS");
  }
}

}  // namespace

void judge_pasted_acs(const std::vector<LspciFunction>& functions, std::string_view text,
                      Findings& findings) {
  PastedMachine machine;
  machine.text = text;
  const Survey survey = survey_of(functions, machine);
  const bool any_bus = std::any_of(functions.begin(), functions.end(),
                                   [](const auto& each) { return each.secondary_bus > 0; });
  if (any_bus && !survey.gpus().empty() && !survey.nics().empty()) {
    check_acs(survey, findings);
    return;
  }
  judge_without_pair(functions, Check(findings, "acs",
                                      "ACS redirect sends peer-to-peer traffic between GPU and NIC up to "
                                      "the root complex instead of straight across the switch"));
}

}  // namespace gdrperf::doctor
