#include "cluster/wire/round_wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "gdrperf/base/compat/bits.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/printable.h"

namespace gdrperf::app {
namespace {

// JSON begins with '{', a bundle with 'm' (tree.h).
constexpr char kMeasureTag = 'O';
constexpr char kRatesTag = 'R';
constexpr unsigned kEventBit = 1;
constexpr unsigned kLatencyBit = 2;

class ByteWriter {
 public:
  ByteWriter(char tag, std::size_t expected) {
    bytes_.reserve(expected);
    bytes_.push_back(tag);
  }
  template <typename T>
  void number(T value) {
    static_assert(std::is_unsigned_v<T>);
    char bytes[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
    bytes_.append(bytes, sizeof(T));
  }
  void rate(double value) { number(bit_cast<std::uint32_t>(static_cast<float>(value))); }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}
  template <typename T>
  T number() {
    T value = 0;
    const std::string_view bytes = take(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i));
    return value;
  }
  double rate() { return bit_cast<float>(number<std::uint32_t>()); }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  // Of things that take `least` bytes each, so that a garbled count reserves nothing.
  std::size_t count(std::size_t least) {
    const std::size_t count = number<std::uint32_t>();
    if (count > left_.size() / least) garbled();
    return count;
  }
  void end() const {
    if (!left_.empty()) garbled();
  }
  [[noreturn]] static void garbled() { throw peer_error("the message of a round is garbled"); }

 private:
  std::string_view take(std::size_t count) {
    if (count > left_.size()) garbled();
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }

  std::string_view left_;
};

// Names of an order, each once: a rank's links share the partner's address, and often the devices' names.
class NameTable {
 public:
  std::uint32_t index_of(std::string_view name) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    const auto index = static_cast<std::uint32_t>(at - names_.begin());
    if (at == names_.end()) names_.push_back(name);
    return index;
  }
  const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::vector<std::string_view> names_;
};

Measure unpack_measure(ByteReader in) {
  Measure order;
  order.id = static_cast<int>(in.number<std::uint32_t>());
  order.size_bytes = in.number<std::uint64_t>();
  order.duration_ns = static_cast<std::int64_t>(in.number<std::uint64_t>());
  const unsigned flags = in.number<std::uint8_t>();
  order.event = (flags & kEventBit) != 0;
  order.latency = (flags & kLatencyBit) != 0;
  std::vector<std::string> names(in.count(sizeof(std::uint32_t)));
  for (std::string& name : names) name = in.text();
  const auto name = [&]() -> const std::string& {
    const auto index = in.number<std::uint32_t>();
    if (index >= names.size()) ByteReader::garbled();
    return names[index];
  };
  order.runs.resize(in.count(5 * sizeof(std::uint32_t)));
  for (ClusterRun& run : order.runs) {
    run.host = name();
    run.port = in.number<std::uint16_t>();
    run.device = name();
    run.peer_device = name();
    run.buffer = name();
    run.peer_buffer = name();
  }
  in.end();
  return order;
}

Rates unpack_rates(ByteReader in) {
  Rates rates;
  rates.id = static_cast<int>(in.number<std::uint32_t>());
  rates.rates.resize(in.count(3 * sizeof(std::uint32_t)));
  for (ClusterRate& one : rates.rates) {
    one.gbytes = in.rate();
    one.latency_us = in.rate();
    one.error = printable(in.text());
  }
  in.end();
  return rates;
}

}  // namespace

std::string pack_measure(const Measure& order) {
  NameTable names;
  struct Indices {
    std::uint32_t host, device, peer_device, buffer, peer_buffer;
  };
  std::vector<Indices> indices;
  indices.reserve(order.runs.size());
  for (const ClusterRun& run : order.runs) {
    indices.push_back({names.index_of(run.host), names.index_of(run.device), names.index_of(run.peer_device),
                       names.index_of(run.buffer), names.index_of(run.peer_buffer)});
  }
  ByteWriter out(kMeasureTag, 64 + 16 * names.names().size() + 22 * order.runs.size());
  out.number(static_cast<std::uint32_t>(order.id));
  out.number(order.size_bytes);
  out.number(static_cast<std::uint64_t>(order.duration_ns));
  out.number(static_cast<std::uint8_t>((order.event ? kEventBit : 0u) | (order.latency ? kLatencyBit : 0u)));
  out.number(static_cast<std::uint32_t>(names.names().size()));
  for (const std::string_view name : names.names()) out.text(name);
  out.number(static_cast<std::uint32_t>(order.runs.size()));
  for (std::size_t i = 0; i < order.runs.size(); ++i) {
    out.number(indices[i].host);
    out.number(static_cast<std::uint16_t>(order.runs[i].port));
    out.number(indices[i].device);
    out.number(indices[i].peer_device);
    out.number(indices[i].buffer);
    out.number(indices[i].peer_buffer);
  }
  return out.take();
}

std::string pack_rates(const Rates& rates) {
  ByteWriter out(kRatesTag, 16 + 12 * rates.rates.size());
  out.number(static_cast<std::uint32_t>(rates.id));
  out.number(static_cast<std::uint32_t>(rates.rates.size()));
  for (const ClusterRate& one : rates.rates) {
    out.rate(one.gbytes);
    out.rate(one.latency_us);
    out.text(one.error);
  }
  return out.take();
}

std::optional<ClusterMessage> unpack_round(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const ByteReader in(text.substr(1));
  if (text.front() == kMeasureTag) return unpack_measure(in);
  if (text.front() == kRatesTag) return unpack_rates(in);
  return std::nullopt;
}

}  // namespace gdrperf::app
