#include "gdrperf/proto/messages.h"

#include <array>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gdrperf/base/error.h"
#include "proto/control/endpoint_json.h"
#include "proto/spec/json_reader.h"
#include "proto/control/reverse_run_json.h"
#include "proto/control/spec_json.h"

namespace gdrperf::proto {
namespace {

using nlohmann::json;

constexpr const char* kMagic = "gdrperf";
constexpr std::size_t kMaxTexts = 1024;
constexpr std::size_t kMaxCpus = 4096;
// Frames nest four deep; a bound keeps "[[[[..." from costing memory.
constexpr int kMaxDepth = 16;
// A list of kMaxDoneSeries pairs and some: what the largest message holds.
constexpr std::size_t kMaxValues = 4 * kMaxDoneSeries;

// Order of the variant.
constexpr std::array<const char*, std::variant_size_v<Message>> kTypeNames = {
    "hello", "busy", "turn", "run_request", "accept", "connect", "reject", "ready",
    "start", "ping", "pong", "stop",        "done",   "failure", "bye", "lap", "lap_done", "checked",
    "proof", "enter", "alive", "cluster", "result"};

std::vector<std::string> texts(const JsonReader& in, const char* member) {
  std::vector<std::string> result;
  for (const json& item : in.array(member, kMaxTexts)) {
    result.push_back(JsonReader::to_text(item, in.path_of(member)));
  }
  return result;
}

// One write/read pair per message, members in the same order.

void write(json& out, const Hello& m) {
  out = {{"magic", kMagic},
         {"major", m.major},
         {"minor", m.minor},
         {"tool_version", m.tool_version.raw()},
         {"host", m.host.raw()},
         {"nonce", m.nonce},
         {"token", m.token ? 1 : 0}};
}
void read(const JsonReader& in, Hello& m) {
  if (in.text("magic") != kMagic) JsonReader::refuse("hello.magic", "is not gdrperf");
  m.major = in.integer<int>("major", 0);
  // The rest of another major version's message is its own business.
  if (m.major != kProtocolMajor) {
    m.minor = 0;
    m.tool_version = in.has("tool_version") ? in.text("tool_version") : "?";
    return;
  }
  m.minor = in.integer<int>("minor", 0);
  m.tool_version = in.text_or_empty("tool_version");
  m.host = in.text_or_empty("host");
  m.nonce = in.text("nonce");
  m.token = in.integer<int>("token", 0, 1) != 0;
}

void write(json& out, const Proof& m) { out = {{"hmac", m.hmac}}; }
void read(const JsonReader& in, Proof& m) { m.hmac = in.text("hmac"); }

void write(json& out, const Alive& m) {
  out = {{"sent", m.sent}, {"taken", m.taken}};
  if (!m.work.empty()) out["work"] = m.work.raw();
  if (m.steps != 0) out["steps"] = m.steps;
}
void read(const JsonReader& in, Alive& m) {
  m.sent = in.integer<std::uint64_t>("sent");
  m.taken = in.integer<std::uint64_t>("taken");
  m.work = in.text_or_empty("work");
  m.steps = in.has("steps") ? in.integer<std::uint64_t>("steps") : 0;
}

void write(json& out, const Busy& m) {
  out = {{"serving", m.serving.raw()}, {"seconds", m.seconds}, {"ahead", m.ahead}};
}
void read(const JsonReader& in, Busy& m) {
  m.serving = in.text("serving");
  m.seconds = in.has("seconds") ? in.number("seconds") : 0;
  m.ahead = in.has("ahead") ? in.integer<int>("ahead", 0) : 0;
}

void write(json& out, const RunRequest& m) {
  out = {{"spec", spec_to_json(m.spec)},
         {"gid_families", m.gid_families},
         {"active_mtu_bytes", m.active_mtu_bytes},
         {"host_id", m.host_id},
         {"cpus", m.cpus}};
}
void read(const JsonReader& in, RunRequest& m) {
  m.spec = spec_from_json(in.object("spec"));
  m.gid_families = texts(in, "gid_families");
  m.active_mtu_bytes = in.integer<int>("active_mtu_bytes", 0, 65536);
  m.host_id = in.text_or_empty("host_id");
  if (!in.has("cpus")) return;
  for (const json& item : in.array("cpus", kMaxCpus)) {
    m.cpus.push_back(JsonReader::to_integer<int>(item, in.path_of("cpus"), 0, 65535));
  }
}

void write(json& out, const Accept& m) {
  out = {{"endpoint", endpoint_to_json(m.endpoint)}, {"environment", m.environment.raw()}};
  if (m.server_end) out["server_end"] = end_to_json(*m.server_end);
}
void read(const JsonReader& in, Accept& m) {
  m.endpoint = endpoint_from_json(in.object("endpoint"));
  m.environment = in.text_or_empty("environment");
  if (in.has("server_end")) m.server_end = end_from_json(in.object("server_end"));
}
void write(json& out, const Connect& m) { out = {{"endpoint", endpoint_to_json(m.endpoint)}}; }
void read(const JsonReader& in, Connect& m) {
  m.endpoint = endpoint_from_json(in.object("endpoint"));
}

template <typename T>  // Reject, Failure
void write_refusal(json& out, const T& m) {
  // A reason past what the reader takes would hide the failure it tells of.
  const auto cut = [](const Outside& text) {
    return text.raw().substr(0, JsonReader::kMaxTextBytes / 16);
  };
  out = {{"exit_code", m.exit_code}, {"reason", cut(m.reason)}, {"hint", cut(m.hint)}};
}
template <typename T>
void read_refusal(const JsonReader& in, T& m) {
  m.exit_code = in.integer<int>("exit_code");
  m.reason = in.text("reason");
  m.hint = in.text_or_empty("hint");
}
void write(json& out, const Reject& m) { write_refusal(out, m); }
void read(const JsonReader& in, Reject& m) { read_refusal(in, m); }
void write(json& out, const Failure& m) { write_refusal(out, m); }
void read(const JsonReader& in, Failure& m) { read_refusal(in, m); }

// Its frame is no JSON: orders of hundreds of ranks go together, and are in bytes of their own.
constexpr std::string_view kClusterHead = "cluster\n";

void write(json& out, const Ping& m) { out = {{"token", m.token}}; }
void read(const JsonReader& in, Ping& m) { m.token = in.integer<std::uint64_t>("token"); }
void write(json& out, const Pong& m) { out = {{"token", m.token}, {"server_ns", m.server_ns}}; }
void read(const JsonReader& in, Pong& m) {
  m.token = in.integer<std::uint64_t>("token");
  m.server_ns = in.number("server_ns");
}

template <typename T>  // Stop, LapDone
requires std::is_same_v<T, Stop> || std::is_same_v<T, LapDone>
void write(json& out, const T& m) { out = {{"messages", m.messages}}; }
template <typename T>
requires std::is_same_v<T, Stop> || std::is_same_v<T, LapDone>
void read(const JsonReader& in, T& m) {
  for (const json& item : in.array("messages", kMaxQps)) {
    m.messages.push_back(
        JsonReader::to_integer<std::uint64_t>(item, in.path_of("messages"), 0, ~0ull));
  }
}

void write(json& out, const Lap& m) { out = {{"iteration", m.iteration}}; }
void read(const JsonReader& in, Lap& m) { m.iteration = in.integer<std::uint64_t>("iteration"); }

void write(json& out, const Checked& m) { out = {{"messages", m.messages}, {"seconds", m.seconds}}; }
void read(const JsonReader& in, Checked& m) {
  m.messages = in.integer<std::uint64_t>("messages");
  m.seconds = in.number("seconds");
}

void write(json& out, const Done& m) {
  json series = json::array();
  for (const auto& [ns, bytes] : m.series) series.push_back({ns, bytes});
  json warnings = json::array();
  for (const Outside& warning : m.warnings) warnings.push_back(warning.raw());
  out = {{"messages", m.messages},
         {"series", std::move(series)},
         {"warnings", std::move(warnings)},
         {"standstill_s", m.standstill_s}};
  if (m.received) out["received"] = *m.received;
  if (m.cpu_s) out["cpu_s"] = *m.cpu_s;
  if (m.led) write_reverse_run(out["led"], *m.led);
  if (m.counters.empty()) return;
  json counters = json::array();
  for (const auto& [name, value] : m.counters) {
    if (counters.size() < kMaxCounters) counters.push_back({name, value});
  }
  out["counters"] = std::move(counters);
}
void read(const JsonReader& in, Done& m) {
  m.messages = in.integer<std::uint64_t>("messages");
  const std::string path = in.path_of("series");
  for (const json& item : in.array("series", kMaxDoneSeries)) {
    if (!item.is_array() || item.size() != 2) JsonReader::refuse(path, "is no list of [ns, bytes]");
    m.series.emplace_back(JsonReader::to_number(item[0], path),
                          JsonReader::to_integer<std::uint64_t>(item[1], path, 0, ~0ull));
  }
  for (std::string& warning : texts(in, "warnings")) m.warnings.emplace_back(std::move(warning));
  // Older peers keep no watch.
  if (in.has("standstill_s")) m.standstill_s = in.number("standstill_s");
  if (in.has("received")) m.received = in.integer<std::uint64_t>("received");
  if (in.has("cpu_s")) m.cpu_s = in.number("cpu_s");
  if (in.has("led")) m.led = read_reverse_run(in.object("led"));
  if (!in.has("counters")) return;
  const std::string counters = in.path_of("counters");
  for (const json& item : in.array("counters", kMaxCounters)) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string())
      JsonReader::refuse(counters, "is no list of [name, count]");
    m.counters[JsonReader::to_text(item[0], counters)] =
        JsonReader::to_integer<std::uint64_t>(item[1], counters, 0, ~0ull);
  }
}

json text_if_any(const char* member, const std::string& text) {
  return text.empty() ? json::object() : json::object({{member, text}});
}
void write(json& out, const Enter& m) { out = text_if_any("beside", m.beside); }
void read(const JsonReader& in, Enter& m) { m.beside = in.text_or_empty("beside"); }
void write(json& out, const Turn& m) {
  out = text_if_any("ticket", m.ticket);
  if (m.results) out["results"] = 1;
}
void read(const JsonReader& in, Turn& m) {
  m.ticket = in.text_or_empty("ticket");
  m.results = in.has("results") && in.integer<int>("results", 0, 1) != 0;
}

void write(json& out, const Result& m) {
  out = {{"spec", spec_to_json(m.spec)},
         {"device_kind", m.device_kind},
         {"client_device", m.client_device},
         {"server_device", m.server_device},
         {"gid_type", m.gid_type},
         {"client_gid_index", m.client_gid_index},
         {"server_gid_index", m.server_gid_index},
         {"iterations", m.iterations},
         {"seconds", m.seconds},
         {"figures", m.figures}};
}
void read(const JsonReader& in, Result& m) {
  m.spec = spec_from_json(in.object("spec"));
  m.device_kind = in.text("device_kind");
  m.client_device = in.text("client_device");
  m.server_device = in.text("server_device");
  m.gid_type = in.text_or_empty("gid_type");
  m.client_gid_index = in.integer<int>("client_gid_index", 0, 65535);
  m.server_gid_index = in.integer<int>("server_gid_index", 0, 65535);
  m.iterations = in.integer<std::uint64_t>("iterations");
  m.seconds = in.number("seconds");
  for (const json& item : in.array("figures", kLatencyFigures))
    m.figures.push_back(JsonReader::to_number(item, in.path_of("figures")));
  const std::size_t wanted = m.spec.test.metric == Metric::kLatency ? kLatencyFigures : kRateFigures;
  if (m.figures.size() != wanted)
    JsonReader::refuse(in.path_of("figures"), fmt::format("does not have {} values", wanted));
}

void write(json& out, const Start& m) {
  out = json::object();
  if (m.begin_ns > 0) out["begin_ns"] = m.begin_ns;
}
void read(const JsonReader& in, Start& m) { m.begin_ns = in.has("begin_ns") ? in.number("begin_ns") : 0; }

template <typename Empty>  // Ready, Bye
requires std::is_empty_v<Empty>
void write(json& out, const Empty&) { out = json::object(); }
template <typename Empty>
requires std::is_empty_v<Empty>
void read(const JsonReader&, Empty&) {}

// Brackets and commas outside of strings; cheap, and done before anything is built: a frame's values take
// up to twenty times its bytes.
const char* refusal_of(std::string_view text) {
  int depth = 0;
  std::size_t values = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return "it nests too deep";
      ++values;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++values;
    }
    if (values > kMaxValues) return "it holds too many values";
  }
  return nullptr;
}

template <std::size_t I = 0>
Message decode_named(const std::string& type, const json& value) {
  if constexpr (I == std::variant_size_v<Message>) {
    JsonReader::refuse("type", fmt::format("'{}' is unknown", type.substr(0, 40)));
  } else {
    using Named = std::variant_alternative_t<I, Message>;
    if constexpr (!std::is_same_v<Named, Cluster>) {
      if (type == kTypeNames[I]) {
        Named message{};
        read(JsonReader(value, type), message);
        return message;
      }
    }
    return decode_named<I + 1>(type, value);
  }
}

}  // namespace

const char* type_name(const Message& message) { return kTypeNames[message.index()]; }

std::string encode(const Message& message) {
  if (const auto* cluster = std::get_if<Cluster>(&message)) return std::string(kClusterHead) + cluster->text;
  json out;
  std::visit([&](const auto& m) {
    if constexpr (!std::is_same_v<std::decay_t<decltype(m)>, Cluster>) write(out, m);
  }, message);
  out["type"] = type_name(message);
  // Names and reasons may hold bytes that are no UTF-8 (argv, sysfs).
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Message decode(std::string_view text) {
  if (text.starts_with(kClusterHead)) return Cluster{std::string(text.substr(kClusterHead.size()))};
  if (const char* refusal = refusal_of(text)) {
    throw peer_error(fmt::format("message not understood: {}", refusal));
  }
  const json value = json::parse(text.begin(), text.end(), nullptr, false);
  if (value.is_discarded()) throw peer_error("message not understood: it is no JSON");
  return decode_named(JsonReader(value, "message").text("type"), value);
}

}  // namespace gdrperf::proto
