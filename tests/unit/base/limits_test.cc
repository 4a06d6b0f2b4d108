#include "gdrperf/base/limits.h"

#include <sys/resource.h>

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A soft limit for the time of a test.
class Limited {
 public:
  Limited(__rlimit_resource resource, rlim_t value) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    const rlimit limit{value, before_.rlim_max};
    ::setrlimit(resource_, &limit);
    rlimit now{};
    ::getrlimit(resource_, &now);
    kept_ = now.rlim_cur == value;
  }
  ~Limited() { ::setrlimit(resource_, &before_); }
  /// qemu-user agrees to limits of memory, which would be its own, and keeps none.
  bool kept() const { return kept_; }

 private:
  __rlimit_resource resource_;
  rlimit before_{};
  bool kept_ = false;
};

constexpr const char* kNotKept = "this kernel keeps no limit of memory (qemu-user)";

TEST(LimitHint, NamesTheLimitThatAnErrorStandsFor) {
  {
    const Limited files(RLIMIT_NOFILE, 50);
    EXPECT_THAT(limit_hint(EMFILE), HasSubstr("50 open files: raise that with 'ulimit -n"));
    EXPECT_THAT(call_error("socket", EMFILE).hint(), HasSubstr("ulimit -n"));
    EXPECT_EQ(call_error("socket", EMFILE, "", "mine").hint(), "mine");
    EXPECT_STREQ(call_error("ibv_post_send", -EINVAL).what(), call_error("ibv_post_send", EINVAL).what());
    EXPECT_THAT(tight_limits(), HasSubstr("ulimit -n"));
  }
  EXPECT_THAT(limit_hint(ENFILE), HasSubstr("fs.file-max"));
  {
    const Limited size(RLIMIT_FSIZE, 1 << 20);
    EXPECT_THAT(limit_hint(EFBIG), HasSubstr("1 MiB"));
  }
  EXPECT_THAT(limit_hint(ENOENT), IsEmpty());
  EXPECT_THAT(limit_hint(0), IsEmpty());
}

TEST(LimitHint, NamesTheLimitOfMemory) {
  const Limited space(RLIMIT_AS, rlim_t{64} << 40);
  if (!space.kept()) GTEST_SKIP() << kNotKept;
  EXPECT_THAT(limit_hint(ENOMEM), HasSubstr("limited to 64 TiB: raise that with 'ulimit -v"));
  EXPECT_THAT(tight_limits(), HasSubstr("ulimit -v"));
}

TEST(RequireStack, SaysHowMuchIsNeeded) {
  EXPECT_NO_THROW(require_stack());
  const Limited stack(RLIMIT_STACK, 64 << 10);
  if (!stack.kept()) GTEST_SKIP() << kNotKept;
  try {
    require_stack();
    ADD_FAILURE() << "64 KiB are enough?";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("limited to 64 KiB; this program needs 256 KiB"));
    EXPECT_THAT(error.hint(), HasSubstr("ulimit -s"));
  }
}

}  // namespace
}  // namespace gdrperf
