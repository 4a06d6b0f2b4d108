#include "verbs/facts.h"

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "verbs/sysfs.h"

namespace gdrperf::verbs {
namespace {

/// Limit of one sysfs file.
constexpr std::size_t kFileBytes = 4096;

std::vector<DeviceLimit> limits_of(const ibv_device_attr_ex& all) {
  const ibv_device_attr& attr = all.orig_attr;
  std::vector<DeviceLimit> limits;
  // The fields that cannot be negative are int all the same.
  const auto add = [&limits](const char* name, auto value) {
    limits.push_back({name, static_cast<std::uint64_t>(value)});
  };
  add("max_qp", attr.max_qp);
  add("max_qp_wr", attr.max_qp_wr);
  add("max_sge", attr.max_sge);
  add("max_sge_rd", attr.max_sge_rd);
  add("max_qp_rd_atom", attr.max_qp_rd_atom);
  add("max_qp_init_rd_atom", attr.max_qp_init_rd_atom);
  add("max_res_rd_atom", attr.max_res_rd_atom);
  add("max_cq", attr.max_cq);
  add("max_cqe", attr.max_cqe);
  add("max_mr", attr.max_mr);
  add("max_mr_size", attr.max_mr_size);
  add("max_mw", attr.max_mw);
  add("max_pd", attr.max_pd);
  add("max_ah", attr.max_ah);
  add("max_srq", attr.max_srq);
  add("max_srq_wr", attr.max_srq_wr);
  add("max_srq_sge", attr.max_srq_sge);
  add("max_pkeys", attr.max_pkeys);
  add("page_size_cap", attr.page_size_cap);
  add("max_dm_size", all.max_dm_size);
  add("completion_timestamp_mask", all.completion_timestamp_mask);
  add("hca_core_clock_khz", all.hca_core_clock);
  return limits;
}

const char* atomics_of(ibv_atomic_cap cap) {
  switch (cap) {
    case IBV_ATOMIC_HCA: return "within the device";
    case IBV_ATOMIC_GLOB: return "global";
    case IBV_ATOMIC_NONE: break;
  }
  return "none";
}

std::vector<std::string> odp_of(const ibv_odp_caps& caps) {
  std::vector<std::string> can;
  if ((caps.general_caps & IBV_ODP_SUPPORT) == 0) return can;
  const struct {
    std::uint32_t bit;
    const char* name;
  } kinds[] = {{IBV_ODP_SUPPORT_SEND, "send"},     {IBV_ODP_SUPPORT_RECV, "recv"},
               {IBV_ODP_SUPPORT_WRITE, "write"},   {IBV_ODP_SUPPORT_READ, "read"},
               {IBV_ODP_SUPPORT_ATOMIC, "atomic"}, {IBV_ODP_SUPPORT_SRQ_RECV, "srq_recv"}};
  for (const auto& kind : kinds) {
    if ((caps.per_transport_caps.rc_odp_caps & kind.bit) != 0) can.emplace_back(kind.name);
  }
  return can;
}

std::string_view take_word(std::string_view& line) {
  const std::size_t blank = line.find(' ');
  const std::string_view word = line.substr(0, blank);
  line = blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
  return word;
}

}  // namespace

std::vector<DataPath> parse_data_paths(std::string_view text) {
  std::vector<DataPath> paths;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view way = take_word(line);
    const std::string_view state = take_word(line);
    if (way.empty() || (state != "first" && state != "fallback" && state != "off")) continue;
    paths.push_back({std::string(way), std::string(state), std::string(line)});
  }
  return paths;
}

void read_facts(const Context& context, DeviceInfo& info) {
  info.limits = limits_of(context.attr());
  info.atomics = atomics_of(context.attr().orig_attr.atomic_cap);
  info.odp = odp_of(context.attr().odp_caps);
  try {
    info.data_paths = parse_data_paths(read_file(class_folder(context.name()) + "/data_path", kFileBytes));
  } catch (const Error&) {
    // Only software devices have this file.
  }
}

}  // namespace gdrperf::verbs
