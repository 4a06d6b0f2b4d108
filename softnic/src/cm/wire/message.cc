#include "cm/wire/message.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kCmMagic = 0x4d434473;  // "sDCM"

/// Writes numbers, lowest byte first.
class CmWriter {
 public:
  template <typename T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void raw(const std::uint8_t* from, std::size_t count) { bytes_.insert(bytes_.end(), from, from + count); }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Reads what CmWriter wrote; past the end everything is 0 and ok() false.
class CmReader {
 public:
  explicit CmReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  void number(T& value) {
    std::uint8_t read[sizeof(T)] = {};
    raw(read, sizeof read);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < sizeof read; ++i) sum |= std::uint64_t{read[i]} << (8 * i);
    value = static_cast<T>(sum);
  }
  void raw(std::uint8_t* to, std::size_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return;
    std::memcpy(to, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool ok_ = true;
};

/// The same walk over the fields for both directions.
template <typename Stream, typename Address>
void walk_address(Stream& stream, Address& address) {
  stream.number(address.family);
  stream.raw(address.bytes.data(), address.bytes.size());
  stream.number(address.port);
}

template <typename Stream, typename Message>
void walk_numbers(Stream& stream, Message& message) {
  stream.number(message.port_space);
  stream.number(message.from);
  stream.number(message.to);
  walk_address(stream, message.source);
  walk_address(stream, message.destination);
  stream.raw(message.gid.raw, sizeof message.gid.raw);
  stream.number(message.qp_number);
  stream.number(message.qkey);
  stream.number(message.psn);
  stream.number(message.mtu);
  stream.number(message.responder_resources);
  stream.number(message.initiator_depth);
  stream.number(message.flow_control);
  stream.number(message.retry_count);
  stream.number(message.rnr_retry_count);
  stream.number(message.srq);
  stream.number(message.status);
  stream.number(message.ece_vendor);
  stream.number(message.ece_options);
  stream.number(message.private_bytes);
}

bool known_family(const CmMessage& message, const CmAddress& address) {
  const bool request = message.kind == CmKind::kRequest || message.kind == CmKind::kSidrRequest;
  return address.family == AF_INET || address.family == AF_INET6 || (!request && address.family == AF_UNSPEC);
}

bool known_mtu(const CmMessage& message) {
  if (message.kind != CmKind::kRequest && message.kind != CmKind::kReply) return true;
  return message.mtu >= IBV_MTU_256 && message.mtu <= IBV_MTU_4096;
}

bool in_range(const CmMessage& message) {
  constexpr std::uint32_t kMax24 = 0xffffff;
  return message.kind >= CmKind::kRequest && message.kind <= CmKind::kSidrReply && known_mtu(message) &&
         message.qp_number <= kMax24 && message.psn <= kMax24 && message.retry_count <= 7 &&
         message.rnr_retry_count <= 7 && message.private_bytes <= kMaxPrivateData &&
         known_family(message, message.source) && known_family(message, message.destination);
}

}  // namespace

std::vector<std::uint8_t> encode(const CmMessage& message) {
  CmWriter writer;
  writer.number(kCmMagic);
  writer.number(kCmVersion);
  writer.number(static_cast<std::uint8_t>(message.kind));
  walk_numbers(writer, message);
  writer.raw(message.private_data.data(), std::min<std::size_t>(message.private_bytes, kMaxPrivateData));
  return writer.take();
}

std::optional<CmMessage> decode(std::span<const std::uint8_t> bytes) {
  CmReader reader(bytes);
  std::uint32_t magic = 0;
  std::uint8_t version = 0;
  std::uint8_t kind = 0;
  CmMessage message;
  reader.number(magic);
  reader.number(version);
  reader.number(kind);
  message.kind = static_cast<CmKind>(kind);
  walk_numbers(reader, message);
  if (!reader.ok() || magic != kCmMagic || version != kCmVersion || !in_range(message)) return std::nullopt;
  reader.raw(message.private_data.data(), message.private_bytes);
  if (!reader.done()) return std::nullopt;
  return message;
}

}  // namespace gdrperf::softnic
