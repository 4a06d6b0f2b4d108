#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "device/device.h"
#include "paths/target.h"
#include "shared/lanes.h"
#include "transport/transport.h"

namespace gdrperf::softnic {

/// Whom a datagram is for. A SendOp of UD has it where others have their remote
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
/// lost. What it acts on a process with is a lane of that process' segment.
class UdTransport final : public Transport {
 public:
  UdTransport(const Initiator& own, const Device& device) noexcept : own_(own), device_(device) {}
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
  void disconnect() noexcept override;
  void look_again() noexcept override;
  void forget_gone_peers() noexcept override;

 private:
  /// A process that was sent to.
  struct Host {
    std::shared_ptr<Peer> peer;  ///< null: this process
    Target target;               ///< what is the same for all of its QPs
    Lane lane;
  };
  Host* host(std::uint32_t block) noexcept;
  std::unique_ptr<Host> reach_host(std::uint32_t block);
  struct Known {
    Host* host;
    Target target;
  };
  Known* find(std::uint32_t qpn) noexcept;
  void forget(std::uint32_t block) noexcept;
  bool enter(Known& known) noexcept;
  bool refresh(Known& known) noexcept;
  bool accepts(const Target& target, const Destination& to) const noexcept;
  void deliver_to(const Target& target, const SendOp& op, const Destination& to, Pieces& message, const Part& part) noexcept;

  const Initiator own_;
  const Device& device_;
  std::map<std::uint32_t, std::unique_ptr<Host>> hosts_;  ///< by block
  std::map<std::uint32_t, std::uint64_t> absent_;  ///< blocks that nobody answered for, and until when nobody is asked (ns)
  std::unordered_map<std::uint32_t, Known> known_;        ///< by QP number
  Known* last_ = nullptr;
  std::uint32_t last_qpn_ = 0;
};

}  // namespace gdrperf::softnic
