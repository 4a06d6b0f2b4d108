#include "proto/control/reverse_run_json.h"

namespace gdrperf::proto {

void write_reverse_run(nlohmann::json& out, const ReverseRun& led) {
  nlohmann::json batches = nlohmann::json::array();
  for (const LedBatch& batch : led.batches) batches.push_back({batch.start_s, batch.seconds, batch.messages});
  out = {{"batches", std::move(batches)},
         {"ramp_s", led.ramp_s},
         {"seconds", led.seconds},
         {"sent", led.sent},
         {"stop", led.stop}};
  if (led.start_ns <= 0) return;
  out["start_ns"] = led.start_ns;
  out["first_batch_ns"] = led.first_batch_ns;
}

ReverseRun read_reverse_run(const JsonReader& in) {
  ReverseRun led;
  const std::string path = in.path_of("batches");
  for (const nlohmann::json& item : in.array("batches", kMaxDoneSeries)) {
    if (!item.is_array() || item.size() != 3) JsonReader::refuse(path, "is no list of [s, s, messages]");
    led.batches.push_back({JsonReader::to_number(item[0], path), JsonReader::to_number(item[1], path),
                           JsonReader::to_integer<std::uint64_t>(item[2], path, 0, ~0ull)});
    if (!(led.batches.back().seconds > 0)) JsonReader::refuse(path, "has a batch of no time");
  }
  led.ramp_s = in.number("ramp_s");
  led.seconds = in.number("seconds");
  if (!(led.seconds > 0)) JsonReader::refuse(in.path_of("seconds"), "is no time");
  led.sent = in.integer<std::uint64_t>("sent");
  led.stop = in.integer<int>("stop", 0, kMostStopReasons);
  if (!in.has("start_ns")) return led;
  led.start_ns = in.number("start_ns");
  led.first_batch_ns = in.number("first_batch_ns");
  return led;
}

}  // namespace gdrperf::proto
