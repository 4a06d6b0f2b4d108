#include "objects/queues/srq.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "mlx5/nic.h"
#include "objects/queues/failure.h"

namespace gdrperf::softnic {
namespace {

unsigned ring_shift_for(std::uint32_t entries) {
  return static_cast<unsigned>(std::bit_width(entries > 1 ? entries - 1 : 0));
}

}  // namespace

RecvQueue::RecvQueue(Process& owner, std::uint32_t max_wr, std::uint32_t max_sge, Takers takers)
    : process(owner), max_posted(1u << ring_shift_for(max_wr)), lock(owner.barrier_registered()) {
  const unsigned shift = ring_shift_for(max_wr) + (takers == Takers::kMany ? 1 : 0);
  const std::uint64_t offset = process.memory().allocate(RecvRing::bytes(shift, max_sge));
  if (offset == 0) throw VerbsFailure{ENOMEM};
  place = RingPlace{offset, max_sge, shift}.word();
  ring = RecvRing::at(process.segment(), place);
}

RecvQueue::~RecvQueue() {
  process.memory().free(RingPlace::of(place).offset, RecvRing::bytes(ring.shift, ring.max_sge));
}

void RecvQueue::keep(std::unique_ptr<RecvQueue> queue) {
  static Mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<RecvQueue>>();
  const MutexLock guard(mutex);
  kept.push_back(std::move(queue));
}

int RecvQueue::post(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept {
  lock.lock_favoured();
  int error = 0;
  for (; request != nullptr; request = request->next) {
    if (request->num_sge < 0 || static_cast<std::uint32_t>(request->num_sge) > ring.max_sge) {
      error = EINVAL;
    } else if ((ring.mask >= max_posted && !ring.has_room(max_posted)) ||
               !ring.post(request->wr_id, request->sg_list, request->num_sge)) {
      error = ENOMEM;
    }
    if (error != 0) {
      *bad = request;
      break;
    }
  }
  lock.unlock();
  return error;
}

void RecvQueue::clear() {
  lock.lock();
  for (std::uint32_t i = 0; i <= ring.mask; ++i) ring.cell(i).seq.store(0);
  ring.memory->head.store(0);
  ring.memory->tail.store(0);
  lock.unlock();
}

Srq::Srq(Pd& owner, const ibv_srq_init_attr& attr)
    : ibv_srq{}, queue(Context::of(owner.context).process, attr.attr.max_wr, attr.attr.max_sge,
                       RecvQueue::Takers::kMany),
      attributes(attr.attr) {
  context = owner.context;
  pd = &owner;
  srq_context = attr.srq_context;
  attributes.max_wr = queue.max_posted;
  queue.ring.memory->limit.store(attr.attr.srq_limit);
  limit_set = attr.attr.srq_limit != 0;
  ++owner.users;
  ::pthread_mutex_init(&mutex, nullptr);
  ::pthread_cond_init(&cond, nullptr);
}

Srq::~Srq() {
  if (rings != nullptr) Context::of(context).nic->watcher.remove(*this);
  --static_cast<Pd*>(pd)->users;
  ::pthread_mutex_destroy(&mutex);
  ::pthread_cond_destroy(&cond);
}

}  // namespace gdrperf::softnic
