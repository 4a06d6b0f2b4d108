#include "app/plan/rail_gpus.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/mem/kind.h"
#include "gdrperf/proto/settings.h"
#include "app/client/parts.h"
#include "app/options/paths.h"

namespace gdrperf::app {
namespace {

bool unnamed(const std::string& buffer) { return buffer.find(':') == std::string::npos && uses_gpu(buffer); }

/// "mlx5_0 GPU0 (PIX), mlx5_1 GPU0 (SYS, shared)"; `buffer` becomes the list.
std::string give(std::string& buffer, const topo::Topology& topology, const std::vector<std::string>& nics,
                 const std::string& option) {
  const std::vector<topo::Pair> pairs = topo::pairs_of(topology);
  const std::vector<topo::NicGpu> chosen = topo::gpus_of_nics(topology, pairs, nics);
  std::string list;
  std::string text;
  for (std::size_t rail = 0; rail < nics.size(); ++rail) {
    if (!chosen[rail].pair) {
      throw Error(ExitCode::kEnvironment,
                  fmt::format("{} {}: there is no GPU whose place relative to {} is known", option, buffer, nics[rail]),
                  fmt::format("name them, one for each rail: {} {}:0,{}:1", option, buffer, buffer));
    }
    const topo::Pair& pair = pairs[*chosen[rail].pair];
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", buffer, name_for_cuda(topology, pair.gpu));
    text += fmt::format("{}{} {} ({}{})", text.empty() ? "" : ", ", nics[rail], pair.gpu, to_string(*pair.relation),
                        chosen[rail].shared ? ", shared" : "");
  }
  buffer = list;
  return text;
}

}  // namespace

bool wants_rail_gpus(const TestSpec& spec) {
  return !spec.rails.empty() && (unnamed(spec.client.buffer) || unnamed(spec.server.buffer));
}

std::string give_rails_gpus(TestSpec& spec, const topo::Topology& topology, bool here) {
  const Rails rails = rails_of(spec);
  std::string text;
  if (unnamed(spec.server.buffer) && !here) {
    const std::string option = peer_flag<&EndSpec::buffer>();
    throw usage_error(
        fmt::format("{} {}: which of its GPUs is near which NIC only the server knows", option, spec.server.buffer),
        fmt::format("name them, one for each rail: {} {}:0,{}:1", option, spec.server.buffer, spec.server.buffer));
  }
  if (unnamed(spec.client.buffer))
    text = "GPUs of the rails: " + give(spec.client.buffer, topology, rails.own, own_flag<&EndSpec::buffer>());
  if (unnamed(spec.server.buffer)) {
    text += fmt::format("{}at the server: {}", text.empty() ? "GPUs of the rails " : "; ",
                        give(spec.server.buffer, topology, rails.peer, peer_flag<&EndSpec::buffer>()));
  }
  return text;
}

std::string name_for_cuda(const topo::Topology& topology, const std::string& gpu) {
  const topo::TreeGpu* known = topology.tree ? topology.tree->gpu(gpu) : nullptr;
  return known == nullptr ? gpu.substr(3) : to_string(topology.tree->functions[known->function].address);
}

}  // namespace gdrperf::app
