#include "gdrperf/doctor/doctor.h"

#include <algorithm>
#include <set>

#include "doctor/checks/check_table.h"
#include "doctor/holds.h"
#include "doctor/survey/pairs.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr const char* kMessages = "Messages";

bool wanted(const Settings& settings, std::string_view id) {
  return settings.only.empty() ||
         std::find(settings.only.begin(), settings.only.end(), id) != settings.only.end();
}

/// Errors of a recording are found before anything in it.
void report_damage(const Machine& machine, Findings& findings) {
  const Check check(findings, "recording", "what is not in a recording cannot be judged");
  for (const std::string& sentence : machine.damage()) {
    check.warn("", sentence, "gdrperf doctor --record FILE.tar.gz  # on that machine again");
  }
}

bool is_nothing_here(const Survey& survey) {
  const bool adapter = std::any_of(survey.pci.begin(), survey.pci.end(), [](const PciFunction& function) {
    return function.is_gpu() || (function.is_network() && function.vendor == "0x15b3");
  });
  return survey.rdma.empty() && !adapter;
}

/// Without /sys no check knows what devices there are: none may say that there is none.
void forget_devices(Findings& findings) {
  for (Finding& finding : findings) {
    const std::string group = group_of(finding.check);
    const bool of_devices = group == "RDMA device" || group == "Ports" || group == "PCIe" || group == "GPUDirect RDMA";
    // Of the host's checks those that look for a device: "no RDMA device on the PCI bus".
    const bool none_found = group == "Host" && finding.verdict == Verdict::kSkip && finding.found.starts_with("no ");
    if (!(of_devices || none_found) || finding.verdict == Verdict::kOk || finding.check == "softnic" ||
        finding.check == "libibverbs")
      continue;
    finding.verdict = Verdict::kSkip;
    finding.found = "not known: there is no /sys here";
    finding.fix = finding.for_good = finding.undo = {};
    if (finding.check == "rdma-device") {
      finding.fix =
          "run it where /sys is: on the host; in a container with it (docker run -v /sys:/sys:ro); in a chroot: mount "
          "-t sysfs sysfs /sys";
    }
  }
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarn:
      return "WARN";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kSkip:
      return "SKIP";
  }
  return "?";
}

std::size_t of_this_check(const Findings& findings, std::string_view check) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.check == check; }));
}

std::vector<CheckInfo> checks() {
  std::vector<CheckInfo> infos;
  for (const CheckEntry& entry : check_table()) {
    infos.push_back({entry.id, entry.group, entry.looks_at, entry.bad_when});
  }
  return infos;
}

std::string group_of(const std::string& check) {
  for (const CheckEntry& entry : check_table()) {
    if (check == entry.id) return entry.group;
  }
  return check == "both-ends" || check == "probe" ? "Both hosts" : kMessages;
}

Examination examine(const Machine& machine, const Settings& settings) {
  const std::unique_ptr<Machine> asked = asked_ahead(machine);
  const Survey survey = look_at(*asked);
  Findings all;
  report_damage(machine, all);
  std::set<decltype(CheckEntry::run)> done;
  for (const CheckEntry& entry : check_table()) {
    if (wanted(settings, entry.id) && done.insert(entry.run).second) entry.run(survey, settings, all);
  }
  Examination examination;
  examination.sys_hidden = machine.list("/sys").empty() && !machine.recorded();
  if (examination.sys_hidden) forget_devices(all);
  for (Finding& finding : all) {
    if (wanted(settings, finding.check) || finding.check == "recording") {
      examination.findings.push_back(std::move(finding));
    }
  }
  tell_where_fixes_hold(examination.findings);
  examination.pairs = judge_pairs(survey);
  examination.nothing_here = is_nothing_here(survey);
  return examination;
}

}  // namespace gdrperf::doctor
