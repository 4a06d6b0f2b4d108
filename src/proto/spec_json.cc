#include "spec_json.h"

#include <array>
#include <utility>

namespace gdrperf::proto {
namespace {

using nlohmann::json;
using std::chrono::nanoseconds;

template <typename E>
using Names = std::array<std::pair<E, const char*>, 2>;

constexpr Names<Direction> kDirections = {
    {{Direction::kUnidirectional, "unidirectional"}, {Direction::kBidirectional, "bidirectional"}}};
constexpr Names<Wait> kWaits = {{{Wait::kPoll, "poll"}, {Wait::kEvent, "event"}}};
constexpr Names<Connector> kConnectors = {
    {{Connector::kExchange, "exchange"}, {Connector::kRdmaCm, "rdma_cm"}}};

// Absent from the JSON: auto.
constexpr Names<Registration> kRegistrations = {
    {{Registration::kDmabuf, "dmabuf"}, {Registration::kPeermem, "peermem"}}};
constexpr Names<Path> kPaths = {{{Path::kDirect, "direct"}, {Path::kStaged, "staged"}}};

template <typename E>
const char* name_of(const Names<E>& names, E value) {
  return value == names[1].first ? names[1].second : names[0].second;
}

template <typename E>
E named(const Names<E>& names, const JsonReader& reader, const char* member) {
  const std::string text = reader.text(member);
  for (const auto& [value, name] : names) {
    if (text == name) return value;
  }
  JsonReader::refuse(reader.path_of(member),
                     "is neither " + std::string(names[0].second) + " nor " + names[1].second);
}

json stop_to_json(const StopRule& stop) {
  json value = {{"precision", stop.precision}, {"cap_ns", stop.cap.count()}};
  if (stop.iterations) value["iterations"] = *stop.iterations;
  if (stop.duration) value["duration_ns"] = stop.duration->count();
  return value;
}

StopRule stop_from_json(const JsonReader& reader) {
  StopRule stop;
  stop.precision = reader.number("precision");
  stop.cap = nanoseconds(reader.integer<std::int64_t>("cap_ns"));
  if (reader.has("iterations")) stop.iterations = reader.integer<std::uint64_t>("iterations");
  if (reader.has("duration_ns"))
    stop.duration = nanoseconds(reader.integer<std::int64_t>("duration_ns"));
  return stop;
}

}  // namespace

json end_to_json(const EndSpec& end) {
  return {{"device", end.device},
          {"port", end.port},
          {"gid_index", end.gid_index},
          {"buffer", end.buffer},
          {"buffer_given", end.buffer_given ? 1 : 0},
          {"cpu", end.cpu},
          {"numa", end.numa}};
}

EndSpec end_from_json(const JsonReader& reader) {
  EndSpec end;
  end.device = reader.text("device");
  end.port = reader.integer<int>("port");
  end.gid_index = reader.integer<int>("gid_index");
  end.buffer = reader.text("buffer");
  end.cpu = reader.integer<int>("cpu");
  // Older peers do not say.
  if (reader.has("buffer_given")) end.buffer_given = reader.integer<int>("buffer_given", 0, 1) != 0;
  if (reader.has("numa")) end.numa = reader.integer<int>("numa");
  return end;
}

json spec_to_json(const TestSpec& spec) {
  json value = {{"test", to_string(spec.test)},
          {"size_bytes", spec.size_bytes},
          {"client", end_to_json(spec.client)},
          {"server", end_to_json(spec.server)},
          {"qps", spec.qps},
          {"tx_depth", spec.tx_depth},
          {"rx_depth", spec.rx_depth},
          {"cq_mod", spec.cq_mod},
          {"post_list", spec.post_list},
          {"inline_bytes", spec.inline_bytes},
          {"mtu_bytes", spec.mtu_bytes},
          {"footprint_bytes", spec.footprint_bytes},
          {"qp_timeout", spec.qp_timeout},
          {"service_level", spec.service_level},
          {"traffic_class", spec.traffic_class},
          {"rate_per_s", spec.rate_per_s},
          {"direction", name_of(kDirections, spec.direction)},
          {"wait", name_of(kWaits, spec.wait)},
          {"connector", name_of(kConnectors, spec.connector)},
          {"stop", stop_to_json(spec.stop)}};
  if (spec.registration != Registration::kAuto) {
    value["registration"] = name_of(kRegistrations, spec.registration);
  }
  if (spec.path != Path::kDirect) value["path"] = name_of(kPaths, spec.path);
  if (spec.chunk_bytes != 0) value["chunk_bytes"] = spec.chunk_bytes;
  if (spec.consume) value["consume"] = 1;
  if (spec.verify_seed) value["verify_seed"] = *spec.verify_seed;
  return value;
}

TestSpec spec_from_json(const JsonReader& reader) {
  TestSpec spec;
  const auto test = parse_test(reader.text("test"));
  if (!test) JsonReader::refuse(reader.path_of("test"), "is none of the tests this end knows");
  spec.test = *test;
  spec.size_bytes = reader.integer<std::uint64_t>("size_bytes");
  spec.client = end_from_json(reader.object("client"));
  spec.server = end_from_json(reader.object("server"));
  spec.qps = reader.integer<int>("qps");
  spec.tx_depth = reader.integer<int>("tx_depth");
  spec.rx_depth = reader.integer<int>("rx_depth");
  spec.cq_mod = reader.integer<int>("cq_mod");
  spec.post_list = reader.integer<int>("post_list");
  spec.inline_bytes = reader.integer<int>("inline_bytes");
  spec.mtu_bytes = reader.integer<int>("mtu_bytes");
  spec.footprint_bytes = reader.integer<std::uint64_t>("footprint_bytes");
  spec.qp_timeout = reader.integer<int>("qp_timeout");
  spec.service_level = reader.integer<int>("service_level");
  spec.traffic_class = reader.integer<int>("traffic_class");
  if (reader.has("rate_per_s")) spec.rate_per_s = reader.number("rate_per_s");
  spec.direction = named(kDirections, reader, "direction");
  spec.wait = named(kWaits, reader, "wait");
  spec.connector = named(kConnectors, reader, "connector");
  if (reader.has("registration")) spec.registration = named(kRegistrations, reader, "registration");
  if (reader.has("path")) spec.path = named(kPaths, reader, "path");
  if (reader.has("chunk_bytes")) spec.chunk_bytes = reader.integer<std::uint64_t>("chunk_bytes");
  spec.consume = reader.has("consume") && reader.integer<int>("consume", 0, 1) == 1;
  if (reader.has("verify_seed")) spec.verify_seed = reader.integer<std::uint64_t>("verify_seed");
  spec.stop = stop_from_json(reader.object("stop"));
  return spec;
}

}  // namespace gdrperf::proto
