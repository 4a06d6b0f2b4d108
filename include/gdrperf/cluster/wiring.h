#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/cluster/topology_file.h"

namespace gdrperf::cluster {

/// Switches of a network, their links, and the switch of each NIC.
class Wiring {
 public:
  /// Its number; added if it is new.
  int add_switch(const std::string& name);
  /// -1: there is none of that name.
  int find_switch(const std::string& name) const;
  void link(int one, int other);
  /// `nic`: device or interface; "" where only the host is known. The first switch of a NIC counts.
  void attach(const std::string& host, const std::string& nic, int to);

  bool empty() const { return hosts_.empty(); }
  const std::string& name(int number) const { return names_[static_cast<std::size_t>(number)]; }
  void rename(int number, const std::string& name) { names_[static_cast<std::size_t>(number)] = name; }
  std::size_t switches() const { return names_.size(); }

  /// Switch of a NIC of `host` (its full or its short name) that goes by one of `names`; the host's only one where none
  /// does. -1: unknown.
  int switch_of(const std::string& host, const std::vector<std::string>& names) const;

  /// A switch of each host: that of its first NIC by name.
  Leaves leaves() const;

  /// Switches on the shortest way from `from` to each switch, itself included: 1 for itself; 0 where there is no way.
  std::vector<int> hops_from(int from) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, int> numbers_;
  std::vector<std::vector<int>> beside_;
  std::map<std::string, std::map<std::string, int>> hosts_;
};

/// Wiring of a topology file: what ibnetdiscover prints, or Slurm's topology.conf. Throws usage_error that names `path`
/// and the line for what is neither.
Wiring parse_wiring(std::string_view text, const std::string& path);

}  // namespace gdrperf::cluster
