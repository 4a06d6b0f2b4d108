#include "app/client/register_all.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/proto/settings.h"
#include "app/options/paths.h"
#include "app/output/table.h"

namespace gdrperf::app {
namespace {

/// In the order in which they are taken by rule; a dma-buf that is mapped over PCIe is for those who ask.
constexpr Registration kWays[] = {Registration::kDataDirect, Registration::kDmabuf, Registration::kDmabufPcie,
                                  Registration::kPeermem};

std::string word_of(Registration way) {
  return to_text(setting<&TestSpec::registration>(), static_cast<std::int64_t>(way));
}

/// The latency test of the same operation, of messages that are small.
TestSpec latency_of(TestSpec spec) {
  constexpr std::uint64_t kBytes = 8;
  spec.test.metric = Metric::kLatency;
  spec.size_bytes = kBytes;
  leave_out_elsewhere(spec);
  spec.footprint_bytes = 0;
  return spec;
}

}  // namespace

void check_register_all(const TestSpec& spec) {
  if (uses_gpu(spec.client.buffer)) mem::check_kind(spec.client.buffer, own_flag<&EndSpec::buffer>());
  if (uses_gpu(spec.client.buffer) || uses_gpu(spec.server.buffer)) return;
  throw usage_error(fmt::format("{} all: neither buffer is in GPU memory, so there is nothing to compare",
                                flag<&TestSpec::registration>()),
                    fmt::format("{0} cuda:0 takes GPU 0's memory; it needs a GPU, its driver and a build with CUDA",
                                own_flag<&EndSpec::buffer>()));
}

std::vector<RegistrationRow> try_registrations(const TestSpec& spec, const RunOne& run) {
  std::vector<RegistrationRow> rows;
  for (const Registration way : kWays) {
    RegistrationRow row;
    row.way = way;
    TestSpec each = spec;
    each.registration = way;
    try {
      for (const TestSpec& one : {each, latency_of(each)}) {
        const report::RunRecord record = run(one);
        row.registered = true;
        if (record.measured.bandwidth) row.gbytes = record.measured.bandwidth->median_gbytes;
        if (record.measured.latency) row.latency_us = record.measured.latency->p50_ns / 1e3;
      }
    } catch (const Error& error) {
      if (error.code() != ExitCode::kEnvironment) throw;
      row.why_not = error.what();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_registrations(const std::vector<RegistrationRow>& rows, const TestSpec& spec, std::ostream& out) {
  Table table({flag<&TestSpec::registration>(), "registered", fmt::format("{} GB/s", format_size(spec.size_bytes)),
               "8 B us", "why not"});
  const auto figure = [](double value) {
    return value > 0 ? fmt::format("{}", plain_digits(value)) : std::string("-");
  };
  for (const RegistrationRow& row : rows) {
    table.add(
        {word_of(row.way), row.registered ? "yes" : "no", figure(row.gbytes), figure(row.latency_us), row.why_not});
  }
  out << fmt::format("\nGPU memory given to {} in each way\n",
                     spec.client.device.empty() ? "the NIC" : spec.client.device);
  table.print(out);
  const auto taken = std::find_if(rows.begin(), rows.end(), [](const RegistrationRow& row) {
    return row.registered && row.way != Registration::kDmabufPcie;
  });
  out << (taken == rows.end() ? fmt::format("No direct method works here: {} staged goes through host memory.\n",
                                            flag<&TestSpec::path>())
                              : fmt::format("Without {} it is {}, by rule: data-direct, else dmabuf, else peermem.\n",
                                            flag<&TestSpec::registration>(), word_of(taken->way)));
}

}  // namespace gdrperf::app
