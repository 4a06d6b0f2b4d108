#include "app/options/no_effect.h"

#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/flags.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

bool staged(const ClientOptions& options) {
  const auto is_staged = [](const EndSpec& end) { return end.buffer.starts_with("staged"); };
  return options.spec.consume || is_staged(options.spec.client) || is_staged(options.spec.server) ||
         std::find(options.paths.begin(), options.paths.end(), Path::kStaged) != options.paths.end();
}

/// Why a setting means nothing here; "" where it does.
std::string why_not(const Setting& each, const ClientOptions& options, const std::vector<Test>& tests, bool gpu) {
  const auto any = [&](auto means) { return std::any_of(tests.begin(), tests.end(), means); };
  const bool concerned = any([&](Test test) { return concerns(each, test); });
  // write_lat of GPU memory ends its rounds with receives.
  const bool gpu_receives = gpu && any([](Test test) { return test.metric == Metric::kLatency; });
  bool means = concerned;
  if (each.scope == Scope::kReceives) means = concerned || gpu_receives;
  if (each.scope == Scope::kReliable) means = acknowledged(options.spec.transport);
  if (each.scope == Scope::kGpu) means = gpu;
  if (each.scope == Scope::kStaged) means = gpu && staged(options);
  if (means) return {};
  const bool no_gpu = each.scope == Scope::kStaged && !gpu;
  return reason_for(no_gpu ? setting<&TestSpec::registration>() : each, tests.front());
}

/// -n, -D and --forever take the place of the rule that ends a run by itself.
void note_stop(const StopRule& stop, const Typed& typed, std::vector<std::string>& sentences) {
  if (!stop.iterations && !stop.duration && !stop.forever) return;
  const std::string end = stop.forever    ? stop_flag<&StopRule::forever>()
                          : stop.duration ? stop_flag<&StopRule::duration>()
                                          : stop_flag<&StopRule::iterations>();
  const std::string cap = flag<&TestSpec::stop, &StopRule::cap>();
  if (typed(cap)) sentences.push_back(fmt::format("{} changes nothing: {} decides when the run ends", cap, end));
  const std::string precision = flag<&TestSpec::stop, &StopRule::precision>();
  if (!typed(precision)) return;
  sentences.push_back(fmt::format("{} does not end the run, {} does; a result that is less certain is marked "
                                  "unstable", precision, end));
}

}  // namespace

Typed typed_on(const CLI::App& command) {
  return [&command](const std::string& name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
}

std::vector<std::string> without_effect(const ClientOptions& options, const std::vector<Test>& tests, bool gpu,
                                        const Typed& typed) {
  std::vector<std::string> sentences;
  const auto note = [&](const std::string& flag, const std::string& why) {
    if (typed(flag) && !why.empty()) sentences.push_back(fmt::format("{} changes nothing: {}", flag, why));
  };
  for (const Setting& each : settings()) {
    if (each.elsewhere == Elsewhere::kNoted) note(flag_of(each), why_not(each, options, tests, gpu));
  }
  if (!gpu && options.paths.size() > 1) {
    note(flag<&TestSpec::path>(), reason_for(setting<&TestSpec::registration>(), tests.front()));
  }
  note_stop(options.spec.stop, typed, sentences);
  if (options.local) note(flags::kPort, "--local needs no port");
  return sentences;
}

void note_without_effect(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) say("note: " + sentence);
}

}  // namespace gdrperf::app
