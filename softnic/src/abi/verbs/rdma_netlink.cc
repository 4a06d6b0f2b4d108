#include "abi/verbs/rdma_netlink.h"

#include <endian.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "abi/verbs/class_device.h"
#include "cm/wire/files.h"
#include "device/device.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kHeader = NLMSG_HDRLEN;

nlmsghdr header_of(const NetlinkMessage& message) {
  nlmsghdr header{};
  if (message.size() >= sizeof header) std::memcpy(&header, message.data(), sizeof header);
  return header;
}

/// Puts attributes behind a header.
class Writer {
 public:
  Writer(const nlmsghdr& request, std::uint32_t port, int type, int flags) : bytes_(kHeader) {
    nlmsghdr header{};
    header.nlmsg_type = static_cast<std::uint16_t>(type);
    header.nlmsg_flags = static_cast<std::uint16_t>(flags);
    header.nlmsg_seq = request.nlmsg_seq;
    header.nlmsg_pid = port;
    std::memcpy(bytes_.data(), &header, sizeof header);
  }
  void put(const void* data, std::size_t length) {
    const auto* from = static_cast<const std::uint8_t*>(data);
    bytes_.insert(bytes_.end(), from, from + length);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }
  void attribute(int type, const void* data, std::size_t length) {
    const nlattr attribute{static_cast<std::uint16_t>(NLA_HDRLEN + length), static_cast<std::uint16_t>(type)};
    put(&attribute, sizeof attribute);
    put(data, length);
  }
  template <typename T>
  void number(int type, T value) {
    attribute(type, &value, sizeof value);
  }
  void text(int type, const std::string& value) { attribute(type, value.c_str(), value.size() + 1); }
  NetlinkMessage take() {
    const auto length = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &length, sizeof length);
    return std::move(bytes_);
  }

 private:
  NetlinkMessage bytes_;
};

/// The value of the first attribute of this type; nothing where there is none.
std::optional<std::span<const std::uint8_t>> attribute_in(const NetlinkMessage& message, int type) {
  for (std::size_t at = kHeader; at + NLA_HDRLEN <= message.size();) {
    nlattr attribute;
    std::memcpy(&attribute, message.data() + at, sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || at + attribute.nla_len > message.size()) return std::nullopt;
    if ((attribute.nla_type & NLA_TYPE_MASK) == type) {
      return std::span(message).subspan(at + NLA_HDRLEN, attribute.nla_len - static_cast<std::size_t>(NLA_HDRLEN));
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> number_in(const NetlinkMessage& message, int type) {
  const auto value = attribute_in(message, type);
  std::uint32_t number;
  if (!value || value->size() < sizeof number) return std::nullopt;
  std::memcpy(&number, value->data(), sizeof number);
  return number;
}

std::string text_in(const NetlinkMessage& message, int type) {
  const auto value = attribute_in(message, type);
  if (!value) return {};
  return {value->begin(), std::find(value->begin(), value->end(), 0)};
}

void put_name(Writer& writer, const Device& device) {
  writer.number<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, device.kernel_index());
  writer.text(RDMA_NLDEV_ATTR_DEV_NAME, device.config.name);
}

void put_device(Writer& writer, const Device& device) {
  ibv_device_attr attr;
  describe_device(device, attr);
  put_name(writer, device);
  writer.number<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX, attr.phys_port_cnt);
  writer.number<std::uint64_t>(RDMA_NLDEV_ATTR_CAP_FLAGS, attr.device_cap_flags);
  writer.text(RDMA_NLDEV_ATTR_FW_VERSION, attr.fw_ver);
  writer.number<std::uint64_t>(RDMA_NLDEV_ATTR_NODE_GUID, be64toh(attr.node_guid));
  writer.number<std::uint64_t>(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, be64toh(attr.sys_image_guid));
  writer.number<std::uint8_t>(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, IBV_NODE_CA);
  writer.text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
}

void put_port(Writer& writer, const Device& device, const Device& port) {
  ibv_port_attr attr;
  describe_port(port, attr);
  put_name(writer, device);
  writer.number<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX, port.number);
  writer.number<std::uint8_t>(RDMA_NLDEV_ATTR_PORT_STATE, static_cast<std::uint8_t>(attr.state));
  writer.number<std::uint8_t>(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, attr.phys_state);
  const unsigned interface = ::if_nametoindex(device.config.netdev.c_str());
  if (interface == 0) return;
  writer.number<std::uint32_t>(RDMA_NLDEV_ATTR_NDEV_INDEX, interface);
  writer.text(RDMA_NLDEV_ATTR_NDEV_NAME, device.config.netdev);
}

void put_char_device(Writer& writer, const Device& device) {
  writer.number<std::uint64_t>(RDMA_NLDEV_ATTR_CHARDEV, device_number(device));
  writer.number<std::uint64_t>(RDMA_NLDEV_ATTR_CHARDEV_ABI, 1);
  writer.text(RDMA_NLDEV_ATTR_CHARDEV_NAME, device.dev_name);
}

/// Of /dev/infiniband/rdma_cm, which is no one device's.
void put_cm_device(Writer& writer) {
  writer.number<std::uint64_t>(RDMA_NLDEV_ATTR_CHARDEV, makedev(kCmMajor, kCmMinor));
  writer.number<std::uint64_t>(RDMA_NLDEV_ATTR_CHARDEV_ABI, kCmAbi);
  writer.text(RDMA_NLDEV_ATTR_CHARDEV_NAME, "rdma_cm");
}

/// One request, answered for devices of ours.
class Answer {
 public:
  Answer(const NetlinkMessage& request, std::uint32_t port)
      : request_(request), header_(header_of(request)), port_(port) {}

  int operation() const { return RDMA_NL_GET_OP(header_.nlmsg_type); }
  bool dump() const { return (header_.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP; }
  bool wants_acknowledgement() const { return (header_.nlmsg_flags & NLM_F_ACK) != 0; }

  /// Null: not one of ours.
  const Device* device() const {
    const auto index = number_in(request_, RDMA_NLDEV_ATTR_DEV_INDEX);
    for (const auto& it : devices()) {
      if (index && it->kernel_index() == *index) return it.get();
    }
    return nullptr;
  }
  /// 0, or why the question is not answered.
  int add(const Device& device, std::vector<NetlinkMessage>& answers) const {
    if (operation() == RDMA_NLDEV_CMD_PORT_GET) return add_ports(device, answers);
    Writer writer = begin();
    switch (operation()) {
      case RDMA_NLDEV_CMD_GET: put_device(writer, device); break;
      case RDMA_NLDEV_CMD_GET_CHARDEV: put_char_device(writer, device); break;
      default: return EOPNOTSUPP;
    }
    answers.push_back(writer.take());
    return 0;
  }
  NetlinkMessage system() const {
    Writer writer(header_, port_, header_.nlmsg_type, 0);
    writer.number<std::uint8_t>(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
    return writer.take();
  }
  /// The question is for the file of rdma_cm.
  bool about_cm() const {
    return operation() == RDMA_NLDEV_CMD_GET_CHARDEV && text_in(request_, RDMA_NLDEV_ATTR_CHARDEV_TYPE) == "rdma_cm";
  }
  NetlinkMessage cm_device() const {
    Writer writer(header_, port_, header_.nlmsg_type, 0);
    put_cm_device(writer);
    return writer.take();
  }
  NetlinkMessage done() const {
    Writer writer(header_, port_, NLMSG_DONE, NLM_F_MULTI);
    const int status = 0;
    writer.put(&status, sizeof status);
    return writer.take();
  }
  /// An acknowledgement where `error` is 0.
  NetlinkMessage refusal(int error) const {
    Writer writer(header_, port_, NLMSG_ERROR, 0);
    const nlmsgerr body{-error, header_};
    writer.put(&body, sizeof body);
    return writer.take();
  }

 private:
  Writer begin() const { return {header_, port_, header_.nlmsg_type, dump() ? NLM_F_MULTI : 0}; }
  /// All of them, or the one that is asked for; the first where none is.
  int add_ports(const Device& device, std::vector<NetlinkMessage>& answers) const {
    const unsigned wanted = number_in(request_, RDMA_NLDEV_ATTR_PORT_INDEX).value_or(1);
    if (!dump() && device.port_at(wanted) == nullptr) return EINVAL;
    for (unsigned number = 1; number <= device.port_count(); ++number) {
      if (!dump() && number != wanted) continue;
      Writer writer = begin();
      put_port(writer, device, *device.port_at(number));
      answers.push_back(writer.take());
    }
    return 0;
  }

  const NetlinkMessage& request_;
  nlmsghdr header_;
  std::uint32_t port_;
};

std::vector<NetlinkMessage> dump_all(const Answer& answer, const NetlinkMessage& request,
                                     const std::vector<NetlinkMessage>& kernels) {
  std::vector<NetlinkMessage> answers;
  for (const NetlinkMessage& it : kernels) {
    const int type = header_of(it).nlmsg_type;
    if (type != NLMSG_DONE && type != NLMSG_ERROR) answers.push_back(it);
  }
  const bool of_one = number_in(request, RDMA_NLDEV_ATTR_DEV_INDEX).has_value();
  for (const auto& device : devices()) {
    if (of_one && answer.device() != device.get()) continue;
    if (answer.add(*device, answers) != 0) break;
  }
  answers.push_back(answer.done());
  return answers;
}

}  // namespace

std::vector<NetlinkMessage> answer_rdma_request(const NetlinkMessage& request, std::uint32_t port,
                                                const std::vector<NetlinkMessage>& kernels) {
  const Answer answer(request, port);
  if (answer.dump()) return dump_all(answer, request, kernels);
  if (answer.about_cm() && !devices().empty()) return {answer.cm_device()};
  const Device* device = answer.device();
  if (device == nullptr && !kernels.empty()) return kernels;
  std::vector<NetlinkMessage> answers;
  if (device == nullptr && answer.operation() == RDMA_NLDEV_CMD_SYS_GET) {
    answers.push_back(answer.system());
  } else if (device == nullptr) {
    return {answer.refusal(ENODEV)};
  } else if (const int error = answer.add(*device, answers); error != 0) {
    return {answer.refusal(error)};
  }
  if (answer.wants_acknowledgement()) answers.push_back(answer.refusal(0));
  return answers;
}

}  // namespace gdrperf::softnic
