#include "model/config.h"

#include <charconv>
#include <optional>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf::softnic {
namespace {

constexpr double kMaxTimeNs = 60e9;

Error option_error(std::string_view key, std::string_view value, std::string_view accepted) {
  return usage_error(fmt::format("SOFTNIC '{}={}': {}", key, value, accepted));
}

template <typename T>
std::optional<T> option_number(std::string_view text) {
  T value{};
  std::from_chars_result parsed{};
  if constexpr (std::is_same_v<T, double>) {
    parsed = real_from_chars(text.data(), text.data() + text.size(), value);
  } else {
    parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  }
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

double option_time(std::string_view key, std::string_view value) {
  const std::string flag = fmt::format("SOFTNIC '{}={}'", key, value);
  if (value.empty() || value.find_first_not_of("0123456789.") == std::string_view::npos) {
    throw option_error(key, value, "give a time with a unit, like 2us");
  }
  const auto ns = static_cast<double>(parse_duration(value, flag).count());
  if (ns > kMaxTimeNs) throw option_error(key, value, "at most 60s");
  return ns;
}

std::uint64_t option_count(std::string_view key, std::string_view value, std::uint64_t least) {
  const auto parsed = option_number<std::uint64_t>(value);
  if (!parsed || *parsed < least) {
    throw option_error(key, value, fmt::format("give a whole number from {} on", least));
  }
  return *parsed;
}

struct KindName {
  std::string_view name;
  FaultKind kind;
};
constexpr KindName kKinds[] = {
    {"drop", FaultKind::kDrop},         {"stale", FaultKind::kStale}, {"flip", FaultKind::kFlip},
    {"truncate", FaultKind::kTruncate}, {"misplace", FaultKind::kMisplace},
    {"delay", FaultKind::kDelay},       {"stall", FaultKind::kStall}, {"rnr", FaultKind::kRnr},
    {"loss", FaultKind::kLoss},
};

std::uint8_t ops_of(std::string_view value) {
  if (value == "write") return kFaultWrite;
  if (value == "read") return kFaultRead;
  if (value == "send") return kFaultSend;
  if (value == "atomic") return kFaultAtomic;
  throw option_error("op", value, "give write, read, send or atomic");
}

void apply_fault_key(FaultRule& rule, std::string_view key, std::string_view value) {
  if (key == "every") {
    rule.every = option_count(key, value, 1);
  } else if (key == "p") {
    const auto chance = option_number<double>(value);
    if (!chance || !(*chance >= 0 && *chance <= 1)) {
      throw option_error(key, value, "give a probability from 0 to 1");
    }
    rule.probability = *chance;
  } else if (key == "seed") {
    rule.seed = option_count(key, value, 0);
  } else if (key == "from") {
    rule.from = option_count(key, value, 0);
  } else if (key == "count") {
    rule.count = option_count(key, value, 1);
  } else if (key == "op") {
    rule.ops = ops_of(value);
  } else if (key == "time") {
    rule.time_ns = option_time(key, value);
  } else {
    throw option_error(key, value, "the keys of a fault are every=, p=, seed=, from=, count=, op= and time=");
  }
}

}  // namespace

bool apply_link_option(LinkConfig& link, std::string_view key, std::string_view value) {
  if (key == "rate") {
    link.rate = parse_rate(value, fmt::format("SOFTNIC '{}={}'", key, value));
  } else if (key == "slow_sport") {
    const std::size_t colon = value.find(':');
    const auto port = option_number<int>(value.substr(0, colon));
    if (colon == std::string_view::npos || !port || *port < 49152 || *port > 65535) {
      throw option_error(key, value, "give PORT:RATE, like 49152:100MB/s, with a port from 49152 to 65535");
    }
    link.slow_sport = *port;
    link.slow_sport_rate = parse_rate(value.substr(colon + 1), fmt::format("SOFTNIC '{}={}'", key, value));
  } else if (key == "strict") {
    link.strict_rate = parse_rate(value, fmt::format("SOFTNIC '{}={}'", key, value));
  } else if (key == "latency") {
    link.latency_ns = option_time(key, value);
  } else if (key == "ack") {
    link.ack_ns = option_time(key, value.starts_with('+') ? value.substr(1) : value);
  } else if (key == "per_message") {
    link.per_message_ns = option_time(key, value);
  } else if (key == "react") {
    link.react_ns = option_time(key, value);
  } else if (key == "header") {
    const auto bytes = option_number<std::uint32_t>(value);
    if (!bytes || *bytes > 4096) throw option_error(key, value, "give bytes per packet, from 0 to 4096");
    link.header = *bytes;
  } else if (key == "mtu") {
    const auto bytes = option_number<std::uint32_t>(value);
    if (!bytes || *bytes < 256 || *bytes > 4096 || (*bytes & (*bytes - 1)) != 0) {
      throw option_error(key, value, "give 256, 512, 1024, 2048 or 4096");
    }
    link.mtu = *bytes;
  } else if (key == "slow") {
    const auto factor = option_number<double>(value);
    if (!factor || !(*factor >= 0.001 && *factor <= 1e6)) {
      throw option_error(key, value, "give a factor, like 1.05");
    }
    link.slow = *factor;
  } else if (key == "ingress") {
    if (value != "on" && value != "off") throw option_error(key, value, "give on or off");
    link.ingress = value == "on";
  } else if (key == "pacing") {
    if (value != "on" && value != "off") throw option_error(key, value, "give on or off");
    link.pacing = value == "on";
  } else if (key == "copy") {
    if (value != "all" && value != "edges") throw option_error(key, value, "give all or edges");
    link.edges_only = value == "edges";
  } else {
    return false;
  }
  link.given = true;
  return true;
}

FaultRule parse_fault_rule(std::string_view value) {
  FaultRule rule;
  std::string_view rest = value;
  const auto next = [&rest] {
    const std::size_t at = rest.find(':');
    const std::string_view part = rest.substr(0, at);
    rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
    return part;
  };
  const std::string_view name = next();
  for (const KindName& known : kKinds) {
    if (known.name == name) rule.kind = known.kind;
  }
  if (rule.kind == FaultKind::kNone) {
    throw option_error("fault", value,
                       "begin with one of drop, stale, flip, truncate, misplace, delay, stall, rnr, like "
                       "fault=flip:every=1000");
  }
  rule.time_ns = rule.kind == FaultKind::kRnr ? 10e6 : 100e3;
  while (!rest.empty()) {
    const std::string_view part = next();
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) throw option_error("fault", value, "give KEY=VALUE after the kind");
    apply_fault_key(rule, part.substr(0, equals), part.substr(equals + 1));
  }
  return rule;
}

}  // namespace gdrperf::softnic
