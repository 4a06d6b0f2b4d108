#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "doctor/check.h"
#include "doctor/survey/survey.h"

namespace gdrperf::doctor {

/// Number of findings that one check has so far.
std::size_t of_this_check(const Findings& findings, std::string_view check);

// checks_rdma.cc
void check_rdma_device(const Survey& survey, Findings& findings);
void check_libibverbs(const Survey& survey, Findings& findings);
void check_rdma_modules(const Survey& survey, Findings& findings);
void check_device_files(const Survey& survey, Findings& findings);
void check_provider(const Survey& survey, Findings& findings);
void check_softnic(const Survey& survey, const Settings& settings, Findings& findings);

// checks_port.cc
void check_port_states(std::span<const Port> ports, const Platform& platform, Findings& findings);
void check_gids(std::span<const Port> ports, const Platform& platform, Findings& findings);
void check_mtu(std::span<const Port> ports, const Platform& platform, Findings& findings);

// checks_net.cc
void check_gid_index(const Survey& survey, Findings& findings);
void check_netns(const Survey& survey, Findings& findings);
void check_subnets(const Survey& survey, Findings& findings);

// checks_counters.cc
bool port_lost_packets(const Survey& survey, const Port& port);
void check_counters(const Survey& survey, Findings& findings);
void check_port_rate(const Survey& survey, Findings& findings);

// checks_flow.cc
struct FlowControl {
  std::optional<bool> rx_pause;
  std::optional<bool> tx_pause;
  std::optional<std::string> pfc;    ///< "00010000": on, by priority
  std::string trust;                 ///< "dscp", "pcp"
  std::map<int, int> dscp_priority;  ///< as far as mlnx_qos lists it; else DSCP / 8
};
/// Settings of an interface from ethtool, mlnx_qos and dcb.
FlowControl flow_of(const Machine& machine, const Outside& netdev);
/// Output of ethtool -a, and of mlnx_qos -i.
FlowControl parse_pause(std::string_view text);
void parse_qos(std::string_view text, FlowControl& flow);
void judge_flow(const std::string& subject, const Outside& netdev, const FlowControl& flow, bool lost,
                Findings& findings);
void check_flow_control(const Survey& survey, Findings& findings);

// checks_congestion.cc
void check_ecn(const Survey& survey, Findings& findings);
void check_traffic_class(const Survey& survey, Findings& findings);

// checks_firewall.cc
/// A packet filter's action on new packets to a port of this host, from the
/// least to the most in the way.
enum class Filtering { kOpen,
                       kUnknown,
                       kClosed };
/// Output of `nft list ruleset`, and of `iptables -S`.
Filtering nft_filtering(std::string_view ruleset, std::string_view protocol, int number);
Filtering iptables_filtering(std::string_view rules, std::string_view protocol, int number);
void judge_pasted_filter(std::string_view text, Findings& findings);
void check_firewall(const Survey& survey, Findings& findings);

// checks_cgroup.cc
void check_cgroup(const Survey& survey, Findings& findings);

// checks_gpu_path.cc
void check_vgpu(const Survey& survey, Findings& findings);
void check_topology_override(const Survey& survey, Findings& findings);
void check_gpu_initiated(const Survey& survey, Findings& findings);
void check_resizable_bar(const Survey& survey, Findings& findings);
void check_data_direct(const Survey& survey, Findings& findings);
void check_common_root(const Survey& survey, Findings& findings);

// checks_pod.cc
void check_kubernetes(const Survey& survey, Findings& findings);

// checks_interrupts.cc
void check_irqbalance(const Survey& survey, Findings& findings);

// checks_versions.cc
void check_versions(const Survey& survey, Findings& findings);
void check_firmware(const Survey& survey, Findings& findings);

// checks_nicconfig.cc
std::map<std::string, std::string> parse_mlxconfig(std::string_view text);
void judge_nic_config(const std::string& subject, const std::map<std::string, std::string>& settings, bool gpu,
                      Findings& findings);
void check_nic_config(const Survey& survey, Findings& findings);
void check_write_ordering(const Survey& survey, Findings& findings);
void check_port_type(const Survey& survey, Findings& findings);

// checks_memlock.cc
void check_memlock(const Survey& survey, Findings& findings);
/// For a limit read from a message, in bytes; nullopt: not said.
void judge_memlock_message(std::optional<std::uint64_t> limit_bytes, Findings& findings);

// checks_host.cc, checks_places.cc, checks_iommu.cc
void check_iommu(const Survey& survey, Findings& findings);
void check_governor(const Survey& survey, Findings& findings);
void check_numa_balancing(const Survey& survey, Findings& findings);
void check_numa(const Survey& survey, Findings& findings);
void check_idle_states(const Survey& survey, Findings& findings);
void check_open_files(const Survey& survey, Findings& findings);
void check_huge_pages(const Survey& survey, Findings& findings);
void check_kernel_log(const Survey& survey, const Settings& settings, Findings& findings);

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
void check_nic_links(const Survey& survey, Findings& findings);
void check_gpu_links(const Survey& survey, Findings& findings);

// checks_acs.cc, capture_acs.cc, checks_bar.cc, checks_pcie_settings.cc
void check_acs(const Survey& survey, Findings& findings);
void judge_pasted_acs(const std::vector<LspciFunction>& functions, std::string_view text, Findings& findings);
void judge_bar1_size(const std::string& subject, std::uint64_t bytes, Findings& findings);
void judge_high_region(const std::string& subject, std::uint64_t end, bool virtual_machine, Findings& findings);
void check_bars(const Survey& survey, Findings& findings);
void judge_pcie_settings(const std::vector<LspciFunction>& functions, Findings& findings);
void check_pcie_settings(const Survey& survey, Findings& findings);

// checks_driver.cc, checks_dmabuf.cc, checks_peermem.cc
void judge_driver_version(const std::string& version, Findings& findings);
void check_nvidia_driver(const Survey& survey, Findings& findings);
void check_dma_buf(const Survey& survey, Findings& findings);
void check_gpu_registration(const Survey& survey, Findings& findings);
void judge_peer_memory(const PeerMemory& found, Findings& findings);
/// Where the module is built.
enum class ModulePlace { kHost,
                         kDriverContainer };
void judge_peer_memory_trouble(PeerMemoryTrouble trouble, ModulePlace place, Findings& findings);
void check_peer_memory(const Survey& survey, Findings& findings);

// pairs.cc
void check_pairs(const Survey& survey, Findings& findings);

// checks_platform.cc
void check_cloud(const Survey& survey, Findings& findings);
void check_c2c(const Survey& survey, Findings& findings);
void check_amd_gpus(const Survey& survey, Findings& findings);
void check_container(const Survey& survey, Findings& findings);

}  // namespace gdrperf::doctor
