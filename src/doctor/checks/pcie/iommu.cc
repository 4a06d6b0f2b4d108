// The IOMMU in front of NICs and GPUs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

/// Words of the kernel's command line that concern the IOMMU.
std::vector<std::string> iommu_words(const Machine& machine) {
  std::vector<std::string> kept;
  const std::string line = line_of(machine, "/proc/cmdline");
  for (const std::string_view word : words_of(line)) {
    if (word.find("iommu") != std::string_view::npos) kept.emplace_back(word);
  }
  return kept;
}

bool asks_for_passthrough(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "iommu=pt" || word == "iommu.passthrough=1" || word == "intel_iommu=pt") return true;
  }
  return false;
}

std::string subject_of(const std::vector<std::string>& addresses) {
  return fmt::format("{}{}", addresses.front(),
                     addresses.size() > 1 ? fmt::format(" and {} more", addresses.size() - 1) : "");
}

void judge_translation(const Survey& survey, const std::vector<std::string>& words,
                       const std::string& subject, const std::string& found,
                       const std::string& group, const Check& check) {
  if (survey.platform.grace) {
    check.ok(subject, found + ": right on Grace and Vera, whose GPUs use ATS");
    return;
  }
  if (asks_for_passthrough(words)) {
    check.warn(subject, found + ": though the command line asks for passthrough",
               fmt::format("sudo dmesg | grep -i 'default domain'  # a later option, or a device called "
                           "untrusted; {}/type takes 'identity' while no driver is bound",
                           group))
        .saw("/proc/cmdline", fmt::format("{}", fmt::join(words, " ")));
    return;
  }
  const Cure cure = kernel_words(survey.platform, survey.platform.arm() ? "iommu.passthrough=1" : "iommu=pt");
  check.warn(subject, found, cure.now)
      .undo(cure.undo)
      .saw("/proc/cmdline", fmt::format("{}", fmt::join(words, " ")))
      .saw(group + "/type", line_of(survey.machine, group + "/type"));
}

}  // namespace

void check_iommu(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "iommu",
      "with address translation on, GPUDirect RDMA is slow, fails, or, without an error, moves wrong "
      "data; host transfers lose some speed");
  std::vector<const PciFunction*> functions = survey.nics();
  for (const PciFunction* gpu : survey.gpus()) functions.push_back(gpu);
  for (const PciFunction* gpu : survey.amd_gpus()) functions.push_back(gpu);
  if (functions.empty()) {
    check.skip("", "no NIC or GPU on the PCI bus");
    return;
  }
  std::map<std::string, std::vector<std::string>> by_mode;
  std::map<std::string, std::string> group_of_mode;
  for (const PciFunction* function : functions) {
    const std::string group = iommu_group(survey.machine, function->address);
    const std::string mode = group.empty() ? "off" : line_of(survey.machine, group + "/type");
    by_mode[mode].push_back(function->address);
    group_of_mode[mode] = group;
  }
  const auto words = iommu_words(survey.machine);
  const std::string all = words.empty() ? "" : fmt::format(" ({})", fmt::join(words, " "));
  for (const auto& [mode, addresses] : by_mode) {
    const std::string subject = subject_of(addresses);
    if (mode == "off" && survey.platform.virtual_machine) {
      check.skip(subject, "a virtual machine shows no IOMMU: the host's is in the way, and only the host "
                          "shows how" + all,
                 "on the host: the NIC's ATS (mlxconfig -d DEVICE query | grep ATS_ENABLED), ACS of the "
                 "bridges between GPU and NIC, and sudo gdrperf doctor");
    } else if (mode == "off") {
      check.ok(subject, "no IOMMU in front" + all);
    } else if (mode == "identity") {
      check.ok(subject, "passthrough" + all);
    } else if (mode.empty()) {
      check.skip(subject, "there is an IOMMU; its mode cannot be read" + all);
    } else {
      judge_translation(survey, words, subject,
                        fmt::format("translates addresses (mode {}){}", mode, all),
                        group_of_mode[mode], check);
    }
  }
}

}  // namespace gdrperf::doctor
