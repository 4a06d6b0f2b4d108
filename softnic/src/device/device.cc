#include "device/device.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "softnic_headers.h"

namespace gdrperf::softnic {
namespace {

/// No company's OUI; programs take 0 for a device that was not asked.
constexpr std::uint32_t kNoVendor = 0xffffff;
/// What programs look for that write WQEs by themselves.
constexpr std::uint32_t kMlx5Vendor = 0x2c9;
constexpr std::uint8_t kWidth4x = 2;
constexpr std::uint8_t kSpeedHdr = 64;
constexpr std::uint8_t kSpeedNdr = 128;
constexpr std::uint8_t kPhysDisabled = 3;
constexpr std::uint8_t kPhysLinkUp = 5;

/// Four lanes of the slowest kind that is not slower than the link.
std::uint8_t speed_of(double rate) {
  struct Speed {
    double gigabits;
    std::uint8_t code;
  };
  constexpr Speed kSpeeds[] = {{10, 1}, {20, 2}, {40, 4}, {56, 16}, {100, 32}, {200, kSpeedHdr}};
  if (rate <= 0) return kSpeedHdr;
  for (const Speed& speed : kSpeeds) {
    if (rate * 8e-9 <= speed.gigabits * 1.0001) return speed.code;
  }
  return kSpeedNdr;
}

ibv_mtu mtu_of(std::uint32_t bytes) {
  int code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (128u << code) < bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

void copy_text(char* to, std::size_t capacity, const std::string& text) {
  std::snprintf(to, capacity, "%s", text.c_str());
}

/// Behind those of the kernel, which is asked itself, once: libc's functions are ours.
unsigned first_free_uverbs() {
  static const unsigned first = [] {
    unsigned number = 0;
    for (unsigned taken = 0; taken < 64; ++taken) {
      const std::string path = "/sys/class/infiniband_verbs/uverbs" + std::to_string(taken);
      if (::syscall(SYS_faccessat, AT_FDCWD, path.c_str(), F_OK) == 0) number = taken + 1;
    }
    return number;
  }();
  return first;
}

/// Locally administered: 02, "SN", and the device's number.
constexpr std::array<std::uint8_t, 6> default_mac(std::uint16_t index) {
  return {0x02, 0x53, 0x4e, 0x00, static_cast<std::uint8_t>(index >> 8), static_cast<std::uint8_t>(index & 0xff)};
}

__be64 guid_of(const std::array<std::uint8_t, 6>& mac) {
  const std::uint8_t eui64[8] = {
      static_cast<std::uint8_t>(mac[0] ^ 0x02), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  __be64 guid;
  std::memcpy(&guid, eui64, sizeof guid);
  return guid;
}

struct Made {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Device>> second_ports;
  std::vector<Device*> ports;
};

/// As of a second card: the same settings, and a hardware address of its own.
DeviceConfig config_of_second(const Device& device) {
  DeviceConfig config = device.config;
  config.port_up = config.second_port_up.value_or(true);
  if (config.mac) ++config.mac->back();
  return config;
}

Made make_devices() {
  Made made;
  const char* given = std::getenv("SOFTNIC");
  const std::string text = given != nullptr ? given : "";
  try {
    std::uint16_t index = 0;
    for (DeviceConfig& config : parse_config(text)) {
      made.devices.push_back(std::make_unique<Device>(std::move(config), index++, text));
      made.ports.push_back(made.devices.back().get());
    }
    for (const auto& device : made.devices) {
      if (device->config.ports == 1) continue;
      made.second_ports.push_back(std::make_unique<Device>(config_of_second(*device), index++, text, device.get()));
      made.ports.push_back(made.second_ports.back().get());
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "softnic: %s\n", error.what());
    made = {};
  }
  return made;
}

const Made& all_made() {
  // Never destroyed: contexts may outlive static destruction.
  static const auto* made = new Made(make_devices());
  return *made;
}

}  // namespace

Device::Device(DeviceConfig device_config, std::uint16_t device_index, const std::string& settings, Device* first)
    : ibv_device{},
      config(std::move(device_config)),
      index(device_index),
      number(first != nullptr ? 2 : 1),
      port_name(fmt::format("{}{}.{:016x}", config.name, first != nullptr ? ".2" : "", digest(settings))),
      port_up(config.port_up),
      first_(first) {
  if (first != nullptr) first->second_ = this;
  node_type = IBV_NODE_CA;
  transport_type = IBV_TRANSPORT_IB;
  copy_text(name, sizeof name, config.name);
  copy_text(dev_name, sizeof dev_name, "uverbs" + std::to_string(first_free_uverbs() + index));
  copy_text(dev_path, sizeof dev_path, std::string("/sys/class/infiniband_verbs/") + dev_name);
  copy_text(ibdev_path, sizeof ibdev_path, "/sys/class/infiniband/" + config.name);
  if (config.modelled()) set_model();
  mac = default_mac(index);
  if (has_own_address()) mac = config.address.mac;
  if (config.mac) mac = *config.mac;
}

void Device::change(const DeviceConfig& fresh) {
  const MutexLock guard(mutex_);
  config.link = fresh.link;
  config.message_faults = fresh.message_faults;
  config.faults = fresh.faults;
}

void Device::set_model() {
  const MutexLock guard(mutex_);
  models_.push_back(std::make_unique<DeviceModel>(config.link, config.message_faults, Clock::get()));
  model.store(models_.back().get(), std::memory_order_release);
}

int Device::call_fault(std::string_view call) const {
  const MutexLock guard(mutex_);
  return config.fault(call);
}

LinkConfig Device::link() const {
  const MutexLock guard(mutex_);
  return config.link;
}

std::uint32_t Device::mtu_bytes() const {
  const DeviceModel* now = model.load(std::memory_order_acquire);
  return now != nullptr ? now->link.mtu : LinkConfig{}.mtu;
}

bool Device::simulated() const { return model.load() != nullptr; }

unsigned Device::verbs_number() const {
  return static_cast<unsigned>(std::atoi(dev_name + std::strlen("uverbs")));
}

__be64 Device::guid() const { return guid_of(mac); }

ibv_gid Device::gid(std::uint32_t entry) const {
  ibv_gid gid{};
  if (entry >= gid_entries()) return gid;
  if (entry == kIpv6Entry) {
    std::memcpy(gid.raw, config.address.ipv6.data(), sizeof gid.raw);
    return gid;
  }
  if (kGidKinds[entry].ipv4) {
    if (has_own_address() && config.address.ipv4 == decltype(config.address.ipv4){}) return gid;
    const std::array<std::uint8_t, 4> loopback = {127, 0, static_cast<std::uint8_t>((index + 1) >> 8),
                                                  static_cast<std::uint8_t>((index + 1) & 0xff)};
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, has_own_address() ? config.address.ipv4.data() : loopback.data(), loopback.size());
    return gid;
  }
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  const __be64 id = guid();
  std::memcpy(gid.raw + 8, &id, sizeof id);
  return gid;
}

bool Device::has_gid(std::uint32_t entry) const {
  const ibv_gid none{};
  const ibv_gid own = gid(entry);
  return std::memcmp(&own, &none, sizeof none) != 0;
}

int Device::complete_path(ibv_ah_attr& path) const {
  if (port_at(path.port_num) == nullptr) return EINVAL;
  if (path.is_global != 0) {
    const ibv_gid none{};
    return !has_gid(path.grh.sgid_index) || std::memcmp(&path.grh.dgid, &none, sizeof none) == 0 ? EINVAL : 0;
  }
  // RoCE always routes by GID. LIDs from 0xc000 on are those of groups, which have a GID as well.
  constexpr std::uint16_t kFirstMulticastLid = 0xc000;
  if (!infiniband() || path.dlid == 0 || path.dlid >= kFirstMulticastLid) return EINVAL;
  const auto there = static_cast<std::size_t>(path.dlid - 1);
  path.grh = {};
  if (there < all_ports().size()) {
    path.grh.dgid = all_ports()[there]->gid(0);
  } else {
    const __be64 guid = guid_of(default_mac(static_cast<std::uint16_t>(there)));
    path.grh.dgid.raw[0] = 0xfe;
    path.grh.dgid.raw[1] = 0x80;
    std::memcpy(path.grh.dgid.raw + 8, &guid, sizeof guid);
  }
  return 0;
}

const std::vector<std::unique_ptr<Device>>& devices() { return all_made().devices; }

const std::vector<Device*>& all_ports() { return all_made().ports; }

Device* soft_device(const ibv_device* device) {
  for (const auto& candidate : devices()) {
    if (candidate.get() == device) return candidate.get();
  }
  return nullptr;
}

void describe_device(const Device& device, ibv_device_attr& attr) {
  attr = {};
  std::snprintf(attr.fw_ver, sizeof attr.fw_ver, "softnic %s%s", GDRPERF_VERSION,
                device.simulated() ? " simulated" : "");
  attr.node_guid = device.guid();
  attr.sys_image_guid = device.guid();
  attr.vendor_id = device.config.mlx5 ? kMlx5Vendor : kNoVendor;
  attr.max_mr_size = 1ull << 46;
  attr.page_size_cap = 0xfffff000;
  attr.max_qp = static_cast<int>(kMaxQps - 1);
  attr.max_qp_wr = static_cast<int>(kMaxQpWr);
  attr.device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                          IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                          IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC;
  attr.max_sge = static_cast<int>(kMaxSge);
  attr.max_sge_rd = static_cast<int>(kMaxSge);
  attr.max_cq = static_cast<int>(kMaxCqs - 1);
  attr.max_cqe = static_cast<int>(kMaxCqe);
  attr.max_mr = static_cast<int>(kMaxMrs - 1);
  attr.max_mw = static_cast<int>(kMaxMrs - 1);
  attr.max_pd = 1 << 20;
  attr.max_qp_rd_atom = kMaxRdAtomic;
  attr.max_res_rd_atom = static_cast<int>(kMaxRdAtomic * (kMaxQps - 1));
  attr.max_qp_init_rd_atom = kMaxRdAtomic;
  attr.atomic_cap = IBV_ATOMIC_HCA;
  attr.max_ah = 1 << 16;
  attr.max_mcast_grp = attr.max_mcast_qp_attach = attr.max_total_mcast_qp_attach = static_cast<int>(kMaxMemberships);
  attr.max_srq = static_cast<int>(kMaxQps - 1);
  attr.max_srq_wr = static_cast<int>(kMaxSrqWr);
  attr.max_srq_sge = static_cast<int>(kMaxSge);
  attr.max_pkeys = 1;
  attr.local_ca_ack_delay = 0;
  attr.phys_port_cnt = static_cast<std::uint8_t>(device.port_count());
}

void describe_device_ex(const Device& device, ibv_device_attr_ex& attr, std::size_t size) {
  ibv_device_attr_ex full{};
  describe_device(device, full.orig_attr);
  full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
#ifdef SOFTNIC_HAS_PHYS_PORT_CNT_EX
  full.phys_port_cnt_ex = device.port_count();
#endif
  // Completions are stamped with CLOCK_MONOTONIC, in nanoseconds.
  full.completion_timestamp_mask = ~std::uint64_t{0};
  full.hca_core_clock = kStampClockKhz;
  // Registered memory is there, whether paging on demand is asked for or not.
  full.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  full.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
                                                 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
                                                 IBV_ODP_SUPPORT_SRQ_RECV;
  full.odp_caps.per_transport_caps.uc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE;
  full.odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
  full.xrc_odp_caps = full.odp_caps.per_transport_caps.rc_odp_caps;
  full.max_dm_size = kMaxDeviceMemory;
  if (device.link().pacing) {
    full.packet_pacing_caps = {1, std::numeric_limits<std::uint32_t>::max(),
                               1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD};
  }
  std::memcpy(&attr, &full, std::min(size, sizeof full));
}

void describe_port(const Device& port, ibv_port_attr& attr) {
  attr = {};
  const bool up = port.port_up.load();
  attr.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr.max_mtu = IBV_MTU_4096;
  attr.active_mtu = mtu_of(port.link().mtu);
  attr.gid_tbl_len = static_cast<int>(port.gid_slots());
  attr.port_cap_flags = IBV_PORT_CM_SUP | (port.infiniband() ? 0 : IBV_PORT_IP_BASED_GIDS);
  attr.max_msg_sz = kMaxMessageBytes;
  attr.pkey_tbl_len = 1;
  attr.max_vl_num = 1;
  attr.active_width = kWidth4x;
  attr.active_speed = speed_of(port.link().rate);
  attr.phys_state = up ? kPhysLinkUp : kPhysDisabled;
  attr.link_layer = port.infiniband() ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  attr.lid = port.lid();
  // The subnet manager is nowhere in particular.
  attr.sm_lid = port.infiniband() ? 1 : 0;
}

double port_gigabits(const Device& port) {
  ibv_port_attr attr;
  describe_port(port, attr);
  // Gb/s of a lane, by the code's bit.
  constexpr double kLane[] = {2.5, 5, 10, 10, 14, 25, 50, 100};
  unsigned bit = 0;
  while (bit < 7 && attr.active_speed >> bit > 1) ++bit;
  return 4 * kLane[bit];
}

int hardware_address_of(const ibv_gid& gid, std::uint8_t (&mac)[6]) {
  for (const Device* port : all_ports()) {
    for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) {
      const ibv_gid own = port->gid(entry);
      if (entry >= port->gid_entries() || std::memcmp(&own, &gid, sizeof own) != 0) continue;
      std::memcpy(mac, port->mac.data(), sizeof mac);
      return 0;
    }
  }
  // Link-local: made of the address.
  if (gid.raw[0] != 0xfe || gid.raw[1] != 0x80 || gid.raw[11] != 0xff || gid.raw[12] != 0xfe) return ENOENT;
  const std::uint8_t from[6] = {static_cast<std::uint8_t>(gid.raw[8] ^ 0x02), gid.raw[9], gid.raw[10],
                                gid.raw[13], gid.raw[14], gid.raw[15]};
  std::memcpy(mac, from, sizeof mac);
  return 0;
}

int describe_gid(const Device& port, std::uint32_t entry, ibv_gid_entry& out) {
  if (entry >= std::max(port.gid_slots(), kIpv6Entry)) return EINVAL;
  if (!port.has_gid(entry)) return ENODATA;
  out = {};
  out.gid = port.gid(entry);
  out.gid_index = entry;
  out.port_num = port.number;
  out.gid_type = port.infiniband() ? IBV_GID_TYPE_IB : kGidKinds[entry].type;
  out.ndev_ifindex = ::if_nametoindex(port.config.netdev.c_str());
  return 0;
}

}  // namespace gdrperf::softnic
