#include "cluster/ranks/nccl.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/mem/gpudirect.h"
#include "gdrperf/mem/kind.h"

namespace gdrperf::app {
namespace {

using std::chrono::steady_clock;

// Declarations of nccl.h, which few machines have; rccl.h has the same. Values and layout are those of version 2.14,
// the first with communicators that do not block.
struct UniqueId {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};
constexpr unsigned kConfigMagic = 0xcafebeef;
constexpr unsigned kConfigVersion = 21400;
constexpr int kSuccess = 0;
constexpr int kInProgress = 7;
constexpr int kUint64 = 5;
constexpr int kFloat = 7;
constexpr int kSum = 0;
constexpr int kMax = 2;
// cuStreamQuery() and hipStreamQuery() answer so while work is under way.
constexpr int kNotReady = 600;

constexpr int kWarmUps = 5;
constexpr int kMostTimed = 1000;
constexpr int kMostRanks = 1 << 20;
constexpr std::size_t kMostGpus = 64;

Error missing(const std::string& what, const std::string& hint) { return Error(ExitCode::kEnvironment, what, hint); }

Error broken(const std::string& what) { return Error(ExitCode::kPeer, what); }

/// A maker's collectives, and its runtime's question whether a stream is idle.
class Library {
 public:
  /// Throws Error(kEnvironment) where it is missing or too old.
  static const Library& of(const mem::Kind& kind) {
    if (kind.place == mem::Place::kRocm) {
      static const Library rccl("RCCL", "librccl.so.1", "libamdhip64.so", "hipStreamQuery");
      return rccl;
    }
    if (kind.place != mem::Place::kCuda) throw missing("collectives are of cuda:N and rocm:N", "");
    static const Library nccl("NCCL", "libnccl.so.2", "libcuda.so.1", "cuStreamQuery");
    return nccl;
  }

  std::string version() const {
    int number = 0;
    check(get_version(&number), "ncclGetVersion");
    return fmt::format("{} {}.{}.{}", name_, number / 10000, number / 100 % 100, number % 100);
  }
  void check(int result, const char* call) const {
    if (result != kSuccess) throw broken(fmt::format("{}: {}: {}", name_, call, error_text(result)));
  }

  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*init_rank)(void**, int, UniqueId, int, Config*) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;
  int (*async_error)(void*, int*) = nullptr;
  int (*finalize)(void*) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*abort)(void*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*stream_query)(void*) = nullptr;

 private:
  Library(const char* name, const char* file, const char* runtime, const char* query) : name_(name) {
    void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw missing(fmt::format("no {}: {}", name, ::dlerror()),
                    fmt::format("install {} ({}), or let LD_LIBRARY_PATH name its folder", name, file));
    }
    void* driver = ::dlopen(runtime, RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) throw missing(fmt::format("no {} for {}: {}", runtime, name, ::dlerror()), "");
    find(get_version, library, file, "ncclGetVersion");
    find(get_unique_id, library, file, "ncclGetUniqueId");
    find(init_rank, library, file, "ncclCommInitRankConfig");
    find(all_reduce, library, file, "ncclAllReduce");
    find(async_error, library, file, "ncclCommGetAsyncError");
    find(finalize, library, file, "ncclCommFinalize");
    find(destroy, library, file, "ncclCommDestroy");
    find(abort, library, file, "ncclCommAbort");
    find(error_text, library, file, "ncclGetErrorString");
    find(stream_query, driver, runtime, query);
  }
  template <typename F>
  static void find(F& function, void* library, const char* file, const char* name) {
    function = reinterpret_cast<F>(::dlsym(library, name));
    if (function == nullptr) throw missing(fmt::format("{} has no {}", file, name), "install version 2.14 or later");
  }

  const char* name_;
};

/// One GPU's part of a communicator. On one thread.
class Communicator {
 public:
  Communicator(const Library& library, steady_clock::time_point limit) : library_(library), limit_(limit) {}
  ~Communicator() {
    if (handle_ != nullptr) library_.abort(handle_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Until all ranks are there.
  void join(const UniqueId& id, int rank, int ranks) {
    Config config{sizeof(Config), kConfigMagic, kConfigVersion, 0};
    const int result = library_.init_rank(&handle_, ranks, id, rank, &config);
    if (result != kInProgress) library_.check(result, "ncclCommInitRankConfig");
    settle("ncclCommInitRankConfig");
  }
  void all_reduce(const void* from, void* to, std::size_t count, int type, int how) {
    const int result = library_.all_reduce(from, to, count, type, how, handle_, nullptr);
    if (result != kInProgress) library_.check(result, "ncclAllReduce");
    settle("ncclAllReduce");
  }
  /// Until the GPU is through.
  void wait() {
    for (int looks = 0;; ++looks) {
      const int state = library_.stream_query(nullptr);
      if (state == kSuccess) return;
      if (state != kNotReady) throw broken(fmt::format("the GPU failed in ncclAllReduce (error {})", state));
      if (looks % kLooks == 0) look("ncclAllReduce");
      std::this_thread::yield();
    }
  }
  void end() {
    const int result = library_.finalize(handle_);
    if (result != kInProgress) library_.check(result, "ncclCommFinalize");
    settle("ncclCommFinalize");
    library_.destroy(std::exchange(handle_, nullptr));
  }

 private:
  static constexpr int kLooks = 1000;

  int look(const char* call) const {
    int state = kSuccess;
    library_.check(library_.async_error(handle_, &state), "ncclCommGetAsyncError");
    if (state != kInProgress) library_.check(state, call);
    if (steady_clock::now() > limit_)
      throw broken(fmt::format("{} did not end in time: a GPU is missing, or the network stands still", call));
    return state;
  }
  void settle(const char* call) const {
    while (look(call) == kInProgress) std::this_thread::yield();
  }

  const Library& library_;
  steady_clock::time_point limit_;
  void* handle_ = nullptr;
};

std::string to_hex(const UniqueId& id) {
  std::string text;
  for (const char byte : id.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

UniqueId from_hex(const std::string& text) {
  UniqueId id{};
  bool right = text.size() == 2 * sizeof id.bytes;
  for (std::size_t i = 0; right && i < sizeof id.bytes; ++i) {
    unsigned byte = 0;
    const char* const at = text.data() + 2 * i;
    right = std::from_chars(at, at + 2, byte, 16).ptr == at + 2;
    id.bytes[i] = static_cast<char>(byte);
  }
  if (!right) throw peer_error("a collective's id is not of 128 bytes in hexadecimal");
  return id;
}

/// At least one; by PCI address where that is known, as processes may count GPUs in another order.
std::vector<std::string> gpus_of(const std::string& maker) {
  std::string why_none = "no GPU";
  std::vector<std::string> gpus;
  if (maker == "rocm") gpus = mem::expand_kinds({"rocm:all"}, "collective");
  if (!gpus.empty()) return gpus;
  if (maker != "cuda") throw missing(why_none, "");
  for (const mem::GpuSupport& gpu : mem::gpu_support(why_none)) gpus.push_back("cuda:" + gpu.pci_address);
  if (gpus.empty()) throw missing(why_none, "");
  return gpus;
}

/// Each GPU has its part of the pattern, and zeros elsewhere: the largest of each word is the whole pattern.
mem::PatternRun pattern_of(const Collective& order, std::uint64_t part_bytes) {
  mem::PatternRun run;
  run.stride = run.size_bytes = part_bytes;
  run.count = static_cast<std::uint64_t>(order.ranks);
  return run;
}

double all_reduce_seconds(const Collective& order, const CollectiveEnd& end, engine::Account& account) {
  constexpr std::uint64_t kAligned = 16;
  const auto limit = steady_clock::now() + std::chrono::nanoseconds(order.limit_ns);
  const Library& library = Library::of(mem::parse_kind(end.gpu, "collective"));
  const auto ranks = static_cast<std::uint64_t>(order.ranks);
  const std::uint64_t part_bytes = (order.size_bytes + kAligned * ranks - 1) / (kAligned * ranks) * kAligned;
  const std::uint64_t bytes = part_bytes * ranks;
  const auto share = engine::reserve_gpu(account, end.gpu, 2 * bytes);
  const auto sent = mem::make_buffer(end.gpu, bytes);
  const auto received = mem::make_buffer(end.gpu, bytes);
  mem::PatternRun own = pattern_of(order, part_bytes);
  own.offset = part_bytes * static_cast<std::uint64_t>(end.rank);
  own.first_slot = static_cast<std::uint64_t>(end.rank);
  own.count = 1;
  sent->fill(own);
  Communicator communicator(library, limit);
  communicator.join(from_hex(order.unique_id), end.rank, order.ranks);
  const auto times = [&](int count) {
    for (int i = 0; i < count; ++i) {
      communicator.all_reduce(sent->data(), received->data(), bytes / sizeof(float), kFloat, kSum);
    }
    communicator.wait();
  };
  times(kWarmUps);
  const auto start = steady_clock::now();
  times(order.timed);
  const double seconds = std::chrono::duration<double>(steady_clock::now() - start).count() / order.timed;
  communicator.all_reduce(sent->data(), received->data(), bytes / sizeof(std::uint64_t), kUint64, kMax);
  communicator.wait();
  const mem::CheckResult found = received->check(pattern_of(order, part_bytes));
  if (found.first)
    throw broken(fmt::format("wrong data after ncclAllReduce in {}, of GPU {}", end.gpu, found.first->slot));
  communicator.end();
  return seconds;
}

void check_order(const Collective& order) {
  const auto has_place = [&](const CollectiveEnd& end) { return end.rank >= 0 && end.rank < order.ranks; };
  const bool fits = order.ranks >= 1 && order.ranks <= kMostRanks && order.size_bytes >= 1 &&
                    order.size_bytes <= kMostCollectiveBytes && order.timed >= 1 && order.timed <= kMostTimed &&
                    order.limit_ns >= 1 &&
                    order.limit_ns <= std::chrono::nanoseconds(kLongestCollective).count() &&
                    order.ends.size() <= kMostGpus;
  if (fits && std::all_of(order.ends.begin(), order.ends.end(), has_place)) return;
  throw peer_error(
      fmt::format("a collective has 1 to {} ranks, 1 to {} bytes, 1 to {} rounds, up to {} GPUs of a process, and ends "
                  "within an hour",
                  kMostRanks, kMostCollectiveBytes, kMostTimed, kMostGpus));
}

}  // namespace

CollectiveReady find_nccl(const std::string& maker, bool new_id) {
  CollectiveReady ready;
  try {
    ready.gpus = gpus_of(maker);
    const Library& library = Library::of(mem::parse_kind(ready.gpus.front(), "collective"));
    ready.version = library.version();
    UniqueId id{};
    if (new_id) library.check(library.get_unique_id(&id), "ncclGetUniqueId");
    if (new_id) ready.unique_id = to_hex(id);
  } catch (const Error& error) {
    ready.why_not = error.what();
  }
  return ready;
}

std::vector<ClusterRate> run_all_reduce(const Collective& order, engine::Account* account) {
  check_order(order);
  engine::Account own(0);
  std::vector<ClusterRate> rates(order.ends.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < order.ends.size(); ++i) {
    const auto run = [&, i] {
      try {
        const double seconds = all_reduce_seconds(order, order.ends[i], account == nullptr ? own : *account);
        rates[i].gbytes = static_cast<double>(order.size_bytes) / 1e9 / seconds;
      } catch (const std::exception& error) {
        rates[i].error = error.what();
      }
    };
    const auto ended = [&, i](const std::exception_ptr&) { rates[i].error = "out of memory"; };
    try {
      threads.push_back(start_thread("an all_reduce", run, ended));
    } catch (const Error& error) {
      rates[i].error = error.what();
    }
  }
  threads.clear();
  return rates;
}

}  // namespace gdrperf::app
