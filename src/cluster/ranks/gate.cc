#include "cluster/ranks/gate.h"

#include <poll.h>

#include <utility>

#include <fmt/format.h>

#include "app/output/terminal.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/proto/admission.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kRankPatience = 3500ms;
// As long as a card may be: a host of many devices.
constexpr std::size_t kMaxCardBytes = 64u << 10;
constexpr int kGreeters = 4;
constexpr int kGateWaitMs = 100;

}  // namespace

Gate::Gate(proto::Listener listener, proto::Token token) : listener_(std::move(listener)), token_(std::move(token)) {
  const auto failed = [this](const std::exception_ptr& failure) { fail(failure); };
  for (int i = 0; i < kGreeters; ++i) {
    workers_.push_back(start_thread("ranks that come", [this](const std::stop_token& stop) { work(stop); }, failed));
  }
}

Gate::~Gate() {
  for (std::jthread& worker : workers_) worker.request_stop();
}

std::vector<Arrival> Gate::take(std::chrono::nanoseconds patience) {
  MutexLock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (arrivals_.empty() && !failure_ && lock.wait_until(came_, deadline) != std::cv_status::timeout) {}
  if (failure_) std::rethrow_exception(failure_);
  return std::exchange(arrivals_, {});
}

void Gate::put(Arrival arrival) {
  const MutexLock lock(mutex_);
  arrivals_.push_back(std::move(arrival));
  came_.notify_one();
}

void Gate::fail(std::exception_ptr failure) {
  const MutexLock lock(mutex_);
  failure_ = std::move(failure);
  came_.notify_one();
}

void Gate::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::optional<proto::Channel> channel;
    {
      const MutexLock lock(accepting_);
      pollfd entry{listener_.fd(), POLLIN, 0};
      if (::poll(&entry, 1, kGateWaitMs) <= 0) continue;
      channel = listener_.accept();
    }
    if (channel) greet(std::move(*channel));
  }
}

void Gate::greet(proto::Channel channel) {
  try {
    channel.limit_frames(kMaxCardBytes);
    proto::Hello own = proto::server_hello();
    own.token = static_cast<bool>(token_);
    const proto::Hello hello = proto::exchange_hello(channel, kRankPatience, own);
    [[maybe_unused]] const proto::Admission admission = prove_as_server(channel, token_, own, hello);
    Card card = expect_cluster<Card>(channel, kRankPatience);
    channel.limit_frames(proto::Channel::kMaxFrameBytes);
    put({std::move(channel), std::move(card)});
  } catch (const Error& error) {
    say(fmt::format("not admitted: {}", error.what()));
  }
}

}  // namespace gdrperf::app
