// Random verbs calls in two processes that talk to each other: wrong handles, states, sizes and
// keys, objects destroyed in between. A sanitizer, an abort, a guard written to, or a hang is a
// finding; so is a run in which nothing was delivered.
//
// Usage: softnic_fuzz [SECONDS [SEED]]     (SOFTNIC_FUZZ_SECONDS overrides SECONDS; SOFTNIC_FUZZ_TCP=1: all over TCP)
//
// Built either with the device's sources in it (ThreadSanitizer has to see them), or to run with
// the library preloaded, which it sees to itself.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "fuzz_world.h"

#ifdef SOFTNIC_FUZZ_THREADS
/// Memory that peers write to while its owner reads it is the program's business, which here does
/// both at random; over TCP the kernel reads and writes it. What the device itself keeps is not excepted.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:gdrperf::softnic::copy_\nrace:process_vm_\nrace:^sendmsg$\nrace:^recvmsg$\n";
}
#endif

namespace softnic_fuzz {
namespace {

constexpr int kThreads = 2;
constexpr unsigned kHangSeconds = 120;

int run_side(Board& board, int side, unsigned seconds, unsigned seed) {
  // Whoever hangs is ended by SIGALRM.
  ::alarm(seconds + kHangSeconds);
  bool whole = true;
  {
    World world(board, side);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::thread threads[kThreads];
    for (int t = 0; t < kThreads; ++t) {
      threads[t] = std::thread([&, t] {
        Random random(seed * 16 + static_cast<unsigned>(side * 4 + t));
        while (std::chrono::steady_clock::now() < end) {
          for (int i = 0; i < 64; ++i) world.step(random);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    whole = world.guards_whole();
  }
  if (!whole) std::fprintf(stderr, "softnic_fuzz: memory that is not registered was written to\n");
  return whole ? 0 : 1;
}

/// The same names on each way of the data.
const char* devices() {
  if (std::getenv("SOFTNIC_FUZZ_TCP") == nullptr)
    return "soft0:ports=2;soft1;stay0:move=never;agent0:move=never,kernel=never";
  return "soft0:tcp=on,netdev=lo,shared=never;soft1:tcp=on,netdev=lo,shared=never;stay0:tcp=on,netdev=lo,shared=never;"
         "agent0:tcp=on,netdev=lo,shared=never";
}

unsigned number(const char* text, unsigned otherwise) {
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

int fuzz(int argc, char** argv) {
  const unsigned seconds = number(std::getenv("SOFTNIC_FUZZ_SECONDS"), number(argc > 1 ? argv[1] : nullptr, 10));
  const unsigned seed = number(argc > 2 ? argv[2] : nullptr, static_cast<unsigned>(::getpid()));
  std::printf("softnic_fuzz: %u s, seed %u\n", seconds, seed);
  std::fflush(stdout);
  void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& board = *new (shared) Board();
  const pid_t other = ::fork();
  if (other == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::exit(run_side(board, 1, seconds, seed));
  }
  const int own = run_side(board, 0, seconds, seed);
  int status = -1;
  ::waitpid(other, &status, 0);
  std::printf("figure: softnic fuzz: %llu calls, %llu requests delivered in %u s\n",
              static_cast<unsigned long long>(board.calls.load()),
              static_cast<unsigned long long>(board.delivered.load()), seconds);
  if (board.delivered == 0) std::fprintf(stderr, "softnic_fuzz: nothing was delivered\n");
  if (status != 0)
    std::fprintf(stderr, "softnic_fuzz: the second process ended with status %#x\n", static_cast<unsigned>(status));
  return own == 0 && status == 0 && board.delivered > 0 ? 0 : 1;
}

}  // namespace
}  // namespace softnic_fuzz

int main(int argc, char** argv) {
#ifdef SOFTNIC_LIBRARY
  const char* preloaded = std::getenv("LD_PRELOAD");
  if (preloaded == nullptr || std::strstr(preloaded, SOFTNIC_LIBRARY) == nullptr) {
    const char* given = std::getenv("ASAN_OPTIONS");
    const std::string options =
        std::string("verify_asan_link_order=0") + (given != nullptr ? std::string(":") + given : "");
    ::setenv("LD_PRELOAD", SOFTNIC_LIBRARY, 1);
    ::setenv("ASAN_OPTIONS", options.c_str(), 1);
    ::setenv("SOFTNIC", softnic_fuzz::devices(), 1);
    ::execv("/proc/self/exe", argv);
    std::perror("execv");
    return 1;
  }
#else
  ::setenv("SOFTNIC", softnic_fuzz::devices(), 1);
#endif
  return softnic_fuzz::fuzz(argc, argv);
}
