#include "cm/links/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "shared/sync/thread.h"
#include "shared/sync/limited.h"

namespace gdrperf::softnic {

CmLoop::CmLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_) throw CallFailure("the descriptors of rdma_cm", errno);
  watch(wake_.get(), EPOLLIN, [this](std::uint32_t) {
    std::uint64_t count;
    [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
  });
  if (const int error = start_thread("softnic-cm", [this] { run(); }); error != 0) {
    throw CallFailure("a thread for rdma_cm", error);
  }
}

std::uint64_t CmLoop::watch(int fd, std::uint32_t events, Handler handler) {
  std::uint64_t token;
  {
    const MutexLock guard(mutex_);
    token = next_token_++;
    handlers_[token] = std::move(handler);
  }
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  return token;
}

void CmLoop::change(std::uint64_t token, int fd, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void CmLoop::forget(std::uint64_t token, int fd) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  const MutexLock guard(mutex_);
  handlers_.erase(token);
}

void CmLoop::after(std::chrono::milliseconds delay, std::function<void()> handler) {
  {
    const MutexLock guard(mutex_);
    due_.emplace(Clock::now() + delay, std::move(handler));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

int CmLoop::wait_ms() {
  const MutexLock guard(mutex_);
  if (due_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.begin()->first - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void CmLoop::run_due() {
  for (;;) {
    std::function<void()> handler;
    {
      const MutexLock guard(mutex_);
      if (due_.empty() || due_.begin()->first > Clock::now()) return;
      handler = std::move(due_.begin()->second);
      due_.erase(due_.begin());
    }
    handler();
  }
}

void CmLoop::run() {
  std::array<epoll_event, 32> ready;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), wait_ms());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      // A copy: the kernel packs events, so that no reference to a member of one is aligned.
      const epoll_event event = ready[static_cast<std::size_t>(i)];
      const std::uint64_t token = event.data.u64;
      Handler handler;
      {
        const MutexLock guard(mutex_);
        const auto found = handlers_.find(token);
        if (found != handlers_.end()) handler = found->second;
      }
      if (handler) handler(event.events);
    }
    run_due();
  }
}

}  // namespace gdrperf::softnic
