#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "objects/attributes/context.h"
#include "objects/queues/cq.h"
#include "objects/queues/srq.h"

namespace gdrperf::softnic {

/// An XRC domain, of this process: receiving QPs and SRQs of one domain go
/// together. The receiving QPs have no PD and no CQ of the program's; they stand
/// on those that the domain has for itself.
struct Xrcd : ibv_xrcd {
  /// Throws VerbsFailure: EAGAIN where no such domain is open and O_CREAT is not
  /// given, EINVAL for one that is, with O_EXCL.
  Xrcd(Context& owner, const ibv_xrcd_init_attr& attr);
  ~Xrcd();
  static Xrcd& of(ibv_xrcd* xrcd) { return *static_cast<Xrcd*>(xrcd); }

  std::uint32_t number = 0;
  std::atomic<int> users{0};
  Pd pd;
  std::unique_ptr<Cq> cq;

 private:
  bool has_file_ = false;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

/// An SRQ that requests name by its number. Its completions come into its own CQ.
struct XrcSrq final : Srq {
  /// Throws VerbsFailure.
  XrcSrq(Pd& owner, Xrcd& domain, Cq& queue, const ibv_srq_init_attr& attr);
  ~XrcSrq();
  /// Null where it is another kind of SRQ.
  static XrcSrq* of(ibv_srq* srq);

  std::uint32_t number() const noexcept;

  Xrcd& xrcd;
  Cq& cq;

 private:
  Process& process_;
  std::uint32_t index_;
};

/// Of the domain with this number, under a lock.
void for_each_xrc_srq(std::uint32_t domain, const std::function<void(XrcSrq&)>& visit);

/// A request for an XRC QP, filled up with what the domain stands in for.
void complete_xrc_request(ibv_qp_init_attr_ex& attr);
constexpr bool is_xrc(ibv_qp_type type) { return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV; }

}  // namespace gdrperf::softnic
