#include "gdrperf/import/import.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "import/lines.h"
#include "import/perftest.h"

namespace gdrperf::report {
namespace {

constexpr ImportFormat kImportFormats[] = {
    {"perftest-json", "the file of perftest's --out_json, of any version", is_perftest_json, read_perftest_json},
    {"perftest", "what perftest (ib_write_bw, ib_send_lat, ...) printed, of one test or of several", is_perftest_text,
     read_perftest_text},
};

bool in_gpu(const std::string& buffer) { return buffer != "host"; }

/// The file knows one end, and of that neither the relation of GPU and NIC.
void complete(RunRecord& run, const ImportHints& hints, const std::string& file) {
  if (run.client.device.empty()) run.client.device = "-";
  run.server.device = hints.peer_device.empty() ? run.client.device : Outside(hints.peer_device);
  run.server.buffer = hints.peer_buffer.empty() ? run.client.buffer : hints.peer_buffer;
  const bool gpu = in_gpu(run.client.buffer) || in_gpu(run.server.buffer);
  if (gpu && hints.relation.empty()) {
    throw usage_error(
        fmt::format("{}: runs in GPU memory ({} to {}), and nothing in it shows how GPU and NIC are connected", file,
                    run.client.buffer, run.server.buffer),
        fmt::format("add {} PIX (or PXB, PHB, NODE, SYS); 'gdrperf topo' shows it on that machine",
                    flags::kRelation));
  }
  run.relation = gpu ? hints.relation : "HOST";
}

}  // namespace

std::span<const ImportFormat> import_formats() { return kImportFormats; }

Imported import_results(std::string_view text, const std::string& file, const ImportHints& hints) {
  const auto format = std::find_if(std::begin(kImportFormats), std::end(kImportFormats),
                                   [&](const ImportFormat& each) { return each.recognise(text); });
  if (format == std::end(kImportFormats)) {
    throw usage_error(text.empty() ? file + ": empty" : file + ":1: no output that can be imported",
                      "'gdrperf import --help' lists what can be imported");
  }
  Imported imported;
  imported.format = format->name;
  format->read(text, file, imported);
  if (imported.runs.empty()) throw usage_error(file + ":1: no run in it");
  for (RunRecord& run : imported.runs) complete(run, hints, file);
  return imported;
}

}  // namespace gdrperf::report
