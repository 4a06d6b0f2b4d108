#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "app/command.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/standard_descriptors.h"
#include "app/process_setup.h"
#include "app/output/terminal.h"
#include "app/output/terminal_guard.h"

namespace gdrperf::app {
namespace {

int report_error(const Error& error) {
  say_error(error);
  return static_cast<int>(error.code());
}

// A full disk below a redirected table must not pass for success.
int with_output_flushed(int code) {
  std::cout.flush();
  if (std::cout.good() && std::fflush(stdout) == 0) return code;
  end_if_reader_gone();
  return report_error(
      Error(ExitCode::kEnvironment, "cannot write all of standard output", "free space"));
}

}  // namespace

}  // namespace gdrperf::app

int main(int argc, char** argv) {
  using namespace gdrperf;
  occupy_standard_descriptors();
  const app::TerminalGuard guard;
  try {
    return app::with_output_flushed(app::run_command_line(argc, argv));
  } catch (const Error& error) {
    return app::report_error(error);
  } catch (const std::bad_alloc&) {
    return app::report_error(app::out_of_memory());
  } catch (const std::system_error& error) {  // no thread, most of all
    return app::report_error(Error(ExitCode::kEnvironment, error.what(), limit_hint(error.code().value())));
  } catch (const std::exception& error) {
    return app::report_error(Error(ExitCode::kEnvironment, error.what()));
  }
}
