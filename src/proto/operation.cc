#include "gdrperf/proto/operation.h"

#include <iterator>

namespace gdrperf {
namespace {

// In the order of Operation.
constexpr OperationFacts kOperations[] = {
    {Operation::kWrite, "write", "RDMA write", "RDMA write", true, false, true},
    {Operation::kSend, "send", "send and receive", "send", true, true, false},
    {Operation::kRead, "read", "RDMA read", "RDMA read", false, false, false},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i].operation != static_cast<Operation>(i)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const OperationFacts> operations() { return kOperations; }

const OperationFacts& facts_of(Operation operation) { return kOperations[static_cast<std::size_t>(operation)]; }

}  // namespace gdrperf
