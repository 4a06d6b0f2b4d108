#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/error.h"
#include "gdrperf/engine/together.h"
#include "engine/watch/interval_watch.h"
#include "engine/session/lap_gate.h"
#include "engine/watch/live_state.h"
#include "engine/figures/first_fill.h"
#include "engine/figures/measure.h"
#include "engine/watch/peer.h"

namespace gdrperf::engine {
namespace {

/// The clock is read this often within a batch, so that one slow chunk does not
/// stretch it.
constexpr double kChunksPerBatch = 4;
/// Of runs at the same time progress is noted so often: their sum is known from one note to the next.
constexpr double kNoteSeconds = 1e-3;

BatchSeries series_for(const StopRule& stop, const IntervalWatch& intervals) {
  if (intervals.on()) {
    BatchSeries series(stop.iterations ? kLeastBatchSeconds : kWatchedBatchSeconds, kWatchedBatchSeconds);
    series.keep_short();
    return series;
  }
  // Nobody knows how long N messages take.
  if (stop.iterations) return {kLeastBatchSeconds, kBatchSeconds};
  if (!stop.duration) return {first_batch_seconds(stop), kBatchSeconds};
  return BatchSeries(std::clamp(seconds(*stop.duration) / (kMinBatches + 2), kLeastBatchSeconds, kBatchSeconds));
}

/// Round trips of a batch of clumps (FirstFill).
constexpr double kRoundTripsPerBatch = 4;
/// Batches that are left of a run's time then.
constexpr double kFewBatches = 8;

/// One run of stream_bandwidth().
class Stream {
 public:
  Stream(Transfer& transfer, const TestSpec& spec, const Watchers& watchers)
      : transfer_(transfer),
        spec_(spec),
        watch_(watchers.standstill),
        follower_(watchers.follower),
        together_(watchers.together),
        peer_(watchers.peer),
        part_(spec.part),
        begin_ns_(watchers.begin_ns),
        live_(watchers.observer, spec, static_cast<double>(spec.size_bytes)),
        intervals_(watchers.observer, spec),
        judge_(spec.stop, spec.stop.precision, watchers.stop),
        // What is sent at a rate fills no pipe; its batches are of whole bursts.
        paced_(paced_rate_of(spec) > 0),
        unit_(static_cast<std::uint64_t>(paced_ ? std::max(spec.cq_mod, spec.burst) : spec.cq_mod)),
        depth_(paced_ ? unit_ : static_cast<std::uint64_t>(spec.tx_depth) * static_cast<std::uint64_t>(spec.qps)),
        chunk_(unit_),
        run_{series_for(spec.stop, intervals_)} {}

  BandwidthRun go() {
    live_.begin();
    first_message_ = transfer_.sent();
    if (together_ != nullptr) together_->all_begin([this] { look_at(*peer_); });
    if (begin_ns_ > 0) wait_until(begin_ns_);
    transfer_.begin_schedule();
    run_.start_ns = last_ns_ = now_ns();
    std::optional<Edge> open = fill_pipe();
    if (open) {
      run_.first_batch_ns = open->before_ns;
      live_.begin_to_count(since_start_s(open->before_ns));
    }
    if (open && together_ != nullptr) run_.progress.add(open->after_ns, open->sent - first_message_);
    if (together_ != nullptr) intervals_.begin((run_.first_batch_ns - run_.start_ns) * 1e-9);
    while (open && !over_) {
      advance(*open);
      const double elapsed_s = (last_ns_ - open->before_ns) * 1e-9;
      if (elapsed_s < run_.series.target_seconds() || !is_whole(transfer_.sent() - open->sent, elapsed_s)) continue;
      const std::optional<Edge> end = find_edge();
      if (!end || end->sent == open->sent) continue;
      const double start_s = (open->before_ns - run_.first_batch_ns) * 1e-9;
      const double batch_s = (end->after_ns - open->before_ns) * 1e-9;
      run_.series.add(start_s, batch_s, end->sent - open->sent);
      intervals_.add(start_s, batch_s, end->sent - open->sent);
      open = end;
      if (judge_.finished(run_.series, done(), run_.series.total_seconds()) && others_finished()) over_ = true;
    }
    intervals_.finish();
    // Its rate was known, and the client had all of them end.
    run_.stop =
        told_ && judge_.reason() == report::StopReason::kSignal ? report::StopReason::kPrecision : judge_.reason();
    run_.end_ns = last_ns_;
    run_.seconds = (run_.end_ns - run_.start_ns) * 1e-9;
    run_.sent = run_.messages = done();
    return run_;
  }

 private:
  std::uint64_t done() const { return transfer_.sent() - first_message_; }
  double since_start_s(double at_ns) const { return (at_ns - run_.start_ns) * 1e-9; }
  /// Of several runs at the same time none ends by its precision before the others have theirs: where they begin
  /// by a clock, their client knows.
  bool others_finished() {
    if (judge_.reason() != report::StopReason::kPrecision) return true;
    if (begin_ns_ <= 0) return together_ == nullptr || together_->all_finished(part_);
    if (!std::exchange(told_, true)) follower_->send(proto::Ready{});
    return false;
  }

  /// The pipe may still be filling, or a batch wait for its least number of messages: neither
  /// holds up the end. `from_ns`: where the run's time begins.
  void send(std::uint64_t messages, double from_ns) {
    std::optional<proto::Message> message =
        transfer_.send_until(transfer_.sent() + std::min(messages, judge_.left(done())));
    if (!message && follower_ != nullptr) message = follower_->poll_now_and_then();
    if (message && (follower_ == nullptr || !std::holds_alternative<proto::Stop>(*message))) {
      throw peer_error(fmt::format("the peer sent '{}' in the middle of a run", proto::type_name(*message)));
    }
    if (message) judge_.end();
    last_ns_ = now_ns();
    watch_.look();
    live_.look(run_.series, done(), since_start_s(last_ns_));
    over_ = judge_.at_limit(done(), (last_ns_ - from_ns) * 1e-9);
  }

  /// Messages complete on the way to an edge: their time counts as they do.
  std::optional<Edge> find_edge() {
    std::optional<Edge> edge = transfer_.edge();
    last_ns_ = now_ns();
    return edge;
  }

  /// The pipe is full once as many messages have come out as fit in. Nothing where
  /// the run is over before.
  std::optional<Edge> fill_pipe() {
    const StopRule& stop = spec_.stop;
    FirstFill fill(stop.iterations || stop.forever ? std::numeric_limits<double>::infinity()
                                                   : seconds(stop.duration.value_or(stop.cap)) / 2);
    while (!over_ && (done() < depth_ || (!paced_ && fill.needs_more()))) {
      send(done() < depth_ ? std::min(unit_, depth_ - done()) : unit_, run_.start_ns);
      fill.add(done(), (last_ns_ - run_.start_ns) * 1e-9);
    }
    run_.ramp_s = (last_ns_ - run_.start_ns) * 1e-9;
    if (!paced_ && !over_) allow_for_clumps(fill);
    while (!over_) {
      if (auto edge = find_edge()) return edge;
      send(unit_, run_.start_ns);
    }
    return std::nullopt;
  }

  void allow_for_clumps(const FirstFill& fill) {
    const std::uint64_t clump = fill.clump();
    if (clump == 0) return;
    const StopRule& stop = spec_.stop;
    const double most_s =
        stop.iterations || stop.forever ? fill.round_trip_s() : seconds(stop.duration.value_or(stop.cap)) / kFewBatches;
    const double least_s = std::min(kRoundTripsPerBatch * fill.round_trip_s(), most_s);
    if (least_s <= run_.series.target_seconds()) return;
    run_.series.lengthen(least_s);
    clump_ = clump;
    round_trip_s_ = fill.round_trip_s();
  }

  /// May a batch of `messages` end with the next one? Of clumps it has whole ones, unless none ends that way.
  bool is_whole(std::uint64_t messages, double elapsed_s) {
    if (messages < transfer_.least_batch()) return false;
    if (clump_ == 0 || (messages + 1) % clump_ == 0) return true;
    return elapsed_s >= run_.series.target_seconds() + 2 * round_trip_s_;
  }

  void advance(const Edge& open) {
    // A batch that is under way may end.
    send(chunk_, run_.first_batch_ns + run_.series.target_seconds() * 1e9);
    // Aim at a quarter of a batch; grow at most twofold, so that a lucky first
    // chunk does not lead to one of seconds.
    const double elapsed_s = (last_ns_ - open.before_ns) * 1e-9;
    const double per_second = static_cast<double>(transfer_.sent() - open.sent) / std::max(elapsed_s, 1e-9);
    double aim = per_second * run_.series.target_seconds() / kChunksPerBatch;
    if (together_ != nullptr) {
      run_.progress.add(last_ns_, done());
      aim = std::min(aim, per_second * kNoteSeconds);
    }
    chunk_ = std::clamp(static_cast<std::uint64_t>(aim), std::uint64_t{1}, 2 * std::max(chunk_, unit_));
    if (paced_) chunk_ = (chunk_ + unit_ - 1) / unit_ * unit_;
    if (clump_ != 0) chunk_ = unit_;
  }

  Transfer& transfer_;
  const TestSpec& spec_;
  StandstillWatch& watch_;
  Peer* follower_;
  Together* together_;
  Peer* peer_;
  int part_;
  double begin_ns_;
  bool told_ = false;  ///< that the rate is known
  LiveState live_;
  IntervalWatch intervals_;
  StopJudge judge_;
  bool paced_;
  std::uint64_t unit_;
  std::uint64_t depth_;
  std::uint64_t chunk_;
  std::uint64_t clump_ = 0;  ///< messages of each; 0: they come evenly
  double round_trip_s_ = 0;  ///< with clumps
  std::uint64_t first_message_ = 0;  ///< trials went before
  double last_ns_ = 0;               ///< the clock when the last chunk had completed
  bool over_ = false;
  BandwidthRun run_;
};

}  // namespace

double now_ns() { return Clock::get().now_ns(); }

BandwidthRun stream_bandwidth(Transfer& transfer, const TestSpec& spec, const Watchers& watchers) {
  return Stream(transfer, spec, watchers).go();
}

BandwidthRun lap_bandwidth(Laps& laps, const TestSpec& spec, const Watchers& watchers) {
  IntervalWatch intervals(watchers.observer, spec);
  BandwidthRun run{series_for(spec.stop, intervals)};
  StopJudge judge(spec.stop, spec.stop.precision, watchers.stop);
  LiveState live(watchers.observer, spec, static_cast<double>(spec.size_bytes));
  live.begin();
  run.start_ns = run.first_batch_ns = now_ns();
  LapGate* const gate = watchers.together == nullptr ? nullptr : &watchers.together->laps();
  const auto add_lap = [&](Laps::Result& sum) {
    const bool warm_up = run.sent == 0 && !spec.stop.iterations;
    const Laps::Result lap = laps.run(gate);
    if (gate != nullptr && !warm_up)
      gate->add(spec.part,
                {lap.from_ns, lap.from_ns + lap.seconds * 1e9, lap.messages, spec.stop.iterations.has_value()});
    sum.seconds += lap.seconds;
    sum.messages += lap.messages;
    run.seconds += lap.seconds;
    run.sent += lap.sent;
    run.messages += lap.messages;
  };
  const auto elapsed_s = [&] { return (now_ns() - run.start_ns) * 1e-9; };
  // The first lap pays for what is new to caches and the device; of N messages it is one.
  Laps::Result first;
  if (!spec.stop.iterations) add_lap(first);
  run.ramp_s = first.seconds;
  while (true) {
    Laps::Result batch;
    do add_lap(batch);
    while (!judge.at_limit(run.sent, elapsed_s()) && batch.seconds < run.series.target_seconds());
    intervals.add(run.series.total_seconds(), batch.seconds, batch.messages);
    run.series.add(batch.seconds, batch.messages);
    const bool finished = judge.finished(run.series, run.sent, run.series.total_seconds());
    live.look(run.series, run.sent, elapsed_s());
    const bool others = gate == nullptr || judge.reason() != report::StopReason::kPrecision;
    if (!(finished && (others || watchers.together->all_finished(spec.part))) && !judge.at_limit(run.sent, elapsed_s()))
      continue;
    if (gate != nullptr) gate->leave();
    intervals.finish();
    run.stop = judge.reason();
    run.end_ns = now_ns();
    return run;
  }
}

}  // namespace gdrperf::engine
