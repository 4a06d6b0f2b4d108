#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/netdev.h"
#include "model/config.h"

namespace gdrperf::softnic {

/// Treatment of work requests by a device.
enum class DeviceMode {
  kFull,  ///< moves data
  kNull,  ///< completes every send-side request at once, moves nothing
};

/// Whether registered pages may be moved onto shared memory.
enum class MovePolicy { kAuto, kNever };

/// Whether the kernel may be asked to copy to and from another process.
enum class KernelPolicy { kAuto, kNever };

/// Whether peers on this host are reached through shared memory.
enum class SharedPolicy { kAuto, kNever };

/// What the port says that it is. InfiniBand's has a LID, and one GID.
enum class LinkLayer { kEthernet, kInfiniBand };

/// RoCE v2's UDP port, as a TCP port.
inline constexpr std::uint16_t kDefaultTcpPort = 4791;

/// Users besides its own whose processes a device talks to.
struct PeerPolicy {
  bool any = false;
  std::vector<std::uint32_t> users;
  bool own_user_only() const { return !any && users.empty(); }
  bool admits(std::uint32_t user) const;
};

/// A control call that is made to fail with a chosen errno.
struct CallFault {
  std::string call;  ///< "reg_mr", "create_qp" or "modify_qp"
  int error = 0;
};

struct DeviceConfig {
  std::string name;
  DeviceMode mode = DeviceMode::kFull;
  MovePolicy move = MovePolicy::kAuto;
  KernelPolicy kernel = KernelPolicy::kAuto;
  SharedPolicy shared = SharedPolicy::kAuto;
  LinkLayer link_layer = LinkLayer::kEthernet;
  PeerPolicy peers;
  /// Address for peers on other hosts; 0: they do not find the device.
  std::uint16_t tcp_port = 0;
  std::string token;       ///< which they share with it; empty: the user's own key
  std::string token_file;  ///< where that stood
  bool port_up = true;
  unsigned ports = 1;  ///< 1 or 2
  std::optional<bool> second_port_up;  ///< up where nothing was said
  bool has_gids = true;
  std::string netdev = "lo";  ///< that the GIDs belong to
  /// With tcp: its addresses, which are the GIDs. Those of a loopback are 127.0.0.n, as without tcp.
  NetdevAddress address;
  std::optional<std::array<std::uint8_t, 6>> mac;
  std::string pci;  ///< "0000:3b:00.0"; empty: on no bus
  int numa = -1;
  std::uint32_t ece_vendor = 0;  ///< of enhanced connection establishment; 0: the device has none
  std::uint32_t ece_options = 0;
  bool mlx5 = false;  ///< rings in the format of NVIDIA's NICs
  std::vector<CallFault> faults;
  LinkConfig link;
  std::vector<FaultRule> message_faults;

  /// Messages go through the link model (or its faults).
  bool modelled() const { return link.given || !message_faults.empty(); }
  /// The errno that `call` shall fail with, 0 for none.
  int fault(std::string_view call) const;
};

/// Parses the text of the SOFTNIC variable:
///
///     DEVICE[:OPTION[,OPTION]...][;DEVICE...]
///     OPTION: mode=full|null  port=up|down  ports=1|2  port2=up|down  gid=all|none  link_layer=ethernet|infiniband
///     move=auto|never
///             kernel=auto|never  tcp=off|on|PORT  token=FILE  shared=auto|never  peers=own|any|UID[+UID]...
///             fail=reg_mr|create_qp|modify_qp:ERRNO_NAME fault=KIND[:KEY=VALUE]...  netdev=NAME  mac=02:00:00:00:00:01
///             pci=0000:3b:00.0  numa=NODE ece=VENDOR:OPTIONS  mlx5=on|off and those of the link (model_config.h)
///
/// An empty text means "soft0;soft1"; "@FILE" is replaced by the text of the
/// file, where a line end separates devices as well and # begins a comment.
/// Throws usage_error naming SOFTNIC, the part that is wrong and what is
/// accepted.
std::vector<DeviceConfig> parse_config(std::string_view text);

}  // namespace gdrperf::softnic
