// No rate above the link, whatever interrupts the program: a made-up device whose
// link carries one message after the other, and a program that is held up at random
// between any two of its steps, so that completions come in bunches.
#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <random>

#include "engine/figures/edge_search.h"
#include "engine/kernels/exact_send.h"
#include "engine/kernels/kernels.h"
#include "engine/figures/measure.h"

namespace gdrperf::engine {
namespace {

constexpr double kMessageNs = 1500;
constexpr std::uint64_t kBytes = 3000;
constexpr double kLinkGbytes = static_cast<double>(kBytes) / kMessageNs;

void hold_up(double ns) {
  const double end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

class Link {
 public:
  explicit Link(unsigned seed, double message_ns = kMessageNs, bool calm = false)
      : random_(seed), message_ns_(message_ns), calm_(calm) {
    context_.ops.post_send = [](ibv_qp* qp, ibv_send_wr* request, ibv_send_wr**) {
      return of(qp->context).post(request);
    };
    context_.ops.poll_cq = [](ibv_cq* cq, int most, ibv_wc* wc) { return of(cq->context).poll(most, wc); };
    current = this;
  }
  ibv_context* context() { return &context_; }
  std::uint64_t carried() const { return carried_; }

 private:
  struct Done {
    double due_ns;
    std::uint64_t wr_id;
  };
  static Link& of(ibv_context*) { return *current; }

  /// A turn of another program, now and then.
  void interrupt() {
    if (!calm_ && random_() % 400 == 0) hold_up(static_cast<double>(random_() % 600'000));
  }
  int post(ibv_send_wr* request) {
    interrupt();
    for (; request != nullptr; request = request->next) {
      free_ns_ = std::max(free_ns_, now_ns()) + message_ns_;
      ++carried_;
      if ((request->send_flags & IBV_SEND_SIGNALED) != 0) done_.push_back({free_ns_, request->wr_id});
    }
    interrupt();
    return 0;
  }
  int poll(int most, ibv_wc* wc) {
    interrupt();
    int count = 0;
    for (; count < most && !done_.empty() && done_.front().due_ns <= now_ns(); done_.pop_front()) {
      wc[count].status = IBV_WC_SUCCESS;
      wc[count++].wr_id = done_.front().wr_id;
    }
    interrupt();
    return count;
  }

  static Link* current;
  ibv_context context_{};
  std::minstd_rand random_;
  double message_ns_;
  bool calm_;
  double free_ns_ = 0;
  std::uint64_t carried_ = 0;
  std::deque<Done> done_;
};
Link* Link::current = nullptr;

struct QueueShape {
  std::uint32_t queues, depth, cq_mod, post_list;
};

/// The streaming transfer's parts on that link.
class LinkMover final : public Transfer {
 public:
  LinkMover(Link& link, const QueueShape& shape, std::uint64_t limit)
      : shape_(shape), limit_(limit), requests_(shape.queues) {
    cq_.context = link.context();
    for (std::uint32_t q = 0; q < shape.queues; ++q) {
      qps_[q].context = link.context();
      auto& ring = requests_[q];
      ring.resize(4 * shape.cq_mod);
      for (std::size_t i = 0; i < ring.size(); ++i) {
        ring[i] = {};
        ring[i].wr_id = q;
        if ((i + 1) % shape.cq_mod == 0) ring[i].send_flags = IBV_SEND_SIGNALED;
        if ((i + 1) % shape.post_list != 0) ring[i].next = &ring[i + 1];
      }
      queues_[q] = {&qps_[q], ring.data(), ring.data(), ring.data() + ring.size(), shape.depth / shape.post_list, 0};
    }
    send_.queues = queues_;
    send_.queue_count = shape.queues;
    send_.cq = &cq_;
    send_.post_list = shape.post_list;
    send_.depth_lists = shape.depth / shape.post_list;
    send_.lists_per_signal = shape.cq_mod / shape.post_list;
  }

  std::optional<proto::Message> send_until(std::uint64_t goal) override {
    const std::uint64_t pipe = std::uint64_t{shape_.depth + 1} * shape_.queues;
    free_until_ = limit_ == 0 ? ~0ull : limit_ < pipe ? 0 : limit_ - pipe + 1;
    Events events;
    while (send_.completed < std::min(goal, free_until_)) {
      kernels::stream_send<kernels::PollCompletion>(send_, events, std::min(goal, free_until_), fault_);
    }
    if (goal <= free_until_) return std::nullopt;
    std::uint64_t posted = 0;
    for (std::uint32_t q = 0; q < send_.queue_count; ++q) posted += queues_[q].posted * send_.post_list;
    ExactSend rest(send_, spread(limit_ - posted, send_.queue_count));
    while (!rest.done()) {
      rest.post(fault_);
      rest.reap(fault_);
    }
    return std::nullopt;
  }
  std::optional<Edge> edge() override {
    EdgeSearch search(send_, nullptr, free_until_);
    while (send_.completed < free_until_) {
      if (search.look(1000, fault_) == Outcome::kReached) return search.edge();
    }
    return std::nullopt;
  }
  std::uint64_t least_batch() const override {
    return std::max<std::uint64_t>(100 * (send_.queue_count - 1) * (shape_.cq_mod - 1), 1);
  }
  const std::uint64_t& sent() const override { return send_.completed; }
  stats::Histogram& histogram() override { return histogram_; }

  std::optional<proto::Message> receive_until(std::uint64_t) override { return std::nullopt; }
  std::optional<proto::Message> bounce_until(std::uint64_t) override { return std::nullopt; }
  std::optional<proto::Message> send_lap(const std::vector<std::uint64_t>&) override { return std::nullopt; }
  void drain() override {}
  const std::uint64_t& received() const override { return send_.completed; }
  const std::uint64_t& rounds() const override { return send_.completed; }
  bool receives() const override { return false; }
  std::vector<std::uint64_t> posted_messages() const override { return {}; }

 private:
  QueueShape shape_;
  std::uint64_t limit_;
  std::uint64_t free_until_ = ~0ull;
  std::vector<std::vector<ibv_send_wr>> requests_;
  ibv_qp qps_[4] = {};
  ibv_cq cq_{};
  SendQueue queues_[4];
  SendStream send_;
  stats::Histogram histogram_;
  Fault fault_;
};

constexpr QueueShape kShapes[] = {{1, 1, 1, 1},   {1, 16, 1, 1}, {1, 128, 32, 1},
                                  {1, 60, 12, 6}, {3, 32, 8, 1}, {4, 16, 1, 1}};

TestSpec spec_of(const QueueShape& shape) {
  TestSpec spec;
  spec.size_bytes = kBytes;
  spec.qps = static_cast<int>(shape.queues);
  spec.tx_depth = static_cast<int>(shape.depth);
  spec.cq_mod = static_cast<int>(shape.cq_mod);
  spec.post_list = static_cast<int>(shape.post_list);
  return spec;
}

/// Without what no sign was asked for: at most 1 % of a batch of several queues.
double most_of(const QueueShape& shape) {
  return kLinkGbytes * (shape.queues > 1 && shape.cq_mod > 1 ? 1.011 : 1.0 + 1e-6);
}

TEST(Rate, IsNeverAboveTheLinkHoweverCompletionsBunch) {
  unsigned seed = 1;
  for (const QueueShape& shape : kShapes) {
    for (const int ms : {2, 8, 40}) {
      SCOPED_TRACE(testing::Message() << shape.queues << " queues, depth " << shape.depth << ", " << ms << " ms");
      TestSpec spec = spec_of(shape);
      spec.stop.duration = std::chrono::milliseconds(ms);
      Link link(seed++);
      LinkMover transfer(link, shape, 0);
      StandstillWatch watch;
      const BandwidthRun run = stream_bandwidth(transfer, spec, {watch});
      const report::Measurement measured = bandwidth_figures(run, spec, nullptr);
      EXPECT_GT(measured.bandwidth->median_gbytes, 0);
      EXPECT_LE(measured.bandwidth->max_gbytes, most_of(shape));
      EXPECT_LE(static_cast<double>(run.messages * kBytes) / run.seconds * 1e-9, most_of(shape));
      for (const Batch& batch : run.series.batches()) {
        EXPECT_LE(static_cast<double>(batch.messages * kBytes) / batch.seconds * 1e-9, most_of(shape));
      }
    }
  }
}

// Eight messages complete at once on the way to the edge that ends the run.
TEST(Rate, OfAShortRunIsNotAboveASlowLink) {
  constexpr double kSlow = 200e3;
  TestSpec spec = spec_of({1, 32, 8, 1});
  spec.stop.duration = std::chrono::milliseconds(25);
  Link link(1, kSlow, true);
  LinkMover transfer(link, {1, 32, 8, 1}, 0);
  StandstillWatch watch;
  const BandwidthRun run = stream_bandwidth(transfer, spec, {watch});
  EXPECT_LE(static_cast<double>(run.messages) / run.seconds, 1e9 / kSlow);
  EXPECT_LE(bandwidth_figures(run, spec, nullptr).bandwidth->median_gbytes,
            static_cast<double>(kBytes) / kSlow * (1 + 1e-6));
}

TEST(Rate, NMessagesAreNMessages) {
  unsigned seed = 100;
  for (const QueueShape& shape : kShapes) {
    for (const std::uint64_t n : {1u, 2u, 7u, 31u, 64u, 127u, 128u, 129u, 193u, 1000u, 5003u}) {
      SCOPED_TRACE(testing::Message() << shape.queues << " queues, depth " << shape.depth << ", cq_mod " << shape.cq_mod
                                      << ", lists of " << shape.post_list << ", n " << n);
      TestSpec spec = spec_of(shape);
      spec.stop.iterations = n;
      Link link(seed++);
      LinkMover transfer(link, shape, n);
      StandstillWatch watch;
      const BandwidthRun run = stream_bandwidth(transfer, spec, {watch});
      EXPECT_EQ(link.carried(), n);
      EXPECT_EQ(run.sent, n);
      const report::Measurement measured = bandwidth_figures(run, spec, nullptr);
      EXPECT_EQ(measured.iterations, n);
      EXPECT_LE(measured.bandwidth->max_gbytes, most_of(shape));
    }
  }
}

}  // namespace
}  // namespace gdrperf::engine
