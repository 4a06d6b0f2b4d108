// Stands in for AMD's librccl.so.1: all_reduce between threads and processes of one host, in shared memory. A
// communicator comes into being when all of its ranks are there, and not before; nothing else blocks.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kInProgress = 7;
constexpr int kUint64 = 5;
constexpr int kFloat = 7;
constexpr int kSum = 0;
constexpr int kMax = 2;
constexpr std::size_t kMostBytes = 64u << 20;

/// Of a communicator: a name of shared memory.
using Id = std::array<char, 128>;

struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

/// All ranks of one id; zeroed memory is a new one but for the lock.
struct Group {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int ranks;
  int here;
  int given;
  int taken;
  int round;     ///< results that are there
  int finished;  ///< results that all have taken
  alignas(64) char sum[kMostBytes];
};

struct Communicator {
  Group* group;
  Id id;
};

/// Names that this process gave, and that nobody may have come to.
class Given {
 public:
  ~Given() {
    for (const Id& id : ids_) ::shm_unlink(id.data());
  }
  void add(const Id& id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
  }

 private:
  std::mutex mutex_;
  std::vector<Id> ids_;
};
Given given;

/// Null: there is none of that name.
Group* open_group(const Id& id, bool create) {
  const int fd = ::shm_open(id.data(), O_RDWR | (create ? O_CREAT | O_EXCL : 0), 0600);
  if (fd < 0) return nullptr;
  const bool sized = !create || ::ftruncate(fd, sizeof(Group)) == 0;
  void* at = sized ? ::mmap(nullptr, sizeof(Group), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<Group*>(at);
}

template <typename T>
void add(Group& group, const void* from, std::size_t count, int how) {
  auto* sum = reinterpret_cast<T*>(group.sum);
  const auto* more = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i)
    sum[i] = how == kMax ? std::max(sum[i], more[i]) : static_cast<T>(sum[i] + more[i]);
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22105;
  return kSuccess;
}
const char* ncclGetErrorString(int error) { return error == kInvalidArgument ? "invalid argument" : "an error"; }

int ncclGetUniqueId(Id* id) {
  static std::atomic<unsigned> ids{0};
  id->fill(0);
  std::snprintf(id->data(), id->size(), "/gdrperf-rccl-%d-%u", ::getpid(), ++ids);
  Group* group = open_group(*id, true);
  if (group == nullptr) return kSystemError;
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&group->lock, &shared);
  pthread_condattr_t waiting;
  pthread_condattr_init(&waiting);
  pthread_condattr_setpshared(&waiting, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&group->changed, &waiting);
  ::munmap(group, sizeof(Group));
  given.add(*id);
  return kSuccess;
}

int ncclCommInitRankConfig(Communicator** made, int ranks, Id id, int rank, Config* config) {
  const bool right = config->magic == 0xcafebeef && config->blocking == 0 && rank >= 0 && rank < ranks;
  id.back() = 0;
  Group* group = right ? open_group(id, false) : nullptr;
  if (group == nullptr) return kInvalidArgument;
  pthread_mutex_lock(&group->lock);
  group->ranks = ranks;
  ++group->here;
  pthread_mutex_unlock(&group->lock);
  *made = new Communicator{group, id};
  return kInProgress;
}
int ncclCommGetAsyncError(const Communicator* communicator, int* state) {
  Group& group = *communicator->group;
  pthread_mutex_lock(&group.lock);
  *state = group.here >= group.ranks ? kSuccess : kInProgress;
  pthread_mutex_unlock(&group.lock);
  return kSuccess;
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int how, Communicator* communicator, void*) {
  if ((type != kUint64 && type != kFloat) || (how != kSum && how != kMax)) return kInvalidArgument;
  const std::size_t bytes = count * (type == kFloat ? sizeof(float) : sizeof(std::uint64_t));
  if (bytes > kMostBytes) return kInvalidArgument;
  Group& group = *communicator->group;
  pthread_mutex_lock(&group.lock);
  const int round = group.round;
  if (group.given == 0) {
    std::memcpy(group.sum, from, bytes);
  } else if (type == kFloat) {
    add<float>(group, from, count, how);
  } else {
    add<std::uint64_t>(group, from, count, how);
  }
  if (++group.given == group.ranks) {
    ++group.round;
    if (std::getenv("RCCL_STANDIN_FAULT") != nullptr) group.sum[bytes / 2] ^= 1;
    pthread_cond_broadcast(&group.changed);
  }
  while (group.round == round) pthread_cond_wait(&group.changed, &group.lock);
  std::memcpy(to, group.sum, bytes);
  if (++group.taken == group.ranks) {
    group.given = group.taken = 0;
    ++group.finished;
    pthread_cond_broadcast(&group.changed);
  }
  while (group.finished <= round) pthread_cond_wait(&group.changed, &group.lock);
  pthread_mutex_unlock(&group.lock);
  return kSuccess;
}

int ncclCommAbort(Communicator* communicator) {
  ::shm_unlink(communicator->id.data());
  ::munmap(communicator->group, sizeof(Group));
  delete communicator;
  return kSuccess;
}
int ncclCommFinalize(Communicator*) { return kSuccess; }
int ncclCommDestroy(Communicator* communicator) { return ncclCommAbort(communicator); }

}  // extern "C"
