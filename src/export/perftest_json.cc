// What perftest's --out_json writes, and what a run's server is told for its own table.
#include <cmath>
#include <string>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/export/perftest.h"
#include "export/perftest.h"
#include "report/record/json_text.h"

namespace gdrperf::report {
namespace {

const char* on_off(bool on) { return on ? "ON" : "OFF"; }

/// As perftest prints it, with so many digits behind the point.
double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::isfinite(value) ? std::round(value * scale) / scale : 0;
}

Json test_info(const RunRecord& record) {
  const TestSpec& spec = record.spec;
  std::string test = perftest_title(spec);
  for (char& c : test) c = c == ' ' ? '_' : c;
  Json info;
  info["test"] = test;
  info["Dual_port"] = "OFF";
  info["Device"] = printable(record.client.device);
  info["Number_of_qps"] = spec.qps;
  info["Transport_type"] = "IB";
  info["Connection_type"] = std::string(to_string(spec.transport));
  info["Using_SRQ"] = on_off(spec.srq);
  info["PCIe_relax_order"] = on_off(spec.ordering != Ordering::kStrict);
  info["ibv_wr_API"] = "OFF";
  if (spec.test.metric == Metric::kBandwidth) {
    info["TX_depth"] = spec.tx_depth;
    if (spec.post_list > 1) info["Post_List"] = spec.post_list;
    info["CQ_Moderation"] = spec.cq_mod;
  }
  info["Mtu"] = spec.mtu_bytes;
  info["Link_type"] = perftest_link(record.client);
  info["GID_index"] = record.client.gid_index;
  info["Max_inline_data"] = std::max(spec.inline_bytes, 0);
  info["rdma_cm_QPs"] = on_off(spec.connector == Connector::kRdmaCm);
  info["Data_ex_method"] = "Ethernet";
  info["Measured_by"] = "gdrperf, device kind " + printable(record.device_kind);
  return info;
}

Json rate_results(const RunRecord& record, RateUnit unit) {
  const Bandwidth& rate = *record.measured.bandwidth;
  const double scale = perftest_scale(unit);
  // Its own is as exact where Gb/s would be rounded to nothing.
  const int digits = unit == RateUnit::kGigabits && rate.mean_gbytes * scale < 0.1 ? 6 : 2;
  Json results;
  results["MsgSize"] = record.spec.size_bytes;
  results["n_iterations"] = record.measured.iterations;
  results["BW_peak"] = rounded(rate.max_gbytes * scale, digits);
  results["BW_average"] = rounded(rate.mean_gbytes * scale, digits);
  results["MsgRate"] = rounded(rate.mean_gbytes * 1e3 / static_cast<double>(record.spec.size_bytes), 6);
  return results;
}

Json latency_results(const RunRecord& record) {
  const Latency& latency = *record.measured.latency;
  Json results;
  results["MsgSize"] = record.spec.size_bytes;
  results["n_iterations"] = latency.samples;
  const auto put = [&](const char* name, double ns) { results[name] = rounded(ns / 1e3, 2); };
  put("t_min", latency.min_ns);
  put("t_max", latency.max_ns);
  put("t_typical", latency.p50_ns);
  put("t_avg", latency.mean_ns);
  put("t_stdev", latency.stdev_ns);
  put("99% percentile", latency.p99_ns);
  put("99.9% percentile", latency.p999_ns);
  if (record.measured.duration_s > 0)
    results["tps_average"] = rounded(static_cast<double>(latency.samples) / record.measured.duration_s, 2);
  return results;
}

double known(double value) { return std::isfinite(value) ? value : -1; }
double again(double value) { return value < 0 ? std::numeric_limits<double>::quiet_NaN() : value; }

}  // namespace

std::string perftest_json(const RunRecord& record, RateUnit unit) {
  Json document;
  document["test_info"] = test_info(record);
  document["results"] = record.measured.bandwidth ? rate_results(record, unit) : latency_results(record);
  return document.dump(0) + "\n";
}

proto::Result result_of(const RunRecord& record) {
  proto::Result result;
  result.spec = record.spec;
  result.device_kind = record.device_kind;
  result.client_device = record.client.device.raw();
  result.server_device = record.server.device.raw();
  result.gid_type = record.server.gid_type;
  result.client_gid_index = record.client.gid_index;
  result.server_gid_index = record.server.gid_index;
  result.iterations = record.measured.iterations;
  result.seconds = record.measured.duration_s;
  if (const auto& rate = record.measured.bandwidth) {
    result.figures = {known(rate->mean_gbytes), known(rate->max_gbytes)};
    return result;
  }
  const Latency& latency = record.measured.latency.value();
  result.iterations = latency.samples;
  result.figures = {known(latency.min_ns), known(latency.max_ns), known(latency.p50_ns), known(latency.mean_ns),
                    known(latency.stdev_ns), known(latency.p99_ns), known(latency.p999_ns)};
  return result;
}

RunRecord record_of(const proto::Result& result) {
  RunRecord record;
  record.spec = result.spec;
  record.device_kind = result.device_kind;
  record.client.device = result.server_device;
  record.client.gid_index = result.server_gid_index;
  record.client.gid_type = result.gid_type;
  record.server.device = result.client_device;
  record.server.gid_index = result.client_gid_index;
  record.measured.iterations = result.iterations;
  record.measured.duration_s = result.seconds;
  const std::vector<double>& figures = result.figures;
  if (result.spec.test.metric == Metric::kBandwidth) {
    Bandwidth& rate = record.measured.bandwidth.emplace();
    rate.mean_gbytes = rate.median_gbytes = again(figures.at(0));
    rate.max_gbytes = again(figures.at(1));
    return record;
  }
  Latency& latency = record.measured.latency.emplace();
  latency.samples = result.iterations;
  double* const members[] = {&latency.min_ns,   &latency.max_ns, &latency.p50_ns, &latency.mean_ns,
                             &latency.stdev_ns, &latency.p99_ns, &latency.p999_ns};
  for (std::size_t i = 0; i < std::size(members); ++i) *members[i] = again(figures.at(i));
  return record;
}

}  // namespace gdrperf::report
