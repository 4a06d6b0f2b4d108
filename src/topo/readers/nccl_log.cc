// The system that NCCL prints with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH (ncclTopoPrint() in its
// src/graph/topo.cc): a line for each node, behind the column at which its parent's name begins.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topo/readers/captured_text.h"
#include "gdrperf/base/compat/real.h"
#include "gdrperf/topo/readers.h"
#include "topo/readers/read_parsed.h"
#include "topo/readers/tree_limits.h"

namespace gdrperf::topo {
namespace {

constexpr std::string_view kSystem = "=== System";

/// "GPU/0-3000 (0)" or, of older versions, "GPU/3000 (0)".
struct LogNode {
  std::string_view kind;
  std::uint64_t id = 0;  ///< without the number of its system
};

std::optional<LogNode> parse_log_node(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  LogNode node{text.substr(0, slash), 0};
  std::string_view id = text.substr(slash + 1, text.find(' ') - slash - 1);
  if (const std::size_t dash = id.find('-'); dash != std::string_view::npos) id.remove_prefix(dash + 1);
  const auto [rest, error] = std::from_chars(id.data(), id.data() + id.size(), node.id, 16);
  if (error != std::errc() || rest != id.data() + id.size()) return std::nullopt;
  return node;
}

/// The digits of "0000:03:00.0" as one hexadecimal number.
std::optional<PciAddress> address_of(std::uint64_t id) {
  PciAddress address;
  address.function = id & 0xf;
  address.device = id >> 4 & 0xff;
  address.bus = id >> 12 & 0xff;
  address.domain = static_cast<std::uint32_t>(id >> 20);
  if (address.function > 7 || address.device > 31 || id >> 52 != 0) return std::nullopt;
  return address;
}

class NcclLogParser {
 public:
  explicit NcclLogParser(const CapturedText& text) : text_(text) {
    tree_.source = "nccl-log";
    tree_.of_nccl = true;
  }

  PciTree parse() {
    std::size_t line = find_system();
    const std::string_view whole = text_.line(line);
    prefix_ = whole.substr(0, whole.find(kSystem));
    for (++line; line < text_.lines(); ++line) {
      const std::string_view words = text_.line(line);
      // Other processes write into the same log.
      if (!words.starts_with(prefix_)) continue;
      if (words.substr(prefix_.size()).starts_with("===")) break;
      take_line(line, words.substr(prefix_.size()));
    }
    finish(line);
    return std::move(tree_);
  }

 private:
  /// Start of a node's name, and the name.
  struct Open {
    std::size_t column = 0;
    int root = -1;
    int function = -1;
    std::string_view kind;
  };

  std::size_t find_system() {
    for (std::size_t line = 0; line < text_.lines(); ++line) {
      const std::string_view words = text_.line(line);
      if (const std::size_t at = words.find("NET/IB : Using "); at != std::string_view::npos)
        take_names(words.substr(at));
      if (words.find(kSystem) != std::string_view::npos) return line;
    }
    throw text_.error(0, "no '=== System' in it: set NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH");
  }

  /// "Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB ..."
  void take_names(std::string_view words) {
    while (true) {
      const std::size_t open = words.find('[');
      const std::size_t close = words.find(']', open);
      if (open == std::string_view::npos || close == std::string_view::npos) return;
      std::uint64_t number = 0;
      std::from_chars(words.data() + open + 1, words.data() + close, number);
      words.remove_prefix(close + 1);
      const std::string_view name = words.substr(0, words.find_first_of(": "));
      if (!name.empty() && name.size() <= kMostName && names_.size() < kMostNics) names_.emplace(number, name);
    }
  }

  void take_line(std::size_t line, std::string_view words) {
    const std::size_t plus = words.find_first_not_of(' ');
    if (plus == std::string_view::npos) return;
    if (words[plus] != '+') {
      start_cpu(line, words);
      return;
    }
    while (!open_.empty() && open_.back().column > plus) open_.pop_back();
    const std::size_t dash = words.find(" - ", plus);
    if (open_.empty() || dash == std::string_view::npos) throw text_.error(line, "a link without its ends");
    const std::string_view link = words.substr(plus + 2, dash - plus - 2);
    const auto node = parse_log_node(words.substr(dash + 3));
    if (!node) throw text_.error(line, fmt::format("{} is no node", in_quotes(words.substr(dash + 3))));
    if (node->kind == "NET") {
      add_net(line, node->id);
    } else if (link.starts_with("PCI[")) {
      add_function(line, *node, link, dash + 3);
    }
  }

  void start_cpu(std::size_t line, std::string_view words) {
    const auto node = parse_log_node(words);
    if (!node || node->kind != "CPU") return;
    if (tree_.roots.size() == kMostRoots) throw text_.error(line, "too many CPUs");
    numa_ = static_cast<int>(std::min<std::uint64_t>(node->id, 4095));
    tree_.roots.push_back({fmt::format("NUMA {}", numa_), {{"numaid", std::to_string(numa_)}}});
    open_ = {{0, static_cast<int>(tree_.roots.size()) - 1, -1, node->kind}};
  }

  void add_function(std::size_t line, const LogNode& node, std::string_view link, std::size_t column) {
    const auto address = address_of(node.id);
    if (!address) throw text_.error(line, fmt::format("{:x} is no PCI address", node.id));
    if (!seen_.insert(*address).second)
      throw text_.error(line, fmt::format("the PCI address {} comes twice", to_string(*address)));
    if (tree_.functions.size() == kMostFunctions) throw text_.error(line, "too many PCI functions");
    const Open above = open_.back();
    PciFunction function;
    function.address = *address;
    function.parent = above.function;
    function.root = above.root;
    function.bridge = node.kind == "PCI";
    function.numa = {numa_};
    real_from_chars(link.data() + 4, link.data() + link.size(), function.link_gbytes);
    if (!(function.link_gbytes >= 0 && function.link_gbytes < 1e4)) function.link_gbytes = 0;
    tree_.functions.push_back(std::move(function));
    const int index = static_cast<int>(tree_.functions.size()) - 1;
    if (node.kind == "GPU") gpus_.emplace(*address, static_cast<std::size_t>(index));
    open_.push_back({column, above.root, index, node.kind});
  }

  void add_net(std::size_t line, std::uint64_t number) {
    if (open_.back().kind != "NIC") return;
    const auto known = names_.find(number);
    TreeNic nic;
    nic.name = known != names_.end() ? std::string(known->second) : fmt::format("net{}", number);
    nic.function = static_cast<std::size_t>(open_.back().function);
    if (tree_.nic(nic.name.raw()) != nullptr)
      throw text_.error(line, fmt::format("two NICs are called {}", in_quotes(nic.name.raw())));
    if (tree_.nics.size() == kMostNics) throw text_.error(line, "too many NICs");
    tree_.nics.push_back(std::move(nic));
  }

  void finish(std::size_t line) {
    if (tree_.functions.empty()) throw text_.error(std::min(line, text_.lines() - 1), "a system without PCI functions");
    if (gpus_.size() > kMostGpus) throw text_.error(line, "too many GPUs");
    for (const auto& [address, function] : gpus_)
      tree_.gpus.push_back({fmt::format("GPU{}", tree_.gpus.size()), function, "", false});
    tree_.notes.emplace_back(
        "NCCL's log leaves out root ports and host bridges: relations are by NCCL's rules, where PHB is everything "
        "within a NUMA node");
  }

  const CapturedText& text_;
  PciTree tree_;
  std::string_view prefix_;
  std::vector<Open> open_;
  int numa_ = 0;
  std::set<PciAddress> seen_;
  std::map<PciAddress, std::size_t> gpus_;           ///< in nvidia-smi's order
  std::map<std::uint64_t, std::string_view> names_;  ///< of NETs
};

}  // namespace

PciTree parse_nccl_log(std::string_view text, std::string_view name) {
  const CapturedText captured(text, name);
  return NcclLogParser(captured).parse();
}

PciTree read_nccl_log_file(const std::string& path) { return read_parsed(parse_nccl_log, path, kMostCaptureBytes); }

}  // namespace gdrperf::topo
