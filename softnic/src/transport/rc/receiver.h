#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "host/process/process.h"
#include "memory/pieces.h"
#include "paths/target.h"
#include "shared/segment/completion.h"
#include "shared/segment/request.h"
#include "shared/sync/ring.h"

/// Effects of every transport on the QP that receives a message.
namespace gdrperf::softnic {

/// Spreads a message of `total` bytes over the SGEs of a receive, of which the
/// first one has the first `skip` already. SUCCESS, or what the receiver's
/// completion says: LOC_LEN_ERR, LOC_PROT_ERR; a failed copy is `copy_error`
/// (left alone otherwise).
ibv_wc_status scatter(const Target& target, const TakenReceive& receive, Pieces& message, ibv_wc_status& copy_error,
                      std::uint64_t total, std::uint64_t skip) noexcept;

/// Completes the receive, with `completion` but for what says where it was
/// posted, and tells who waits for it. False: its queue is full.
bool deliver(const Target& target, Process& process, Completion& completion, RecvCell& receive,
             bool solicited) noexcept;

/// The target goes into the error state, and its process is told.
void fail_target(const Target& target, Process& process, std::uint32_t event) noexcept;

/// An atomic operation on an aligned word of the region, which allows it; `found`: what
/// was there. Fails with REM_INV_REQ_ERR where it is not aligned; kUnreachable: later.
Outcome change_word(const Target& target, Process& process, const MrShared& region, const SendOp& op,
                    std::uint64_t& found) noexcept;

/// Has the target's state changed since it was looked at? Looks at it anew.
/// False: it is in no state to receive. What is the transport's own stays to be
/// checked, before finish_look().
bool begin_look(Target& target, std::uint64_t& epoch) noexcept;
/// False: it changed meanwhile.
bool finish_look(Target& target, std::uint64_t epoch) noexcept;

/// Before a message is copied: the cells that are written after it, this one's
/// completion and the next receive. Not without a link model, where the owner
/// looks at them all the time and takes them back.
void fetch_ahead(const Target& target) noexcept;

}  // namespace gdrperf::softnic
