#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check.h"
#include "survey.h"

namespace gdrperf::doctor {

using Findings = std::vector<Finding>;

// checks_rdma.cc
void check_rdma_device(const Survey& survey, Findings& findings);
void check_rdma_modules(const Survey& survey, Findings& findings);
void check_device_files(const Survey& survey, Findings& findings);
void check_provider(const Survey& survey, Findings& findings);
void check_softnic(const Survey& survey, const Settings& settings, Findings& findings);

// checks_port.cc
void check_port_states(std::span<const Port> ports, Findings& findings);
void check_gids(std::span<const Port> ports, Findings& findings);
void check_mtu(std::span<const Port> ports, Findings& findings);

// checks_host.cc
void check_memlock(const Survey& survey, Findings& findings);
/// For a limit read from a message, in bytes; nullopt: not said.
void judge_memlock_message(std::optional<std::uint64_t> limit_bytes, Findings& findings);
void check_iommu(const Survey& survey, Findings& findings);
void check_governor(const Survey& survey, Findings& findings);
void check_numa_balancing(const Survey& survey, Findings& findings);

// checks_pcie.cc
struct LinkFacts {
  std::string subject;
  Link now;
  Link max;
  Link slot_max;           ///< of the bridge above; unknown where it does not say
  double needed_gbps = 0;  ///< rate of the ports behind it, 0: unknown
};
void judge_nic_link(const LinkFacts& facts, Findings& findings);
void judge_gpu_link(const LinkFacts& facts, Findings& findings);
void judge_acs(const std::vector<LspciFunction>& functions, Findings& findings);
void check_nic_links(const Survey& survey, Findings& findings);
void check_gpu_links(const Survey& survey, Findings& findings);
void check_acs(const Survey& survey, Findings& findings);

// checks_gpu.cc
void judge_peer_memory(const PeerMemory& found, Findings& findings);
void judge_peer_memory_trouble(PeerMemoryTrouble trouble, Findings& findings);
void check_nvidia_driver(const Survey& survey, Findings& findings);
void check_dma_buf(const Survey& survey, Findings& findings);
void check_peer_memory(const Survey& survey, Findings& findings);

}  // namespace gdrperf::doctor
