#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "gdrperf/topo/matrix.h"
#include "gdrperf/topo/pci_tree.h"

namespace gdrperf::topo {

/// A form in which topologies are recorded: all that the program knows of it. Command line, help, recognition
/// and reading come from this table (formats.cc).
struct TopologyFormat {
  std::string_view name;    ///< `source` in documents; its flag is "--" and the name
  std::string_view type;    ///< of the flag's value: "FILE", "DIR"
  std::string_view help;
  /// Whether a file of this format may begin so (its first 64 KiB); null: only what no other format takes.
  bool (*recognise)(std::string_view head);
  /// Read a file or folder; one of the two. Throw usage_error.
  PciTree (*read_tree)(const std::string& path);
  Matrix (*read_matrix)(const std::string& path);
};

/// In the order of the help.
std::span<const TopologyFormat> topology_formats();

/// Recorded topologies to read in place of this machine's, at most one of a format.
class TopologyFiles {
 public:
  TopologyFiles() = default;
  /// Format's name and path.
  TopologyFiles(std::initializer_list<std::pair<std::string_view, std::string>> files);
  void set(std::string_view format, std::string path);
  bool any() const { return !paths_.empty(); }
  /// Empty: none.
  const std::string& path(std::string_view format) const;

 private:
  std::map<std::string, std::string, std::less<>> paths_;
};

/// The file, or folder, as what its content says it is. Throws usage_error("`flag` `path`: ...") for one that
/// cannot be read.
TopologyFiles recognise_topology(const std::string& path, std::string_view flag);

}  // namespace gdrperf::topo
