#include "engine/setup/op_traits.h"

namespace gdrperf::engine {
namespace {

constexpr int kWritten = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

constexpr OpTraits kWriteWithImmediate = {
    .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .has_remote_address = true, .consumes_receives = true,
    .target_access = kWritten, .qp_access = IBV_ACCESS_REMOTE_WRITE, .can_inline = true,
    .round_end = RoundEnd::kReceive, .halved = true};

constexpr OpTraits kSendWithImmediate = {.opcode = IBV_WR_SEND_WITH_IMM,
                                         .consumes_receives = true,
                                         .target_access = IBV_ACCESS_LOCAL_WRITE,
                                         .can_inline = true,
                                         .round_end = RoundEnd::kReceive,
                                         .halved = true};

constexpr OpTraits kFetchAdd = {
    .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .has_remote_address = true, .initiator_access = IBV_ACCESS_LOCAL_WRITE,
    .target_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, .qp_access = IBV_ACCESS_REMOTE_ATOMIC,
    .carries_operands = true, .round_end = RoundEnd::kOwnCompletion};

constexpr OpTraits with_opcode(OpTraits traits, ibv_wr_opcode opcode) {
  traits.opcode = opcode;
  return traits;
}
constexpr OpTraits kCompareSwap = with_opcode(kFetchAdd, IBV_WR_ATOMIC_CMP_AND_SWP);

constexpr OpTraits kWriteThenWrite = {
    .opcode = IBV_WR_RDMA_WRITE, .has_remote_address = true, .target_access = kWritten,
    .qp_access = IBV_ACCESS_REMOTE_WRITE, .can_inline = true, .flag = true, .round_end = RoundEnd::kMemory,
    .halved = true};

constexpr OpTraits kWriteThenImmediate = {
    .opcode = IBV_WR_RDMA_WRITE, .has_remote_address = true, .consumes_receives = true, .target_access = kWritten,
    .qp_access = IBV_ACCESS_REMOTE_WRITE, .can_inline = true, .flag = true, .flag_opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
    .round_end = RoundEnd::kReceive, .halved = true};

constexpr OpTraits kWriteThenAtomic = {
    .opcode = IBV_WR_RDMA_WRITE, .has_remote_address = true, .initiator_access = IBV_ACCESS_LOCAL_WRITE,
    .target_access = kWritten | IBV_ACCESS_REMOTE_ATOMIC,
    .qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
    .can_inline = true, .flag = true, .flag_opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .round_end = RoundEnd::kMemory,
    .halved = true};

// In the order of Operation.
constexpr OpTraits kTraits[] = {
    {.opcode = IBV_WR_RDMA_WRITE, .has_remote_address = true, .target_access = kWritten,
     .qp_access = IBV_ACCESS_REMOTE_WRITE, .can_inline = true, .round_end = RoundEnd::kMemory, .halved = true},
    {.opcode = IBV_WR_SEND, .consumes_receives = true, .target_access = IBV_ACCESS_LOCAL_WRITE, .can_inline = true,
     .round_end = RoundEnd::kReceive, .halved = true},
    {.opcode = IBV_WR_RDMA_READ, .has_remote_address = true, .initiator_access = IBV_ACCESS_LOCAL_WRITE,
     .target_access = IBV_ACCESS_REMOTE_READ, .qp_access = IBV_ACCESS_REMOTE_READ,
     .round_end = RoundEnd::kOwnCompletion},
    kWriteWithImmediate,
    kSendWithImmediate,
    kFetchAdd,
};

}  // namespace

const OpTraits& traits_of(Operation operation) { return kTraits[static_cast<std::size_t>(operation)]; }

const OpTraits& write_with_immediate() { return kWriteWithImmediate; }

const OpTraits& compare_and_swap() { return kCompareSwap; }

const OpTraits& signalled_write(Signal signal) {
  return signal == Signal::kImmediate ? kWriteThenImmediate
         : signal == Signal::kAtomic  ? kWriteThenAtomic : kWriteThenWrite;
}

std::optional<verbs::DriverKind> driver_kind(Transport transport) {
  if (transport == Transport::kDc) return verbs::DriverKind::kDc;
  if (transport == Transport::kSrd) return verbs::DriverKind::kSrd;
  return std::nullopt;
}

}  // namespace gdrperf::engine
