#include "objects/memory/domains.h"

#include <atomic>
#include <cerrno>
#include <memory>

#include "objects/queues/failure.h"

/// Thread domains and parent domains. A thread domain promises that one thread at
/// a time uses what is made in it; locks here favour the first thread anyway, so
/// the promise is taken and not needed. A parent domain leads to the domain that
/// it was made of, where its objects belong.
namespace gdrperf::softnic {
namespace {

struct ThreadDomain : ibv_td {
  std::atomic<int> users{0};
};

struct ParentDomain final : Pd {
  ThreadDomain* thread = nullptr;
};

}  // namespace

ibv_td* make_td(ibv_context* context, const ibv_td_init_attr& attr) {
  if (attr.comp_mask != 0 || !Context::of(context).alive()) {
    errno = EINVAL;
    return nullptr;
  }
  auto td = std::make_unique<ThreadDomain>();
  td->context = context;
  return td.release();
}

int destroy_td(ibv_td* td) {
  auto* ours = static_cast<ThreadDomain*>(td);
  if (ours->users.load() != 0) return EBUSY;
  delete ours;
  return 0;
}

ibv_pd* make_parent_domain(ibv_context* context, const ibv_parent_domain_init_attr& attr) {
  // Memory for queues is taken from nobody's allocators.
  // ALLOW_CC_UNPROTECTED_ALLOC of later headers: memory that the host of a virtual machine may see, too. There is no
  // host here.
  constexpr std::uint32_t kUnprotected = 1u << 2;
  constexpr std::uint32_t kKnown =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | kUnprotected;
  auto* const base = static_cast<Pd*>(attr.pd);
  if ((attr.comp_mask & ~kKnown) != 0 || base == nullptr || base->context != context || base->base != nullptr ||
      !Context::of(context).alive()) {
    errno = EINVAL;
    return nullptr;
  }
  auto parent = std::make_unique<ParentDomain>();
  parent->context = context;
  parent->number = parent->handle = base->number;
  parent->base = base;
  parent->thread = static_cast<ThreadDomain*>(attr.td);
  if (parent->thread != nullptr) ++parent->thread->users;
  ++base->users;
  return parent.release();
}

void destroy_parent_domain(Pd& parent) {
  auto* ours = static_cast<ParentDomain*>(&parent);
  if (ours->thread != nullptr) --ours->thread->users;
  --ours->base->users;
  delete ours;
}

}  // namespace gdrperf::softnic
