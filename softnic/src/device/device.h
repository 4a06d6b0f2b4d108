#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/config.h"
#include "gdrperf/base/mutex.h"
#include "model/faults.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {

/// A software device as ibv_get_device_list shows it, with its first port. A second
/// port is one more of these, in no list: all of its own that a port has (GIDs, LID,
/// state, link model, counters). Lives as long as the process.
struct Device : ibv_device {
  /// `first`: of a second port, the device that it belongs to.
  Device(DeviceConfig device_config, std::uint16_t device_index, const std::string& settings, Device* first = nullptr);

  /// Vendor libraries read what their own device struct holds behind
  /// ibv_device before they know that this one is not theirs.
  std::array<std::uint8_t, 1024> padding{};
  DeviceConfig config;
  /// Place among the devices of SOFTNIC; second ports come behind them all.
  std::uint16_t index;
  /// The port's.
  std::uint8_t number = 1;
  /// With a model: what processes with the same settings find their port by.
  std::string port_name;
  std::array<std::uint8_t, 6> mac;
  /// Link and faults; null on a device that never had any. Replaced as a whole
  /// by set_model(), and each lives on, because a data path may be in it.
  std::atomic<DeviceModel*> model{nullptr};
  std::atomic<bool> port_up;
  /// Settings of the link and of faults from a changed file (LiveConfig).
  void change(const DeviceConfig& fresh);
  /// Puts the model that `config` now describes in the place of the one before.
  void set_model();
  /// The errno that this control call shall fail with, 0 for none.
  int call_fault(std::string_view call) const;
  LinkConfig link() const;
  /// Of its port: no datagram is larger.
  std::uint32_t mtu_bytes() const;
  /// Has, or had once, a link model or faults.
  bool simulated() const;
  /// Its GIDs are those of an interface, not of loopback.
  bool has_own_address() const { return config.tcp_port != 0 && !config.address.loopback; }
  bool has_ipv6() const { return has_own_address() && config.address.ipv6 != decltype(config.address.ipv6){}; }
  /// With a model: the port, shared with other processes (Context's business).
  std::atomic<PortShared*> port{nullptr};

  /// The N of uverbsN.
  unsigned verbs_number() const;
  /// Index of the device for RDMA netlink and ibv_get_device_index: behind those
  /// of the kernel, as long as it has not had a thousand.
  unsigned kernel_index() const { return verbs_number() == index ? index : 1000 + index; }
  /// Of the port; the device's own is that of its first port.
  __be64 guid() const;
  __be64 node_guid() const { return first_ != nullptr ? first_->guid() : guid(); }
  unsigned port_count() const { return second_ != nullptr ? 2 : 1; }
  /// Null: it has no port of this number.
  Device* port_at(unsigned port) { return port == 1 ? this : port == 2 ? second_ : nullptr; }
  const Device* port_at(unsigned port) const { return port == 1 ? this : port == 2 ? second_ : nullptr; }
  bool infiniband() const { return config.link_layer == LinkLayer::kInfiniBand; }
  /// Of an InfiniBand port: its place in the order of `index`, from 1; of others 0.
  std::uint16_t lid() const { return infiniband() ? static_cast<std::uint16_t>(index + 1) : std::uint16_t{0}; }
  /// Size of the GID table, and as much of it as is in use.
  std::uint32_t gid_slots() const { return infiniband() ? 1 : has_ipv6() ? kGidsPerPort : kIpv6Entry; }
  std::uint32_t gid_entries() const { return config.has_gids ? gid_slots() : 0; }
  /// Entry of the GID table; all zero when the device has no such, or its interface no such address.
  ibv_gid gid(std::uint32_t entry) const;
  bool has_gid(std::uint32_t entry) const;
  /// A path from this device, as ibv_modify_qp and ibv_create_ah get it, as one by GID. EINVAL: there is no such path.
  int complete_path(ibv_ah_attr& path) const;

 private:
  Device* const first_;  ///< of a second port
  Device* second_ = nullptr;
  mutable Mutex mutex_;  ///< also of what change() changes in `config`, of which the rest is read without it
  std::vector<std::unique_ptr<DeviceModel>> models_ GUARDED_BY(mutex_);
};

/// The devices that SOFTNIC asks for, made once; none after a wrong SOFTNIC
/// (said on stderr, once).
const std::vector<std::unique_ptr<Device>>& devices();
/// All ports of all devices, in the order of `index`.
const std::vector<Device*>& all_ports();
/// Null when the device is not one of ours.
Device* soft_device(const ibv_device* device);

inline constexpr std::uint32_t kMaxMessageBytes = 1u << 30;
inline constexpr std::uint32_t kMaxSge = 16;
inline constexpr std::uint32_t kMaxInline = 1024;
inline constexpr std::uint32_t kMaxQpWr = 32768;
inline constexpr std::uint32_t kMaxCqe = 1u << 22;
inline constexpr std::uint32_t kMaxSrqWr = 32768;
inline constexpr std::uint8_t kMaxRdAtomic = 16;
/// Programs spread their queues over them. Events come from no interrupt here, so they are all alike.
inline constexpr int kCompletionVectors = 8;
inline constexpr std::size_t kMaxDeviceMemory = std::size_t{256} << 10;
inline constexpr std::uint64_t kStampClockKhz = 1'000'000;

void describe_device(const Device& device, ibv_device_attr& attr);
/// Writes at most `size` bytes of the extended attributes.
void describe_device_ex(const Device& device, ibv_device_attr_ex& attr, std::size_t size);
void describe_port(const Device& port, ibv_port_attr& attr);
/// The port's speed as describe_port codes it, all lanes together.
double port_gigabits(const Device& port);
/// Destination of a frame to this GID: ENOENT when it is none that a device of
/// ours could have.
int hardware_address_of(const ibv_gid& gid, std::uint8_t (&mac)[6]);
/// ENODATA for an empty entry, EINVAL past the table.
int describe_gid(const Device& port, std::uint32_t entry, ibv_gid_entry& out);

}  // namespace gdrperf::softnic
