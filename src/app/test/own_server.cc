// A test without HOST: it serves one client.
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/flags.h"
#include "gdrperf/proto/settings.h"
#include "app/options/parse_words.h"
#include "app/output/terminal.h"
#include "app/server/perftest_service.h"
#include "app/server/serve.h"
#include "app/test/test_options.h"

namespace gdrperf::app {
namespace {

/// Settings that an end that serves decides itself: its address, and, where its client says
/// nothing about it, the settings of this end.
bool own_of_server(const CLI::Option& option) {
  for (const char* name : {"--port", flags::kBind, flags::kToken, flags::kSoftnic}) {
    if (option.check_name(name)) return true;
  }
  for (const Setting& each : settings()) {
    const bool own_end = std::string_view(each.object) == "client" && *each.flags != 0;
    if (own_end && option.check_name(flag_of(each))) return true;
  }
  return option.get_positional();
}

}  // namespace

int serve_one_client(const TestOptions& options) {
  // perftest's options are typed at both ends.
  if (!options.given.empty() && !options.perftest.by_name) {
    say(fmt::format("note: without HOST this process serves one client, whose options count; ignored here: {}",
                    fmt::join(options.given, " ")));
  }
  ServeOptions serve_options;
  if (options.perftest.by_name) {
    std::vector<TestSpec> specs;
    for (const std::uint64_t size : sizes_of(options)) specs.push_back(spec_for(options, options.test, size));
    serve_options.on_result = perftest_results(options.output);
    serve_options.perftest = perftest_service(specs, options.output.rate_unit, options.max_memory_bytes);
  }
  serve_options.bind = options.bind;
  serve_options.port = options.port;
  serve_options.token = options.token;
  serve_options.once = true;
  // --run_infinitely is typed at both ends of perftest.
  if (options.perftest.by_name && options.spec.stop.forever) serve_options.max_time = std::chrono::nanoseconds(0);
  serve_options.own_end = options.spec.client;
  return serve(serve_options);
}

std::vector<std::string> decided_by_client(const CLI::App& command) {
  std::vector<std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0 && !hidden(*option) && !own_of_server(*option)) given.push_back(flag_of(*option));
  }
  return given;
}

}  // namespace gdrperf::app
