#include "gdrperf/topo/known_devices.h"

#include <algorithm>
#include <charconv>

#include "gdrperf/base/compat/real.h"
#include "topo/vendors.h"

namespace gdrperf::topo {
namespace {

constexpr KnownNic kNics[] = {
    {kMellanox, 0x1003, "ConnectX-3", 56},       {kMellanox, 0x1007, "ConnectX-3 Pro", 56},
    {kMellanox, 0x1011, "Connect-IB", 56},       {kMellanox, 0x1013, "ConnectX-4", 100},
    {kMellanox, 0x1015, "ConnectX-4 Lx", 50},    {kMellanox, 0x1017, "ConnectX-5", 100},
    {kMellanox, 0x1019, "ConnectX-5 Ex", 100},   {kMellanox, 0x101b, "ConnectX-6", 200},
    {kMellanox, 0x101d, "ConnectX-6 Dx", 200},   {kMellanox, 0x101f, "ConnectX-6 Lx", 50},
    {kMellanox, 0x1021, "ConnectX-7", 400},      {kMellanox, 0x1023, "ConnectX-8", 800},
    {kMellanox, 0xa2d2, "BlueField", 100},       {kMellanox, 0xa2d6, "BlueField-2", 200},
    {kMellanox, 0xa2dc, "BlueField-3", 400},     {kBroadcom, 0x16d7, "BCM57414", 25},
    {kBroadcom, 0x1750, "BCM57508", 200},        {kBroadcom, 0x1751, "BCM57504", 100},
    {kBroadcom, 0x1752, "BCM57502", 50},         {kBroadcom, 0x1760, "BCM57608", 400},
    {kIntel, 0x1592, "E810-C", 100},             {kIntel, 0x1593, "E810-C", 100},
    {kIntel, 0x159b, "E810-XXV", 25},            {kIntel, 0x12d2, "E830", 200},
    {kAmazon, 0xefa0, "Elastic Fabric Adapter", 100}, {kAmazon, 0xefa1, "Elastic Fabric Adapter", 100},
    {kAmazon, 0xefa2, "Elastic Fabric Adapter", 100}, {kAmazon, 0xefa3, "Elastic Fabric Adapter", 200},
    {kPensando, 0x1002, "DSC", 200},
};

constexpr PcieLink kGen3{8, 16}, kGen4{16, 16}, kGen5{32, 16}, kGen6{64, 16};

// NVIDIA numbers the boards of one chip together. The first row that fits counts.
constexpr KnownGpu kGpus[] = {
    {kNvidia, 0x15f9, 0x15f9, "P100 SXM2", kGen3, 40, "NVLink 1"},
    {kNvidia, 0x15f0, 0x15ff, "GP100", kGen3, 0, {}},
    {kNvidia, 0x1db1, 0x1db1, "V100 SXM2", kGen3, 50, "NVLink 2"},
    {kNvidia, 0x1db5, 0x1db5, "V100 SXM2", kGen3, 50, "NVLink 2"},
    {kNvidia, 0x1d80, 0x1dff, "GV100", kGen3, 0, {}},
    {kNvidia, 0x1e00, 0x1fff, "TU10x", kGen3, 0, {}},
    {kNvidia, 0x2080, 0x20ff, "GA100", kGen4, 0, {}},
    {kNvidia, 0x2342, 0x2348, "GH200", kGen5, 450, "NVLink-C2C"},
    {kNvidia, 0x2300, 0x237f, "GH100", kGen5, 0, {}},
    {kNvidia, 0x2200, 0x25ff, "GA10x", kGen4, 0, {}},
    {kNvidia, 0x2600, 0x28ff, "AD10x", kGen4, 0, {}},
    {kNvidia, 0x2941, 0x2941, "GB200", kGen5, 225, "NVLink-C2C"},
    {kNvidia, 0x2900, 0x29ff, "GB100", kGen5, 0, {}},
    {kNvidia, 0x2b80, 0x2fff, "GB20x", kGen5, 0, {}},
    {kNvidia, 0x31c0, 0x31c3, "GB300", kGen6, 225, "NVLink-C2C"},
    {kNvidia, 0x3180, 0x31ff, "GB110", kGen6, 0, {}},
    {kAmd, 0x66a0, 0x66a1, "MI50/MI60", kGen4, 0, {}},
    {kAmd, 0x738c, 0x738e, "MI100", kGen4, 0, {}},
    {kAmd, 0x7408, 0x740f, "MI200", kGen4, 0, {}},
    {kAmd, 0x74a0, 0x74bf, "MI300", kGen5, 0, {}},
    {kAmd, 0x75a0, 0x75bf, "MI350", kGen5, 0, {}},
};

/// "Mellanox Technologies MT28908 Family [ConnectX-6]": the name in the brackets, all of it.
bool is_called(std::string_view model, std::string_view name) {
  const std::size_t open = model.find('[');
  const std::size_t close = model.find(']', open);
  return open != std::string_view::npos && close != std::string_view::npos &&
         model.substr(open + 1, close - open - 1) == name;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

const KnownNic* known_nic(const PciFunction& function) {
  for (const KnownNic& nic : kNics) {
    if (function.vendor == nic.vendor && function.device == nic.device) return &nic;
    if (function.vendor == 0 && is_called(function.model.raw(), nic.name)) return &nic;
  }
  return nullptr;
}

const char* cpu_of_root_port(const PciFunction& function) {
  if (function.vendor != kNvidia || !function.bridge) return nullptr;
  switch (function.device) {
    case 0x22b1:
    case 0x22b2:
    case 0x22b8:
      return "Grace";
    case 0x2f95:
    case 0x2f96:
      return "Vera";
    default:
      return nullptr;
  }
}

const KnownGpu* known_gpu(const PciFunction& function) {
  for (const KnownGpu& gpu : kGpus) {
    if (function.vendor == gpu.vendor && gpu.first <= function.device && function.device <= gpu.last) return &gpu;
  }
  return nullptr;
}

const KnownGpu* gpu_on_cpu_link(const PciTree& tree, std::size_t gpu) {
  // Three bricks of 25 GB/s instead of two.
  static constexpr KnownGpu kOfFour{kNvidia, 0x1db1, 0x1db5, "V100 SXM2", kGen3, 75, "NVLink 2"};
  constexpr std::size_t kGpusWithThreeBricks = 4;
  const KnownGpu* const known = known_gpu(tree.functions[gpu]);
  if (known == nullptr || known->cpu_gbytes == 0) return nullptr;
  if (known->cpu_link == "NVLink-C2C") return known;
  const std::vector<std::size_t> above = tree.bridges(gpu);
  const bool on_power = std::any_of(above.begin(), above.end(), [&](std::size_t bridge) {
    return tree.functions[bridge].vendor == kIbm;
  });
  if (!on_power) return nullptr;
  return known->cpu_gbytes == 50 && tree.gpus.size() <= kGpusWithThreeBricks ? &kOfFour : known;
}

double rate_in_words(std::string_view product) {
  double most = 0;
  for (std::size_t at = 0; at < product.size(); ++at) {
    if (!digit(product[at]) || (at > 0 && (digit(product[at - 1]) || product[at - 1] == '.'))) continue;
    double value = 0;
    const auto [rest, error] = real_from_chars(product.data() + at, product.data() + product.size(), value);
    if (error != std::errc()) continue;
    std::string_view unit = product.substr(static_cast<std::size_t>(rest - product.data()));
    if (unit.starts_with(' ')) unit.remove_prefix(1);
    if (unit.starts_with("Gb") || unit.starts_with("GE") || unit.starts_with("G ")) most = std::max(most, value);
  }
  return most <= 10000 ? most : 0;
}

std::string_view to_string(PortRate source) {
  switch (source) {
    case PortRate::kPort: return "port";
    case PortRate::kProduct: return "product name";
    case PortRate::kAtMost: return "PCI ID (at most)";
  }
  return "unknown";
}

void fill_port_rates(PciTree& tree) {
  for (TreeNic& nic : tree.nics) {
    if (nic.rate_gbps > 0) continue;
    const PciFunction& function = tree.functions[nic.function];
    nic.rate_gbps = rate_in_words(function.product.raw());
    if (nic.rate_gbps > 0) {
      nic.rate_source = PortRate::kProduct;
    } else if (const KnownNic* known = known_nic(function)) {
      nic.rate_gbps = known->most_port_gbps;
      nic.rate_source = PortRate::kAtMost;
    }
  }
}

}  // namespace gdrperf::topo
