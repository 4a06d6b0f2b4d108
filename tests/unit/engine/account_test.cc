#include "gdrperf/engine/account.h"

#include <gtest/gtest.h>

#include <optional>

#include "engine/setup/demand.h"
#include "gdrperf/base/error.h"
#include "gdrperf/engine/resolve.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

ResolvedSpec run_of(std::uint64_t footprint_bytes, int qps = 1) {
  TestSpec spec;
  spec.test = {Operation::kWrite, Metric::kBandwidth};
  spec.footprint_bytes = footprint_bytes;
  spec.qps = qps;
  return resolve(spec);
}

Account::Share share_of(Account& account, const ResolvedSpec& spec) {
  return reserve(demand_of(spec, Side::kServer), spec, Side::kServer, 0, &account);
}

std::string refusal(Account& account, const ResolvedSpec& spec) {
  try {
    const Account::Share share = share_of(account, spec);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    return error.what();
  }
}

TEST(Account, RunsAtTheSameTimeShareOneLimit) {
  Account account(128u << 20);
  const ResolvedSpec spec = run_of(60u << 20);
  std::optional<Account::Share> first = share_of(account, spec);
  const Account::Share second = share_of(account, spec);
  const std::string why = refusal(account, spec);
  EXPECT_NE(why.find("the server would need 60"), std::string::npos) << why;
  EXPECT_NE(why.find("more than the 128 MiB it may take"), std::string::npos) << why;
  EXPECT_NE(why.find("other runs have 12"), std::string::npos) << why;
  first.reset();
  EXPECT_EQ(refusal(account, spec), "");
}

TEST(Account, AShareThatMovesIsGivenBackOnce) {
  Account account(100u << 20);
  const ResolvedSpec spec = run_of(60u << 20);
  Account::Share share = share_of(account, spec);
  Account::Share moved = std::move(share);
  share = {};
  EXPECT_NE(refusal(account, spec), "");
  moved = {};
  moved = {};
  EXPECT_EQ(refusal(account, spec), "");
}

TEST(Account, ARefusedRunTakesNothing) {
  Account account(100u << 20);
  EXPECT_NE(refusal(account, run_of(200u << 20)), "");
  EXPECT_EQ(refusal(account, run_of(90u << 20)), "");
}

TEST(Account, QpsAreCountedOverAllRuns) {
  Account account(1ull << 50);
  const ResolvedSpec many = run_of(65536, Account::kMostQps - 10);
  const Account::Share share = share_of(account, many);
  EXPECT_EQ(refusal(account, run_of(65536, 10)), "");
  const std::string why = refusal(account, run_of(65536, 11));
  EXPECT_NE(why.find("16374 are in use"), std::string::npos) << why;
}

TEST(Account, WithoutALimitItIsAQuarterOfWhatWasThereBeforeTheFirstRun) {
  Account account(0);
  std::optional<std::uint64_t> available;
  const Account::Share first =
      account.take({1u << 20, 0, "", 1}, [&](const Account::State& state) { available = state.host_available; });
  account.take({1u << 20, 0, "", 1}, [&](const Account::State& state) {
    EXPECT_EQ(state.host_available, *available);
    EXPECT_EQ(state.host_taken, 1u << 20);
  });
}

}  // namespace
}  // namespace gdrperf::engine
