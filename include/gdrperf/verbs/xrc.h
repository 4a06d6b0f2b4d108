#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "gdrperf/verbs/resources.h"

// Extended reliable connections: a QP that only sends, and one that only answers and puts what arrives into the shared
// receive queue that the sender names. Factories throw Error(kEnvironment) as those of verbs/resources.h do.
namespace gdrperf::verbs {

namespace detail {
/// ibv_close_xrcd() is inline, hence no name that a type could have in common with another file.
struct XrcDomainDeleter {
  void operator()(ibv_xrcd* domain) const noexcept;
};
}  // namespace detail

/// Declared before the SRQs and QPs that belong to it.
using XrcDomain = std::unique_ptr<ibv_xrcd, detail::XrcDomainDeleter>;

XrcDomain make_xrc_domain(ibv_context* context);
/// Its completions go to `cq`.
Srq make_xrc_srq(ibv_pd* pd, ibv_xrcd* domain, ibv_cq* cq, std::uint32_t receives, int sges);
/// Number by which senders name it.
std::uint32_t srq_number(ibv_srq* srq);

/// `attr` as for make_qp(): what is granted comes back in it.
Qp make_xrc_sender(ibv_pd* pd, ibv_qp_init_attr& attr, Inlining inlining);
Qp make_xrc_responder(ibv_context* context, ibv_xrcd* domain);

}  // namespace gdrperf::verbs
