#include <memory>

#include <fmt/format.h>

#include "command.h"
#include "gdrperf/app/options.h"
#include "gdrperf/app/server.h"
#include "gdrperf/report/environment.h"
#include "serve.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

struct ServeOptions {
  int port = kDefaultPort;
  std::string bind;
  bool once = false;
};

constexpr const char* kServeFooter = R"(
Examples:
  gdrperf serve
  gdrperf serve -p 19000 --bind 10.0.0.1
Then, on the client: gdrperf write_bw HOST -a
Device, GID and buffer of this end are asked for by the client (--peer-dev, ...).)";

}  // namespace

int serve(const std::string& bind, int port, Serve mode) {
  StopSignal stop;
  const StopOnSignals on_signals(stop);
  Server server(proto::Listener(bind, port), mode, report::to_json(report::collect_environment()),
                say);
  say(fmt::format("{} on {}, port {}; Ctrl-C ends it",
                  mode == Serve::kOnce ? "waiting for one client" : "serving",
                  bind.empty() ? "all addresses" : bind, server.port()));
  const ExitCode code = server.run(stop);
  say("stopped");
  return static_cast<int>(code);
}

void add_serve_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Serve any test to any number of clients");
  command
      ->add_option_function<std::string>(
          "-p,--port",
          [options](const std::string& text) {
            options->port = static_cast<int>(parse_integer(text, "-p", 0, 65535));
          },
          fmt::format("TCP port; 0: any free one (default: {})", kDefaultPort))
      ->type_name("PORT");
  command->add_option("--bind", options->bind, "address to listen on (default: all)")
      ->type_name("ADDR");
  command->add_flag("--once", options->once, "end after one client, with the code of its runs");
  add_softnic_flag(*command);
  command->footer(kServeFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) {
      return serve(options->bind, options->port, options->once ? Serve::kOnce : Serve::kForever);
    };
  });
}

}  // namespace gdrperf::app
