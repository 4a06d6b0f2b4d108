#include "app/client/under_load.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/proto/rate.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

/// How long the stream goes alone, to find what share of it is asked for.
constexpr auto kAlone = 300ms;
/// Longest time that a stream is asked for beyond that of the latency test, which ends it.
constexpr auto kBeyond = 60s;
constexpr auto kNumberTakes = 600s;  ///< a run of N round trips, whose time nobody knows

/// A run of a guest on a thread of its own.
class Stream : public engine::RunObserver {
 public:
  Stream(Client& client, const TestSpec& spec) : client_(client), spec_(spec) {}
  ~Stream() override { join(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Returns once messages have been flowing for a moment. Throws what the run throws.
  void begin(const std::atomic<bool>* stop) {
    thread_ = start_thread("the stream", [this] { go(); }, [](const std::exception_ptr&) {});
    MutexLock lock(mutex_);
    while (looks_ < kFlowing && !over_) {
      lock.wait_until(changed_, std::chrono::steady_clock::now() + 200ms);
      if (stop != nullptr && stop->load()) throw peer_error("stopped before the test began");
    }
    lock.unlock();
    check();
  }

  /// Throws the run's failure, also where it ended by itself.
  void check() {
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (over_) throw peer_error("the stream ended before the latency test");
  }

  /// Ends the run and returns its record.
  report::RunRecord end() {
    join();
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    return std::move(record_);
  }

 private:
  /// Told at its start, and then four times a second.
  static constexpr int kFlowing = 2;

  void setting_up(const std::string&) override {}
  void measuring(const engine::RunState&) override {
    const MutexLock lock(mutex_);
    ++looks_;
    changed_.notify_all();
  }

  void go() {
    report::RunRecord record;
    std::exception_ptr failure;
    try {
      engine::ClientTerms terms = client_.terms();
      terms.observer = this;
      terms.stop = &stop_;
      record = client_.run_alone(spec_, terms);
    } catch (...) {
      failure = std::current_exception();
    }
    const MutexLock lock(mutex_);
    record_ = std::move(record);
    failure_ = failure;
    over_ = true;
    changed_.notify_all();
  }

  void join() noexcept {
    stop_ = true;
    thread_ = {};
  }

  Client& client_;
  TestSpec spec_;
  std::atomic<bool> stop_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
  int looks_ GUARDED_BY(mutex_) = 0;
  bool over_ GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  report::RunRecord record_ GUARDED_BY(mutex_);
  std::jthread thread_;  ///< last: joined first
};

/// Ends the latency test where the stream has failed.
class Beside : public engine::RunObserver {
 public:
  Beside(Stream& stream, engine::RunObserver* inner) : stream_(stream), inner_(inner) {}

  void setting_up(const std::string& what) override {
    if (inner_ != nullptr) inner_->setting_up(what);
  }
  void measuring(const engine::RunState& state) override {
    stream_.check();
    if (inner_ != nullptr) inner_->measuring(state);
  }
  bool wants_rate() const override { return inner_ != nullptr && inner_->wants_rate(); }
  double interval_seconds() const override { return inner_ == nullptr ? 0 : inner_->interval_seconds(); }
  void port(const std::string& device, int number) override {
    if (inner_ != nullptr) inner_->port(device, number);
  }
  void interval(const engine::IntervalState& state) override {
    if (inner_ != nullptr) inner_->interval(state);
  }
  bool wants_samples() const override { return inner_ != nullptr && inner_->wants_samples(); }
  void samples(const engine::RunSamples& run) override {
    if (inner_ != nullptr) inner_->samples(run);
  }

 private:
  Stream& stream_;
  engine::RunObserver* inner_;
};

TestSpec in_company(TestSpec spec, int part) {
  spec.load.clear();
  spec.load_size_bytes = TestSpec().load_size_bytes;
  spec.parts = 2;
  spec.part = part;
  return spec;
}

/// GB/s of the stream with nothing beside it.
double carried_alone(Client& client, TestSpec stream) {
  stream.stop = {};
  stream.stop.duration = kAlone;
  engine::ClientTerms terms = client.terms();
  terms.observer = nullptr;
  return client.run_alone(stream, terms).measured.bandwidth.value().median_gbytes;
}

}  // namespace

StopRule longer_than(const StopRule& test) {
  StopRule rule;
  rule.forever = test.forever;
  if (!rule.forever)
    rule.duration =
        test.iterations ? std::chrono::nanoseconds(kNumberTakes) : test.duration.value_or(test.cap) + kBeyond;
  return rule;
}

report::RunRecord idle_run(Client& client, TestSpec spec) {
  if (spec.stop.forever) spec.stop = {};
  engine::ClientTerms terms = client.terms();
  terms.observer = nullptr;
  report::RunRecord idle = client.run_alone(spec, terms);
  if (terms.stop != nullptr && terms.stop->load()) throw peer_error("stopped before the test under load began");
  return idle;
}

report::RunRecord run_under_load(Client& client, const TestSpec& spec) {
  const std::string asked = fmt::format("{} {}", flag<&TestSpec::load>(), spec.load);
  const Load load = parse_load(spec.load, flag<&TestSpec::load>());
  const TestSpec test = in_company(spec, 0);
  TestSpec stream_spec = in_company(stream_beside(spec), 1);
  const report::RunRecord idle = idle_run(client, test);

  report::UnderLoad under;
  under.idle = idle.measured.latency.value();
  under.stream = stream_spec.test;
  try {
    const std::unique_ptr<Client> guest = client.guest();
    guest->open();
    if (load.share > 0) under.alone_gbytes = carried_alone(*guest, stream_spec);
    stream_spec.rate_per_s = load.rate.per_s;
    stream_spec.rate_bytes_per_s =
        load.share > 0 && load.share < 1 ? load.share * under.alone_gbytes * 1e9 : load.rate.bytes_per_s;
    stream_spec.stop = longer_than(spec.stop);
    Stream stream(*guest, stream_spec);
    stream.begin(client.terms().stop);
    Beside beside(stream, client.terms().observer);
    engine::ClientTerms terms = client.terms();
    terms.observer = &beside;
    report::RunRecord record = client.run_alone(test, terms);
    stream.check();
    const report::RunRecord streamed = stream.end();
    under.carried_gbytes = streamed.measured.bandwidth.value().median_gbytes;
    under.offered_gbytes = rate_of(stream_spec) * static_cast<double>(stream_spec.size_bytes) * 1e-9;
    record.spec.load = spec.load;
    record.spec.load_size_bytes = spec.load_size_bytes;
    record.spec.parts = spec.parts;
    record.spec.part = spec.part;
    for (const std::string& warning : idle.measured.warnings) record.measured.warnings.push_back("idle: " + warning);
    record.measured.under_load = std::move(under);
    return record;
  } catch (const Error& error) {
    throw error.in(asked);
  }
}

}  // namespace gdrperf::app
