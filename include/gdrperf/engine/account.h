#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "gdrperf/base/mutex.h"

namespace gdrperf::engine {

/// Memory and QPs of all runs that a server serves at the same time, whoever asks for them: each run takes its
/// share before anything is mapped and gives it back after all is unmapped. Thread-safe; outlives its shares.
class Account {
 public:
  /// QPs of all runs at the same time: as many as one run may ask for.
  static constexpr int kMostQps = 16384;

  struct Amounts {
    std::uint64_t host_bytes = 0;
    std::uint64_t gpu_bytes = 0;
    std::string gpu;  ///< the kind of memory that gpu_bytes are of: "cuda:0"
    int qps = 0;
  };
  /// What other runs have, and the limits. Limits that are a part of what is available are computed when no run has a
  /// share.
  struct State {
    std::uint64_t host_taken = 0;
    std::uint64_t host_available = 0;
    std::uint64_t gpu_taken = 0;
    std::uint64_t gpu_available = 0;
    int qps_taken = 0;
    std::uint64_t max_bytes = 0;  ///< of --max-memory; 0: a quarter of what is available
  };

  /// One run's part, given back on destruction.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : account_(std::exchange(other.account_, nullptr)), amounts_(std::move(other.amounts_)) {}
    Share& operator=(Share&& other) noexcept;
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { give_back(); }

   private:
    friend class Account;
    Share(Account& account, Amounts amounts) : account_(&account), amounts_(std::move(amounts)) {}
    void give_back() noexcept;

    Account* account_ = nullptr;
    Amounts amounts_;
  };

  /// 0: a quarter of what is available while no run has a share.
  explicit Account(std::uint64_t max_memory_bytes) : max_bytes_(max_memory_bytes) {}
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  /// `judge` throws where there is no room for `amounts`; no other share is given meanwhile.
  Share take(Amounts amounts, const std::function<void(const State&)>& judge);

 private:
  struct Used {
    std::uint64_t taken = 0;
    std::uint64_t available = 0;  ///< when nothing was taken
  };

  const std::uint64_t max_bytes_;
  Mutex mutex_;
  Used host_ GUARDED_BY(mutex_);
  std::map<std::string, Used> gpus_ GUARDED_BY(mutex_);
  int qps_ GUARDED_BY(mutex_) = 0;
};

/// A share of a GPU's memory ("cuda:0") for work that is no run; throws Error(kEnvironment) as a run of this host does
/// where other shares leave no room for it.
Account::Share reserve_gpu(Account& account, const std::string& buffer, std::uint64_t bytes);

}  // namespace gdrperf::engine
