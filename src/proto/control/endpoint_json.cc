#include "proto/control/endpoint_json.h"

#include <limits>
#include <string>
#include <vector>

#include "gdrperf/proto/tcp_port.h"

namespace gdrperf::proto {
namespace {

using nlohmann::json;

constexpr std::uint32_t kMost24Bits = 0xffffff;  // QPN and PSN have 24 bits on the wire

json qps_to_json(const std::vector<QpAddress>& qps) {
  json list = json::array();
  for (const QpAddress& qp : qps) list.push_back({qp.qpn, qp.psn});
  return list;
}

std::vector<QpAddress> qps_from_json(const JsonReader& in) {
  std::vector<QpAddress> qps;
  const std::string path = in.path_of("qps");
  for (const json& item : in.array("qps", kMaxQps)) {
    if (!item.is_array() || item.size() != 2) JsonReader::refuse(path, "is no list of [qpn, psn]");
    qps.push_back({JsonReader::to_integer<std::uint32_t>(item[0], path, 0, kMost24Bits),
                   JsonReader::to_integer<std::uint32_t>(item[1], path, 0, kMost24Bits)});
  }
  return qps;
}

json xrc_to_json(const std::vector<XrcAddress>& addresses) {
  json list = json::array();
  for (const XrcAddress& each : addresses) list.push_back({each.qpn, each.srq});
  return list;
}

std::vector<XrcAddress> xrc_from_json(const JsonReader& in) {
  std::vector<XrcAddress> addresses;
  const std::string path = in.path_of("xrc");
  for (const json& item : in.array("xrc", kMaxQps)) {
    if (!item.is_array() || item.size() != 2) JsonReader::refuse(path, "is no list of [qpn, srq]");
    addresses.push_back({JsonReader::to_integer<std::uint32_t>(item[0], path, 0, kMost24Bits),
                         JsonReader::to_integer<std::uint32_t>(item[1], path, 0, ~0u)});
  }
  return addresses;
}

json gpu_to_json(const GpuInfo& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"pci_address", gpu.pci_address},
          {"bar1_bytes", gpu.bar1_bytes},
          {"driver", gpu.driver},
          {"kernel_module", gpu.kernel_module}};
}

GpuInfo gpu_from_json(const JsonReader& in) {
  GpuInfo gpu;
  gpu.index = in.integer<int>("index", 0, 65535);
  gpu.name = in.text("name");
  gpu.uuid = in.text("uuid");
  gpu.pci_address = in.text("pci_address");
  gpu.bar1_bytes = in.integer<std::uint64_t>("bar1_bytes");
  gpu.driver = in.text("driver");
  gpu.kernel_module = in.text("kernel_module");
  return gpu;
}

Ece ece_from_json(const JsonReader& in) {
  const std::string path = in.path_of("ece");
  const json& list = in.array("ece", 2);
  if (list.size() != 2) JsonReader::refuse(path, "is no list of [vendor, options]");
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  return {JsonReader::to_integer<std::uint32_t>(list[0], path, 0, kMost),
          JsonReader::to_integer<std::uint32_t>(list[1], path, 0, kMost)};
}

}  // namespace

json endpoint_to_json(const Endpoint& e) {
  json value = {{"device", e.device},
          {"kind", e.kind},
          {"firmware", e.firmware},
          {"driver", e.driver},
          {"port", e.port},
          {"lid", e.lid},
          {"mtu_bytes", e.mtu_bytes},
          {"gid_index", e.gid_index},
          {"gid", e.gid},
          {"gid_raw", e.gid_raw},
          {"gid_family", e.gid_family},
          {"gid_why", e.gid_why},
          {"buffer", e.buffer},
          {"host_id", e.host_id},
          {"cpu", e.cpu},
          {"numa", e.numa},
          {"address", e.address},
          {"length", e.length},
          {"rkey", e.rkey},
          {"max_rd_atomic", e.max_rd_atomic},
          {"cm_port", e.cm_port},
          {"cm_address", e.cm_address},
          {"qps", qps_to_json(e.qps)}};
  if (!e.rkeys.empty()) value["rkeys"] = e.rkeys;
  if (!e.registration.empty()) value["registration"] = e.registration;
  if (!e.transport.empty()) value["transport"] = e.transport;
  if (!e.checker.empty()) value["checker"] = e.checker;
  if (e.gpu) value["gpu"] = gpu_to_json(*e.gpu);
  if (!e.doorbells.empty()) value["doorbells"] = e.doorbells;
  if (!e.interrupt_cpus.empty()) value["interrupt_cpus"] = e.interrupt_cpus;
  if (!e.relaxed_ordering.empty()) value["relaxed_ordering"] = e.relaxed_ordering;
  if (e.ooo) value["ooo"] = 1;
  if (e.rate_limit_kbps > 0) value["rate_limit_kbps"] = e.rate_limit_kbps;
  if (!e.xrc.empty()) value["xrc"] = xrc_to_json(e.xrc);
  if (e.ece) value["ece"] = {e.ece.vendor, e.ece.options};
  return value;
}

Endpoint endpoint_from_json(const JsonReader& in) {
  Endpoint e;
  e.device = in.text("device");
  e.kind = in.text("kind");
  e.firmware = in.text_or_empty("firmware");
  e.driver = in.text_or_empty("driver");
  e.port = in.integer<int>("port", 0, 255);
  e.lid = in.integer<int>("lid", 0, 65535);
  e.mtu_bytes = in.integer<int>("mtu_bytes", 0, 65536);
  e.gid_index = in.integer<int>("gid_index", -1, 65535);
  e.gid = in.text("gid");
  e.gid_raw = in.text("gid_raw");
  const bool hex = e.gid_raw.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!hex || (e.gid_raw.size() != 32 && !e.gid_raw.empty())) {
    JsonReader::refuse(in.path_of("gid_raw"), "is not 32 hex digits");
  }
  e.gid_family = in.text("gid_family");
  e.gid_why = in.text("gid_why");
  e.buffer = in.text("buffer");
  e.registration = in.text_or_empty("registration");
  e.transport = in.text_or_empty("transport");
  e.checker = in.text_or_empty("checker");
  if (in.has("gpu")) e.gpu = gpu_from_json(in.object("gpu"));
  e.host_id = in.text_or_empty("host_id");
  e.cpu = in.integer<int>("cpu", -1);
  e.numa = in.integer<int>("numa", -1);
  e.address = in.integer<std::uint64_t>("address");
  e.length = in.integer<std::uint64_t>("length");
  e.rkey = in.integer<std::uint32_t>("rkey");
  if (in.has("rkeys")) {
    for (const json& item : in.array("rkeys", kMaxQps))
      e.rkeys.push_back(JsonReader::to_integer<std::uint32_t>(item, in.path_of("rkeys"), 0, ~0u));
  }
  e.max_rd_atomic = in.integer<int>("max_rd_atomic", 0, 65535);
  e.cm_port = in.integer<int>("cm_port", 0, kMaxTcpPort);
  e.cm_address = in.text("cm_address");
  e.doorbells = in.text_or_empty("doorbells");
  e.interrupt_cpus = in.text_or_empty("interrupt_cpus");
  e.relaxed_ordering = in.text_or_empty("relaxed_ordering");
  if (in.has("ooo")) e.ooo = in.integer<int>("ooo", 0, 1) != 0;
  if (in.has("rate_limit_kbps")) e.rate_limit_kbps = in.integer<std::uint32_t>("rate_limit_kbps");
  if (in.has("ece")) e.ece = ece_from_json(in);
  e.qps = qps_from_json(in);
  if (in.has("xrc")) e.xrc = xrc_from_json(in);
  return e;
}

}  // namespace gdrperf::proto
