#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "gdrperf/base/error.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/path.h"
#include "gdrperf/topo/placement.h"
#include "gdrperf/topo/readers.h"

/// Invariants of every tree, from whatever text it was read.
inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void check_tree(const gdrperf::topo::PciTree& tree) {
  using namespace gdrperf::topo;
  for (std::size_t i = 0; i < tree.functions.size(); ++i) {
    const PciFunction& function = tree.functions[i];
    require(function.parent < static_cast<int>(i));
    require(function.root >= -1 && function.root < static_cast<int>(tree.roots.size()));
  }
  for (const TreeNic& nic : tree.nics) require(nic.function < tree.functions.size());
  for (const TreeGpu& gpu : tree.gpus) {
    require(gpu.function < tree.functions.size());
    for (const TreeNic& nic : tree.nics) {
      const PciPath path = path_between(tree, gpu.function, nic.function);
      require(path.relation.nearest <= path.relation.farthest);
      require(relation_of(tree, nic.function, gpu.function) == path.relation);
      static_cast<void>(nccl_relation_of(tree, gpu.function, nic.function));
      if (const auto ceiling = path_ceiling(tree, path)) require(ceiling->gbps > 0);
    }
  }
  static_cast<void>(with_broadcom_switches_merged(tree));
}

/// Parses; a refusal must be one short line that names a place.
template <typename Parse>
int try_tree(Parse parse, const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    check_tree(parse(text, "input"));
  } catch (const gdrperf::Error& error) {
    const std::string message = error.what();
    require(error.code() == gdrperf::ExitCode::kUsage && message.size() < 400);
    require(message.starts_with("input:") && message.find('\n') == std::string::npos);
  }
  return 0;
}
