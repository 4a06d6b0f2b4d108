// `lspci -tv`, as pciutils' ls-tree.c draws it: "[0000:c0]" is a root bus, "01.1-[c1]--" a bridge
// and the buses below it, and what several functions hang on starts at one '+' and goes on below.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "topo/readers/captured_text.h"
#include "gdrperf/topo/readers.h"
#include "topo/readers/read_parsed.h"
#include "topo/readers/tree_limits.h"

namespace gdrperf::topo {
namespace {

/// A bus whose functions are being listed.
struct Bus {
  std::uint32_t domain = 0;
  std::uint8_t number = 0;
  int root = -1;
  int bridge = -1;  ///< function above it
  bool is_root_level = false;
};

/// Column of a bus's '+', in bytes.
struct Branch {
  std::size_t column = 0;
  Bus bus;
};

class LspciParser {
 public:
  LspciParser(const CapturedText& text) : text_(text) { tree_.source = "lspci"; }

  PciTree parse() {
    std::size_t line = first_line();
    for (; line < text_.lines() && is_tree_line(text_.line(line)); ++line) parse_line(line);
    if (tree_.functions.empty()) throw text_.error(line, "a tree without functions");
    name_devices(line);
    tree_.notes.emplace_back(
        "lspci -tv shows no NUMA nodes: across root buses a pair is NODE or SYS");
    if (!tree_.nics.empty()) {
      tree_.notes.emplace_back(
          "lspci -tv shows no RDMA names: cards named ConnectX are called mlx5_0, ... by address");
    }
    return std::move(tree_);
  }

 private:
  static bool is_tree_line(std::string_view line) {
    const std::size_t at = line.find_first_not_of(" |");
    return at != std::string_view::npos && (line[at] == '+' || line[at] == '\\' || line[at] == '-');
  }

  std::size_t first_line() const {
    for (std::size_t line = 0; line < text_.lines(); ++line) {
      const std::string_view words = text_.line(line);
      if (words.starts_with("-[") || words.starts_with("-+-[")) return line;
    }
    throw text_.error(0, "no tree in it: lspci -tv starts it with -[0000:00]- or -+-[0000:00]-");
  }

  Error error(const std::string& message) const {
    return text_.error(line_, rest_.empty() ? whole_.substr(whole_.size()) : rest_, message);
  }

  void parse_line(std::size_t line) {
    line_ = line;
    whole_ = rest_ = text_.line(line);
    rest_.remove_prefix(rest_.find_first_not_of(" |"));
    Bus bus;
    bus.is_root_level = true;
    if (branches_.empty() && tree_.functions.empty()) {  // "-[" or "-+-["
      rest_.remove_prefix(1);
      if (rest_.starts_with('+')) branches_.push_back({column(), bus});
    } else {
      while (!branches_.empty() && branches_.back().column > column()) branches_.pop_back();
      if (branches_.empty() || branches_.back().column != column()) {
        throw error("a branch that starts at no '+' above it");
      }
      bus = branches_.back().bus;
    }
    if (rest_.starts_with('+') || rest_.starts_with('\\')) rest_.remove_prefix(1);
    parse_bus(bus);
  }

  std::size_t column() const { return whole_.size() - rest_.size(); }

  void skip_dashes() {
    const std::size_t at = rest_.find_first_not_of('-');
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
  }

  /// Devices on `bus`, as far as the line tells.
  void parse_bus(Bus bus) {
    while (true) {
      skip_dashes();
      if (trimmed(rest_).empty()) return;
      if (rest_.starts_with('+')) {
        if (branches_.size() == 64) throw error("buses nest too deep");
        branches_.push_back({column(), bus});
        rest_.remove_prefix(1);
      } else if (rest_.starts_with('[')) {
        if (!bus.is_root_level) throw error("a bus where a function should be");
        bus = parse_buses(bus);
      } else {
        if (bus.is_root_level) throw error("a function outside of any bus");
        const int function = parse_function(bus);
        if (!rest_.starts_with("-[")) {
          const std::string_view name = trimmed(rest_);
          tree_.functions[static_cast<std::size_t>(function)].model = name.substr(0, kMostName);
          return;
        }
        tree_.functions[static_cast<std::size_t>(function)].bridge = true;
        rest_.remove_prefix(1);
        bus.bridge = function;
        bus = parse_buses(bus);
      }
    }
  }

  /// "[0000:00]", "[c1]", "[01-13]"; the first is the one functions are on.
  Bus parse_buses(Bus bus) {
    const std::size_t end = rest_.find(']');
    if (end == std::string_view::npos || end > 24) throw error("a bus without its ']'");
    std::string_view name = rest_.substr(1, end - 1);
    const std::string_view whole = name;
    if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
      bus.domain = static_cast<std::uint32_t>(hex(name.substr(0, colon), 8));
      name.remove_prefix(colon + 1);
    }
    bus.number = static_cast<std::uint8_t>(hex(name.substr(0, name.find('-')), 2));
    if (bus.is_root_level) {
      if (tree_.roots.size() == kMostRoots) throw error("too many root buses");
      tree_.roots.push_back({std::string(whole), {}});
      bus.root = static_cast<int>(tree_.roots.size()) - 1;
      bus.is_root_level = false;
    }
    rest_.remove_prefix(end + 1);
    return bus;
  }

  unsigned long hex(std::string_view digits, std::size_t most) const {
    unsigned long value = 0;
    const auto [rest, failed] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.empty() || digits.size() > most || failed != std::errc() ||
        rest != digits.data() + digits.size()) {
      throw error(fmt::format("{} is no hexadecimal number of up to {} digits", in_quotes(digits), most));
    }
    return value;
  }

  int parse_function(const Bus& bus) {
    const std::string_view name = rest_.substr(0, rest_.find_first_of(" -"));
    const auto address =
        parse_pci_address(fmt::format("{:04x}:{:02x}:{}", bus.domain, bus.number, name.substr(0, 8)));
    if (!address || name.size() != 4) {
      throw error(fmt::format("{} is no function (DEVICE.FUNCTION, like 1c.0)", in_quotes(name)));
    }
    if (!seen_.insert(*address).second) {
      throw error(fmt::format("the PCI address {} comes twice", to_string(*address)));
    }
    if (tree_.functions.size() == kMostFunctions) throw error("too many functions");
    PciFunction function;
    function.address = *address;
    function.parent = bus.bridge;
    function.root = bus.root;
    tree_.functions.push_back(std::move(function));
    rest_.remove_prefix(name.size());
    return static_cast<int>(tree_.functions.size()) - 1;
  }

  static bool has_any(std::string_view name, std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
      if (name.find(word) != std::string_view::npos) return true;
    }
    return false;
  }

  static bool is_gpu_name(std::string_view name) {
    return has_any(name, {"NVIDIA", "[AMD/ATI]"}) &&
           !has_any(name, {"Audio", "USB", "UCSI", "Switch", "Bridge", "Upstream", "Downstream",
                           "Serial", "Mellanox", "HDMI"});
  }

  void name_devices(std::size_t line) {
    // Some versions of lspci list the highest root bus first.
    std::vector<std::size_t> by_address(tree_.functions.size());
    std::iota(by_address.begin(), by_address.end(), std::size_t{0});
    std::sort(by_address.begin(), by_address.end(), [this](std::size_t one, std::size_t other) {
      return tree_.functions[one].address < tree_.functions[other].address;
    });
    for (const std::size_t i : by_address) {
      const PciFunction& function = tree_.functions[i];
      if (function.bridge) continue;
      if (function.address.function == 0 && is_gpu_name(function.model.raw())) {
        tree_.gpus.push_back({fmt::format("GPU{}", tree_.gpus.size()), i, "", false});
      }
      if (has_any(function.model.raw(), {"ConnectX", "Connect-IB"})) {
        TreeNic nic;
        nic.name = fmt::format("mlx5_{}", tree_.nics.size());
        nic.function = i;
        tree_.nics.push_back(std::move(nic));
      }
      if (tree_.gpus.size() > kMostGpus || tree_.nics.size() > kMostNics) {
        throw text_.error(line - 1, "too many GPUs or NICs");
      }
    }
  }

  const CapturedText& text_;
  PciTree tree_;
  std::vector<Branch> branches_;
  std::set<PciAddress> seen_;
  std::size_t line_ = 0;
  std::string_view whole_;  ///< the line
  std::string_view rest_;   ///< what of it is still to be read
};

}  // namespace

PciTree parse_lspci_tree(std::string_view text, std::string_view name) {
  return LspciParser(CapturedText(text, name)).parse();
}

PciTree read_lspci_file(const std::string& path) {
  return read_parsed(parse_lspci_tree, path, kMostCaptureBytes);
}

}  // namespace gdrperf::topo
