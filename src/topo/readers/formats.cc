#include "gdrperf/topo/formats.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/topo/nvidia_smi.h"
#include "gdrperf/topo/readers.h"

namespace gdrperf::topo {
namespace {

bool has(std::string_view head, std::string_view text) { return head.find(text) != std::string_view::npos; }

bool is_lspci_tree(std::string_view head) {
  return head.starts_with("-[") || head.starts_with("-+-[") || has(head, "\n-[") || has(head, "\n-+-[");
}

constexpr TopologyFormat kFormats[] = {
    {"nvidia-smi", "FILE", "output of `nvidia-smi topo -m` (- for standard input), in place of running it here",
     nullptr, nullptr, read_nvidia_smi_file},
    {"hwloc", "FILE", "hwloc XML, as `lstopo --whole-io FILE.xml` writes it",
     [](std::string_view head) { return has(head, "<topology"); }, read_hwloc_file, nullptr},
    {"sysfs", "DIR", "a copy of /sys: the directory that holds its 'sys'", nullptr,
     [](const std::string& root) { return read_sysfs(root); }, nullptr},
    {"lspci", "FILE", "output of `lspci -tv`; it has no NUMA nodes", is_lspci_tree, read_lspci_file, nullptr},
    {"nccl-xml", "FILE", "NCCL's topology XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE)",
     [](std::string_view head) { return has(head, "<system"); }, read_nccl_file, nullptr},
    {"nccl-log", "FILE", "a log of NCCL with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH",
     [](std::string_view head) { return has(head, "NCCL INFO"); }, read_nccl_log_file, nullptr},
};

/// For what is no other: its parser says best what is wrong with a file.
constexpr std::string_view kFallback = "nvidia-smi";
constexpr std::string_view kFolder = "sysfs";

}  // namespace

std::span<const TopologyFormat> topology_formats() { return kFormats; }

TopologyFiles::TopologyFiles(std::initializer_list<std::pair<std::string_view, std::string>> files) {
  for (const auto& [format, path] : files) set(format, path);
}

void TopologyFiles::set(std::string_view format, std::string path) { paths_[std::string(format)] = std::move(path); }

const std::string& TopologyFiles::path(std::string_view format) const {
  static const std::string none;
  const auto found = paths_.find(format);
  return found == paths_.end() ? none : found->second;
}

TopologyFiles recognise_topology(const std::string& path, std::string_view flag) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {{kFolder, path}};
  std::ifstream in(path, std::ios::binary);
  if (!in) throw usage_error(fmt::format("{} {}: cannot be read", flag, path));
  std::string head(std::size_t{1} << 16, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const TopologyFormat& each) { return each.recognise && each.recognise(head); });
  return {{found == std::end(kFormats) ? kFallback : found->name, path}};
}

}  // namespace gdrperf::topo
