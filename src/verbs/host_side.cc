#include "gdrperf/verbs/host_side.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "gdrperf/base/file.h"
#include "gdrperf/topo/pci.h"

namespace gdrperf::verbs {

std::string interrupt_cpus(std::string_view pci_address, int vector, const std::string& root) {
  const std::string name = fmt::format(" mlx5_comp{}@pci:{}", vector, pci_address);
  std::ifstream interrupts(root + "/proc/interrupts");
  for (std::string line; std::getline(interrupts, line);) {
    line.erase(line.find_last_not_of(" \t") + 1);
    if (!line.ends_with(name)) continue;
    const std::size_t begin = line.find_first_not_of(' ');
    const std::string folder = root + "/proc/irq/" + line.substr(begin, line.find(':') - begin);
    const std::string effective = read_line_or_empty(folder + "/effective_affinity_list");
    return effective.empty() ? read_line_or_empty(folder + "/smp_affinity_list") : effective;
  }
  return {};
}

OrderingSeen relaxed_ordering_seen(std::string_view pci_address, const std::string& root) {
  const std::string folder = fmt::format("{}/sys/bus/pci/devices/{}", root, pci_address);
  // A virtual function has no such bit: its physical function's counts.
  std::ifstream file(folder + "/physfn/config", std::ios::binary);
  if (!file) file.open(folder + "/config", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const topo::PciConfig config = topo::parse_pci_config(bytes);
  if (!config.relaxed_ordering) return OrderingSeen::kAsked;
  return *config.relaxed_ordering ? OrderingSeen::kEnabled : OrderingSeen::kDisabled;
}

}  // namespace gdrperf::verbs
