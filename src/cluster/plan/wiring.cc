#include "gdrperf/cluster/wiring.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cluster/plan/topology_text.h"
#include "gdrperf/base/error.h"

namespace gdrperf::cluster {
namespace {

[[noreturn]] void refuse_line(const std::string& path, int number, const char* why, std::string_view line) {
  throw usage_error(fmt::format("{}:{}: {}: '{}'", path, number, why, line.substr(0, 60)),
                    "give the whole output of ibnetdiscover");
}

// "Switch 41 "S-b8599f" # "leaf1" ...", then a line for each port: "[3] "H-248a07"[1](248a07) # "n1 mlx5_0" lid 7".
class Ibnetdiscover {
 public:
  explicit Ibnetdiscover(const std::string& path) : path_(path) {}

  void take(std::string_view line, int number) {
    const std::string_view said = first_quoted(line.substr(std::min(line.find("# \""), line.size())));
    if (line.starts_with("Switch") || line.starts_with("Ca") || line.starts_with("Rt")) {
      const std::string guid(first_quoted(line));
      if (guid.empty()) refuse_line(path_, number, "no GUID in quotes", line);
      block_ = line.starts_with("Switch") ? wiring_.add_switch(guid) : -1;
      if (block_ >= 0 && !said.empty()) wiring_.rename(block_, std::string(said));
      in_block_ = true;
    } else if (line.starts_with('[')) {
      if (!in_block_) refuse_line(path_, number, "a port before any switch or NIC", line);
      take_port(line, said, number);
    }
  }

  Wiring done() { return std::move(wiring_); }

 private:
  void take_port(std::string_view line, std::string_view said, int number) {
    const std::string other(first_quoted(line.substr(0, line.find('#'))));
    if (line.find(']') == std::string_view::npos || other.empty())
      refuse_line(path_, number, "no neighbor in quotes", line);
    if (block_ < 0) return;
    if (other.starts_with("S-")) {
      wiring_.link(block_, wiring_.add_switch(other));
    } else if (other.starts_with("H-") && !said.empty()) {
      const auto blank = std::min(said.find(' '), said.size());
      wiring_.attach(std::string(said.substr(0, blank)), std::string(said.substr(std::min(blank + 1, said.size()))),
                     block_);
    }
  }

  const std::string& path_;
  Wiring wiring_;
  int block_ = -1;  // switch whose ports follow; -1: a NIC's
  bool in_block_ = false;
};

Wiring wiring_of_slurm(std::string_view text, const std::string& path) {
  Wiring wiring;
  for (const auto& [host, leaf] : parse_slurm_topology(text, path)) wiring.attach(host, "", wiring.add_switch(leaf));
  for_each_line(text, [&](std::string_view line, int number) {
    line = line.substr(0, line.find('#'));
    const std::string_view below = value_of(line, "Switches");
    if (below.empty()) return;
    const int upper = wiring.add_switch(std::string(value_of(line, "SwitchName")));
    try {
      for (const std::string& each : expand_hosts(below)) wiring.link(upper, wiring.add_switch(each));
    } catch (const Error& error) {
      throw error.in(fmt::format("{}:{}", path, number));
    }
  });
  return wiring;
}

}  // namespace

int Wiring::add_switch(const std::string& name) {
  const auto [at, fresh] = numbers_.try_emplace(name, static_cast<int>(names_.size()));
  if (fresh) {
    names_.push_back(name);
    beside_.emplace_back();
  }
  return at->second;
}

int Wiring::find_switch(const std::string& name) const {
  const auto at = numbers_.find(name);
  return at == numbers_.end() ? -1 : at->second;
}

void Wiring::link(int one, int other) {
  if (one == other) return;
  const auto add = [&](int from, int to) {
    std::vector<int>& beside = beside_[static_cast<std::size_t>(from)];
    // Several cables between two switches follow each other.
    if (beside.empty() || beside.back() != to) beside.push_back(to);
  };
  add(one, other);
  add(other, one);
}

void Wiring::attach(const std::string& host, const std::string& nic, int to) {
  if (!host.empty()) hosts_[host].try_emplace(nic, to);
}

int Wiring::switch_of(const std::string& host, const std::vector<std::string>& names) const {
  auto at = hosts_.find(host);
  if (at == hosts_.end()) at = hosts_.find(host.substr(0, host.find('.')));
  if (at == hosts_.end()) return -1;
  for (const std::string& name : names) {
    const auto nic = at->second.find(name);
    if (nic != at->second.end() && !name.empty()) return nic->second;
  }
  const int first = at->second.begin()->second;
  const bool only = std::all_of(at->second.begin(), at->second.end(),
                                [&](const auto& each) { return each.second == first; });
  return only ? first : -1;
}

Leaves Wiring::leaves() const {
  Leaves leaves;
  for (const auto& [host, nics] : hosts_) leaves[host] = name(nics.begin()->second);
  return leaves;
}

std::vector<int> Wiring::hops_from(int from) const {
  std::vector<int> hops(names_.size(), 0);
  std::vector<int> reached = {from};
  hops[static_cast<std::size_t>(from)] = 1;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto here = static_cast<std::size_t>(reached[i]);
    for (const int next : beside_[here]) {
      if (hops[static_cast<std::size_t>(next)] != 0) continue;
      hops[static_cast<std::size_t>(next)] = hops[here] + 1;
      reached.push_back(next);
    }
  }
  return hops;
}

Wiring parse_wiring(std::string_view text, const std::string& path) {
  Wiring wiring;
  if (is_ibnetdiscover(text)) {
    Ibnetdiscover reader(path);
    for_each_line(text, [&](std::string_view line, int number) { reader.take(line, number); });
    wiring = reader.done();
  } else {
    wiring = wiring_of_slurm(text, path);
  }
  if (wiring.empty()) throw usage_error(fmt::format("{}: no host hangs on any switch there", path));
  return wiring;
}

}  // namespace gdrperf::cluster
