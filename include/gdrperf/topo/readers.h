#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gdrperf/topo/pci_tree.h"
#include "gdrperf/topo/sysfs_files.h"

namespace gdrperf::topo {

/// The parsers below throw usage_error("`name`:LINE:COLUMN: ...") for text that
/// is not what they read. Their time and memory are linear in the text, and
/// the files they read are bounded (64 MiB).

/// hwloc XML of versions 1, 2 and 3 (`lstopo --whole-io FILE.xml`).
PciTree parse_hwloc_xml(std::string_view text, std::string_view name);
PciTree read_hwloc_file(const std::string& path);

/// NCCL's topology XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE). Switches are one
/// function there, and root ports are left out; each <cpu> is a root.
PciTree parse_nccl_xml(std::string_view text, std::string_view name);
PciTree read_nccl_file(const std::string& path);

/// NCCL's log with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH, with other lines around and between; trees as
/// those of its XML.
PciTree parse_nccl_log(std::string_view text, std::string_view name);
PciTree read_nccl_log_file(const std::string& path);

/// `lspci -tv`. It names no RDMA devices and no NUMA nodes: RDMA cards are told
/// by their name and called mlx5_0, ... in the order of their addresses.
PciTree parse_lspci_tree(std::string_view text, std::string_view name);
PciTree read_lspci_file(const std::string& path);

/// A sysfs tree: `root` holds "sys" (and maybe "proc"), or is that "sys", or
/// is "/". Throws usage_error when there is no such thing.
PciTree read_sysfs(const std::string& root);
/// The same of files that are no folder here; `name` is for errors.
PciTree read_sysfs(const SysfsFiles& files, const std::string& name);

/// Whether a GPU or an RDMA device is on the PCI bus. Reads no configuration space.
bool has_gpu_or_nic(const SysfsFiles& files);

/// This machine: bridges and locality from hwloc, links, payload sizes, ACS
/// and IOMMU groups from /sys. Throws Error(kEnvironment).
PciTree live_tree();

/// Fills in what /sys below `sys` knows of the tree's functions.
void add_sysfs_details(PciTree& tree, const std::string& sys);

/// At most `max_bytes` of a file ("-": standard input); usage_error, with the
/// line and column where the limit was passed, for a larger one.
std::string read_capture(const std::string& path, std::size_t max_bytes);

}  // namespace gdrperf::topo
