#include "gdrperf/app/client.h"

#include <chrono>
#include <cstdio>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/app/serve_session.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/progress.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

class RemoteClient : public Client {
 public:
  RemoteClient(ServerAddress address, Notice notice)
      : address_(std::move(address)), notice_(std::move(notice)) {}
  ~RemoteClient() override { close(); }

  void open() override {
    if (channel_ && !still_there()) close();
    if (channel_) return;
    proto::Channel channel = proto::connect_tcp(address_.host, address_.port, 3s);
    channel.limit_frames(proto::Channel::kMaxStrangerFrameBytes);
    proto::Hello own = proto::own_hello();
    own.token = static_cast<bool>(address_.token);
    const proto::Hello server = proto::exchange_hello(channel, 3500ms, own);
    prove_as_client(channel, address_.token, own, server);
    channel.send(proto::Enter{});
    channel.tell_silence_at_work(notice_);
    channel.keep_alive();
    wait_for_turn(channel);
    channel.limit_frames(proto::Channel::kMaxFrameBytes);
    channel_ = std::move(channel);
  }

 private:
  /// Between runs a server gives up on clients that keep others waiting.
  bool still_there() {
    try {
      return !channel_->try_receive();
    } catch (const Error&) {
      return false;
    }
  }

  void wait_for_turn(proto::Channel& channel) {
    std::string told;
    report::ProgressLine line(stderr);
    while (true) {
      // A server says every second whom it serves.
      const proto::Message message = channel.receive(proto::Channel::kSilence);
      if (stop_flag_ != nullptr && stop_flag_->load()) throw peer_error("stopped while waiting for the server");
      if (std::holds_alternative<proto::Turn>(message)) return;
      const auto* busy = std::get_if<proto::Busy>(&message);
      if (busy == nullptr) {
        proto::throw_if_failure(channel, message);
        proto::throw_unexpected(channel, "turn", message);
      }
      const std::string text = fmt::format("{} is serving {} since {:.0f} s{}; waiting", channel.peer(), busy->serving, busy->seconds,
                                           busy->ahead > 1 ? fmt::format(", {} more wait in front", busy->ahead - 1) : "");
      const std::string who = fmt::format("{}/{}", busy->serving, busy->ahead);
      if (talk_ != Talk::kQuiet && line.enabled()) line.show(printable(text));
      else if (std::exchange(told, who) != who) notice_(text);
    }
  }

  ServerAddress address_;
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
    SessionTerms terms;
    terms.run.max_memory_bytes = max_memory_bytes_;
    thread_ = std::thread([stop = stop_.get(), channel = std::move(server), terms]() mutable {
      serve_session(channel, *stop, [](const std::string&) {}, terms);
    });
    environment_ = report::collect_environment();
    channel_ = std::move(client);
  }

 private:
  bool server_here() const override { return true; }
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
    std::string environment;
    report::RunRecord record =
        engine::run_client(channel_.value(), spec, &environment, {max_memory_bytes_, observer_, server_here(), stop_flag_});
    record.started = std::move(started);
    if (!environment.empty()) environment_ = report::environment_from_json(environment);
    server_text_ = std::move(environment);
    return record;
  } catch (const std::bad_alloc&) {
    close();
    throw out_of_memory();
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
      // The peer is gone; Bye is best effort.
    }
  }
  channel_.reset();
  closed();
}

std::unique_ptr<Client> make_remote_client(ServerAddress address, Client::Notice notice) {
  return std::make_unique<RemoteClient>(std::move(address), std::move(notice));
}

std::unique_ptr<Client> make_local_client() { return std::make_unique<LocalClient>(); }

}  // namespace gdrperf::app
