// kill -9 of either end at random moments, for many rounds: no peer hangs, nothing is left behind,
// and a third process that shares queues with the victim at the survivor notices nothing.
//
// SOFTNIC_KILL_ROUNDS: how many (500 unless set). SOFTNIC_KILL_SEED: another sequence of moments.

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"

namespace softnic_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr std::uint32_t kReceives = 64;
constexpr std::uint32_t kBytes = 1024;
/// Far above the QPs' timeout (four tries of 4.2 ms): whoever takes longer hangs.
constexpr auto kHang = seconds(20);

/// Meeting point of the processes. Shared from before the first fork.
struct Board {
  // For the maker of victims: one more means one more victim.
  std::atomic<std::uint32_t> wanted{0};
  std::atomic<bool> stop{false};
  std::atomic<int> pid{0};
  std::atomic<std::uint32_t> killed{0};
  // Words from and to the victim, each valid for one round.
  std::atomic<std::uint32_t> survivor_ready{0};
  Address survivor;
  std::uint32_t role = 0;
  std::atomic<std::uint32_t> victim_ready{0};
  Address victim;
  std::atomic<std::uint32_t> survivor_connected{0};
};

enum Role : std::uint32_t { kSends, kServes, kBoth, kRoles };

template <typename Condition>
bool within(std::chrono::nanoseconds limit, Condition&& condition) {
  const auto end = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > end) return false;
    ::sched_yield();
  }
  return true;
}

Board* make_board() {
  void* mapped = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (mapped) Board();
}

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : otherwise;
}

/// One request after the other, of every kind, until somebody kills it.
void send_without_end(End& end, const Address& peer) {
  constexpr ibv_wr_opcode kKinds[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM,
                                      IBV_WR_RDMA_WRITE_WITH_IMM};
  for (std::uint64_t i = 0; !::testing::Test::HasFailure(); ++i) {
    end.post(kKinds[i % 5], peer, (i % 16) * 65536, i % 7 == 0 ? 65536 : kBytes);
    ibv_wc done[4];
    ibv_poll_cq(end.send_cq.get(), 4, done);
    ibv_wc received[4];
    const int count = ibv_poll_cq(end.recv_cq.get(), 4, received);
    for (int k = 0; k < count; ++k) end.post_recv(received[k].wr_id * kBytes, kBytes, received[k].wr_id);
  }
}

/// The victim: opens, registers, connects, sends or serves; killed anywhere in that.
void be_victim(Board& board, std::uint32_t round) {
  End end;
  for (std::uint64_t i = 0; i < 16; ++i) end.post_recv(i * kBytes, kBytes, i);
  board.victim = end.address();
  board.victim_ready = round;
  while (board.survivor_ready < round) ::sched_yield();
  if (end.connect(board.survivor) != 0) ::_exit(1);
  while (board.survivor_connected < round) ::sched_yield();
  if (board.role != kServes) send_without_end(end, board.survivor);
  while (true) {
    ibv_wc received[4];
    const int count = ibv_poll_cq(end.recv_cq.get(), 4, received);
    for (int k = 0; k < count; ++k) end.post_recv(received[k].wr_id * kBytes, kBytes, received[k].wr_id);
  }
}

/// Forks victims from a process that has no device open, which is quick.
void make_victims(Board& board) {
  for (std::uint32_t round = 1; !board.stop;) {
    if (board.wanted < round) {
      ::usleep(50);
      continue;
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      be_victim(board, round);
      ::_exit(0);
    }
    board.pid = pid;
    // The number stays the victim's until it was killed by it.
    while (board.killed < round && !board.stop) ::usleep(50);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    board.pid = 0;
    ++round;
  }
}

/// The third party: numbered messages, one at a time, into queues that the victims use as well.
void be_third(int socket) {
  // Four tries of a second: what it sends is about nobody's death, and the survivor may be kept from the CPU.
  EndOptions patient;
  patient.timeout = 18;
  End end(patient);
  tell(socket, end.address());
  ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
  tell(socket, 1);
  for (std::uint64_t number = 0;; ++number) {
    auto* words = reinterpret_cast<std::uint64_t*>(end.memory->data());
    for (std::size_t i = 0; i < kBytes / 8; ++i) words[i] = number * 1000003 + i;
    ASSERT_EQ(end.post(IBV_WR_SEND_WITH_IMM, {}, 0, kBytes, number), 0);
    std::optional<ibv_wc> done;
    // It waits while the survivor is busy with something else.
    while (!done) done = next_completion(end.send_cq.get());
    ASSERT_EQ(done->status, IBV_WC_SUCCESS) << "message " << number;
  }
}

/// The survivor's side: one SRQ and one CQ for the victims and the third party.
class Survivor {
 public:
  Survivor() : third_(shared_queue()) {
    for (std::uint64_t slot = 0; slot < kReceives; ++slot) post(slot);
  }
  End& third() { return third_; }
  std::uint64_t messages_of_third() const { return next_; }

  Owned<ibv_qp> make_qp() {
    ibv_qp_init_attr attr{};
    attr.send_cq = third_.send_cq.get();
    attr.recv_cq = third_.recv_cq.get();
    attr.srq = third_.srq.get();
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    attr.cap = {16, 0, 1, 0, 0};
    return Owned<ibv_qp>(ibv_create_qp(third_.pd.get(), &attr));
  }

  /// Takes what has arrived. False: something is wrong.
  bool receive() {
    ibv_wc done[8];
    const int count = ibv_poll_cq(third_.recv_cq.get(), 8, done);
    EXPECT_GE(count, 0) << "overrun";
    for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) take(done[i]);
    return count >= 0 && !::testing::Test::HasFailure();
  }

 private:
  static EndOptions shared_queue() {
    EndOptions options;
    options.srq = true;
    options.max_wr = kReceives;
    options.cqe = 1024;
    return options;
  }
  void post(std::uint64_t slot) {
    ASSERT_EQ(third_.post_recv(slot * kBytes, kBytes, slot), 0) << slot;
    posted_.insert(slot);
  }
  void take(const ibv_wc& done) {
    ASSERT_EQ(posted_.erase(done.wr_id), 1u) << "receive " << done.wr_id << " completed, and was not posted";
    if (done.qp_num == third_.qp->qp_num) {
      ASSERT_EQ(done.status, IBV_WC_SUCCESS);
      ASSERT_EQ(done.byte_len, kBytes);
      const auto* words = reinterpret_cast<const std::uint64_t*>(third_.memory->data() + done.wr_id * kBytes);
      for (std::size_t i = 0; i < kBytes / 8; ++i) {
        ASSERT_EQ(words[i], next_ * 1000003 + i) << "word " << i << " of message " << next_;
      }
      ++next_;
    }
    post(done.wr_id);
  }

  End third_;
  std::set<std::uint64_t> posted_;
  std::uint64_t next_ = 0;
};

std::vector<std::string> descriptors() {
  std::vector<std::string> all;
  std::error_code closed;
  for (const auto& it : std::filesystem::directory_iterator("/proc/self/fd")) all.push_back(read_symlink(it, closed));
  return all;
}

std::size_t lines_with(const char* path, const std::string& text) {
  std::ifstream file(path);
  std::string line;
  std::size_t count = 0;
  while (std::getline(file, line)) count += line.find(text) != std::string::npos ? 1 : 0;
  return count;
}

std::set<std::string> files_of_ours() {
  std::set<std::string> found;
  for (const char* folder : {"/dev/shm", "/tmp", "/run"}) {
    std::error_code ignored;
    for (const auto& it : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = it.path().filename();
      if (name.find("softnic") != std::string::npos) found.insert(it.path());
    }
  }
  return found;
}

class Rounds {
 public:
  Rounds(Board& board, Survivor& survivor) : board_(board), survivor_(survivor) {}

  void run(std::uint32_t round, std::mt19937& random) {
    board_.role = random() % kRoles;
    // Mostly within the first milliseconds, where everything is set up; some later.
    const auto lifetime = std::chrono::microseconds(random() % (round % 8 == 0 ? 30'000 : 6'000));
    qp_ = survivor_.make_qp();
    ASSERT_NE(qp_, nullptr);
    exchange();
    Address own = survivor_.third().address();
    exchange();
    own.qpn = qp_->qp_num;
    board_.survivor = own;
    board_.survivor_ready = round;
    board_.wanted = round;
    ASSERT_TRUE(within(kHang, [&] { return board_.pid != 0; }));
    const auto end = Clock::now() + lifetime;
    outstanding_ = 0;
    connected_ = false;
    while (Clock::now() < end) {
      step(round);
      if (::testing::Test::HasFailure()) break;
    }
    ASSERT_GT(board_.pid, 1);
    ASSERT_EQ(::kill(board_.pid, SIGKILL), 0);
    board_.killed = round;
    ASSERT_TRUE(within(kHang, [&] { return board_.pid == 0; }));
    if (!::testing::Test::HasFailure()) bury(round);
  }

 private:
  /// The third party's End serves for the victim's QP as well.
  void exchange() { survivor_.third().qp.swap(qp_); }

  void step(std::uint32_t round) {
    survivor_.receive();
    if (!connected_ && board_.victim_ready == round) {
      exchange();
      End& end = survivor_.third();
      // It may be dead already; then nobody will be reached.
      connected_ = end.to_init() == 0 && end.connect(board_.victim) == 0;
      exchange();
      ASSERT_TRUE(connected_);
      board_.survivor_connected = round;
    }
    if (connected_ && board_.role != kSends) post(outstanding_ + round);
    poll_sends();
  }

  void post(std::uint64_t number) {
    if (outstanding_ >= 8 || failed_) return;
    constexpr ibv_wr_opcode kKinds[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};
    exchange();
    const int error = survivor_.third().post(kKinds[number % 3], board_.victim, 65536 * 15, kBytes, number);
    exchange();
    ASSERT_EQ(error, 0);
    ++outstanding_;
  }

  void poll_sends() {
    ibv_wc done[4];
    const int count = ibv_poll_cq(survivor_.third().send_cq.get(), 4, done);
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) {
      if (done[i].qp_num != qp_->qp_num) continue;
      --outstanding_;
      failed_ = failed_ || done[i].status != IBV_WC_SUCCESS;
    }
  }

  /// The victim is dead. Whatever was posted ends, and so does what is posted now.
  void bury(std::uint32_t round) {
    if (connected_) {
      ASSERT_TRUE(within(kHang, [&] {
        if (!failed_) post(round);
        poll_sends();
        survivor_.receive();
        return failed_ || ::testing::Test::HasFailure();
      })) << "round " << round << ": no error completion";
      ASSERT_TRUE(within(kHang, [&] {
        poll_sends();
        survivor_.receive();
        return outstanding_ == 0 || ::testing::Test::HasFailure();
      })) << "round " << round << ": " << outstanding_ << " requests never end";
      await_last_receive(round);
    }
    for (int i = 0; i < 8; ++i) survivor_.receive();
    qp_.reset();
    failed_ = false;
  }

  /// The specification's way to empty a QP with an SRQ.
  void await_last_receive(std::uint32_t round) {
    ibv_context* context = survivor_.third().context.get();
    const bool came = within(kHang, [&] {
      survivor_.receive();
      pollfd_ = {context->async_fd, POLLIN, 0};
      if (::poll(&pollfd_, 1, 0) != 1) return false;
      ibv_async_event event{};
      if (ibv_get_async_event(context, &event) != 0) return false;
      ibv_ack_async_event(&event);
      return event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == qp_.get();
    });
    ASSERT_TRUE(came) << "round " << round << ": no LAST_WQE_REACHED";
  }

  Board& board_;
  Survivor& survivor_;
  Owned<ibv_qp> qp_;
  pollfd pollfd_{};
  std::uint32_t outstanding_ = 0;
  bool connected_ = false;
  bool failed_ = false;
};

TEST(SoftnicKill, EitherEndAtAnyMoment) {
  const std::uint32_t rounds = number_from("SOFTNIC_KILL_ROUNDS", 500);
  std::mt19937 random(number_from("SOFTNIC_KILL_SEED", 1));
  const auto files = files_of_ours();
  Board& board = *make_board();
  SecondProcess maker([&board](int) { make_victims(board); });
  SecondProcess third([](int socket) { be_third(socket); });
  Survivor survivor;
  const auto peer = hear<Address>(third.socket());
  tell(third.socket(), survivor.third().address());
  ASSERT_EQ(survivor.third().connect(peer), 0);
  ASSERT_EQ(hear<int>(third.socket()), 1);

  Rounds trial(board, survivor);
  std::vector<std::string> descriptors_before;
  std::size_t mappings_before = 0;
  const auto begin = Clock::now();
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    trial.run(round, random);
    if (HasFailure()) break;
    if (round == 3) {  // what is made once, is made
      descriptors_before = descriptors();
      mappings_before = lines_with("/proc/self/maps", "softnic-");
    }
  }
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  board.stop = true;
  if (HasFailure()) return;
  // The third party goes on, whole.
  const std::uint64_t so_far = survivor.messages_of_third();
  EXPECT_TRUE(within(kHang, [&] {
    survivor.receive();
    return survivor.messages_of_third() >= so_far + 100 || HasFailure();
  }));
  // The last hang-up is noticed by another thread.
  EXPECT_TRUE(within(kHang, [&] {
    return descriptors().size() <= descriptors_before.size() &&
           lines_with("/proc/self/maps", "softnic-") <= mappings_before;
  })) << ::testing::PrintToString(descriptors()) << ", before " << ::testing::PrintToString(descriptors_before);
  EXPECT_EQ(files_of_ours(), files);
  std::cout << "figure: softnic kill -9: " << rounds << " rounds in " << elapsed << " ms, the third party's "
            << survivor.messages_of_third() << " messages whole and in order\n";
}

}  // namespace
}  // namespace softnic_test
