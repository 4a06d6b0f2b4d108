#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.h"
#include "paths/target.h"
#include "transport/rc/transport.h"
#include "transport/ud/ud_groups.h"
#include "transport/ud/ud_targets.h"
#include "transport/tcp/ud_tcp.h"

namespace gdrperf::softnic {

/// Destination of a datagram. A SendOp of UD has it where others have their remote
/// address, key and operands.
struct Destination {
  ibv_gid gid{};
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  std::uint8_t sgid_index = 0;

  void put_into(SendOp& op) const noexcept;
  static Destination of(const SendOp& op) noexcept;
};

/// Unreliable datagrams, from the initiator's side: to any number of QPs of any
/// number of processes. A message is done when it was sent; what nobody takes is
/// lost.
class UdTransport final : public Transport {
 public:
  /// Whether what its QP sends to a group that it is in comes back to it.
  enum class OwnMulticast { kReceived, kBlocked };
  UdTransport(const Initiator& own, const Device& device, OwnMulticast own_multicast) noexcept
      : own_(own),
        port_(&device),
        own_multicast_(own_multicast),
        targets_(own.process, &device.config),
        tcp_(device),
        groups_(device) {}
  ~UdTransport() override;
  UdTransport(const UdTransport&) = delete;
  UdTransport& operator=(const UdTransport&) = delete;

  bool acknowledged() const noexcept override { return false; }
  std::uint32_t opcodes() const noexcept override { return opcode_bit(IBV_WR_SEND) | opcode_bit(IBV_WR_SEND_WITH_IMM); }
  Outcome execute(const SendOp& op) noexcept override { return execute_part(op, {}); }
  Outcome execute_part(const SendOp& op, const Part& part) noexcept override;
  bool move_ahead(const SendOp&, AheadMove&) noexcept override { return false; }
  std::uint64_t neighbour(const SendOp& op, std::uint64_t) noexcept override { return op.remote_addr; }
  void show_arrival(const SendOp& op, Instant due) noexcept override;
  void connect(std::shared_ptr<Peer>, KernelPolicy) override {}
  void use_port(const Device& port) noexcept override { port_ = &port; }
  void disconnect() noexcept override;
  void look_again() noexcept override;
  void forget_gone_peers() noexcept override;

 private:
  bool accepts(const Target& target, const Destination& to, std::uint32_t key) const noexcept;
  void send_to_group(const Datagram& datagram, const Pieces& message, const Part& part) noexcept;

  const Initiator own_;
  const Device* port_;
  const OwnMulticast own_multicast_;
  UdTargets targets_;
  UdTcp tcp_;
  UdGroups groups_;
  std::vector<std::uint32_t> members_;  ///< of the group that is sent to
};

}  // namespace gdrperf::softnic
