#include "host/process/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "gdrperf/base/error.h"
#include "host/process/names.h"
#include "memory/own_window.h"
#include "shared/sync/inherited.h"
#include "shared/sync/limited.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kBlocks = 1u << (24 - kQpIndexBits);
constexpr int kBacklog = 128;

Mutex g_create_mutex;
std::atomic<Process*> g_current{nullptr};

}  // namespace

std::uint32_t IndexPool::take() {
  const MutexLock guard(mutex_);
  const auto limit = static_cast<std::uint32_t>(used_.size());
  for (std::uint32_t tried = 0; tried < limit; ++tried) {
    const std::uint32_t index = next_;
    next_ = next_ + 1 == limit ? 1 : next_ + 1;
    if (!used_[index]) {
      used_[index] = true;
      return index;
    }
  }
  return 0;
}

void IndexPool::give_back(std::uint32_t index) {
  const MutexLock guard(mutex_);
  used_[index] = false;
}

Process& Process::get() {
  const MutexLock guard(g_create_mutex);
  Process* process = g_current.load();
  if (process == nullptr) {
    process = new Process();
    g_current.store(process);
    watch_forks();
  }
  return *process;
}

void Process::watch_forks() {
  static const int registered = ::pthread_atfork(&before_fork, &after_fork_parent, &after_fork_child);
  static_cast<void>(registered);
}

bool Process::is_current(const Process* process) noexcept {
  return process == g_current.load(std::memory_order_relaxed);
}

Process::Process()
    : control_(*this),
      hub_({[this](std::uint32_t qpn) { return qpn_block(qpn) == block_; },
            [this](std::uint32_t qpn, int socket) { return hand_over(qpn, socket); }}) {
  if (::getrandom(&id_, sizeof id_, 0) != sizeof id_) {
    throw CallFailure("getrandom", errno);
  }
  // Sparse, as the segment's table.
  void* table = raw_mmap(nullptr, kMaxMrs * sizeof(MrShared), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) throw CallFailure("mmap of the table of regions", errno);
  known_ = static_cast<MrShared*>(table);
  regions_ = {known_, segment().mrs};
  barrier_registered_ = register_for_heavy_barriers();
  claim_block();
  SegmentHeader& header = segment().header;
  header.process_id = id_;
  header.pid = ::getpid();
  header.window_bytes = mover_.window_bytes();
  header.owner_barrier = barrier_registered_ ? 1 : 0;
  header.magic.store(kSegmentMagic, std::memory_order_release);
  control_.start(listener_.get());
}

bool Process::claim(std::uint32_t block) {
  if (block == 0) return false;  // QP numbers 0 and 1 are taken by the specification
  listener_ = listen_at(socket_name(block), kBacklog);
  if (!listener_ && errno != EADDRINUSE) throw CallFailure("a listening socket", errno);
  block_ = block;
  return static_cast<bool>(listener_);
}

/// All names are taken, by others who perhaps mean ill.
bool Process::claim_beside(std::uint32_t block) {
  if (block == 0) return false;
  std::string name = socket_name(block);
  if (is_taken(name)) return false;
  listener_ = listen_beside(name, kBacklog);
  block_ = block;
  // Two that came at once go away both.
  if (listener_ && !is_taken(socket_name(block), name)) return true;
  listener_.reset();
  return false;
}

void Process::claim_block() {
  // Random start, then every block once: 1229 is prime to the count.
  const auto block = [this](std::uint32_t tried) { return static_cast<std::uint32_t>(id_ + tried * 1229u) % kBlocks; };
  for (std::uint32_t tried = 0; tried < kBlocks; ++tried) {
    if (claim(block(tried))) return;
  }
  for (std::uint32_t tried = 0; tried < kBlocks; ++tried) {
    if (claim_beside(block(tried))) return;
  }
  throw Error(ExitCode::kEnvironment, "softnic: all blocks of QP numbers on this host are in use");
}

void Process::take_connection(UniqueFd socket) { hub_.greet(std::move(socket), Hub::Origin::kHandedOver); }

/// To the process of this user that has the QP.
bool Process::hand_over(std::uint32_t qpn, int socket) {
  const UniqueFd channel = connect_to(socket_name(qpn_block(qpn)), is_own_user);
  WireRequest request;
  request.process_id = id_;
  request.kind = WireKind::kTcp;
  request.number = qpn;
  return channel && send_packet(channel.get(), &request, sizeof request, &socket, 1);
}

std::shared_ptr<Peer> Process::peer(std::uint32_t block, const PeerPolicy& policy) {
  {
    const MutexLock guard(mutex_);
    for (const auto& peer : peers_) {
      if (peer->block() == block && !peer->gone() && peer->suits(policy)) return peer;
    }
  }
  auto connected = Peer::connect(block, id_, policy);
  if (!connected) return nullptr;
  const MutexLock guard(mutex_);
  for (const auto& peer : peers_) {
    if (peer->block() == block && !peer->gone() && peer->suits(policy)) return peer;
  }
  peers_.push_back(connected);
  control_.watch(*connected);
  return connected;
}

void Process::forget_gone_peers() {
  const MutexLock guard(mutex_);
  const auto gone = [&](const std::shared_ptr<Peer>& peer) {
    if (!peer->gone()) return false;
    control_.unwatch(*peer);
    return true;
  };
  peers_.erase(std::remove_if(peers_.begin(), peers_.end(), gone), peers_.end());
}

void Process::add(LocalContext* context) {
  const MutexLock guard(mutex_);
  contexts_.push_back(context);
}

void Process::remove(LocalContext* context) {
  const MutexLock guard(mutex_);
  contexts_.erase(std::remove(contexts_.begin(), contexts_.end(), context), contexts_.end());
}

void Process::for_each_context(const std::function<void(LocalContext&)>& visit) {
  const MutexLock guard(mutex_);
  for (LocalContext* context : contexts_) visit(*context);
}

std::uint32_t Process::add_channel(int fd) {
  const MutexLock guard(mutex_);
  channels_.push_back(fd);
  return static_cast<std::uint32_t>(channels_.size() - 1);
}

void Process::remove_channel(std::uint32_t number) {
  const MutexLock guard(mutex_);
  channels_[number] = -1;
}

int Process::channel_fd(std::uint32_t number) {
  const MutexLock guard(mutex_);
  return number < channels_.size() ? channels_[number] : -1;
}

void Process::publish(LocalQp* qp, std::uint32_t index) {
  const MutexLock guard(qps_mutex_);
  qps_[index] = qp;
}

void Process::withdraw(std::uint32_t index) {
  const MutexLock guard(qps_mutex_);
  qps_.erase(index);
}

void Process::for_each_qp(const std::function<void(LocalQp&)>& visit) {
  const MutexLock guard(qps_mutex_);
  for (const auto& [index, qp] : qps_) visit(*qp);
}

void Process::with_qp(std::uint32_t index, const std::function<void(LocalQp&)>& visit) {
  const MutexLock guard(qps_mutex_);
  if (const auto found = qps_.find(index); found != qps_.end()) visit(*found->second);
}

void Process::publish_region(std::uint32_t index, std::uint32_t key) noexcept {
  MrShared& known = known_[index];
  MrShared& seen = regions_.published[index];
  seen.pd = known.pd;
  seen.access = known.access;
  seen.qpn = known.qpn;
  seen.iova = known.iova;
  seen.length = known.length;
  seen.addr = program_address(known);
  seen.moved_begin = known.moved_begin;
  seen.moved_end = known.moved_end;
  seen.window_pd = known.window_pd;
  seen.region = known.region;
  seen.key.store(key, std::memory_order_release);
  known.key.store(key, std::memory_order_release);
}

void Process::heavy_barrier() noexcept {
  if (barrier_registered_) {
    softnic::heavy_barrier();
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void Process::settle(std::uint32_t pd) {
  heavy_barrier();
  const auto limit = std::chrono::steady_clock::now() + kSettleLimit;
  for_each_qp([&](LocalQp& qp) {
    if (!qp.uses_domain(pd)) return;
    qp.pass_lock();
    qp.await_turn(limit);
  });
  agents_.settle();
  strangers_.settle();
}

void Process::settle_all() {
  heavy_barrier();
  const auto limit = std::chrono::steady_clock::now() + kSettleLimit;
  for_each_qp([&](LocalQp& qp) {
    qp.pass_lock();
    qp.await_turn(limit);
    qp.settle_flush();
  });
}

void Process::before_fork() {
  g_create_mutex.lock();
  Process* process = g_current.load();
  if (process == nullptr) return;
  // First: a QP that is reset holds it and takes those of its queues, whose holders take the connections'.
  process->strangers_.mutex().lock();
  process->mutex_.lock();
  process->control_.connections_mutex().lock();
  process->agents_.mutex().lock();
  process->hub_.mutex().lock();
  process->groups_.mutex().lock();
  process->mover_.mutex().lock();
  // Moved pages are not inherited: a child that shared them would write into
  // its parent's memory. It copies them while the parent waits.
  process->mover_.prepare_for_child();
  if (process->mover_.any_moved() && ::pipe2(process->fork_pipe_, O_CLOEXEC) != 0) {
    process->fork_pipe_[0] = process->fork_pipe_[1] = -1;
  }
}

void Process::after_fork_parent() {
  if (Process* process = g_current.load()) {
    int* ends = process->fork_pipe_;
    if (ends[0] >= 0) {
      ::close(ends[1]);
      // End of file: the child is done, or dead, or was never made.
      char nothing;
      while (::read(ends[0], &nothing, 1) < 0 && errno == EINTR) {
      }
      ::close(ends[0]);
      ends[0] = ends[1] = -1;
    }
    process->mover_.mutex().unlock();
    process->groups_.mutex().unlock();
    process->hub_.mutex().unlock();
    process->agents_.mutex().unlock();
    process->control_.connections_mutex().unlock();
    process->mutex_.unlock();
    process->strangers_.mutex().unlock();
  }
  g_create_mutex.unlock();
}

void Process::after_fork_child() {
  // The parent's Process stays as it is, locked and unreachable.
  if (Process* process = g_current.exchange(nullptr)) {
    process->mover_.copy_for_child();
    if (process->fork_pipe_[0] >= 0) {
      ::close(process->fork_pipe_[0]);
      ::close(process->fork_pipe_[1]);
    }
    process->abandon();
  }
  g_create_mutex.unlock();
}

void Process::abandon() {
  for (LocalContext* context : contexts_) context->cut_off();
  for (const auto& peer : peers_) peer->abandon();
  agents_.abandon();
  control_.abandon();
  ports_.abandon();
  hub_.abandon();
  groups_.abandon();
  listener_.reset();
  mover_.close_window();
  ::close(memory_.release_fd());
  // Connections that other threads of the parent were making or had just accepted.
  close_inherited_sockets([](const SocketEnd& own, const SocketEnd& peer) {
    const auto is_ours = [](const SocketEnd& end) {
      return end.name_begins_with(kSocketNameStart) || end.name_begins_with(kPortNameStart);
    };
    return is_ours(own) || is_ours(peer);
  });
}

}  // namespace gdrperf::softnic
