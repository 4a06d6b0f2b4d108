#include "objects/xrc/xrc.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "objects/queues/failure.h"

namespace gdrperf::softnic {
namespace {

/// XRC objects of this process. Never destroyed.
struct XrcTables {
  Mutex mutex;
  std::vector<Xrcd*> domains GUARDED_BY(mutex);
  std::vector<XrcSrq*> srqs GUARDED_BY(mutex);
};

XrcTables& xrc_tables() {
  static auto* const tables = new XrcTables();
  return *tables;
}

}  // namespace

Xrcd::Xrcd(Context& owner, const ibv_xrcd_init_attr& attr) : ibv_xrcd{} {
  constexpr std::uint32_t kAll = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (attr.comp_mask != kAll || (attr.oflags & ~(O_CREAT | O_EXCL)) != 0) throw VerbsFailure{EINVAL};
  context = pd.context = &owner.context;
  if (attr.fd != -1) {
    struct stat file {};
    if (::fstat(attr.fd, &file) != 0) throw VerbsFailure{EBADF};
    has_file_ = true;
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
  cq = std::make_unique<Cq>(owner, 1, nullptr, nullptr);
  XrcTables& tables = xrc_tables();
  const MutexLock guard(tables.mutex);
  const auto same = std::find_if(tables.domains.begin(), tables.domains.end(), [this](const Xrcd* it) {
    return has_file_ && it->has_file_ && it->context->device == context->device && it->device_ == device_ &&
           it->inode_ == inode_;
  });
  if (same == tables.domains.end() && has_file_ && (attr.oflags & O_CREAT) == 0) throw VerbsFailure{EAGAIN};
  if (same != tables.domains.end() && (attr.oflags & O_EXCL) != 0) throw VerbsFailure{EINVAL};
  pd.number = pd.handle = owner.process.next_pd.fetch_add(1);
  number = same != tables.domains.end() ? (*same)->number : pd.number;
  tables.domains.push_back(this);
}

Xrcd::~Xrcd() {
  XrcTables& tables = xrc_tables();
  const MutexLock guard(tables.mutex);
  std::erase(tables.domains, this);
}

XrcSrq::XrcSrq(Pd& owner, Xrcd& domain, Cq& queue_of, const ibv_srq_init_attr& attr)
    : Srq(owner, attr), xrcd(domain), cq(queue_of), process_(Context::of(owner.context).process),
      index_(process_.xrc_srq_indices.take()) {
  if (index_ == 0) throw VerbsFailure{ENOMEM};
  XrcSrqShared& shared = process_.segment().xrc_srqs[index_];
  shared.xrcd = domain.number;
  shared.pd = owner.number;
  shared.recv_cq = cq.index;
  shared.ring = queue.place;
  ++xrcd.users;
  ++cq.users;
  {
    XrcTables& tables = xrc_tables();
    const MutexLock guard(tables.mutex);
    tables.srqs.push_back(this);
  }
  shared.number.store(number(), std::memory_order_release);
}

XrcSrq::~XrcSrq() {
  process_.segment().xrc_srqs[index_].number = 0;
  // Whoever enters a turn from now on does not find it; those before have left then.
  process_.settle(static_cast<Pd*>(pd)->number);
  {
    XrcTables& tables = xrc_tables();
    const MutexLock guard(tables.mutex);
    std::erase(tables.srqs, this);
  }
  process_.xrc_srq_indices.give_back(index_);
  --cq.users;
  --xrcd.users;
}

std::uint32_t XrcSrq::number() const noexcept { return make_qpn(process_.block(), index_); }

XrcSrq* XrcSrq::of(ibv_srq* srq) {
  XrcTables& tables = xrc_tables();
  const MutexLock guard(tables.mutex);
  const auto found = std::find(tables.srqs.begin(), tables.srqs.end(), static_cast<Srq*>(srq));
  return found != tables.srqs.end() ? *found : nullptr;
}

void for_each_xrc_srq(std::uint32_t domain, const std::function<void(XrcSrq&)>& visit) {
  XrcTables& tables = xrc_tables();
  const MutexLock guard(tables.mutex);
  for (XrcSrq* it : tables.srqs) {
    if (it->xrcd.number == domain) visit(*it);
  }
}

void complete_xrc_request(ibv_qp_init_attr_ex& attr) {
  if (attr.qp_type == IBV_QPT_XRC_SEND) {
    // It receives nothing.
    attr.recv_cq = attr.send_cq;
    attr.srq = nullptr;
    attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    return;
  }
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr.xrcd == nullptr) throw VerbsFailure{EINVAL};
  Xrcd& domain = Xrcd::of(attr.xrcd);
  attr.pd = &domain.pd;
  attr.send_cq = attr.recv_cq = reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(domain.cq.get()));
  attr.srq = nullptr;
  attr.cap = {};
}

}  // namespace gdrperf::softnic
