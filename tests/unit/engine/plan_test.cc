#include "engine/setup/plan.h"

#include <deque>
#include <set>

#include <gtest/gtest.h>

#include "engine/kernels/kernels.h"

namespace gdrperf::engine {
namespace {

/// A device of which only the receives are made: it notes what is posted, and completes what it is told to.
class Receives {
 public:
  Receives() {
    context_.ops.post_srq_recv = [](ibv_srq*, ibv_recv_wr* list, ibv_recv_wr**) { return current->post(list); };
    context_.ops.post_recv = [](ibv_qp*, ibv_recv_wr* list, ibv_recv_wr**) { return current->post(list); };
    context_.ops.poll_cq = [](ibv_cq*, int most, ibv_wc* wc) { return current->poll(most, wc); };
    for (ibv_qp& qp : qps_) qp.context = &context_;
    srq_.context = cq_.context = &context_;
    current = this;
  }
  PlanInput input(const ResolvedSpec& spec, const proto::Endpoint& remote) {
    memory_.resize(spec.layout().qp_bytes() * 2);
    PlanInput input{.spec = spec, .qps = handles_, .lkeys = {1}, .remote = remote};
    input.recv_cq = &cq_;
    input.target_area = memory_.data();
    if (spec.srq) input.srqs = {&srq_};
    return input;
  }
  /// The next receive in the queue: a message is being written into it.
  const ibv_recv_wr& take() {
    const ibv_recv_wr& taken = *posted_.front();
    posted_.pop_front();
    return taken;
  }
  void complete(const ibv_recv_wr& receive) { done_.push_back(receive.wr_id); }
  const std::deque<const ibv_recv_wr*>& posted() const { return posted_; }

 private:
  int post(const ibv_recv_wr* list) {
    for (; list != nullptr; list = list->next) posted_.push_back(list);
    return 0;
  }
  int poll(int most, ibv_wc* wc) {
    int count = 0;
    for (; count < most && !done_.empty(); done_.pop_front()) {
      wc[count].status = IBV_WC_SUCCESS;
      wc[count++].wr_id = done_.front();
    }
    return count;
  }

  static Receives* current;
  ibv_context context_{};
  ibv_qp qps_[2] = {};
  ibv_qp* handles_[2] = {&qps_[0], &qps_[1]};
  ibv_srq srq_{};
  ibv_cq cq_{};
  std::vector<std::byte> memory_;
  std::deque<const ibv_recv_wr*> posted_;
  std::deque<std::uint64_t> done_;
};
Receives* Receives::current = nullptr;

TestSpec send_with(int rx_depth, bool srq) {
  TestSpec spec;
  spec.test.operation = Operation::kSend;
  spec.size_bytes = 64;
  spec.qps = 2;
  spec.rx_depth = rx_depth;
  spec.srq = srq;
  return spec;
}

// One QP's message takes its time; those of the other take one receive after the other.
TEST(Plan, NothingIsPostedAgainWhereAMessageIsStillWritten) {
  for (const int rx_depth : {1, 7, 16, 512}) {
    Receives device;
    const ResolvedSpec spec = resolve(send_with(rx_depth, true));
    const proto::Endpoint remote;
    Plan plan(device.input(spec, remote));
    plan.post_receives();
    Fault fault;
    std::set<std::uint64_t> places;
    for (const ibv_recv_wr* receive : device.posted()) places.insert(receive->sg_list->addr);
    ASSERT_EQ(places.size(), device.posted().size()) << rx_depth;
    const ibv_recv_wr& slow = device.take();
    for (int message = 0; message < 4096 && !device.posted().empty(); ++message) {
      const ibv_recv_wr& quick = device.take();
      ASSERT_NE(quick.sg_list->addr, slow.sg_list->addr) << rx_depth << ", message " << message;
      device.complete(quick);
      ASSERT_EQ(kernels::reap_receives(plan.recv, fault), 1);
    }
    device.complete(slow);
    ASSERT_EQ(kernels::reap_receives(plan.recv, fault), 1);
    EXPECT_GE(static_cast<int>(device.posted().size()), rx_depth) << "of twice as many";
  }
}

TEST(Plan, ReceivesOfAQpAreOneRing) {
  Receives device;
  const ResolvedSpec spec = resolve(send_with(512, false));
  const proto::Endpoint remote;
  Plan plan(device.input(spec, remote));
  plan.post_receives();
  EXPECT_EQ(device.posted().size(), 1024u);
  EXPECT_EQ(plan.recv.queue_count, 2u);
}

}  // namespace
}  // namespace gdrperf::engine
