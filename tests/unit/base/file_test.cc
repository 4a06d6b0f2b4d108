#include "gdrperf/base/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "../../temporary_folder.h"
#include "gdrperf/base/error.h"

namespace gdrperf {
namespace {

class FileTest : public testing::Test {
 protected:
  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(FileTest, WritesReplacesAndLeavesNothingElse) {
  const std::string path = folder_ / "result.json";
  write_file_atomic(path, "one");
  write_file_atomic(path, "two");
  EXPECT_EQ(read_file(path, 100), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

// A file that is written for as long as the child lives, killed at any moment of it.
TEST_F(FileTest, AKilledWriterLeavesTheWholeFileAndNothingThatStays) {
  const std::string path = folder_ / "result.json";
  const std::string one(300'000, '1'), two(300'000, '2');
  write_file_atomic(path, one);
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      while (true) {
        write_file_atomic(path, two);
        write_file_atomic(path, one);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + kill_number % 7));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string found = read_file(path, 1 << 20);
    EXPECT_TRUE(found == one || found == two) << found.size();
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      EXPECT_TRUE(name == "result.json" || name == "result.json.part") << name;
    }
  }
  write_file_atomic(path, one);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, WritersAtOnceLeaveOneWholeFile) {
  const std::string path = folder_ / "result.json";
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 25; ++i) write_file_atomic(path, std::string(10'000, static_cast<char>('a' + writer)));
    });
  }
  for (std::thread& each : writers) each.join();
  const std::string found = read_file(path, 1 << 20);
  EXPECT_EQ(found, std::string(10'000, found.at(0)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, AFullDiskIsNamedAndTheOldFileStays) {
  try {
    write_file_atomic(folder_ / "absent" / "x.json", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("absent/x.json"), std::string::npos);
  }
}

TEST_F(FileTest, ReadRefusesWhatIsTooLargeOrMissing) {
  const std::string path = folder_ / "large";
  write_file_atomic(path, std::string(1000, 'x'));
  EXPECT_THROW(read_file(path, 999), Error);
  EXPECT_THROW(read_file(folder_ / "missing", 10), Error);
}

}  // namespace
}  // namespace gdrperf
