#include "gdrperf/proto/operation.h"

#include <algorithm>
#include <iterator>

namespace gdrperf {
namespace {

// In the order of Operation.
constexpr OperationFacts kOperations[] = {
    {.operation = Operation::kWrite,
     .name = "write",
     .title = "RDMA write",
     .request = "RDMA write",
     .carries_data = true,
     .names_address = true,
     .round_in_memory = true,
     .over_uc = true},
    {.operation = Operation::kSend,
     .name = "send",
     .title = "send and receive",
     .request = "send",
     .carries_data = true,
     .receives = true,
     .over_uc = true,
     .over_ud = true},
    {.operation = Operation::kRead,
     .name = "read",
     .title = "RDMA read",
     .request = "RDMA read",
     .names_address = true},
    {.operation = Operation::kWriteImm,
     .name = "write_imm",
     .title = "RDMA write with immediate",
     .request = "RDMA write with immediate",
     .carries_data = true,
     .names_address = true,
     .receives = true,
     .in_sweep = false,
     .over_uc = true},
    {.operation = Operation::kSendImm,
     .name = "send_imm",
     .title = "send with immediate",
     .request = "send with immediate",
     .carries_data = true,
     .receives = true,
     .in_sweep = false,
     .over_uc = true,
     .over_ud = true},
    {.operation = Operation::kAtomic,
     .name = "atomic",
     .title = "atomics (fetch and add, compare and swap)",
     .request = "atomic",
     .names_address = true,
     .in_sweep = false,
     .only_bytes = 8},
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

bool acknowledged(Transport transport) { return transport != Transport::kUc && transport != Transport::kUd; }

bool by_driver(Transport transport) { return transport == Transport::kDc || transport == Transport::kSrd; }

bool goes_over(Operation operation, Transport transport) {
  const OperationFacts& facts = facts_of(operation);
  if (transport == Transport::kSrd) return operation != Operation::kAtomic;
  return acknowledged(transport) || (transport == Transport::kUc ? facts.over_uc : facts.over_ud);
}

bool can_verify(const Test& test, Transport transport) {
  return acknowledged(transport) || facts_of(test.operation).receives || test.metric == Metric::kLatency;
}

std::uint64_t largest_datagram(const TestSpec& spec) {
  return spec.mtu_bytes == 0 ? kMostDatagramBytes : static_cast<std::uint64_t>(spec.mtu_bytes);
}

std::vector<std::uint64_t> sizes_within(const TestSpec& spec, const std::vector<std::uint64_t>& sizes) {
  if (spec.transport != Transport::kUd) return sizes;
  const std::uint64_t most = largest_datagram(spec);
  std::vector<std::uint64_t> within;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(within),
               [most](std::uint64_t size) { return size <= most; });
  return within;
}

std::vector<std::uint64_t> sizes_of(Operation operation, const std::vector<std::uint64_t>& asked) {
  const std::uint64_t only = facts_of(operation).only_bytes;
  return only == 0 ? asked : std::vector<std::uint64_t>{only};
}

}  // namespace gdrperf
