#include "gdrperf/cluster/exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "cluster/plan/rank_flags.h"

namespace gdrperf::cluster {
namespace {

using std::chrono::steady_clock;

constexpr int kMostPmiRanks = 1 << 20;
constexpr std::size_t kMostLineBytes = 64u << 10;
// All ranks have to come into the barrier, and processes of 10,000 nodes take their time.
constexpr auto kPatience = std::chrono::seconds(120);
constexpr const char* kPmiKey = "gdrperf-root";

Error manager_error(const std::string& what) {
  return Error(ExitCode::kEnvironment, "PMI-1 (PMI_FD): " + what,
               "start all ranks with one mpiexec, or " + type_ranks());
}

int number_of(const Variables& variables, const char* name, int low) {
  const auto text = variables(name);
  if (!text) throw usage_error(fmt::format("PMI_FD is set but {} is not: half of PMI-1's environment", name),
                               "or " + type_ranks());
  int value = 0;
  const char* end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || at != end || value < low || value > kMostPmiRanks) {
    throw usage_error(
        fmt::format("{} is '{}': a whole number from {} to {} is needed", name, *text, low, kMostPmiRanks),
        "or " + type_ranks());
  }
  return value;
}

// Lines "cmd=NAME key=value ...", each of ours answered by one.
class Pmi1 {
 public:
  explicit Pmi1(int fd) : fd_(fd) {}

  std::map<std::string, std::string> ask(const std::string& question, std::string_view answer) {
    send(question + "\n");
    const std::string line = receive();
    std::map<std::string, std::string> values;
    for (std::string_view rest = line; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      const auto equals = word.find('=');
      if (equals != std::string_view::npos) {
        values[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
      }
    }
    if (values["cmd"] != answer || (values.contains("rc") && values["rc"] != "0")) {
      throw manager_error(fmt::format("'{}' was answered by '{}'", question.substr(0, 60), line.substr(0, 200)));
    }
    return values;
  }

 private:
  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) throw manager_error(fmt::format("descriptor {} takes nothing: {}", fd_, std::strerror(errno)));
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  std::string receive() {
    const auto give_up = steady_clock::now() + kPatience;
    while (true) {
      if (const auto end = pending_.find('\n'); end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return line;
      }
      if (pending_.size() > kMostLineBytes) throw manager_error("a line of more than 64 KiB came");
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - steady_clock::now());
      if (left.count() <= 0) throw manager_error(fmt::format("no answer within {} s", kPatience.count()));
      pollfd entry{fd_, POLLIN, 0};
      if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0) continue;
      char bytes[4096];
      const ssize_t got = ::read(fd_, bytes, sizeof bytes);
      if (got == 0) throw manager_error("the process manager hung up");
      if (got < 0 && errno != EINTR) throw manager_error(std::strerror(errno));
      if (got > 0) pending_.append(bytes, static_cast<std::size_t>(got));
    }
  }

  int fd_;
  std::string pending_;
};

}  // namespace

Launch exchange_by_pmi1(int fd, const Variables& variables, const OwnAddress& own_address) {
  Launch launch;
  launch.origin = "PMI-1";
  launch.rank = number_of(variables, "PMI_RANK", 0);
  launch.ranks = number_of(variables, "PMI_SIZE", 1);
  if (launch.rank >= launch.ranks) {
    throw usage_error(fmt::format("PMI_RANK is {} of PMI_SIZE {}", launch.rank, launch.ranks),
                      "or " + type_ranks());
  }
  Pmi1 manager(fd);
  manager.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  const std::string space = manager.ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"];
  if (launch.rank == 0) {
    launch.root = own_address();
    manager.ask(fmt::format("cmd=put kvsname={} key={} value={}", space, kPmiKey, launch.root), "put_result");
  }
  manager.ask("cmd=barrier_in", "barrier_out");
  if (launch.rank != 0) {
    launch.root = manager.ask(fmt::format("cmd=get kvsname={} key={}", space, kPmiKey), "get_result")["value"];
  }
  // From here on a rank may end without the others.
  manager.ask("cmd=finalize", "finalize_ack");
  if (launch.root.empty()) throw manager_error("rank 0 has left no address");
  return launch;
}

std::optional<Launch> exchange(const Variables& variables, const OwnAddress& own_address) {
  if (const auto text = variables("PMI_FD")) {
    int fd = -1;
    const auto [at, error] = std::from_chars(text->data(), text->data() + text->size(), fd);
    if (error != std::errc() || at != text->data() + text->size() || fd < 0) {
      throw usage_error(fmt::format("PMI_FD is '{}', which is no descriptor", *text),
                        "unset it, or " + type_ranks());
    }
    return exchange_by_pmi1(fd, variables, own_address);
  }
  if (variables("PMIX_RANK") && has_pmix()) return exchange_by_pmix(own_address);
  return std::nullopt;
}

}  // namespace gdrperf::cluster
