#include "app/intervals/sample_file.h"

#include <chrono>

#include <fmt/format.h>

#include "gdrperf/base/version.h"
#include "gdrperf/export/csv.h"
#include "gdrperf/export/hdr_log.h"

namespace gdrperf::app {
namespace {

using std::chrono::system_clock;

double since_epoch_s(system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string csv_lines(const engine::RunSamples& run) {
  std::string text;
  for (const engine::Stretch& each : run.stretches) {
    const double gbps = static_cast<double>(each.messages) * static_cast<double>(run.size_bytes) * 8e-9 / each.seconds;
    text += fmt::format("{},{},{:.6f},{:.6f},{},{:.7g}\n", to_string(run.test), run.size_bytes, each.start_s,
                        each.seconds, each.messages, gbps);
    if (!run.part.empty()) text.insert(text.size() - 1, "," + report::csv_cell(run.part));
  }
  return text;
}

}  // namespace

void SampleFile::samples(const engine::RunSamples& run) {
  const bool first = log_start_s_ < 0;
  const system_clock::time_point start = system_clock::now() - std::chrono::duration_cast<system_clock::duration>(
                                                                   std::chrono::duration<double>(run.seconds_ago));
  if (first) log_start_s_ = since_epoch_s(start);
  if (run.test.metric == Metric::kBandwidth) {
    if (first)
      text_ += fmt::format("op,size_bytes,start_s,duration_s,messages,gbps{}\n", run.part.empty() ? "" : ",part");
    text_ += csv_lines(run);
    return;
  }
  if (first) text_ += report::hdr_log_header(start, fmt::format("gdrperf {}", tool_version()));
  for (const engine::Stretch& each : run.stretches) {
    text_ += report::hdr_log_line({fmt::format("{}_{}", to_string(run.test), run.size_bytes),
                                   since_epoch_s(start) - log_start_s_ + each.start_s, each.seconds, *each.latencies,
                                   run.scale_ns});
  }
}

void SampleFile::write() {
  if (!sink_.given() || text_.empty()) return;
  sink_.write(text_);
  if (sink_.is_stream()) text_.clear();
}

}  // namespace gdrperf::app
