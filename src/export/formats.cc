#include "gdrperf/export/formats.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "gdrperf/base/units.h"
#include "gdrperf/export/csv.h"
#include "gdrperf/report/fields.h"
#include "export/perftest.h"
#include "report/record/json_text.h"
#include "report/record/record_json.h"

namespace gdrperf::report {

/// Formats that have a file of their own, as Format::render: a new one is that file and its two lines here.
std::string prometheus(std::span<const RunRecord> runs, const FormatContext& context);
std::string influx(std::span<const RunRecord> runs, const FormatContext& context);

namespace {

/// The one figure that a run is about.
struct Figure {
  double value = 0;  ///< Gb/s, or ns of the median
  double low = 0;    ///< 95 % interval; NaN where there is none
  double high = 0;
};

Figure figure_of(const Measurement& measured) {
  if (const auto& bandwidth = measured.bandwidth) {
    return {gigabits_from_gigabytes(bandwidth->median_gbytes), gigabits_from_gigabytes(bandwidth->ci95_low_gbytes),
            gigabits_from_gigabytes(bandwidth->ci95_high_gbytes)};
  }
  const Latency& latency = *measured.latency;
  return {latency.p50_ns, latency.ci95_p50_low_ns, latency.ci95_p50_high_ns};
}

/// ns per message (bandwidth) or the median latency.
double time_ns(const RunRecord& record) {
  const auto& bandwidth = record.measured.bandwidth;
  return bandwidth ? 1e3 / bandwidth->msg_rate_mpps : record.measured.latency->p50_ns;
}

void add_counters(Json& entry, const RunRecord& record) {
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) entry[name] = number(value);
  };
  if (const auto& bandwidth = record.measured.bandwidth) {
    add("bytes_per_second", bandwidth->median_gbytes * 1e9);
    add("items_per_second", bandwidth->msg_rate_mpps * 1e6);
    add("min_bytes_per_second", bandwidth->min_gbytes * 1e9);
    add("max_bytes_per_second", bandwidth->max_gbytes * 1e9);
  }
  if (const auto& latency = record.measured.latency) {
    add("min_ns", latency->min_ns);
    add("p99_ns", latency->p99_ns);
    add("p999_ns", latency->p999_ns);
    add("max_ns", latency->max_ns);
  }
  entry["unstable"] = record.measured.unstable ? 1 : 0;
}

/// Runs of one name are repetitions of one benchmark.
std::string google_benchmark(std::span<const RunRecord> runs, const FormatContext& context) {
  std::map<std::string, int> repetitions;
  std::map<std::string, int> families;
  const std::vector<std::string> names = run_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (std::isfinite(time_ns(runs[i]))) ++repetitions[names[i]];
  }
  std::map<std::string, int> seen;
  Json benchmarks = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& record = runs[i];
    const double time = time_ns(record);
    if (!std::isfinite(time)) continue;
    const std::string& name = names[i];
    const int family = families.try_emplace(name, static_cast<int>(families.size())).first->second;
    Json entry = {{"name", name},
                  {"family_index", family},
                  {"per_family_instance_index", 0},
                  {"run_name", name},
                  {"run_type", "iteration"},
                  {"repetitions", repetitions[name]},
                  {"repetition_index", seen[name]++},
                  {"threads", 1},
                  {"iterations", record.measured.iterations},
                  {"real_time", number(time)},
                  {"cpu_time", number(time)},
                  {"time_unit", "ns"}};
    add_counters(entry, record);
    benchmarks.push_back(std::move(entry));
  }
  const Json document = {{"context",
                          {{"date", context.started},
                           {"host_name", context.hostname},
                           {"executable", context.executable},
                           {"num_cpus", context.cpus},
                           {"mhz_per_cpu", 0},
                           {"cpu_scaling_enabled", false},
                           {"caches", Json::array()},
                           {"load_avg", Json::array()},
                           {"library_build_type", "release"},
                           {"gdrperf_version", context.version}}},
                         {"benchmarks", std::move(benchmarks)}};
  return pretty(document, 0) + "\n";
}

std::string bencher(std::span<const RunRecord> runs, const FormatContext&) {
  Json document = Json::object();
  const std::vector<std::string> names = run_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& record = runs[i];
    const Figure figure = figure_of(record.measured);
    if (!std::isfinite(figure.value)) continue;
    Json metric = {{"value", number(figure.value)}};
    if (std::isfinite(figure.low) && std::isfinite(figure.high)) {
      metric["lower_value"] = number(figure.low);
      metric["upper_value"] = number(figure.high);
    }
    document[names[i]][record.measured.bandwidth ? "bandwidth_gbps" : "latency"] = std::move(metric);
  }
  return pretty(document, 0) + "\n";
}

std::string custom(std::span<const RunRecord> runs, Metric metric) {
  Json list = Json::array();
  const std::vector<std::string> names = run_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& record = runs[i];
    if (record.spec.test.metric != metric) continue;
    const Figure figure = figure_of(record.measured);
    if (!std::isfinite(figure.value)) continue;
    Json entry = {{"name", names[i]},
                  {"unit", metric == Metric::kBandwidth ? "Gb/s" : "ns"},
                  {"value", number(figure.value)}};
    const double half = std::max(figure.high - figure.value, figure.value - figure.low);
    if (std::isfinite(half)) entry["range"] = "± " + number(half).dump();
    entry["extra"] = record.device_kind + (record.measured.unstable ? ", unstable" : "");
    list.push_back(std::move(entry));
  }
  return pretty(list, 0) + "\n";
}

std::string lines(std::span<const RunRecord> runs, const FormatContext& context) {
  std::string text;
  const std::vector<std::string> names = run_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& record = runs[i];
    Json line = {{"started", context.started},
                 {"host", text_or_null(context.hostname)},
                 {"server_host", text_or_null(record.server.host)},
                 {"relation", record.relation},
                 {"name", names[i]}};
    line.update(record_json(record));
    text += one_line(line) + "\n";
  }
  return text;
}

std::string csv(std::span<const RunRecord> runs, const FormatContext&) {
  std::string text = csv_header();
  for (const RunRecord& record : runs) text += csv_line(record);
  return text;
}

std::string bigger(std::span<const RunRecord> runs, const FormatContext&) { return custom(runs, Metric::kBandwidth); }
std::string smaller(std::span<const RunRecord> runs, const FormatContext&) { return custom(runs, Metric::kLatency); }

constexpr Format kFormats[] = {
    {"google-benchmark", google_benchmark},       // its JSON
    {"csv", csv},                                 // csv_header() and a csv_line() per run
    {"prometheus", prometheus},                   // text exposition format 0.0.4
    {"bmf", bencher},                             // Bencher Metric Format
    {"custom-bigger-is-better", bigger},          // github-action-benchmark: bandwidth runs
    {"custom-smaller-is-better", smaller},        // the same tool: latency runs
    {"influx", influx},                           // InfluxDB line protocol
    {"jsonl", lines},                             // one run per line, as in the document, with its relation
    {"perftest", perftest_columns},               // the tables of ib_write_bw and its family
};

}  // namespace

std::span<const Format> all_formats() { return kFormats; }

std::optional<Format> parse_format(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return format;
  }
  return std::nullopt;
}

}  // namespace gdrperf::report
