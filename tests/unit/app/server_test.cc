#include "app/server/server.h"

#include <sys/socket.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

ServerSettings settings_of(Serve mode) {
  ServerSettings settings;
  settings.mode = mode;
  return settings;
}

// A server in a thread, with its log kept; stopped and joined at the end.
class Running {
 public:
  explicit Running(Serve mode = Serve::kForever)
      : server_(proto::Listener("127.0.0.1", 0), settings_of(mode),
                [this](const std::string& text) { note(text); }),
        thread_([this] { result_ = server_.run(stop_); }) {}
  ~Running() { finish(); }

  proto::Channel connect() { return proto::connect_tcp("127.0.0.1", server_.port(), 1s); }
  proto::Channel greeted() {
    proto::Channel channel = connect();
    proto::exchange_hello(channel, 5s, proto::own_hello());
    channel.send(proto::Enter{});
    channel.keep_alive();
    return channel;
  }
  void stop() { stop_.trigger(); }
  ExitCode finish() {
    stop_.trigger();
    return join();
  }
  ExitCode join() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }
  bool logged(const std::string& text) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, 10s, [&] { return log_.find(text) != std::string::npos; });
  }

 private:
  void note(const std::string& text) {
    const std::lock_guard lock(mutex_);
    log_ += text + "\n";
    arrived_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::string log_;
  StopSignal stop_;
  Server server_;
  ExitCode result_ = ExitCode::kSkipped;
  std::thread thread_;
};

/// The one before may not be over yet.
bool gets_turn(proto::Channel& client) {
  proto::Message message = client.receive(5s);
  while (std::holds_alternative<proto::Busy>(message)) message = client.receive(5s);
  proto::throw_if_failure(client, message);
  return std::holds_alternative<proto::Turn>(message);
}

TEST(Server, ServesOneAfterAnother) {
  Running server;
  for (int i = 0; i < 3; ++i) {
    proto::Channel client = server.greeted();
    EXPECT_TRUE(gets_turn(client));
    client.send(proto::Bye{});
  }
  EXPECT_EQ(server.finish(), ExitCode::kOk);
}

TEST(Server, ASpecThatCannotBeIsRejectedAndTheSessionGoesOn) {
  Running server;
  proto::Channel client = server.greeted();
  proto::expect<proto::Turn>(client, 5s);
  proto::RunRequest request;
  request.spec.size_bytes = 0;
  for (int i = 0; i < 2; ++i) {
    client.send(request);
    const auto reject = proto::expect<proto::Reject>(client, 5s);
    EXPECT_EQ(reject.exit_code, 2);
    EXPECT_THAT(reject.reason.raw(), HasSubstr("-s 0"));
  }
  client.send(proto::Bye{});
  EXPECT_TRUE(server.logged("2 runs, 2 failed"));
}

TEST(Server, LeftoversOfAFailedRunAreSkipped) {
  Running server;
  proto::Channel client = server.greeted();
  proto::expect<proto::Turn>(client, 5s);
  client.send(proto::Start{});
  client.send(proto::Failure{5, "late", ""});
  client.send(proto::Bye{});
  EXPECT_TRUE(server.logged("done, 0 runs"));
}

TEST(Server, ConnectionsOfOneClientAreServedAtTheSameTime) {
  Running server;
  proto::Channel client = server.greeted();
  const auto turn = proto::expect<proto::Turn>(client, 5s);
  const auto beside = [&](const std::string& ticket) {
    proto::Channel channel = server.connect();
    proto::exchange_hello(channel, 5s, proto::own_hello());
    channel.send(proto::Enter{ticket});
    channel.keep_alive();
    return channel;
  };
  proto::Channel guest = beside(turn.ticket);
  EXPECT_EQ(proto::expect<proto::Turn>(guest, 5s).ticket, "");
  proto::Channel stranger = beside(turn.ticket + "0");
  EXPECT_THROW(gets_turn(stranger), Error);
  // The next client's turn comes when both have gone.
  proto::Channel next = server.greeted();
  client.send(proto::Bye{});
  EXPECT_TRUE(std::holds_alternative<proto::Busy>(next.receive(5s)));
  guest.send(proto::Bye{});
  EXPECT_TRUE(gets_turn(next));
}

TEST(Server, OnceReportsWhatBecameOfIt) {
  {
    Running server(Serve::kOnce);
    proto::Channel client = server.greeted();
    proto::expect<proto::Turn>(client, 5s);
    client.send(proto::Bye{});
    EXPECT_EQ(server.join(), ExitCode::kOk);
  }
  Running server(Serve::kOnce);
  {
    // A stranger is no client.
    proto::Channel stranger = server.connect();
    ASSERT_EQ(::send(stranger.fd(), "GET / ", 6, MSG_NOSIGNAL), 6);
  }
  EXPECT_TRUE(server.logged("dropped"));
  {
    proto::Channel client = server.greeted();
    proto::expect<proto::Turn>(client, 5s);
  }
  EXPECT_EQ(server.join(), ExitCode::kPeer);
}

TEST(Server, StopReachesEveryStageOfAConnection) {
  Running server;
  proto::Channel served = server.greeted();
  proto::expect<proto::Turn>(served, 5s);
  proto::Channel waiting = server.greeted();
  EXPECT_THAT(proto::expect<proto::Busy>(waiting, 5s).serving.raw(), HasSubstr("client 127.0.0.1:"));
  proto::Channel silent = server.connect();
  const auto start = std::chrono::steady_clock::now();
  server.stop();
  for (proto::Channel* channel : {&served, &waiting}) {
    try {
      gets_turn(*channel);
      ADD_FAILURE() << "not stopped";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("the server was stopped"));
    }
  }
  EXPECT_EQ(server.join(), ExitCode::kOk);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
}

}  // namespace
}  // namespace gdrperf::app
