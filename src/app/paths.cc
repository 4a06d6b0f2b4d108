#include "paths.h"

#include "gdrperf/base/error.h"
#include "gdrperf/mem/kind.h"

namespace gdrperf::app {

bool uses_gpu(const std::string& buffer) {
  try {
    return mem::on_gpu(mem::parse_kind(buffer, "--buffer"));
  } catch (const Error&) {
    return false;  // refused where it is used
  }
}

std::vector<Path> ways(const TestSpec& spec, const std::vector<Path>& wanted) {
  const bool gpu = mem::on_gpu(mem::parse_kind(spec.client.buffer, "--buffers")) ||
                   mem::on_gpu(mem::parse_kind(spec.server.buffer, "--peer-buffer"));
  return gpu ? wanted : std::vector<Path>{Path::kDirect};
}

}  // namespace gdrperf::app
