#include "app/client/softnic_exec.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/host.h"

namespace gdrperf::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libgdrperf_softnic.so";
constexpr const char* kGuard = "GDRPERF_SOFTNIC";
constexpr const char* kMachineGuard = "GDRPERF_MACHINE";

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif
#else
constexpr bool kAddressSanitizer = false;
#endif

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

void set_environment(const char* name, const std::string& value) {
  if (::setenv(name, value.c_str(), 1) != 0) throw call_error("setenv", errno);
}

std::string find_library(const fs::path& program) {
  const fs::path folder = program.parent_path();
  const std::vector<fs::path> places = {
      folder / "../../softnic/src" / kLibrary,       // build tree: src/app, softnic/src
      folder / "../softnic/src" / kLibrary,          // build tree: bench
      folder / GDRPERF_BINDIR_TO_LIBDIR / kLibrary,  // installed, wherever the tree was moved to
      fs::path(GDRPERF_LIBDIR) / kLibrary,
  };
  std::vector<std::string> tried;
  for (const fs::path& place : places) {
    std::error_code error;
    const fs::path found = fs::canonical(place, error);
    if (!error) return found;
    tried.push_back(place.lexically_normal());
  }
  throw Error(ExitCode::kEnvironment,
              fmt::format("--softnic: the software device's library is not there; looked at {}",
                          fmt::join(tried, ", ")),
              "build or install all of gdrperf ('ninja -C BUILD')");
}

/// ld.so separates names by colons and blanks, and no name can have one: a library in a folder with one is reached by
/// a link in a folder that this user alone can write to.
std::string preloadable(const std::string& library) {
  if (library.find_first_of(": \t\n") == std::string::npos) return library;
  const fs::path folder = fmt::format("/tmp/gdrperf-{}", ::geteuid());
  struct stat found {};
  if ((::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) || ::lstat(folder.c_str(), &found) != 0 ||
      !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 022) != 0) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("--softnic: '{}' cannot be preloaded: its path has a space or a colon, and {} is not a "
                            "folder of this user's alone for a link to it", library, folder.string()),
                fmt::format("remove {}, or move gdrperf to a folder without spaces and colons", folder.string()));
  }
  const fs::path place = folder / fmt::format("{:016x}", std::hash<std::string>{}(library));
  const fs::path link = place / kLibrary;
  std::error_code error;
  fs::create_directory(place, error);
  if (fs::read_symlink(link, error) == library) return link;
  const fs::path fresh = place / fmt::format("{}.{}", kLibrary, ::getpid());
  fs::create_symlink(library, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) throw call_error("symlink " + link.string(), error.value());
  return link;
}

/// Executes this program again with the library in front. `guard` says that it
/// was done before: the process keeps its number through execv, its children
/// have others.
[[noreturn]] void execute_again(char** argv, const fs::path& program, const char* guard) {
  const std::string own_pid = std::to_string(::getpid());
  if (environment(guard) == own_pid) {
    throw Error(ExitCode::kEnvironment, "--softnic: LD_PRELOAD does not stay set for this program",
                "programs with set-user-ID or file capabilities cannot preload");
  }
  set_environment("LD_PRELOAD", preload_with(preloadable(find_library(program)), environment("LD_PRELOAD")));
  set_environment(guard, own_pid);
  if (kAddressSanitizer) {
    const std::string options = environment("ASAN_OPTIONS");
    set_environment("ASAN_OPTIONS",
                    options + (options.empty() ? "" : ":") + "verify_asan_link_order=0");
  }
  ::execv(program.c_str(), argv);
  throw call_error("execv " + program.string(), errno);
}

}  // namespace

std::string preload_with(const std::string& library, const std::string& preload) {
  // ld.so(8): separated by colons or blanks.
  std::size_t at = 0;
  while (at < preload.size()) {
    const std::size_t end = std::min(preload.find_first_of(": ", at), preload.size());
    if (fs::path(preload.substr(at, end - at)).filename() == kLibrary) return preload;
    at = end + 1;
  }
  return preload.empty() ? library : library + ":" + preload;
}

std::string softnic_library() {
  const fs::path program = own_program();
  if (program.empty()) return {};
  try {
    return find_library(program);
  } catch (const Error&) {
    return {};
  }
}

void enter_softnic_with(char** argv, const std::string& devices) {
  const fs::path program = own_program();
  if (program.empty()) throw call_error("readlink /proc/self/exe", ENOENT);
  if (preload_with(find_library(program), environment("LD_PRELOAD")) == environment("LD_PRELOAD") &&
      environment("SOFTNIC") == devices) {
    return;
  }
  set_environment("SOFTNIC", devices);
  execute_again(argv, program, kMachineGuard);
}

void enter_softnic(char** argv) {
  const fs::path program = own_program();
  if (program.empty()) throw call_error("readlink /proc/self/exe", ENOENT);
  const std::string before = environment("LD_PRELOAD");
  if (preload_with(find_library(program), before) == before) return;
  execute_again(argv, program, kGuard);
}

}  // namespace gdrperf::app
