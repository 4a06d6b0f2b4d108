#include "app/client/client.h"

#include <poll.h>

#include <chrono>
#include <cstdio>
#include <new>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "app/server/serve_session.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/proto/admission.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/export/perftest.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/progress.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

class RemoteClient : public Client {
 public:
  /// `beside`: ticket of the session that this one belongs to; "": it waits for its turn.
  RemoteClient(ServerAddress address, Notice notice, std::string beside = {})
      : address_(std::move(address)), notice_(std::move(notice)), beside_(std::move(beside)) {}
  ~RemoteClient() override { close(); }

  void open() override {
    if (channel_ && !still_there()) close();
    if (channel_) return;
    proto::Channel channel = proto::connect_tcp(address_.host, address_.port, 3s, address_.allow, address_.source);
    if (perftest_unit_ && !address_.token && !speaks_first(channel)) {
      channel_ = std::move(channel);
      const proto::Admission admission = proto::admit_perftest(*channel_, address_.token);
      perftest_.emplace(*channel_, admission, proto::PerftestRole::kClient, stop_flag_);
      return;
    }
    if (!perftest_unit_ || !address_.token) return enter(std::move(channel));
    try {
      enter(std::move(channel));
    } catch (const Error& error) {
      const bool perftest = std::string_view(error.what()).find("perftest") != std::string_view::npos;
      if (!perftest && !error.hint().empty()) throw;
      throw Error(
          error.code(), error.what(),
          fmt::format("a perftest server cannot prove a token: leave {} out to run against one", flags::kToken));
    }
  }

 private:
  void enter(proto::Channel channel) {
    channel.limit_frames(proto::Channel::kMaxStrangerFrameBytes);
    proto::Hello own = proto::own_hello();
    own.token = static_cast<bool>(address_.token);
    const proto::Hello server = proto::exchange_hello(channel, 3500ms, own);
    std::ignore = prove_as_client(channel, address_.token, own, server);
    channel.send(proto::Enter{beside_});
    channel.tell_silence_at_work(notice_);
    channel.keep_alive();
    wait_for_turn(channel);
    channel.limit_frames(proto::Channel::kMaxFrameBytes);
    channel_ = std::move(channel);
  }

  /// gdrperf's server greets at once, perftest's waits for its client.
  static bool speaks_first(const proto::Channel& channel) {
    return is_readable(channel, 500ms);
  }

  static bool is_readable(const proto::Channel& channel, std::chrono::milliseconds wait) {
    pollfd entry{channel.fd(), POLLIN, 0};
    return ::poll(&entry, 1, static_cast<int>(wait.count())) != 0;
  }

  report::RunRecord measure(const TestSpec& spec, std::string& environment, const engine::ClientTerms& terms) override {
    if (perftest_ && !perftest_->greet()) {
      // A server of gdrperf that was late: begin anew.
      perftest_.reset();
      channel_.reset();
      enter(proto::connect_tcp(address_.host, address_.port, 3s, address_.allow, address_.source));
    }
    if (!perftest_) return Client::measure(spec, environment, terms);
    if (talk_ != Talk::kQuiet)
      notice_(fmt::format("{} is perftest {}: using its handshake; give its options on its own command line",
                          channel_->peer(), perftest_->version()));
    return engine::run_perftest_client(*channel_, *perftest_, spec, {terms, *perftest_unit_});
  }

  void part() noexcept override {
    if (!perftest_) Client::part();
    perftest_.reset();
  }

  /// Between runs a server gives up on clients that keep others waiting.
  bool still_there() {
    if (perftest_) return false;  // it serves once
    // Its last signs of life may lie in front of the end of the connection.
    constexpr int kMostReads = 100;
    int reads = 0;
    try {
      do {
        if (channel_->try_receive()) return false;
      } while (is_readable(*channel_, 0ms) && ++reads < kMostReads);
      return true;
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
      if (const auto* turn = std::get_if<proto::Turn>(&message)) {
        ticket_ = turn->ticket;
        server_prints_ = turn->results;
        return;
      }
      const auto* busy = std::get_if<proto::Busy>(&message);
      if (busy == nullptr) {
        proto::throw_if_failure(channel, message);
        proto::throw_unexpected(channel, "turn", message);
      }
      const std::string text =
          fmt::format("{} is serving {} since {:.0f} s{}; waiting", channel.peer(), printable(busy->serving),
                      busy->seconds, busy->ahead > 1 ? fmt::format(", {} more wait in front", busy->ahead - 1) : "");
      const std::string who = fmt::format("{}/{}", printable(busy->serving), busy->ahead);
      if (talk_ != Talk::kQuiet && line.enabled()) line.show(printable(text));
      else if (std::exchange(told, who) != who) notice_(text);
    }
  }

  std::vector<std::string> hosts() const override {
    std::vector<std::string> all = address_.others;
    if (!all.empty()) all.insert(all.begin(), address_.host);
    return all;
  }

  std::unique_ptr<Client> make_guest() override {
    if (!address_.others.empty()) {
      return std::make_unique<RemoteClient>(ServerAddress{address_.others[next_++ % address_.others.size()],
                                                          address_.port, address_.token, address_.source},
                                            notice_);
    }
    if (perftest_) {
      throw peer_error(
          address_.host + ": waits to be greeted, as perftest's server does, which serves one run at a time",
          "start 'gdrperf serve' there");
    }
    if (ticket_.empty())
      throw peer_error(address_.host + ": its gdrperf serves one run at a time",
                       "install the same version on both hosts");
    return std::make_unique<RemoteClient>(address_, notice_, ticket_);
  }

  ServerAddress address_;
  Notice notice_;
  std::string beside_;
  std::string ticket_;  ///< of this session
  std::size_t next_ = 0;  ///< of address_.others
  std::optional<proto::PerftestLink> perftest_;  ///< the server waits to be greeted
};

class LocalClient : public Client {
 public:
  enum class Told { kAll, kNothing };
  /// Whether server_environment() is of use to anybody.
  explicit LocalClient(Told told = Told::kAll) : told_(told) {}
  ~LocalClient() override { close(); }

  void open() override {
    if (channel_) return;
    closed();  // what an open() that failed has left
    if (told_ == Told::kAll) environment_ = report::collect_environment();
    auto [client, server] = proto::local_channel_pair();
    stop_ = std::make_unique<StopSignal>();
    // Quiet: the client's end says all there is to say.
    SessionTerms terms;
    terms.run.max_memory_bytes = max_memory_bytes_;
    auto serve = [stop = stop_.get(), channel = std::move(server), terms]() mutable {
      proto::Channel served =
          std::move(channel);  // closed as the session ends, however that is: the client is told by it
      serve_session(served, proto::admit_own_process(), *stop, [](const std::string&) {}, terms);
    };
    thread_ = start_thread("the local server", std::move(serve), [](const std::exception_ptr&) {});
    channel_ = std::move(client);
  }

 private:
  bool server_here() const override { return true; }
  std::unique_ptr<Client> make_guest() override { return std::make_unique<LocalClient>(Told::kNothing); }
  void closed() noexcept override {
    if (!thread_.joinable()) return;
    stop_->trigger();
    thread_ = {};  // joins
  }

  Told told_;
  std::unique_ptr<StopSignal> stop_;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Client> Client::guest() {
  std::unique_ptr<Client> other = make_guest();
  other->set_max_memory(max_memory_bytes_);
  other->set_talk(talk_);
  other->set_payload(payload_);
  return other;
}

report::RunRecord Client::run_alone(const TestSpec& spec, const engine::ClientTerms& terms) {
  try {
    std::string started = report::rfc3339_utc(std::chrono::system_clock::now());
    std::string environment;
    report::RunRecord record = measure(spec, environment, terms);
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

report::RunRecord Client::measure(const TestSpec& spec, std::string& environment, const engine::ClientTerms& terms) {
  return engine::run_client(channel_.value(), spec, &environment, terms);
}

void Client::part() noexcept {
  try {
    if (channel_) channel_->send(proto::Bye{});
  } catch (const std::exception&) {
    // The peer is gone; Bye is best effort.
  }
}

void Client::tell(const report::RunRecord& record) noexcept {
  try {
    if (server_prints_ && channel_) channel_->send(report::result_of(record));
  } catch (const std::exception&) {
    // The run is over, and its result is here.
  }
}

void Client::close() noexcept {
  part();
  channel_.reset();
  closed();
}

std::unique_ptr<Client> make_remote_client(ServerAddress address, Client::Notice notice) {
  return std::make_unique<RemoteClient>(std::move(address), std::move(notice));
}

std::unique_ptr<Client> make_local_client() { return std::make_unique<LocalClient>(); }

}  // namespace gdrperf::app
