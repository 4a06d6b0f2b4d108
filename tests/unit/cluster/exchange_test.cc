#include "gdrperf/cluster/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Environment = std::map<std::string, std::string>;

Variables those(Environment values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  };
}

// The other half of PMI_FD: answers each line as `answers` says, in two pieces, and keeps what was asked.
class Manager {
 public:
  explicit Manager(Environment answers) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
    own_.reset(ends[0]);
    client_.reset(ends[1]);
    thread_ = std::thread([this, answers = std::move(answers)] { serve(answers); });
  }
  ~Manager() {
    client_.reset();
    thread_.join();
  }
  int fd() const { return client_.get(); }
  std::vector<std::string> asked() {
    ::shutdown(client_.get(), SHUT_RDWR);
    thread_.join();
    thread_ = std::thread([] {});
    return asked_;
  }

 private:
  void serve(const Environment& answers) {
    std::string pending;
    char bytes[256];
    for (ssize_t got = 0; (got = ::read(own_.get(), bytes, sizeof bytes)) > 0;) {
      pending.append(bytes, static_cast<std::size_t>(got));
      for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
        const std::string line = pending.substr(0, end);
        pending.erase(0, end + 1);
        asked_.push_back(line);
        const auto answer = answers.find(line.substr(0, line.find(' ')));
        if (answer == answers.end()) {
          ::shutdown(own_.get(), SHUT_RDWR);
          return;
        }
        const std::string text = answer->second + "\n";
        ::send(own_.get(), text.data(), 5, MSG_NOSIGNAL);
        ::send(own_.get(), text.data() + 5, text.size() - 5, MSG_NOSIGNAL);
      }
    }
  }

  UniqueFd own_;
  UniqueFd client_;
  std::thread thread_;
  std::vector<std::string> asked_;
};

const Environment kHydra = {{"cmd=init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
                            {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7_0"},
                            {"cmd=put", "cmd=put_result rc=0 msg=success"},
                            {"cmd=barrier_in", "cmd=barrier_out"},
                            {"cmd=get", "cmd=get_result rc=0 msg=success value=1;x;10.0.0.1"},
                            {"cmd=finalize", "cmd=finalize_ack"}};

std::string refused(const Environment& answers, const Environment& variables) {
  Manager manager(answers);
  try {
    exchange_by_pmi1(manager.fd(), those(variables), [] { return "a"; });
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Exchange, Pmi1GivesRankZerosAddressToTheOthers) {
  Manager manager(kHydra);
  const Launch launch = exchange_by_pmi1(manager.fd(), those({{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}}), [] {
    ADD_FAILURE() << "only rank 0 has an address";
    return std::string();
  });
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.ranks, 8);
  EXPECT_EQ(launch.root, "1;x;10.0.0.1");
  EXPECT_EQ(launch.origin, "PMI-1");
  EXPECT_THAT(manager.asked(), ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname",
                                           "cmd=barrier_in", "cmd=get kvsname=kvs_7_0 key=gdrperf-root",
                                           "cmd=finalize"));
}

TEST(Exchange, Pmi1RankZeroLeavesItsAddressBeforeTheBarrier) {
  Manager manager(kHydra);
  const Launch launch = exchange_by_pmi1(manager.fd(), those({{"PMI_RANK", "0"}, {"PMI_SIZE", "8"}}),
                                         [] { return std::string("7;y;10.0.0.9"); });
  EXPECT_EQ(launch.root, "7;y;10.0.0.9");
  EXPECT_THAT(manager.asked(), ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname",
                                           "cmd=put kvsname=kvs_7_0 key=gdrperf-root value=7;y;10.0.0.9",
                                           "cmd=barrier_in", "cmd=finalize"));
}

TEST(Exchange, Pmi1ThatAnswersOtherwiseIsNamed) {
  const Environment variables = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  Environment answers = kHydra;
  answers["cmd=init"] = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1";
  EXPECT_THAT(refused(answers, variables), HasSubstr("rc=-1"));
  answers.erase("cmd=init");
  EXPECT_THAT(refused(answers, variables), HasSubstr("hung up"));
  EXPECT_THAT(refused(kHydra, {{"PMI_RANK", "1"}}), HasSubstr("PMI_SIZE is not"));
  EXPECT_THAT(refused(kHydra, {{"PMI_RANK", "x"}, {"PMI_SIZE", "2"}}), HasSubstr("PMI_RANK is 'x'"));
  EXPECT_THAT(refused(kHydra, {{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}), HasSubstr("PMI_RANK is 2 of PMI_SIZE 2"));
}

TEST(Exchange, NoManagerIsNoLaunch) {
  EXPECT_FALSE(exchange(those({{"SLURM_PROCID", "1"}}), [] { return std::string(); }));
  EXPECT_THROW(exchange(those({{"PMI_FD", "four"}}), [] { return std::string(); }), Error);
}

}  // namespace
}  // namespace gdrperf::cluster
