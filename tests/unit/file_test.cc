#include "gdrperf/base/file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "../temporary_folder.h"
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
