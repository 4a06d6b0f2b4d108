// gdrperf-doctor: `gdrperf doctor` where libibverbs or librdmacm may be missing,
// without which gdrperf itself does not start. With both it becomes gdrperf.

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "app/command.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/host.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

bool loads(const char* library) {
  void* handle = ::dlopen(library, RTLD_LAZY);
  if (handle == nullptr) return false;
  ::dlclose(handle);
  return true;
}

/// Comes back only where there is no gdrperf beside this program.
void become_gdrperf(int argc, char** argv) {
  const std::filesystem::path self = own_program();
  std::string program = (self.parent_path() / "gdrperf").string();
  std::string command = "doctor";
  std::vector<char*> words = {program.data(), command.data()};
  for (int i = 1; i < argc; ++i) words.push_back(argv[i]);
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
}

}  // namespace
}  // namespace gdrperf::app

int main(int argc, char** argv) {
  using namespace gdrperf;
  if (app::loads("libibverbs.so.1") && app::loads("librdmacm.so.1")) app::become_gdrperf(argc, argv);
  try {
    return app::run_doctor_command_line(argc, argv);
  } catch (const Error& error) {
    app::say_error(error);
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return static_cast<int>(ExitCode::kEnvironment);
  }
}
