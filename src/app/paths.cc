#include "paths.h"

#include "gdrperf/mem/kind.h"

namespace gdrperf::app {

std::vector<Path> ways(const TestSpec& spec, Test test, const std::vector<Path>& wanted) {
  const bool gpu = mem::on_gpu(mem::parse_kind(spec.client.buffer, "--buffers")) ||
                   mem::on_gpu(mem::parse_kind(spec.server.buffer, "--peer-buffer"));
  const bool pushes = test.operation == Operation::kWrite || test.operation == Operation::kSend;
  if (gpu && pushes && spec.direction == Direction::kUnidirectional) return wanted;
  return {Path::kDirect};
}

}  // namespace gdrperf::app
