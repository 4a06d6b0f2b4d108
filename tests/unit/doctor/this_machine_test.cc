#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "../../temporary_folder.h"
#include "gdrperf/base/file.h"
#include "gdrperf/doctor/machine.h"
#include "gdrperf/base/run_program.h"

namespace gdrperf::doctor {
namespace {

using End = ProgramResult::End;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ThisMachine : public testing::Test {
 protected:
  TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
  std::unique_ptr<Machine> machine_ = this_machine();
};

TEST_F(ThisMachine, FilesFoldersLinks) {
  write_file_atomic(folder_ + "/b", "text\n");
  write_file_atomic(folder_ + "/a", "");
  std::filesystem::create_symlink("b", folder_ + "/link");
  std::filesystem::create_symlink("nowhere", folder_ + "/broken");
  EXPECT_EQ(machine_->read(folder_ + "/link").text, "text\n");
  EXPECT_EQ(machine_->read(folder_ + "/none").access, Access::kMissing);
  EXPECT_EQ(machine_->read(folder_ + "/b/below").access, Access::kMissing);
  EXPECT_EQ(machine_->read(folder_).access, Access::kDenied);
  EXPECT_THAT(machine_->list(folder_), ElementsAre("a", "b", "broken", "link"));
  EXPECT_THAT(machine_->list(folder_ + "/none"), IsEmpty());
  EXPECT_EQ(machine_->resolve(folder_ + "/link"), std::filesystem::canonical(folder_ + "/b"));
  EXPECT_EQ(machine_->resolve(folder_ + "/broken"), "");
  EXPECT_EQ(machine_->read_write(folder_ + "/b"), Access::kGranted);
  EXPECT_EQ(machine_->read_write(folder_ + "/none"), Access::kMissing);
}

TEST_F(ThisMachine, AFifoHoldsNobodyUp) {
  ASSERT_EQ(::mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(machine_->read(folder_ + "/fifo").text, "");
}

TEST_F(ThisMachine, DeniedToOthers) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  write_file_atomic(folder_ + "/b", "text\n");
  ::chmod((folder_ + "/b").c_str(), 0);
  EXPECT_EQ(machine_->read(folder_ + "/b").access, Access::kDenied);
  EXPECT_EQ(machine_->read_write(folder_ + "/b"), Access::kDenied);
}

TEST_F(ThisMachine, MemlockIsThatOfTheProcess) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  EXPECT_EQ(machine_->memlock().soft_bytes.has_value(), limit.rlim_cur != RLIM_INFINITY);
}

TEST(RunProgram, OutputAndStatus) {
  const std::chrono::seconds patience(20);
  const ProgramResult fine =
      run_program({"sh", "-c", "echo out; echo err >&2; echo $LC_ALL"}, patience);
  EXPECT_TRUE(fine.ok());
  EXPECT_EQ(fine.output, "out\nerr\nC\n");
  const ProgramResult failed = run_program({"sh", "-c", "exit 3"}, patience);
  EXPECT_EQ(failed.end, End::kExited);
  EXPECT_EQ(failed.status, 3);
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}, patience).end, End::kSignalled);
  EXPECT_EQ(run_program({"gdrperf-no-such-program"}, patience).end, End::kNotInstalled);
  EXPECT_EQ(run_program({"cat"}, patience).output, "") << "standard input is empty";
}

TEST(RunProgram, IsKilledWithItsChildrenWhenItHangs) {
  const auto begin = std::chrono::steady_clock::now();
  const ProgramResult hung = run_program({"sh", "-c", "echo begun; sleep 100 & sleep 100"},
                                         std::chrono::milliseconds(300));
  EXPECT_EQ(hung.end, End::kTimedOut);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
}  // namespace gdrperf::doctor
