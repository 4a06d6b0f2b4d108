#include "gdrperf/engine/op_traits.h"

#include "gdrperf/mem/kind.h"

namespace gdrperf::engine {

const OpTraits& traits_of(Operation operation) {
  static constexpr OpTraits kWrite{IBV_WR_RDMA_WRITE, true, false, 0,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE,
                                   false, true, RoundEnd::kMemory, true};
  static constexpr OpTraits kSend{IBV_WR_SEND, false, true, 0, IBV_ACCESS_LOCAL_WRITE, 0,
                                  false, true, RoundEnd::kReceive, true};
  static constexpr OpTraits kRead{IBV_WR_RDMA_READ, true, false, IBV_ACCESS_LOCAL_WRITE,
                                  IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ, true, false,
                                  RoundEnd::kOwnCompletion, false};
  switch (operation) {
    case Operation::kSend: return kSend;
    case Operation::kRead: return kRead;
    case Operation::kWrite: break;
  }
  return kWrite;
}

bool ends_by_immediate(const TestSpec& spec) {
  if (spec.test.operation != Operation::kWrite || spec.test.metric != Metric::kLatency) return false;
  return mem::on_gpu(mem::parse_kind(spec.client.buffer, "--buffer")) ||
         mem::on_gpu(mem::parse_kind(spec.server.buffer, "--peer-buffer"));
}

const OpTraits& traits_of(const TestSpec& spec) {
  static constexpr OpTraits kWriteWithImmediate{IBV_WR_RDMA_WRITE_WITH_IMM, true, true, 0,
                                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                                IBV_ACCESS_REMOTE_WRITE, false, true, RoundEnd::kReceive, true};
  return ends_by_immediate(spec) ? kWriteWithImmediate : traits_of(spec.test.operation);
}

}  // namespace gdrperf::engine
