#include "gdrperf/app/client.h"

#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/app/serve_session.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/report/document.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

class RemoteClient : public Client {
 public:
  RemoteClient(std::string host, int port, Notice notice)
      : host_(std::move(host)), port_(port), notice_(std::move(notice)) {}
  ~RemoteClient() override { close(); }

  void open() override {
    if (channel_) return;
    proto::Channel channel = proto::connect_tcp(host_, port_, 3s);
    proto::exchange_hello(channel, 3500ms);
    while (true) {
      const proto::Message message = channel.receive(proto::Channel::kForever);
      if (const auto* busy = std::get_if<proto::Busy>(&message)) {
        notice_(fmt::format("{} is serving {}; waiting", channel.peer(), busy->serving));
      } else if (const auto* turn = std::get_if<proto::Turn>(&message)) {
        if (!turn->environment.empty())
          environment_ = report::environment_from_json(turn->environment);
        break;
      } else {
        proto::throw_if_failure(channel, message);
        proto::throw_unexpected(channel, "turn", message);
      }
    }
    channel_ = std::move(channel);
  }

 private:
  std::string host_;
  int port_;
  Notice notice_;
};

class LocalClient : public Client {
 public:
  ~LocalClient() override { close(); }

  void open() override {
    if (channel_) return;
    auto [client, server] = proto::local_channel_pair();
    stop_ = std::make_unique<StopSignal>();
    // Quiet: the client's end says all there is to say.
    thread_ = std::thread([stop = stop_.get(), channel = std::move(server)]() mutable {
      serve_session(channel, *stop, [](const std::string&) {});
    });
    environment_ = report::collect_environment();
    channel_ = std::move(client);
  }

 private:
  void closed() noexcept override {
    if (!thread_.joinable()) return;
    stop_->trigger();
    thread_.join();
  }

  std::unique_ptr<StopSignal> stop_;
  std::thread thread_;
};

}  // namespace

report::RunRecord Client::run(const TestSpec& spec) {
  try {
    std::string started = report::rfc3339_utc(std::chrono::system_clock::now());
    report::RunRecord record = engine::run_client(channel_.value(), spec);
    record.started = std::move(started);
    return record;
  } catch (const std::bad_alloc&) {
    close();
    throw Error(ExitCode::kEnvironment, "out of memory",
                "use a smaller size, depth or number of QPs");
  } catch (...) {
    close();
    throw;
  }
}

void Client::close() noexcept {
  if (channel_) {
    try {
      channel_->send(proto::Bye{});
    } catch (const std::exception&) {
      // It is gone: no need for manners.
    }
  }
  channel_.reset();
  closed();
}

std::unique_ptr<Client> make_remote_client(std::string host, int port, Client::Notice notice) {
  return std::make_unique<RemoteClient>(std::move(host), port, std::move(notice));
}

std::unique_ptr<Client> make_local_client() { return std::make_unique<LocalClient>(); }

}  // namespace gdrperf::app
