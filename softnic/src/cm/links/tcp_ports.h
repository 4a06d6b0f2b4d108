#pragma once

#include <cstdint>
#include <memory>

#include "cm/state/address.h"
#include "device/device.h"
#include "gdrperf/base/unique_fd.h"
#include "remote/hub.h"

/// Ports of rdma_cm from one host to another: a TCP connection to the port of the
/// devices with tcp=, greeted like those of QPs, and passed on to the process that
/// has the port of rdma_cm.
namespace gdrperf::softnic {

/// This process' communication manager, as the connections of other hosts see it.
class CmTcpReceiver {
 public:
  enum class Port { kNobodys, kBound, kListens };
  virtual Port port(std::uint16_t port_space, const CmAddress& address) = 0;
  virtual void connected(UniqueFd socket) = 0;

 protected:
  ~CmTcpReceiver() = default;
};
/// Null: none is left (a forked child). It is never destroyed.
void set_cm_tcp_receiver(CmTcpReceiver* receiver) noexcept;

/// The hub passes on connections for rdma_cm.
void pass_on_cm(Hub& hub);
/// Other hosts may connect to ports of this process from now on. Throws.
void open_cm_to_hosts();
/// A connection that another process of this host has accepted for this one.
void greet_cm(UniqueFd socket);
/// Does `bytes` of a link on this host come with such a connection?
bool is_cm_handover(const void* bytes, std::size_t size) noexcept;

struct CmReach {
  UniqueFd socket;      ///< empty: not reached
  bool silent = false;  ///< no answer; else there is nobody at that port
};
/// Blocks up to four seconds.
CmReach reach_cm_over_tcp(const Device& device, std::uint16_t port_space, const CmAddress& source,
                          const CmAddress& destination);

}  // namespace gdrperf::softnic
