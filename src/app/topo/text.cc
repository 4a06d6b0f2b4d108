#include "app/topo/text.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/terminal.h"
#include "gdrperf/report/prediction.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/path.h"
#include "app/output/table.h"

namespace gdrperf::app {
namespace {

using topo::Matrix;
using topo::PathHop;
using topo::PciFunction;
using topo::PciPath;
using topo::PciTree;

/// All relations, as nvidia-smi prints them.
void print_whole_matrix(const Matrix& matrix, std::size_t columns, std::ostream& out) {
  const std::vector<std::pair<const char*, const Matrix::Column*>> affinities = {
      {"CPU Affinity", &matrix.cpu_affinity},
      {"NUMA Affinity", &matrix.numa_affinity},
      {"GPU NUMA ID", &matrix.gpu_numa_id}};
  std::vector<std::string> header = {""};
  header.insert(header.end(), matrix.gpus.begin(), matrix.gpus.end());
  for (const topo::Nic& nic : matrix.nics) header.push_back(printable(nic.name));
  for (const auto& [title, column] : affinities) {
    if (*column) header.emplace_back(title);
  }
  Table table(header);
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    std::vector<std::string> row = {matrix.gpus[g]};
    row.insert(row.end(), matrix.gpu_gpu[g].begin(), matrix.gpu_gpu[g].end());
    row.insert(row.end(), matrix.gpu_nic[g].begin(), matrix.gpu_nic[g].end());
    for (const auto& [title, column] : affinities) {
      if (*column) row.push_back(printable((**column)[g]));
    }
    table.add(std::move(row));
  }
  for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
    std::vector<std::string> row = {printable(matrix.nics[n].name)};
    for (std::size_t g = 0; g < matrix.gpus.size(); ++g) row.push_back(matrix.gpu_nic[g][n]);
    row.insert(row.end(), matrix.nic_nic[n].begin(), matrix.nic_nic[n].end());
    table.add(std::move(row));
  }
  table.print(out, columns);
}

/// The tree in the form of nvidia-smi's matrix.
Matrix matrix_of(const PciTree& tree) {
  Matrix matrix;
  const auto word = [&](std::size_t one, std::size_t other) {
    // NCCL's own file speaks NCCL's words.
    if (tree.of_nccl) {
      return std::string(to_string(topo::nccl_relation_of(tree, one, other)));
    }
    return to_string(topo::relation_of(tree, one, other));
  };
  matrix.numa_affinity.emplace();
  for (const topo::TreeGpu& gpu : tree.gpus) {
    matrix.gpus.push_back(gpu.label);
    matrix.numa_affinity->push_back(numa_text(tree.functions[gpu.function]));
    std::vector<std::string> to_gpus;
    for (const topo::TreeGpu& other : tree.gpus) {
      to_gpus.push_back(&other == &gpu ? "X" : word(gpu.function, other.function));
    }
    matrix.gpu_gpu.push_back(std::move(to_gpus));
    std::vector<std::string> to_nics;
    for (const topo::TreeNic& nic : tree.nics) {
      to_nics.push_back(word(gpu.function, topo::function_towards(tree, gpu.function, nic)));
    }
    matrix.gpu_nic.push_back(std::move(to_nics));
  }
  for (const topo::TreeNic& nic : tree.nics) {
    matrix.nics.push_back({nic.name, nic.name});
    std::vector<std::string> row;
    for (const topo::TreeNic& other : tree.nics) {
      const bool one_card = other.function == nic.function;
      row.push_back(&other == &nic ? "X" : one_card ? "PIX"
                                                    : word(nic.function, other.function));
    }
    matrix.nic_nic.push_back(std::move(row));
  }
  return matrix;
}

std::string narrowest_text(const PciPath& path) {
  const PathHop* least = topo::narrowest_hop(path);
  return least == nullptr ? "unknown" : link_text(*least);
}

std::string acs_text(const PciPath& path) {
  if (!path.common_bridge) return "-";
  if (!path.acs_redirect) return "unknown";
  return *path.acs_redirect ? "redirect" : "off";
}

std::string ceiling_text(const PciTree& tree, const PciPath& path) {
  const auto ceiling = topo::path_ceiling(tree, path);
  return ceiling ? fmt::format("{:.1f}", ceiling->gbps / 8) : std::string("-");
}

std::string port_text(const topo::TreeNic& nic) {
  if (nic.rate_gbps <= 0) return "unknown";
  return fmt::format("{}{:g}", nic.rate_source == topo::PortRate::kAtMost ? "<= " : "", nic.rate_gbps);
}

void print_paths(const topo::Topology& topology, std::size_t columns, std::ostream& out) {
  constexpr std::size_t kMostRows = 256;
  const PciTree& tree = *topology.tree;
  Table table({"GPU", "NIC", "relation", "narrowest link", "ACS", "PCIe GB/s", "port Gb/s", "expected GB/s"});
  std::size_t rows = 0;
  bool any_direct = false;
  for (const topo::Pair& pair : pairs_of(topology)) {
    const topo::TreeGpu* gpu = tree.gpu(pair.gpu);
    const topo::TreeNic* nic = tree.nic(pair.nic.raw());
    if (gpu == nullptr || nic == nullptr || !pair.relation) continue;
    if (++rows > kMostRows) continue;
    const auto add = [&](const std::string& name, const std::string& word, const PciPath& path,
                         topo::Relation relation) {
      const auto expected = report::predict(tree, path, *nic, relation);
      table.add({pair.gpu, name, word, narrowest_text(path), acs_text(path), ceiling_text(tree, path), port_text(*nic),
                 expected ? report::range_text(*expected) : std::string("unknown")});
    };
    const bool open = pair.nvidia_smi.empty() && !pair.tree->known();
    add(printable(pair.nic), open ? to_string(*pair.tree) : std::string(to_string(*pair.relation)),
        topo::path_to_nic(tree, gpu->function, *nic), *pair.relation);
    if (!pair.through_cpu) continue;
    any_direct = true;
    add(printable(pair.nic) + " by CPU", to_string(*pair.through_cpu),
        topo::path_between(tree, gpu->function, nic->function), pair.through_cpu->farthest);
  }
  if (rows == 0) return;
  out << "\nPaths (--explain GPU NIC shows one hop by hop)\n";
  table.print(out, columns);
  if (rows > kMostRows) out << fmt::format("... and {} more: see --json\n", rows - kMostRows);
  out << "expected: bandwidth of large messages in one direction. Under one PCIe switch it\n"
         "is what machines reach; elsewhere it is an upper bound (at most), with the range\n"
         "of published results. <=: the most that a card with this PCI ID can have.\n";
  if (any_direct) out << "by CPU: the path to the NIC's own function, without Data Direct.\n";
}

/// One row a GPU, one column a NIC; NICs that do not fit go into a table of their own.
void print_gpu_nic(const Matrix& matrix, std::size_t columns, std::ostream& out) {
  std::size_t label = std::string_view("relation").size();
  for (const std::string& gpu : matrix.gpus) label = std::max(label, gpu.size());
  for (std::size_t first = 0; first < matrix.nics.size();) {
    std::vector<std::string> header = {"relation"};
    std::size_t width = label;
    std::size_t end = first;
    for (; end < matrix.nics.size(); ++end) {
      std::size_t cell = matrix.nics[end].name.raw().size();
      for (const auto& row : matrix.gpu_nic) cell = std::max(cell, row[end].size());
      width += 2 + cell;
      if (columns > 0 && width > columns && end > first) break;
      header.push_back(printable(matrix.nics[end].name));
    }
    Table table(std::move(header));
    for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
      std::vector<std::string> row = {matrix.gpus[g]};
      for (std::size_t n = first; n < end; ++n) row.push_back(matrix.gpu_nic[g][n]);
      table.add(std::move(row));
    }
    table.print(out, columns);
    first = end;
    if (first < matrix.nics.size()) out << '\n';
  }
}

std::string relation_text(const topo::Pair& pair) {
  if (!pair.nvidia_smi.empty()) return pair.nvidia_smi;
  if (pair.tree && !pair.tree->known()) return to_string(*pair.tree);
  return std::string(to_string(*pair.relation));
}

/// Where all pairs are alike, no "best" means anything.
void print_tie(const std::vector<topo::Pair>& pairs, std::ostream& out) {
  std::set<std::string> gpus;
  std::set<Outside> nics;
  std::set<std::string> relations;
  for (const topo::Pair& pair : pairs) {
    gpus.insert(pair.gpu);
    nics.insert(pair.nic);
    relations.insert(relation_text(pair));
  }
  if (relations.size() != 1 || nics.size() < 2 || gpus.empty()) return;
  out << fmt::format("A tie: all pairs are {}, so no NIC is nearer to one GPU than to another.\n\n",
                     *relations.begin());
}

std::string expected_text(const topo::Topology& topology, const topo::Pair& pair) {
  if (!topology.tree || !pair.tree || !pair.relation) return "unknown";
  const PciTree& tree = *topology.tree;
  const topo::TreeNic& nic = *tree.nic(pair.nic.raw());
  const auto expected =
      report::predict(tree, topo::path_to_nic(tree, tree.gpu(pair.gpu)->function, nic), nic, *pair.relation);
  return expected ? report::range_text(*expected) : std::string("unknown");
}

void print_best_nics(const topo::Topology& topology, const std::vector<topo::Pair>& pairs, std::size_t columns,
                     std::ostream& out) {
  std::vector<std::string> header = {"GPU", "best NIC", "relation"};
  if (topology.tree) header.emplace_back("expected GB/s");
  Table table(std::move(header));
  std::set<std::string> done;
  for (const topo::Pair& pair : pairs) {
    if (!done.insert(pair.gpu).second) continue;
    const topo::Pair& best = pairs[*best_of_gpu(topology, pairs, pair.gpu)];
    std::vector<std::string> row = {pair.gpu, printable(best.nic), relation_text(best)};
    if (topology.tree) row.push_back(expected_text(topology, best));
    table.add(std::move(row));
  }
  table.print(out, columns);
  out << '\n';
}

void print_best_gpus(const topo::Topology& topology, const std::vector<topo::Pair>& pairs, std::size_t columns,
                     std::ostream& out) {
  Table table({"NIC", "best GPU", "relation"});
  std::set<Outside> done;
  for (const topo::Pair& pair : pairs) {
    if (!done.insert(pair.nic).second) continue;
    const topo::Pair& best = pairs[*best_of_nic(topology, pairs, pair.nic.raw())];
    table.add({printable(pair.nic), best.gpu, relation_text(best)});
  }
  out << '\n';
  table.print(out, columns);
}

// Pairs with the same reason share a line.
void print_differences(const std::vector<topo::Pair>& pairs, std::size_t columns, std::ostream& out) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const topo::Pair& pair : pairs) {
    if (!pair.explanation.empty()) by_reason[pair.explanation].push_back(printable(pair.key()));
  }
  for (const auto& [reason, keys] : by_reason) {
    constexpr std::size_t kNamed = 4;
    std::vector<std::string> named(
        keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, keys.size())));
    const std::string more = keys.size() > kNamed ? fmt::format(" and {} more", keys.size() - kNamed) : "";
    out << '\n' << wrapped(fmt::format("{}{}: {}", fmt::join(named, ", "), more, reason), columns, 2) << '\n';
  }
}

}  // namespace

void print_topology(const topo::Topology& topology, Rows rows, std::size_t columns, std::ostream& out) {
  const Matrix matrix = topology.matrix ? *topology.matrix : topology.tree ? matrix_of(*topology.tree) : Matrix();
  const std::vector<topo::Pair> pairs = pairs_of(topology);
  if (!pairs.empty()) print_best_nics(topology, pairs, columns, out);
  print_tie(pairs, out);
  if (pairs.empty() || rows == Rows::kAll) print_whole_matrix(matrix, columns, out);
  else print_gpu_nic(matrix, columns, out);
  if (topology.tree && rows == Rows::kAll) print_paths(topology, columns, out);
  if (!pairs.empty() && rows == Rows::kAll) print_best_gpus(topology, pairs, columns, out);
  if (topology.tree) {
    print_differences(pairs, columns, out);
    for (const std::string& note : topology.tree->notes) out << '\n' << wrapped("note: " + note, columns, 2) << '\n';
  }
  if (pairs.empty() || rows == Rows::kAll) return;
  out << "\nMore: -v (every path, all relations, the best GPU of each NIC), --explain GPU NIC\n"
         "(one path, hop by hop)\n";
}

}  // namespace gdrperf::app
