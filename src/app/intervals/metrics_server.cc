#include "app/intervals/metrics_server.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"

#ifdef GDRPERF_MICROHTTPD
#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "app/intervals/metrics_connections.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/thread.h"
#endif

namespace gdrperf::app {

#ifdef GDRPERF_MICROHTTPD

namespace {

constexpr const char* kFlag = "--listen-metrics";
/// More than MetricsConnections keeps: those that are shut down take a moment to go.
constexpr unsigned kMostConnections = 2 * MetricsConnections::kMost;
constexpr unsigned kIdleSeconds = 10;
constexpr auto kLook = std::chrono::milliseconds(500);

}  // namespace

struct MetricsServer::Daemon {
  struct Place {
    std::string address = "127.0.0.1";
    std::string port;
  };
  /// Throws usage_error.
  static Place place_of(const std::string& where);

  explicit Daemon(const std::string& where) : place(place_of(where)) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(place.address.c_str(), place.port.c_str(), &hints, &found) != 0) {
      throw usage_error(fmt::format("{} {}: '{}' is no address", kFlag, where, place.address),
                        "give that of an interface of this host");
    }
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD;
    if (found->ai_family == AF_INET6) flags |= MHD_USE_IPv6;
    errno = 0;
    http = MHD_start_daemon(flags, 0, nullptr, nullptr, &Daemon::answer, this, MHD_OPTION_SOCK_ADDR, found->ai_addr,
                            MHD_OPTION_CONNECTION_LIMIT, kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
                            MHD_OPTION_NOTIFY_CONNECTION, &Daemon::note, this, MHD_OPTION_END);
    const int error = errno;
    ::freeaddrinfo(found);
    if (http == nullptr)
      throw call_error(fmt::format("{} {}", kFlag, where), error, "", "choose another port, or 0 for a free one");
    const MHD_DaemonInfo* const info = MHD_get_daemon_info(http, MHD_DAEMON_INFO_BIND_PORT);
    if (info != nullptr) place.port = std::to_string(info->port);
    try {
      const auto look = [this](const std::stop_token& stop) {
        std::unique_lock lock(pausing);
        while (!pause.wait_for(lock, stop, kLook, [&stop] { return stop.stop_requested(); })) {
          connections.expire(std::chrono::steady_clock::now());
        }
      };
      expiry = start_thread(kFlag, look, [](const std::exception_ptr&) {});
    } catch (...) {
      MHD_stop_daemon(http);
      throw;
    }
  }
  ~Daemon() {
    expiry = {};
    MHD_stop_daemon(http);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// From the daemon's thread, before a connection is first read and before its descriptor is closed.
  static void note(void* self, MHD_Connection* connection, void** /*kept*/, MHD_ConnectionNotificationCode what) {
    const MHD_ConnectionInfo* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == nullptr) return;
    auto* const daemon = static_cast<Daemon*>(self);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) daemon->connections.closed(info->connect_fd);
    else
      daemon->connections.opened(info->connect_fd, address_of_peer(info->connect_fd), std::chrono::steady_clock::now());
  }

  static MHD_Result answer(void* self, MHD_Connection* connection, const char* path, const char* method,
                           const char* /*version*/, const char* /*data*/, std::size_t* data_bytes, void** /*kept*/) {
    *data_bytes = 0;
    auto* const daemon = static_cast<Daemon*>(self);
    const std::string wanted = method;
    if (wanted != MHD_HTTP_METHOD_GET && wanted != MHD_HTTP_METHOD_HEAD)
      return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET /metrics\n");
    if (std::string(path) != "/metrics") return say(connection, MHD_HTTP_NOT_FOUND, "/metrics\n");
    std::string text;
    {
      const MutexLock guard(daemon->mutex);
      text = daemon->text;
    }
    return say(connection, MHD_HTTP_OK, text);
  }

  static MHD_Result say(MHD_Connection* connection, unsigned status, const std::string& text) {
    std::string copy = text;
    MHD_Response* const response = MHD_create_response_from_buffer(copy.size(), copy.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    // A request per connection: its age is the time that the request has taken.
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
  }

  Place place;
  MHD_Daemon* http = nullptr;
  Mutex mutex;
  std::string text GUARDED_BY(mutex);
  MetricsConnections connections;
  std::mutex pausing;  ///< guards nothing: `pause` wants one
  std::condition_variable_any pause;
  std::jthread expiry;
};

MetricsServer::Daemon::Place MetricsServer::Daemon::place_of(const std::string& where) {
  Place place;
  const std::size_t colon = where.rfind(':');
  place.port = colon == std::string::npos ? where : where.substr(colon + 1);
  if (colon != std::string::npos) place.address = where.substr(0, colon);
  if (place.address.size() > 2 && place.address.front() == '[' && place.address.back() == ']') {
    place.address = place.address.substr(1, place.address.size() - 2);
  }
  const bool digits =
      !place.port.empty() && place.port.size() <= 5 && place.port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(place.port) > 65535 || place.address.empty()) {
    throw usage_error(fmt::format("{} '{}': give PORT, or ADDRESS:PORT", kFlag, where),
                      "like 9100, 0.0.0.0:9100 or [::]:9100");
  }
  return place;
}

MetricsServer::MetricsServer(const std::string& where) : daemon_(std::make_unique<Daemon>(where)) {}

void MetricsServer::set(std::string text) {
  const MutexLock guard(daemon_->mutex);
  daemon_->text = std::move(text);
}

std::string MetricsServer::url() const {
  const Daemon::Place& place = daemon_->place;
  const bool brackets = place.address.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}/metrics", brackets ? "[" : "", place.address, brackets ? "]" : "", place.port);
}

#else

struct MetricsServer::Daemon {};

MetricsServer::MetricsServer(const std::string& where) {
  throw Error(ExitCode::kEnvironment,
              fmt::format("--listen-metrics {}: this gdrperf was built without libmicrohttpd", where),
              "install libmicrohttpd-dev and build anew, or use --interval-file");
}

void MetricsServer::set(std::string /*text*/) {}

std::string MetricsServer::url() const { return {}; }

#endif

MetricsServer::~MetricsServer() = default;

}  // namespace gdrperf::app
