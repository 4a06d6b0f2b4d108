// Text that people paste: each reader looks for its own format in the whole
// text and says what it means.

#include <fmt/format.h>

#include <algorithm>

#include "capture_parse.h"
#include "checks.h"
#include "text.h"

namespace gdrperf::doctor {
namespace {

void read_lspci(std::string_view text, Findings& findings) {
  const auto functions = parse_lspci(text);
  bool any_acs = false;
  for (const LspciFunction& function : functions) {
    any_acs = any_acs || function.acs;
    if (!function.link.known()) continue;
    const LinkFacts facts{function.address, function.link, function.link_max, {}, 0};
    if (function.is_nvidia_gpu()) judge_gpu_link(facts, findings);
    if (function.is_network()) judge_nic_link(facts, findings);
  }
  const bool any_denied = std::any_of(functions.begin(), functions.end(),
                                      [](const auto& function) { return function.denied; });
  if (any_acs || any_denied) judge_acs(functions, findings);
}

void read_modules(std::string_view text, Findings& findings) {
  const auto modules = parse_modules(text);
  // Only a list that shows the GPU's driver can show that peermem is missing.
  if (!peer_memory(modules).module.empty() || find_module(modules, "nvidia") != nullptr) {
    judge_peer_memory(peer_memory(modules), findings);
  }
}

void read_log(std::string_view text, Findings& findings) {
  const PeerMemoryTrouble trouble = peer_memory_trouble(text);
  if (trouble != PeerMemoryTrouble::kNone) judge_peer_memory_trouble(trouble, findings);
}

void read_memlock(std::string_view text, Findings& findings) {
  // Terminals and logs wrap these messages.
  const std::string line = one_line(text);
  const auto has = [&](std::string_view words) { return line.find(words) != std::string::npos; };
  if (has("max locked memory")) {
    std::optional<std::uint64_t> limit;
    constexpr std::string_view kCurrent = "(current: ";
    const std::size_t at = line.find(kCurrent);
    if (at != std::string::npos) {
      const double kbytes = leading_number(std::string_view(line).substr(at + kCurrent.size()));
      if (kbytes > 0) limit = static_cast<std::uint64_t>(kbytes) * 1024;
    }
    judge_memlock_message(limit, findings);
  } else if (has("Couldn't allocate MR") || has("failed to create mr")) {
    judge_memlock_message(std::nullopt, findings);
  }
}

void read_ports(std::string_view text, Findings& findings) {
  if (const auto ports = parse_ibv_devinfo(text); !ports.empty()) {
    check_port_states(ports, findings);
    check_mtu(ports, findings);
  }
  if (const auto ports = parse_ibdev2netdev(text); !ports.empty()) {
    check_port_states(ports, findings);
  }
  if (const auto ports = parse_show_gids(text); !ports.empty()) check_gids(ports, findings);
}

void read_ethtool(std::string_view text, Findings& findings) {
  const auto driver = parse_ethtool_driver(text);
  if (!driver) return;
  Check(findings, "driver",
        "the PCI address ties the interface to the PCI tree; both ends best run one firmware")
      .ok(driver->bus_info,
          fmt::format("{} {}, firmware {}", driver->driver, driver->version, driver->firmware));
}

}  // namespace

std::vector<Finding> read_capture(std::string_view text) {
  Findings findings;
  for (const auto reader :
       {read_ports, read_memlock, read_ethtool, read_lspci, read_modules, read_log}) {
    reader(text, findings);
  }
  if (findings.empty()) {
    Check(findings, "capture", "only what is recognised can be judged")
        .skip("",
              "none of lspci -vvv, lsmod, dmesg on peer memory, ethtool -i, show_gids, "
              "ibdev2netdev, ibv_devinfo, nor a message about locked memory");
  }
  return findings;
}

}  // namespace gdrperf::doctor
