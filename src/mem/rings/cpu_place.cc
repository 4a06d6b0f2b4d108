#include <algorithm>
#include <thread>
#include <vector>

#include "gdrperf/base/thread.h"
#include "mem/rings/place.h"

namespace gdrperf::mem::rings {
namespace {

/// Threads of this process, by the code that a GPU's kernel runs.
class CpuPlace final : public Place {
 public:
  explicit CpuPlace(const Poster& poster) : groups_(groups_of(shape_of(poster))) {}
  ~CpuPlace() override { CpuPlace::join(); }
  CpuPlace(const CpuPlace&) = delete;
  CpuPlace& operator=(const CpuPlace&) = delete;

  void* near(std::size_t bytes) override { return shared(bytes); }
  void* shared(std::size_t bytes) override {
    memory_.emplace_back((bytes + sizeof(Line) - 1) / sizeof(Line));
    return memory_.back().data();
  }
  void* map(void* at, std::size_t) override { return at; }
  std::uint64_t* map_doorbell(std::uint64_t* at, std::string& kind) override {
    kind = "uar";
    return at;
  }

  void launch(const Run& run) override {
    std::copy(run.given, run.given + run.queue_count, run.queues);
    store(&run.meeting->started, std::uint64_t{1});
    for (std::uint32_t group = 0; group < groups_; ++group) {
      threads_.push_back(start_thread(
          "posting", [this, run, group] { post(run, group); }, [](const std::exception_ptr&) {}));
    }
  }
  void join() override {
    threads_.clear();
  }
  double ticks_per_ns() const override { return 1; }

 private:
  struct alignas(64) Line {
    std::uint8_t bytes[64] = {};
  };

  void post(const Run& run, std::uint32_t group) const {
    if (run.bounce != nullptr) {
      if (group == 0) bounce(run);
      return;
    }
    if (group == 0 && !meet(run.meeting, 0)) return;
    if (shares(groups_, run.queue_count)) {
      stream<true>(OneThread(), run.queues, run.orders, run.reports, duty_of(group, groups_, run.queue_count));
    } else {
      stream<false>(OneThread(), run.queues, run.orders, run.reports, duty_of(group, groups_, run.queue_count));
    }
    if (group == 0) meet(run.meeting, kMeetings);
  }

  static void bounce(const Run& run) {
    Bouncer bouncer(run.queues[0], *run.bounce, run.orders, run.reports);
    bouncer.begin();
    if (!meet(run.meeting, 0)) return;
    bouncer.run();
    meet(run.meeting, kMeetings);
  }

  std::uint32_t groups_;
  std::vector<std::vector<Line>> memory_;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<Place> make_cpu_place(const Poster& poster) { return std::make_unique<CpuPlace>(poster); }

}  // namespace gdrperf::mem::rings
