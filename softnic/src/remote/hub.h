#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "remote/greeting.h"

/// TCP connections of this process: who may open one, which QP each is for, and a
/// thread that serves those that no thread of the program polls for.
namespace gdrperf::softnic {

/// A QP's end of its connection, as the hub sees it. Thread-safe.
class TcpEnd {
 public:
  virtual ~TcpEnd() = default;
  /// The one that it is to be connected to; `from` and `from_qpn` are the other end's.
  virtual const TcpRoute& expected() const noexcept = 0;
  /// Takes the connection. False: it has one.
  virtual bool take(UniqueFd& socket) noexcept = 0;
  virtual int socket() const noexcept = 0;
  /// Moves on what can be moved on.
  struct Wish {
    std::uint32_t events = 0;    ///< of epoll, to be served again at
    std::uint64_t again_ns = 0;  ///< and after so long at the latest; 0: no limit
    bool over = false;           ///< the hub forgets it
  };
  virtual Wish serve() noexcept = 0;
  /// A thread of the program has polled for it within the last `ns`.
  virtual bool polled_within(std::uint64_t ns) const noexcept = 0;
};

/// Connections of a type that no TcpEnd waits for. Thread-safe; outlives the hub.
class TcpService {
 public:
  /// This process is the one that it is for.
  virtual bool is_own(const TcpHello& hello) = 0;
  /// Passes it on to the process of this host that it is for. False: there is none.
  virtual bool hand_over(const TcpHello& hello, int socket) = 0;
  /// Greeted.
  virtual void arrived(const TcpHello& hello, UniqueFd socket) = 0;

 protected:
  ~TcpService() = default;
};

class Hub {
 public:
  /// Part of the process that a hub needs.
  struct Callbacks {
    std::function<bool(std::uint32_t qpn)> is_own;
    /// The process on this host that has the QP serves the connection from now on.
    std::function<bool(std::uint32_t qpn, int socket)> hand_over;
  };
  explicit Hub(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  /// Listens on the port, or stands by while another process of this host does.
  /// Throws CallFailure.
  void open(std::uint16_t port);
  /// Connections of that type are its.
  void serve(std::uint8_t type, TcpService& service);
  /// Its connection is served; one that came before is its.
  void add(const std::shared_ptr<TcpEnd>& end);
  void remove(const TcpEnd& end);
  /// Looks at the end shortly, also if nothing comes: something is owed.
  void visit_soon(const TcpEnd& end) noexcept;
  /// To be called when there is something to send for which there was no room.
  void want_output(const TcpEnd& end) noexcept;
  /// A connection that was accepted, by this process or (`handed over`) by another.
  enum class Origin { kAccepted, kHandedOver };
  void greet(UniqueFd socket, Origin origin);

  /// Held across fork.
  Mutex& mutex() noexcept { return mutex_; }
  /// In a forked child: closes what was inherited.
  void abandon() NO_THREAD_SAFETY_ANALYSIS;

 private:
  struct Listener {
    std::uint16_t port;
    UniqueFd socket;
  };
  struct Entry {
    std::shared_ptr<TcpEnd> end;
    bool watched = false;         ///< its socket is in the epoll
    std::uint64_t visit_ns = 0;   ///< to be looked at then; 0: when its socket says so
    std::uint64_t pause_ns = 0;   ///< between looks while somebody polls for it
  };
  struct Parked {
    TcpHello hello;
    UniqueFd socket;
    std::uint64_t since_ns;
  };
  void run();
  void try_to_listen();
  void accept_all(int listener);
  void look_at(std::uint64_t id, bool ready);
  void watch(std::uint64_t id, Entry& entry) REQUIRES(mutex_);
  void drop_left();
  void adopt_parked(TcpEnd& end) REQUIRES(mutex_);
  void arrived(const TcpHello& hello, UniqueFd socket);
  TcpService* service_for(const TcpHello& hello);
  void greet_here(UniqueFd socket, Origin origin);
  std::uint64_t next_visit();
  void wake() noexcept;

  const Callbacks callbacks_;
  Mutex mutex_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::vector<Listener> listeners_ GUARDED_BY(mutex_);
  std::map<std::uint64_t, Entry> ends_ GUARDED_BY(mutex_);
  std::map<const TcpEnd*, std::uint64_t> ids_ GUARDED_BY(mutex_);
  std::list<Parked> parked_ GUARDED_BY(mutex_);
  std::map<std::uint8_t, TcpService*> services_ GUARDED_BY(mutex_);
  std::uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  bool waits_for_port_ GUARDED_BY(mutex_) = false;
  std::atomic<int> greetings_{0};
};

}  // namespace gdrperf::softnic
