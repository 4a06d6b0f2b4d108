#pragma once

#include <memory>
#include <string>

namespace gdrperf::app {

/// Serves a text to any HTTP client that asks for /metrics, by threads of its own (libmicrohttpd).
class MetricsServer {
 public:
  /// `where`: "PORT" of the loopback interface, or "ADDRESS:PORT" ("[::]:9100"); port 0: a free one. Throws
  /// usage_error, or Error(kEnvironment) where it cannot listen, or this build has no libmicrohttpd.
  explicit MetricsServer(const std::string& where);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// From now on that is the answer; from any thread.
  void set(std::string text);
  /// "http://127.0.0.1:9100/metrics".
  std::string url() const;

 private:
  struct Daemon;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace gdrperf::app
