#include "gdrperf/engine/account.h"

#include "gdrperf/mem/available.h"

namespace gdrperf::engine {

Account::Share& Account::Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  account_ = std::exchange(other.account_, nullptr);
  amounts_ = std::move(other.amounts_);
  return *this;
}

void Account::Share::give_back() noexcept {
  Account* const account = std::exchange(account_, nullptr);
  if (account == nullptr) return;
  const MutexLock lock(account->mutex_);
  account->host_.taken -= amounts_.host_bytes;
  account->qps_ -= amounts_.qps;
  if (amounts_.gpu_bytes > 0) account->gpus_.find(amounts_.gpu)->second.taken -= amounts_.gpu_bytes;
}

Account::Share Account::take(Amounts amounts, const std::function<void(const State&)>& judge) {
  const MutexLock lock(mutex_);
  // What other runs have mapped is no longer available: a quarter is taken of what was there before the first.
  if (host_.taken == 0) host_.available = mem::available_bytes();
  State state{host_.taken, host_.available, 0, 0, qps_, max_bytes_};
  Used* gpu = nullptr;
  if (amounts.gpu_bytes > 0) {
    gpu = &gpus_[amounts.gpu];
    if (gpu->taken == 0) gpu->available = mem::available_gpu_bytes(amounts.gpu);
    state.gpu_taken = gpu->taken;
    state.gpu_available = gpu->available;
  }
  judge(state);
  host_.taken += amounts.host_bytes;
  qps_ += amounts.qps;
  if (gpu != nullptr) gpu->taken += amounts.gpu_bytes;
  return Share(*this, std::move(amounts));
}

}  // namespace gdrperf::engine
