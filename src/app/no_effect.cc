#include "no_effect.h"

#include <algorithm>

#include <fmt/format.h>

#include "terminal.h"

namespace gdrperf::app {
namespace {

bool any_of(const std::vector<Test>& tests, Metric metric) {
  return std::any_of(tests.begin(), tests.end(), [&](const Test& test) { return test.metric == metric; });
}

bool any_of(const std::vector<Test>& tests, Operation operation) {
  return std::any_of(tests.begin(), tests.end(), [&](const Test& test) { return test.operation == operation; });
}

bool staged(const ClientOptions& options) {
  const auto is_staged = [](const EndSpec& end) { return end.buffer.starts_with("staged"); };
  return options.spec.consume || is_staged(options.spec.client) || is_staged(options.spec.server) ||
         std::find(options.paths.begin(), options.paths.end(), Path::kStaged) != options.paths.end();
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
  const auto note = [&](const char* flag, const std::string& why) {
    if (typed(flag)) sentences.push_back(fmt::format("{} changes nothing: {}", flag, why));
  };
  if (!gpu) {
    const char* host = "both ends are in host memory; GPU memory is --buffer or --peer-buffer cuda:N";
    note("--register", host);
    note("--use_cuda_dmabuf", host);
    note("--chunk", host);
    if (options.paths.size() > 1) note("--path", host);
  } else if (!staged(options)) {
    note("--chunk", "the path is direct; --path staged copies in chunks");
  }
  if (!any_of(tests, Metric::kBandwidth)) {
    const char* one = "a latency test has one message in flight";
    note("-t", one);
    note("-Q", one);
    note("--footprint", "a latency test sends from one place");
  }
  // write_lat of GPU memory ends its rounds with receives.
  if (!any_of(tests, Operation::kSend) && !(gpu && any_of(tests, Metric::kLatency))) {
    note("-r", "only send tests post receives");
  }
  if (options.spec.stop.iterations || options.spec.stop.duration) {
    const char* const end_by = options.spec.stop.duration ? "-D does" : "-n does";
    const std::string end = fmt::format("{} says when the run ends", options.spec.stop.duration ? "-D" : "-n");
    note("--cap", end);
    if (typed("--precision")) sentences.push_back(fmt::format("--precision does not end the run, {}; a figure that is "
                                                              "not known as well is marked unstable", end_by));
  }
  if (options.local) note("-p", "--local needs no port");
  return sentences;
}

void note_without_effect(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) say("note: " + sentence);
}

}  // namespace gdrperf::app
