#include "paths.h"

#include "gdrperf/mem/kind.h"

namespace gdrperf::app {

std::vector<Path> ways(const TestSpec& spec, const std::vector<Path>& wanted) {
  const bool gpu = mem::on_gpu(mem::parse_kind(spec.client.buffer, "--buffers")) ||
                   mem::on_gpu(mem::parse_kind(spec.server.buffer, "--peer-buffer"));
  return gpu ? wanted : std::vector<Path>{Path::kDirect};
}

}  // namespace gdrperf::app
