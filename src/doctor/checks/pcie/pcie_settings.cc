// Settings of GPUs and NICs from lspci -vvv besides their links: request sizes,
// ordering, errors, BAR1, ATS. As root, or from a paste.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "gdrperf/base/units.h"

namespace gdrperf::doctor {
namespace {

constexpr int kLargeReadRequest = 4096;
// A NIC of 200 Gb/s and more waits for reads of 512 bytes.
constexpr double kFastLinkGbps = 200;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

bool concerns(const LspciFunction& function) {
  if (function.is_nvidia_gpu()) return true;
  if (!function.is_network()) return false;
  for (const char* maker : {"Mellanox", "NVIDIA", "Broadcom", "Pensando", "AMD", "Intel", "Chelsio"}) {
    if (function.name.find(maker) != std::string::npos) return true;
  }
  return false;
}

std::string seen_at(const LspciFunction& function) { return "lspci -vvv -s " + function.address; }

void judge_requests(const LspciFunction& function, Findings& findings) {
  if (function.max_payload == 0) return;
  const Check check(findings, "pcie-requests",
                    "small requests cost a NIC its rate: every packet and read carries its header");
  const std::string found =
      fmt::format("MaxPayload {} of {}, MaxReadReq {}", function.max_payload,
                  function.max_payload_cap, function.max_read_request);
  const bool fast = link_gbps(function.link) >= kFastLinkGbps;
  if (function.is_network() && fast && function.max_read_request > 0 &&
      function.max_read_request < 1024) {
    const int code = function.max_read_request == 512 ? 2 : function.max_read_request == 256 ? 1
                                                                                             : 0;
    check.warn(function.address,
               found + fmt::format(": reads of only {} bytes", function.max_read_request),
               fmt::format("sudo setpci -s {} CAP_EXP+8.w=5000:7000  # MaxReadReq {}", function.address,
                           kLargeReadRequest))
        .for_good("BIOS: 'Max Read Request Size' 4096, or the same setpci from a systemd unit at boot")
        .undo(fmt::format("sudo setpci -s {} CAP_EXP+8.w={}000:7000", function.address, code))
        .saw(seen_at(function), "DevCtl: MaxReadReq " + std::to_string(function.max_read_request));
  } else if (function.max_payload < 256 && function.max_payload < function.max_payload_cap) {
    const Cure cure = kernel_words({}, "pci=pcie_bus_perf");
    check.warn(function.address, found, cure.now)
        .undo(cure.undo)
        .saw(seen_at(function), fmt::format("DevCtl: MaxPayload {}", function.max_payload));
  } else {
    check.ok(function.address, found);
  }
}

void judge_ordering(const LspciFunction& function, Findings& findings) {
  if (!function.relaxed_ordering) return;
  const Check check(findings, "relaxed-ordering",
                    "without relaxed ordering, writes to memory wait for each other: on many servers "
                    "half of the rate or less");
  if (*function.relaxed_ordering) {
    check.ok(function.address, "allowed (DevCtl RlxdOrd+)");
  } else {
    check.warn(function.address, "turned off (DevCtl RlxdOrd-)",
               fmt::format("sudo setpci -s {} CAP_EXP+8.w=0010:0010", function.address))
        .for_good("BIOS: PCIe relaxed ordering on")
        .undo(fmt::format("sudo setpci -s {} CAP_EXP+8.w=0000:0010", function.address))
        .saw(seen_at(function), "DevCtl: RlxdOrd-");
  }
}

void judge_bar1(const LspciFunction& function, Findings& findings) {
  if (!function.is_nvidia_gpu() || function.largest_region_bytes == 0) return;
  judge_bar1_size(function.address, function.largest_region_bytes, findings);
}

void judge_errors(const LspciFunction& function, Findings& findings) {
  const Check check(findings, "aer", "errors on a PCIe link are sent again, which costs time, or are fatal");
  if (!function.uncorrectable.empty()) {
    check.fail(function.address, "uncorrectable PCIe errors: " + function.uncorrectable,
               "sudo dmesg | grep -i aer  # reseat the card, its riser and cables; update its firmware")
        .saw(seen_at(function), "UESta: " + function.uncorrectable);
  } else if (!function.correctable.empty()) {
    check.warn(function.address, "corrected PCIe errors: " + function.correctable,
               "sudo dmesg | grep -i aer  # if they grow: reseat the card, its riser and cables")
        .saw(seen_at(function), "CESta: " + function.correctable);
  }
}

void judge_ats(const LspciFunction& function, Findings& findings) {
  if (!function.ats_enabled || !function.is_network() || (of_this_check(findings, "ats") > 0 && !*function.ats_enabled))
    return;
  Check(findings, "ats", "in virtual machines the NIC reaches GPUs straight only with ATS")
      .ok(function.address,
          *function.ats_enabled ? "ATS is on" : "ATS is there and off: right on bare metal, not for virtual machines");
}

}  // namespace

void judge_bar1_size(const std::string& subject, std::uint64_t bytes, Findings& findings) {
  const Check check(findings, "bar1",
                    "a NIC reaches GPU memory through this window: more than it holds is not registered");
  if (bytes < kGiB) {
    check.warn(subject,
               fmt::format("{}: registering more GPU memory than that fails (Cannot allocate memory)",
                           format_size(bytes)),
               "BIOS: Above 4G Decoding and Resizable BAR on; GPUs of workstations: nvidia-smi or "
               "displaymodeselector --gpumode physical_display_disabled");
  } else {
    check.ok(subject, format_size(bytes));
  }
}

void judge_pcie_settings(const std::vector<LspciFunction>& functions, Findings& findings) {
  for (const LspciFunction& function : functions) {
    if (!concerns(function)) continue;
    judge_requests(function, findings);
    judge_ordering(function, findings);
    judge_bar1(function, findings);
    judge_errors(function, findings);
    judge_ats(function, findings);
    if (function.numa_node >= 0) {
      Check(findings, "numa", "threads and memory best lie on the node of GPU and NIC")
          .ok(function.address, fmt::format("NUMA node {}", function.numa_node));
    }
  }
}

}  // namespace gdrperf::doctor
