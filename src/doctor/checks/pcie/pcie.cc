// PCIe: links of NICs and GPUs.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"
#include "gdrperf/topo/pcie_factors.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

using topo::pcie::kRoughPayloadShare;

Check nic_link_check(Findings& findings) {
  return {findings, "nic-link",
          "a PCIe link below the ports' rate limits every transfer"};
}

Check gpu_link_check(Findings& findings) {
  return {findings, "gpu-link", "every GPUDirect transfer crosses this link"};
}

Link link_of(const Machine& machine, std::string_view address, std::string_view which) {
  const std::string folder = fmt::format("/sys/bus/pci/devices/{}/", address);
  Link link{leading_number(line_of(machine, fmt::format("{}{}_link_speed", folder, which))),
            leading_int(line_of(machine, fmt::format("{}{}_link_width", folder, which)))};
  // A virtual function has no link of its own, and reads as 0 or all ones.
  if (link.width > 32) link.width = 0;
  return link;
}

LinkFacts link_facts(const Survey& survey, const PciFunction& function) {
  const Machine& machine = survey.machine;
  LinkFacts facts{function.address,
                  link_of(machine, function.address, "current"),
                  link_of(machine, function.address, "max"),
                  {},
                  0};
  if (!function.bridges.empty()) facts.slot_max = link_of(machine, function.bridges.back(), "max");
  return facts;
}

std::string without_function(std::string_view address) {
  return std::string(address.substr(0, address.rfind('.')));
}

/// Rate of the ports that share the link of `nic`: those of all its functions.
double rate_behind(const Survey& survey, const PciFunction& nic) {
  double sum = 0;
  for (const RdmaDevice& device : survey.rdma) {
    if (device.pci_address.empty() ||
        without_function(device.pci_address) != without_function(nic.address))
      continue;
    for (const Port& port : device.ports) sum += port.active() ? port.rate_gbps : 0;
  }
  return sum;
}

bool slot_is_smaller(const LinkFacts& facts) {
  return facts.slot_max.known() &&
         (facts.slot_max.speed_gts < facts.max.speed_gts || facts.slot_max.width < facts.max.width);
}

std::string describe(const LinkFacts& facts) {
  std::string text = fmt::format("{} of {}, {:.0f} Gb/s", to_string(facts.now),
                                 to_string(facts.max), link_gbps(facts.now));
  if (slot_is_smaller(facts))
    text += fmt::format("; the slot offers {}", to_string(facts.slot_max));
  return text;
}

std::string cure(const LinkFacts& facts) {
  return slot_is_smaller(facts)
             ? fmt::format("# move the card to a slot of {}", to_string(facts.max))
             : fmt::format(
                   "sudo lspci -vvv -s {} | grep Lnk  # after reseating the card, or its riser",
                   facts.subject);
}

}  // namespace

void judge_nic_link(const LinkFacts& facts, Findings& findings) {
  const Check check = nic_link_check(findings);
  if (!facts.now.known() || !facts.max.known()) {
    check.skip(facts.subject, "the link cannot be read (virtual machine or virtual function)");
  } else if (facts.now.speed_gts >= facts.max.speed_gts && facts.now.width >= facts.max.width) {
    const bool short_of_rate = facts.needed_gbps > link_gbps(facts.now) * kRoughPayloadShare;
    check.ok(facts.subject,
             fmt::format("{}, {:.0f} Gb/s, all the card can do{}", to_string(facts.now),
                         link_gbps(facts.now),
                         short_of_rate
                             ? fmt::format("; its ports sum up to {:g} Gb/s", facts.needed_gbps)
                             : ""));
  } else if (facts.needed_gbps > 0 && link_gbps(facts.now) * kRoughPayloadShare >= facts.needed_gbps) {
    check.ok(facts.subject, fmt::format("{}; enough for its ports' {:g} Gb/s", describe(facts),
                                        facts.needed_gbps));
  } else {
    check.warn(facts.subject, describe(facts), cure(facts));
  }
}

void judge_gpu_link(const LinkFacts& facts, Findings& findings) {
  const Check check = gpu_link_check(findings);
  if (!facts.now.known() || !facts.max.known()) {
    check.skip(facts.subject, "the link cannot be read (virtual machine)");
  } else if (facts.now.width < facts.max.width) {
    check.warn(facts.subject, describe(facts), cure(facts));
  } else if (facts.now.speed_gts < facts.max.speed_gts) {
    check.ok(facts.subject, fmt::format("{} of {}: an idle GPU clocks its link down",
                                        to_string(facts.now), to_string(facts.max)));
  } else {
    check.ok(facts.subject, to_string(facts.now));
  }
}

void check_nic_links(const Survey& survey, Findings& findings) {
  const auto nics = survey.nics();
  if (nics.empty()) {
    nic_link_check(findings).skip("", "no RDMA device on the PCI bus");
  }
  const bool soldered = gpu_shares_memory(survey);
  for (const PciFunction* nic : nics) {
    LinkFacts facts = link_facts(survey, *nic);
    facts.needed_gbps = rate_behind(survey, *nic);
    if (soldered && facts.now.known() && facts.now.width < facts.max.width) {
      nic_link_check(findings).ok(facts.subject, describe(facts) + "; so wired on this board");
      continue;
    }
    judge_nic_link(facts, findings);
  }
}

void check_gpu_links(const Survey& survey, Findings& findings) {
  const auto gpus = survey.gpus();
  if (gpus.empty()) {
    gpu_link_check(findings).skip("", "no NVIDIA GPU");
  }
  for (const PciFunction* gpu : gpus) judge_gpu_link(link_facts(survey, *gpu), findings);
}

}  // namespace gdrperf::doctor
