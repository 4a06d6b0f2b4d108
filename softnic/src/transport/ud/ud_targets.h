#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/config.h"
#include "paths/target.h"
#include "shared/segment/completion.h"
#include "shared/segment/lanes.h"
#include "shared/segment/request.h"
#include "transport/rc/grh.h"
#include "transport/rc/transport.h"

namespace gdrperf::softnic {

/// QPs of any number of processes of this host, as those who send datagrams to them
/// see them. What they act on a process with is a lane of that process' segment. Not
/// thread-safe.
class UdTargets {
 public:
  UdTargets(Process& process, const DeviceConfig* device) noexcept : process_(process), device_(device) {}
  ~UdTargets();
  UdTargets(const UdTargets&) = delete;
  UdTargets& operator=(const UdTargets&) = delete;

  /// A process that was sent to.
  struct Host {
    std::shared_ptr<Peer> peer;  ///< null: this process
    Target target;               ///< what is the same for all of its QPs
    Lane lane;
  };
  struct Known {
    Host* host;
    Target target;
  };
  /// Null: nobody answers for the number. Valid until the next call.
  Known* find(std::uint32_t qpn) noexcept;
  /// Numbers of the QPs of this user's processes that are in the group.
  void find_members(const ibv_gid& group, std::vector<std::uint32_t>& qpns) noexcept;
  /// In a turn on the QP that find() found. False: it is none that takes datagrams.
  bool enter(Known& known) noexcept;
  void leave(Known& known) noexcept { known.host->lane.leave(); }
  void clear() noexcept;
  void look_again() noexcept;
  void forget_gone_peers() noexcept;

 private:
  Host* host(std::uint32_t block) noexcept;
  std::unique_ptr<Host> reach_host(std::uint32_t block);
  void forget(std::uint32_t block) noexcept;
  bool refresh(Known& known) noexcept;

  Process& process_;
  const DeviceConfig* const device_;  ///< null: QPs of this process alone
  std::map<std::uint32_t, std::unique_ptr<Host>> hosts_;  ///< by block
  std::map<std::uint32_t, std::uint64_t>
      absent_;  ///< blocks that nobody answered for, and until when nobody is asked (ns)
  std::unordered_map<std::uint32_t, Known> known_;        ///< by QP number
  Known* last_ = nullptr;
  std::uint32_t last_qpn_ = 0;
};

/// A datagram without its data.
struct Datagram {
  Route route{};
  std::uint32_t from_qpn = 0;
  std::uint32_t qkey = 0;
  std::uint32_t imm = 0;
  std::uint8_t opcode = 0;
  bool solicited = false;
};

/// The entry of the GID table that `gid` is of the device that the QP is on; kGidsPerPort: none.
std::uint32_t gid_index_of(const Target& target, const ibv_gid& gid) noexcept;
/// In a turn: writes it into the next receive. False: there is none, and it is lost.
bool deliver_datagram(const Target& target, Process& process, const Datagram& datagram, Pieces& message,
                      const Part& part) noexcept;

}  // namespace gdrperf::softnic
