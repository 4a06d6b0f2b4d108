#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "app/server/background.h"
#include "cluster/ranks/hosts.h"
#include "app/command.h"
#include "app/doctor/host.h"
#include "app/options/options.h"
#include "app/server/server.h"
#include "app/server/server_log.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/tcp_port.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/verbs/device.h"
#include "app/server/serve.h"

namespace gdrperf::app {
namespace {

constexpr const char* kServeFooter = R"(
Examples:
  gdrperf serve
  gdrperf serve -p 19000 --bind 10.0.0.1
  gdrperf serve --allow 10.0.0.0/8 --token secret.txt
  gdrperf serve --daemon --log serve.log --pidfile serve.pid
  kill $(cat serve.pid)     ends the one in the background

Then run 'gdrperf write_bw HOST -a' on the client, which also chooses the
server's device, GID and buffer (--peer-dev, ...).)";

// Admitted clients, for the first line of the log.
std::string first_line(const ServeOptions& options, const proto::Token& token, int port) {
  std::string who = "anyone who can reach it may use it (--allow, --token and --bind limit that)";
  if (token || !options.allow.all()) {
    who = fmt::format("for {}{}", options.allow.all() ? "any address" : options.allow.text(),
                      token ? " with the token" : "");
  }
  return fmt::format("{} on {}, port {}; {}; Ctrl-C ends it", options.once ? "waiting for one client" : "serving",
                     options.bind.empty() ? "all addresses" : options.bind, port, who);
}

}  // namespace

int serve(const ServeOptions& options) {
  // A log that nobody reads any more is no reason to end.
  ::signal(SIGPIPE, SIG_IGN);
  if (options.daemon && options.log.empty()) throw usage_error("--daemon: needs --log FILE for its messages");
  const UniqueFd file = options.log.empty() ? UniqueFd() : open_log(options.log, "--log");
  std::optional<Background> background;
  if (options.daemon) background = Background::enter();
  const PidFile pidfile(options.pidfile);
  StopSignal stop;
  const StopOnSignals on_signals(stop);
  engine::Account account(options.max_memory_bytes);
  ServerLog log(file ? file.get() : STDERR_FILENO);
  ServerSettings settings;
  settings.mode = options.once ? Serve::kOnce : Serve::kForever;
  settings.token = proto::read_token(options.token);
  settings.allow = options.allow;
  settings.perftest = options.perftest;
  settings.session.run = {with_facts(report::to_json(report::collect_environment())), options.max_time,
                          options.own_end, 0, &account};
  settings.session.idle_timeout = options.idle_timeout;
  settings.session.on_result = options.on_result;
  if (options.cluster) {
    settings.session.as_rank = [terms = RankTerms{settings.token, settings.allow, options.max_time, &account}](
                                   proto::Channel& channel, const proto::Admission& admission,
                                   const proto::Cluster& first) { serve_as_rank(channel, admission, first, terms); };
  }
  Server server(proto::Listener(options.bind, options.port), settings,
                [&log](const std::string& text) { log.line(text); });
  // Better now than to each client in turn.
  verbs::Context::open(options.own_end.device);
  log.line(first_line(options, settings.token, server.port()));
  if (background) background->ready();
  const ExitCode code = server.run(stop);
  log.line("stopped");
  return static_cast<int>(code);
}

void add_serve_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Serve any test to any number of clients");
  command
      ->add_option_function<std::string>(
          std::string(flags::kPort) + ",--port",
          [options](const std::string& text) {
            options->port = static_cast<int>(parse_integer(text, flags::kPort, 0, proto::kMaxTcpPort));
          },
          fmt::format("TCP port; 0: any free one (default: {})", kDefaultPort))
      ->type_name("PORT");
  const auto value = [&](const char* name, const char* type, const std::string& help, auto take) {
    command->add_option_function<std::string>(name, take, help)->type_name(type);
  };
  value(flags::kBind, "ADDR", "address to listen on (default: all)",
        [options](const std::string& text) {
          if (text.empty()) throw usage_error("--bind: the address is empty", "leave --bind out to listen on all");
          options->bind = text;
        });
  value("--allow", "NET[,NET]", "serve these networks only, like 10.0.0.0/8,fd00::/8 (default: all)",
        [options](const std::string& text) { options->allow = proto::Networks::parse(text, "--allow"); });
  value(flags::kToken, "FILE",
        "serve only clients with this secret (default: GDRPERF_TOKEN_FILE, GDRPERF_TOKEN, or anyone)",
        [options](const std::string& text) { options->token = text; });
  value(flags::kMaxTime, "TIME", "longest run (default: 1h)",
        [options](const std::string& text) { options->max_time = parse_duration(text, flags::kMaxTime); });
  value("--idle-timeout", "TIME",
        "drop a client after this time without a run; 10s while others wait (default: 5m)",
        [options](const std::string& text) { options->idle_timeout = parse_duration(text, "--idle-timeout"); });
  value(flags::kMaxMemory, "SIZE",
        "memory that all runs at the same time may take here (default: a quarter of what is available)",
        [options](const std::string& text) { options->max_memory_bytes = parse_size(text, flags::kMaxMemory); });
  command->add_flag("--cluster", options->cluster,
                    "also be a rank of 'gdrperf cluster --hosts', whose client names the servers to measure with");
  value("--log", "FILE", "append the log to this file (default: standard error)",
        [options](const std::string& text) { options->log = text; });
  value("--pidfile", "FILE", "write the process ID to a file; one process at a time",
        [options](const std::string& text) { options->pidfile = text; });
  command->add_flag("--daemon", options->daemon, "run in the background once it serves; needs --log");
  command->add_flag("--once", options->once, "end after one client, with the exit code of its runs");
  add_softnic_flag(*command);
  command->footer(kServeFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return serve(*options); };
  });
}

}  // namespace gdrperf::app
