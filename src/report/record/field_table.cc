#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/units.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/report/network.h"
#include "gdrperf/report/required.h"
#include "report/console/parts.h"
#include "report/console/under_load.h"
#include "report/record/field_rows.h"

namespace gdrperf::report {
namespace {

/// The getters of the table.
namespace get {

std::optional<bool> value(bool yes) { return yes; }
std::optional<std::uint64_t> value(std::uint64_t count) { return count; }
std::optional<std::uint64_t> value(int count) {
  return count < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(count));
}
std::optional<double> value(double quantity) { return quantity; }
std::optional<double> value(const std::optional<double>& quantity) { return quantity; }
std::optional<std::string> value(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }
std::optional<std::string> value(std::string_view text) { return value(std::string(text)); }
std::optional<std::string> value(const Outside& text) { return value(text.raw()); }  // fields are data

template <auto Member>
auto record(const RunRecord& run) { return value(run.*Member); }
template <auto Member>
auto client(const RunRecord& run) { return value(run.client.*Member); }
template <auto Member>
auto server(const RunRecord& run) { return value(run.server.*Member); }
template <auto Member>
auto place(const RunRecord& run) { return value(run.path.*Member); }
template <auto Member>
auto measured(const RunRecord& run) { return value(run.measured.*Member); }
template <auto Member>
auto latency(const RunRecord& run) {
  return run.measured.latency ? value((*run.measured.latency).*Member) : std::nullopt;
}
template <auto Member>
auto bandwidth(const RunRecord& run) {
  return run.measured.bandwidth ? value((*run.measured.bandwidth).*Member) : std::nullopt;
}
/// GB/s as Gb/s.
template <auto Member>
auto gigabits(const RunRecord& run) {
  return run.measured.bandwidth ? value(gigabits_from_gigabytes((*run.measured.bandwidth).*Member)) : std::nullopt;
}
template <typename Number>
auto positive(Number number) { return number > 0 ? std::optional(number) : std::nullopt; }

template <auto Member>
auto network(const RunRecord& run) {
  const auto found = network_of(run.measured);
  return found ? value((*found).*Member) : std::nullopt;
}
auto network_verdict(const RunRecord& run) {
  const auto found = network_of(run.measured);
  return found ? value(found->verdict()) : std::nullopt;
}

/// Of a run over UC or UD whose messages somebody counted.
auto sent_messages(const RunRecord& run) {
  return run.measured.delivery ? value(run.measured.delivery->sent) : std::nullopt;
}
auto lost_messages(const RunRecord& run) {
  return run.measured.delivery ? value(run.measured.delivery->lost) : std::nullopt;
}
auto lost_share(const RunRecord& run) {
  return run.measured.delivery ? value(run.measured.delivery->lost_share()) : std::nullopt;
}
auto goodput(const RunRecord& run) {
  return run.measured.delivery ? value(gigabits_from_gigabytes(goodput_gbytes(run.measured))) : std::nullopt;
}

template <auto Member>
auto idle(const RunRecord& run) {
  return run.measured.under_load ? value(run.measured.under_load->idle.*Member) : std::nullopt;
}
template <auto Member>
std::optional<double> loaded(const RunRecord& run) {
  if (!run.measured.under_load || !run.measured.latency) return {};
  return value(loaded_ratio(run.measured.under_load->idle, *run.measured.latency, Member));
}
template <auto Member>
auto victim_idle(const RunRecord& run) {
  return run.measured.victim ? value(run.measured.victim->idle.*Member) : std::nullopt;
}
template <auto Member>
auto victim_loaded(const RunRecord& run) {
  return run.measured.victim ? value(run.measured.victim->loaded.*Member) : std::nullopt;
}
template <auto Member>
auto victim_ratio(const RunRecord& run) {
  const std::optional<Victim>& victim = run.measured.victim;
  return victim ? value(loaded_ratio(victim->idle, victim->loaded, Member)) : std::nullopt;
}
auto fairness(const RunRecord& run) {
  return run.measured.parts.empty() ? std::nullopt : value(jain_index(run.measured.parts));
}
template <auto Member>
std::optional<double> stream(const RunRecord& run) {
  if (!run.measured.under_load) return {};
  const double gbytes = (*run.measured.under_load).*Member;
  return gbytes > 0 ? value(gigabits_from_gigabytes(gbytes)) : std::nullopt;
}

template <auto Member>
auto sent(const RunRecord& run) {
  const std::optional<double>& gbytes = run.measured.*Member;
  return gbytes ? value(gigabits_from_gigabytes(*gbytes)) : std::nullopt;
}
/// CPU time per message as microseconds per 1e9 bytes.
template <auto Member>
std::optional<double> per_gigabyte(const RunRecord& run) {
  const std::optional<double>& per_message_ns = run.measured.*Member;
  if (!per_message_ns || !run.measured.bandwidth) return {};
  return *per_message_ns / static_cast<double>(run.spec.size_bytes) * 1e6;
}

auto op(const RunRecord& run) { return value(to_string(run.spec.test)); }
auto chunk(const RunRecord& run) { return positive(run.measured.chunk_bytes); }
auto ceiling(const RunRecord& run) { return positive(run.path.ceiling_gbps); }
auto stop(const RunRecord& run) { return value(to_string(run.measured.stop)); }
auto share(const RunRecord& run) { return value(efficiency(run)); }
// A run whose data was wrong has no record.
auto verified(const RunRecord& run) { return run.spec.verify_seed ? std::optional(true) : std::nullopt; }
// Of concern with GPU memory alone.
bool on_gpu(const EndRecord& end) {
  const std::string_view buffer = end.buffer;
  return end.gpu || buffer.starts_with("cuda:") || buffer.starts_with("cuda-vmm:") || buffer.starts_with("staged:");
}
bool on_gpu(const RunRecord& run) { return on_gpu(run.client) || on_gpu(run.server); }
auto path(const RunRecord& run) { return on_gpu(run) ? value(to_string(run.spec.path)) : std::nullopt; }
auto consume(const RunRecord& run) { return on_gpu(run) ? value(run.spec.consume) : std::nullopt; }
auto required_gbps(const RunRecord& run) {
  return run.measured.bandwidth ? value(run.required.min_gbps) : std::nullopt;
}
auto required_efficiency(const RunRecord& run) {
  return run.measured.bandwidth ? value(run.required.min_efficiency) : std::nullopt;
}
auto required_p99(const RunRecord& run) {
  return run.measured.latency ? value(run.required.max_p99_us) : std::nullopt;
}
auto required_met(const RunRecord& run) { return value(met(run)); }
auto out_of_order(const RunRecord& run) { return run.client.ooo ? std::optional(true) : std::nullopt; }
auto warnings(const RunRecord& run) {
  std::vector<std::string> all = run.measured.warnings;
  all.insert(all.end(), run.warnings.begin(), run.warnings.end());
  return value(fmt::format("{}", fmt::join(all, "; ")));
}

}  // namespace get

/// Values as names show them.
namespace say {

std::string only(std::string_view value, std::string_view wanted) {
  return std::string(value == wanted ? value : std::string_view());
}
std::string node(std::string_view value) { return only(value, "remote"); }  // local goes without saying
std::string kind(std::string_view value) { return only(value, "simulated"); }  // the one thing every format keeps

}  // namespace say

constexpr Identity kNo = Identity::kNo;
constexpr Identity kCondition = Identity::kCondition;
constexpr Identity kName = Identity::kName;
constexpr Missing kNull = Missing::kNull;
constexpr Missing kOmitted = Missing::kOmitted;

// A CPU or a NUMA node is no identity: host_node says what of it matters. A chunk that was
// chosen by itself is none either, since the choice differs from run to run.
// Rows of settings have but their place here: the rest comes from the option table.
constexpr Field kRows[] = {
    {"started", "started", "", kNo, "", get::record<&RunRecord::started>, kOmitted},
    {"client_host", "", "", kCondition, "host", get::client<&EndRecord::host>},
    {"server_host", "", "", kCondition, "host", get::server<&EndRecord::host>},
    {"relation", "", "", kName, "", get::record<&RunRecord::relation>},
    {"op", "op", "", kName, "", get::op},
    {.name = "size_bytes"},
    {"pair", "pair", "", kName, "", get::place<&RunPath::pair>},
    {"client_program", "client.program", "", kCondition, "program", get::client<&EndRecord::program>, kOmitted},
    {"client_device", "client.device", "", kName, "", get::client<&EndRecord::device>},
    {"client_kind", "client.kind", "", kNo, "", get::client<&EndRecord::kind>},
    {"client_firmware", "client.firmware", "", kCondition, "firmware", get::client<&EndRecord::firmware>},
    {"client_driver", "client.driver", "", kCondition, "driver", get::client<&EndRecord::driver>},
    {"client_port", "client.port", "", kName, "", get::client<&EndRecord::port>},
    {"client_gid_index", "client.gid_index", "", kNo, "", get::client<&EndRecord::gid_index>},
    {"client_gid", "client.gid", "", kNo, "", get::client<&EndRecord::gid>},
    {"client_gid_type", "client.gid_type", "", kCondition, "gid_type", get::client<&EndRecord::gid_type>},
    {"client_gid_why", "client.gid_why", "", kNo, "", get::client<&EndRecord::gid_why>},
    {"client_buffer", "client.buffer", "", kName, "", get::client<&EndRecord::buffer>},
    {"client_cpu", "client.cpu", "", kNo, "", get::client<&EndRecord::cpu>},
    {"client_numa", "client.numa", "", kNo, "", get::client<&EndRecord::numa>},
    {"client_doorbells", "client.doorbells", "", kCondition, "doorbells", get::client<&EndRecord::doorbells>, kOmitted},
    {"client_interrupt_cpus", "client.interrupt_cpus", "", kNo, "", get::client<&EndRecord::interrupt_cpus>, kOmitted},
    {"client_relaxed_ordering", "client.relaxed_ordering", "", kNo, "", get::client<&EndRecord::relaxed_ordering>,
     kOmitted},
    {"client_registration", "client.registration", "", kCondition, "registration",
     get::client<&EndRecord::registration>, kOmitted},
    {"server_program", "server.program", "", kCondition, "program", get::server<&EndRecord::program>, kOmitted},
    {"server_device", "server.device", "", kName, "", get::server<&EndRecord::device>},
    {"server_kind", "server.kind", "", kNo, "", get::server<&EndRecord::kind>},
    {"server_firmware", "server.firmware", "", kCondition, "firmware", get::server<&EndRecord::firmware>},
    {"server_driver", "server.driver", "", kCondition, "driver", get::server<&EndRecord::driver>},
    {"server_port", "server.port", "", kName, "", get::server<&EndRecord::port>},
    {"server_gid_index", "server.gid_index", "", kNo, "", get::server<&EndRecord::gid_index>},
    {"server_gid", "server.gid", "", kNo, "", get::server<&EndRecord::gid>},
    {"server_gid_type", "server.gid_type", "", kCondition, "gid_type", get::server<&EndRecord::gid_type>},
    {"server_gid_why", "server.gid_why", "", kNo, "", get::server<&EndRecord::gid_why>},
    {"server_buffer", "server.buffer", "", kName, "", get::server<&EndRecord::buffer>},
    {"server_cpu", "server.cpu", "", kNo, "", get::server<&EndRecord::cpu>},
    {"server_numa", "server.numa", "", kNo, "", get::server<&EndRecord::numa>},
    {"server_doorbells", "server.doorbells", "", kCondition, "doorbells", get::server<&EndRecord::doorbells>, kOmitted},
    {"server_interrupt_cpus", "server.interrupt_cpus", "", kNo, "", get::server<&EndRecord::interrupt_cpus>, kOmitted},
    {"server_relaxed_ordering", "server.relaxed_ordering", "", kNo, "", get::server<&EndRecord::relaxed_ordering>,
     kOmitted},
    {"server_registration", "server.registration", "", kCondition, "registration",
     get::server<&EndRecord::registration>, kOmitted},
    {.name = "direction"},
    {.name = "qps"},
    {.name = "wait"},
    {.name = "rate_per_s"},
    {.name = "path", .getter = get::path},
    {.name = "consume", .getter = get::consume},
    {"host_node", "host_node", "", kName, "", get::place<&RunPath::host_node>, kNull, "", say::node},
    {"device_kind", "device_kind", "", kCondition, "kind", get::record<&RunRecord::device_kind>, kNull, "", say::kind},
    {.name = "connection"},
    {.name = "tx_depth"},
    {.name = "rx_depth"},
    {.name = "cq_mod"},
    {.name = "post_list"},
    {.name = "inline_bytes"},
    {.name = "footprint_bytes"},
    {.name = "mtu_bytes"},
    {.name = "qp_timeout"},
    {.name = "service_level"},
    {.name = "traffic_class"},
    {.name = kOtherSettings},
    {"placed_out_of_order", "placed_out_of_order", "", kNo, "", get::out_of_order, kOmitted},
    {"client_rate_limit_gbps", "client.rate_limit_gbps", "Gb/s", kNo, "", get::client<&EndRecord::rate_limit_gbps>,
     kOmitted},
    {"server_rate_limit_gbps", "server.rate_limit_gbps", "Gb/s", kNo, "", get::server<&EndRecord::rate_limit_gbps>,
     kOmitted},
    {"ece_agreed", "ece_agreed", "", kNo, "", get::client<&EndRecord::ece>, kOmitted},
    {.name = "verified", .getter = get::verified},
    {.name = "chunk_asked_bytes"},
    {"chunk_bytes", "chunk_bytes", "B", kNo, "", get::chunk, kOmitted},
    {"iterations", "iterations", "", kNo, "", get::measured<&Measurement::iterations>},
    {"duration_s", "duration_s", "s", kNo, "", get::measured<&Measurement::duration_s>, kNull, "counted time"},
    {"warmup_cut_s", "warmup_cut_s", "s", kNo, "", get::measured<&Measurement::warmup_cut_s>, kNull,
     "time cut off in front"},
    {"stop", "stop", "", kNo, "", get::stop},
    {"unstable", "unstable", "", kNo, "", get::measured<&Measurement::unstable>},
    {"unstable_reason", "unstable_reason", "", kNo, "", get::measured<&Measurement::unstable_reason>},
    {"poster_clock_ppm", "poster_clock_ppm", "", kNo, "", get::measured<&Measurement::poster_clock_ppm>, kOmitted},
    {"poster_clock_doubt_ppm", "poster_clock_doubt_ppm", "", kNo, "",
     get::measured<&Measurement::poster_clock_doubt_ppm>, kOmitted},
    {"client_cpu_per_message_ns", "client.cpu_per_message_ns", "ns", kNo, "",
     get::measured<&Measurement::client_cpu_per_message_ns>, kOmitted},
    {"server_cpu_per_message_ns", "server.cpu_per_message_ns", "ns", kNo, "",
     get::measured<&Measurement::server_cpu_per_message_ns>, kOmitted},
    {"client_cpu_per_gigabyte_us", "client.cpu_per_gigabyte_us", "us", kNo, "",
     get::per_gigabyte<&Measurement::client_cpu_per_message_ns>, kOmitted},
    {"server_cpu_per_gigabyte_us", "server.cpu_per_gigabyte_us", "us", kNo, "",
     get::per_gigabyte<&Measurement::server_cpu_per_message_ns>, kOmitted},
    {"network", "network.verdict", "", kNo, "", get::network_verdict, kOmitted},
    {"resent_per_million", "network.resent_per_million", "", kNo, "", get::network<&Network::resent_per_million>,
     kOmitted},
    {"wire_bytes_per_byte", "network.wire_bytes_per_byte", "", kNo, "", get::network<&Network::wire_bytes_per_byte>,
     kOmitted},
    {"dropped_packets", "network.dropped_packets", "", kNo, "", get::network<&Network::dropped>, kOmitted},
    {"congestion_notices", "network.congestion_notices", "", kNo, "", get::network<&Network::congestion>, kOmitted},
    {"pause_frames", "network.pause_frames", "", kNo, "", get::network<&Network::pauses>, kOmitted},
    {"pause_share", "network.pause_share", "", kNo, "", get::network<&Network::pause_share>, kOmitted},
    {"client_sent_gbps", "client.sent_gbps", "Gb/s", kNo, "", get::sent<&Measurement::client_sent_gbytes>, kOmitted},
    {"server_sent_gbps", "server.sent_gbps", "Gb/s", kNo, "", get::sent<&Measurement::server_sent_gbytes>, kOmitted},
    {"ceiling_gbps", "ceiling_gbps", "Gb/s", kNo, "", get::ceiling},
    {"limited_by", "limited_by", "", kNo, "", get::place<&RunPath::limited_by>},
    {"efficiency", "efficiency", "", kNo, "", get::share, kNull, "median over the theoretical maximum (ceiling_gbps)"},
    {"median_gbps", "bw.median_gbps", "Gb/s", kNo, "", get::gigabits<&Bandwidth::median_gbytes>},
    // Tables print GB/s: in a spreadsheet both stand side by side.
    {"median_gigabytes_per_s", "", "GB/s", kNo, "", get::bandwidth<&Bandwidth::median_gbytes>},
    {"ci95_low_gbps", "", "Gb/s", kNo, "", get::gigabits<&Bandwidth::ci95_low_gbytes>},
    {"ci95_high_gbps", "", "Gb/s", kNo, "", get::gigabits<&Bandwidth::ci95_high_gbytes>},
    {"mean_gbps", "bw.mean_gbps", "Gb/s", kNo, "", get::gigabits<&Bandwidth::mean_gbytes>},
    {"min_gbps", "bw.min_gbps", "Gb/s", kNo, "", get::gigabits<&Bandwidth::min_gbytes>},
    {"max_gbps", "bw.max_gbps", "Gb/s", kNo, "", get::gigabits<&Bandwidth::max_gbytes>},
    {"msg_rate_mpps", "msg_rate_mpps", "million/s", kNo, "", get::bandwidth<&Bandwidth::msg_rate_mpps>},
    {"goodput_gbps", "delivery.goodput_gbps", "Gb/s", kNo, "", get::goodput, kOmitted},
    {"sent_messages", "delivery.sent_messages", "", kNo, "", get::sent_messages, kOmitted},
    {"lost_messages", "delivery.lost_messages", "", kNo, "", get::lost_messages, kOmitted},
    {"lost_share", "delivery.lost_share", "", kNo, "", get::lost_share, kOmitted},
    {"min_ns", "latency.min_ns", "ns", kNo, "", get::latency<&Latency::min_ns>},
    {"p50_ns", "latency.p50_ns", "ns", kNo, "", get::latency<&Latency::p50_ns>},
    {"p90_ns", "latency.p90_ns", "ns", kNo, "", get::latency<&Latency::p90_ns>},
    {"p99_ns", "latency.p99_ns", "ns", kNo, "", get::latency<&Latency::p99_ns>},
    {"p999_ns", "latency.p999_ns", "ns", kNo, "", get::latency<&Latency::p999_ns>, kNull, "99.9 %"},
    {"p9999_ns", "latency.p9999_ns", "ns", kNo, "", get::latency<&Latency::p9999_ns>, kNull, "99.99 %"},
    {"max_ns", "latency.max_ns", "ns", kNo, "", get::latency<&Latency::max_ns>},
    {"mean_ns", "latency.mean_ns", "ns", kNo, "", get::latency<&Latency::mean_ns>},
    {"ci95_p50_low_ns", "", "ns", kNo, "", get::latency<&Latency::ci95_p50_low_ns>},
    {"ci95_p50_high_ns", "", "ns", kNo, "", get::latency<&Latency::ci95_p50_high_ns>},
    {"samples", "latency.samples", "", kNo, "", get::latency<&Latency::samples>},
    {"halved", "latency.halved", "", kNo, "", get::latency<&Latency::halved>},
    {"idle_p50_ns", "under_load.idle_p50_ns", "ns", kNo, "", get::idle<&Latency::p50_ns>, kOmitted},
    {"idle_p99_ns", "under_load.idle_p99_ns", "ns", kNo, "", get::idle<&Latency::p99_ns>, kOmitted},
    {"p50_ratio", "under_load.p50_ratio", "", kNo, "", get::loaded<&Latency::p50_ns>, kOmitted},
    {"p99_ratio", "under_load.p99_ratio", "", kNo, "", get::loaded<&Latency::p99_ns>, kOmitted},
    {"stream_offered_gbps", "under_load.stream_offered_gbps", "Gb/s", kNo, "", get::stream<&UnderLoad::offered_gbytes>,
     kOmitted},
    {"stream_carried_gbps", "under_load.stream_carried_gbps", "Gb/s", kNo, "", get::stream<&UnderLoad::carried_gbytes>,
     kOmitted},
    {"stream_alone_gbps", "under_load.stream_alone_gbps", "Gb/s", kNo, "", get::stream<&UnderLoad::alone_gbytes>,
     kOmitted},
    {"fairness", "fairness", "", kNo, "", get::fairness, kOmitted},
    {"victim_idle_p50_ns", "victim_latency.idle_p50_ns", "ns", kNo, "", get::victim_idle<&Latency::p50_ns>, kOmitted},
    {"victim_idle_p99_ns", "victim_latency.idle_p99_ns", "ns", kNo, "", get::victim_idle<&Latency::p99_ns>, kOmitted},
    {"victim_p50_ns", "victim_latency.p50_ns", "ns", kNo, "", get::victim_loaded<&Latency::p50_ns>, kOmitted},
    {"victim_p99_ns", "victim_latency.p99_ns", "ns", kNo, "", get::victim_loaded<&Latency::p99_ns>, kOmitted},
    {"victim_p50_ratio", "victim_latency.p50_ratio", "", kNo, "", get::victim_ratio<&Latency::p50_ns>, kOmitted},
    {"victim_p99_ratio", "victim_latency.p99_ratio", "", kNo, "", get::victim_ratio<&Latency::p99_ns>, kOmitted},
    {"required_min_gbps", "required.min_gbps", "Gb/s", kNo, "", get::required_gbps, kOmitted},
    {"required_min_efficiency", "required.min_efficiency", "", kNo, "", get::required_efficiency, kOmitted},
    {"required_max_p99_us", "required.max_p99_us", "us", kNo, "", get::required_p99, kOmitted},
    {"required_met", "required.met", "", kNo, "", get::required_met, kOmitted},
    {"warnings", "", "", kNo, "", get::warnings},
};

}  // namespace

std::span<const Field> field_rows() { return kRows; }

}  // namespace gdrperf::report
