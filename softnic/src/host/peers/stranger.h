#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"

/// Peers of other users, where both ends allow it (peers= in SOFTNIC). They see
/// nothing of each other's memory: the initiator asks, over a socket and with the
/// data in a memfd of its own; a thread of the target checks and does it.
namespace gdrperf::softnic {

class LocalQp;

/// A device of this process has to do with that user.
bool admits(const ucred& credentials);

/// A whole request, as the other user's device has it. Nothing in it is believed.
struct StrangerRequest {
  std::uint64_t process_id = 0;   ///< of the sender
  std::uint64_t remote_addr = 0;
  std::uint64_t total = 0;        ///< bytes, which lie at the memfd's beginning
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  ibv_gid gid{};                  ///< that the sender takes the target's QP to have
  std::uint32_t gid_index = 0;    ///< of the sender's QP
  std::uint32_t from_qpn = 0;
  std::uint32_t to_qpn = 0;
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint8_t opcode = 0;        ///< ibv_wr_opcode
  std::uint8_t solicited = 0;
  std::uint16_t reserved = 0;
};
struct StrangerReply {
  std::uint32_t kind = 0;    ///< Outcome::Kind
  std::uint32_t status = 0;  ///< ibv_wc_status
  std::uint32_t min_rnr_timer = 0;
  std::uint32_t reserved = 0;
};
/// No message is longer; sparse.
inline constexpr std::uint64_t kStrangerBytes = 1ull << 30;

/// This end of a connection to a stranger's process. Thread-safe, one request at a time.
class StrangerLink {
 public:
  /// Greets over `socket`, which stays the caller's. Null when the other end does
  /// not want to; its process number goes to `peer_id`.
  static std::unique_ptr<StrangerLink> greet(int socket, std::uint64_t own_id, std::uint64_t& peer_id);
  ~StrangerLink();
  StrangerLink(const StrangerLink&) = delete;
  StrangerLink& operator=(const StrangerLink&) = delete;

  /// Held from before the data is put into memory() until the answer's was taken out.
  Mutex& mutex() noexcept { return mutex_; }
  std::uint8_t* memory() noexcept { return memory_; }
  /// False: no answer, in five seconds or ever.
  bool ask(const StrangerRequest& request, StrangerReply& reply) noexcept;

 private:
  StrangerLink() = default;
  Mutex mutex_;
  int socket_ = -1;
  UniqueFd shared_;
  std::uint8_t* memory_ = nullptr;
  bool broken_ = false;
};

/// Serves strangers, a thread for each connection. Thread-safe.
class Strangers {
 public:
  explicit Strangers(const std::uint64_t& process_id) : process_id_(process_id) {}

  /// Takes over a connection of an admitted user.
  void serve(UniqueFd socket, std::uint32_t user);
  void enroll(LocalQp& qp, std::uint32_t index);
  void strike(std::uint32_t index);
  /// Waits for what is being executed. What is begun later sees what was changed before.
  void settle() noexcept { const MutexLock guard(mutex_); }
  /// Held while requests are executed, and while a QP's attributes change; across fork.
  Mutex& mutex() noexcept { return mutex_; }

 private:
  void run(int socket, std::uint32_t user);
  StrangerReply execute(const StrangerRequest& request, int memory, std::uint32_t user);

  const std::uint64_t& process_id_;
  Mutex mutex_;
  std::map<std::uint32_t, LocalQp*> qps_ GUARDED_BY(mutex_);
  std::atomic<int> served_{0};
};

}  // namespace gdrperf::softnic
