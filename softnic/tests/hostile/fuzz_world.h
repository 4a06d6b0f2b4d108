#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <shared_mutex>
#include <vector>

/// One process' verbs objects under random calls. Calls that use objects run beside each other;
/// those that destroy have the world to themselves, as a program has to see to.
namespace softnic_fuzz {

inline constexpr std::uint32_t kSlots = 18;
inline constexpr std::uint32_t kGroups = 2;
inline constexpr std::size_t kRegionBytes = 64 << 10;
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::uint8_t kGuard = 0xa5;

/// An end's description of itself: seen, and read at any time, by all.
struct Entry {
  std::atomic<std::uint32_t> qpn{0};
  std::atomic<std::uint32_t> gid_index{0};
  std::atomic<std::uint32_t> device{0};
  std::atomic<std::uint32_t> rkey{0};
  std::atomic<std::uint64_t> address{0};
  std::atomic<std::uint32_t> window{0};
  std::atomic<std::uint32_t> srq{0};  ///< XRC: its number
};

/// Shared by both processes: slot i of one is the peer of slot i of the other, and the last third
/// of the slots are peers of each other within a process.
struct Board {
  Entry entries[2][kSlots];
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> delivered{0};
};

/// Random numbers. Most calls are right, so that something is under way when a wrong one comes.
struct Random {
  explicit Random(unsigned seed) : numbers(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(numbers()); }
  bool one_in(std::uint32_t n) { return numbers() % n == 0; }
  bool wrong(std::uint32_t n) { return wild && one_in(n); }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(numbers()) % n; }
  /// Below n, or anything at all.
  std::uint32_t any(std::uint32_t n) { return wrong(8) ? (*this)() : below(n); }
  std::mt19937 numbers;
  bool wild = false;
};

/// Memory between guards that nobody may touch, because it is registered for nobody.
struct Region {
  std::uint8_t* base = nullptr;
  std::uint8_t* data() const { return base + kPageBytes; }
};

/// One of the fuzzer's own.
ibv_gid multicast_group(std::uint32_t number);
inline bool is_xrc(ibv_qp_type type) { return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV; }

struct End {
  ibv_qp* qp = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_mw* mw = nullptr;
  ibv_pd* pd = nullptr;
  int device = 0;
  bool extended_cq = false;
};

class World {
 public:
  World(Board& board, int side);
  ~World();
  /// Some call, on objects that are there or with arguments that are wrong. Thread-safe.
  void step(Random& random);
  /// False when a guard was written to.
  bool guards_whole() const;

 private:
  void use(Random& random);
  void change(Random& random);
  void make(std::uint32_t slot, Random& random);
  void unmake(std::uint32_t slot);
  void unmake_in_wrong_order(std::uint32_t slot, Random& random);
  void reconnect(End& end, std::uint32_t slot, Random& random);
  void connect(End& end, std::uint32_t slot, Random& random);
  void modify_wildly(End& end, Random& random);
  void post_sends(End& end, std::uint32_t slot, Random& random);
  void build_sends(End& end, std::uint32_t slot, Random& random);
  void post_receives(End& end, Random& random);
  void poll(End& end, Random& random);
  void poll_extended(End& end);
  void ask(End& end, Random& random);
  void refuse(End& end, Random& random);
  void window(End& end, std::uint32_t slot, Random& random);
  void make_qp(End& end, std::uint32_t slot, Random& random);
  void make_xrc_receiver(End& end, Random& random);
  void join_or_leave(End& end, Random& random);
  ibv_sge piece(const End& end, Random& random) const;
  void remote(std::uint32_t slot, Random& random, std::uint64_t& address, std::uint32_t& rkey) const;
  std::uint32_t peer_slot(std::uint32_t slot) const;
  /// The same at both ends; of XRC one sends and the other one receives.
  ibv_qp_type type_of(std::uint32_t slot) const;
  ibv_ah* handle(const End& end, std::uint32_t slot, Random& random) const;
  const Entry& peer(std::uint32_t slot) const;

  Board& board_;
  const int side_;
  std::vector<ibv_context*> contexts_;
  std::vector<ibv_pd*> pds_;
  std::vector<ibv_xrcd*> domains_;
  std::vector<std::vector<ibv_ah*>> handles_;  ///< of each device, to each device, and to each multicast group
  ibv_comp_channel* channel_ = nullptr;
  std::vector<Region> regions_;
  std::vector<End> ends_;
  std::shared_mutex mutex_;
};

}  // namespace softnic_fuzz
