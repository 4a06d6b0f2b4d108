#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/client/stop_signal.h"
#include "gdrperf/base/error.h"
#include "gdrperf/engine/observer.h"
#include "gdrperf/perftest/run.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/proto/token.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// How much is said to people: --quiet, --verbose.
enum class Talk { kQuiet, kUsual, kVerbose };

/// Session that runs are sent to: connects when first needed, stays open for
/// the runs that follow, and connects anew after one has failed. One thread.
class Client {
 public:
  /// Told what the user should know while waiting (another client is served).
  using Notice = std::function<void(const std::string&)>;

  virtual ~Client() = default;

  /// Connects when there is no session. Throws Error(kPeer) when the server
  /// cannot be had: no use in further runs then.
  virtual void open() = 0;
  /// One run, after open(), without anything beside it, watched and stopped as `terms` say. Throws Error when it
  /// failed; the session is given up then. run_test() runs what `spec` asks for beside it, too.
  report::RunRecord run_alone(const TestSpec& spec, const engine::ClientTerms& terms);
  /// Terms of run_alone().
  engine::ClientTerms terms() const {
    engine::ClientTerms terms{max_memory_bytes_, observer_, server_here(), stop_flag_};
    terms.payload = payload_;
    return terms;
  }
  /// Another client of the same server, for a run at the same time; while this session lasts. After open(). Throws
  /// peer_error where the server serves one connection at a time.
  std::unique_ptr<Client> guest();
  /// Of several servers, one for each run at the same time: their names; else none.
  virtual std::vector<std::string> hosts() const { return {}; }
  /// The JSON text it came from: servers tell more than an Environment holds.
  const std::string& server_text() const { return server_text_; }
  /// The server's host, once a run has been accepted; of a local client after open().
  const std::optional<report::Environment>& server_environment() const { return environment_; }
  /// Memory this end may use for a run; with a local client that end twice. 0: a quarter
  /// of what is available. Before open().
  void set_max_memory(std::uint64_t bytes) { max_memory_bytes_ = bytes; }
  /// Content of its messages; empty: zeros.
  void set_payload(const std::vector<std::uint8_t>& payload) { payload_ = payload; }
  /// Told what runs are doing; borrowed. null: nobody.
  void set_observer(engine::RunObserver* observer) { observer_ = observer; }
  /// kQuiet: waiting for the server is shown on no terminal.
  void set_talk(Talk talk) { talk_ = talk; }
  /// A server that waits to be greeted may be perftest's: it is spoken with then. For who has one run; before open().
  void allow_perftest(report::RateUnit unit) { perftest_unit_ = unit; }
  /// Once true, a run ends with what it has measured, and waiting ends by an Error; borrowed. null: never.
  void set_stop(const std::atomic<bool>* stop) { stop_flag_ = stop; }
  /// Tells a server that prints results, too, what `record` has; nothing where it does not. Best effort.
  void tell(const report::RunRecord& record) noexcept;
  /// Says good-bye. Quiet when there is no session.
  void close() noexcept;

 protected:
  virtual std::unique_ptr<Client> make_guest() = 0;
  /// One run over the channel.
  virtual report::RunRecord measure(const TestSpec& spec, std::string& environment, const engine::ClientTerms& terms);
  /// Ends the session in words, where there is one.
  virtual void part() noexcept;
  /// In this process.
  virtual bool server_here() const { return false; }
  /// Ends what open() began; the channel is closed by then.
  virtual void closed() noexcept {}

  std::uint64_t max_memory_bytes_ = 0;
  engine::RunObserver* observer_ = nullptr;
  std::vector<std::uint8_t> payload_;
  Talk talk_ = Talk::kUsual;
  const std::atomic<bool>* stop_flag_ = nullptr;
  std::optional<report::RateUnit> perftest_unit_;
  bool server_prints_ = false;
  std::optional<proto::Channel> channel_;
  std::optional<report::Environment> environment_;
  std::string server_text_;
};

/// A server over TCP and the secret to prove to it; none: it must want none.
struct ServerAddress {
  std::string host;
  int port = 0;
  proto::Token token;
  std::string source = {};  ///< address of this host to come from; "": any
  std::vector<std::string> others = {};  ///< further servers at the same port: guest() is of each in turn
  proto::Networks allow = {};            ///< where it may be
};

/// A server over TCP. A port that refuses is tried for 3 s, a server that
/// serves others is waited for.
std::unique_ptr<Client> make_remote_client(ServerAddress address, Client::Notice notice);

/// A thread of this process plays the server.
std::unique_ptr<Client> make_local_client();

}  // namespace gdrperf::app
