// A hostile peer: it speaks the real protocol, has QPs that talk to the victim's, and all the while
// writes anything into the memory that both share, sends anything over sockets, hands over any
// descriptor, and listens under names with segments of its own making. The victim makes random verbs
// calls. A sanitizer, a crash, a call that does not end, or unregistered memory that was written to
// is a finding; so is a run in which nothing was delivered.
//
// Usage: softnic_hostile_fuzz [--seconds N] [--seed N]     (SOFTNIC_FUZZ_SECONDS overrides)

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fuzz_world.h"
#include "hostile_peer.h"

namespace softnic_fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kVictimThreads = 2;
/// A call may wait for a peer that is stopped in the middle (5 s), and for several of them.
constexpr auto kHang = std::chrono::seconds(60);
/// Memory that the victim has to give up because its peer never left makes way for a new victim.
constexpr auto kVictimLife = std::chrono::seconds(8);

struct Arena {
  Board board;
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> lives{0};
  Tally tally;
};

int be_victim(Arena& arena, unsigned seed, Clock::time_point end) {
  bool whole = true;
  {
    World world(arena.board, 0);
    std::thread threads[kVictimThreads];
    for (int t = 0; t < kVictimThreads; ++t) {
      threads[t] = std::thread([&, t] {
        Random random(seed * 16 + static_cast<unsigned>(t));
        while (Clock::now() < end) {
          world.step(random);
          ++arena.steps;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    whole = world.guards_whole();
  }
  ++arena.steps;
  if (!whole) std::fprintf(stderr, "hostile: memory that is not registered was written to\n");
  return whole ? 0 : 1;
}

int be_hostile(Arena& arena, unsigned seed, Clock::time_point end) {
  World world(arena.board, 1);
  const auto until_end = [end](unsigned thread_seed, const std::function<void(Random&)>& step) {
    return std::thread([end, thread_seed, step] {
      Random random(thread_seed);
      while (Clock::now() < end) step(random);
    });
  };
  SharedMemory memory(arena.board, arena.tally);
  std::vector<std::thread> threads;
  threads.push_back(until_end(seed * 16 + 8, [&](Random& random) { world.step(random); }));
  threads.push_back(until_end(seed * 16 + 9, [&](Random& random) { memory.mutate(random); }));
  threads.push_back(
      until_end(seed * 16 + 10, [&](Random& random) { attack_socket(arena.board, random, arena.tally); }));
  threads.push_back(
      until_end(seed * 16 + 11, [&](Random& random) { listen_falsely(arena.board, random, arena.tally); }));
  for (std::thread& thread : threads) thread.join();
  // Its own objects may be beyond repair: it just goes.
  return 0;
}

pid_t start(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::_exit(body());
}

/// Waits for both; false when the victim's steps stand still, or anybody ends badly.
bool watch(Arena& arena, pid_t victim, pid_t hostile) {
  std::uint64_t steps = 0;
  auto moved = Clock::now();
  bool good = true;
  for (int left = 2; left > 0;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended == victim || ended == hostile) {
      --left;
      if (status != 0) {
        std::fprintf(stderr, "hostile: the %s ended with status %#x\n", ended == victim ? "victim" : "hostile peer",
                     static_cast<unsigned>(status));
        good = false;
      }
      continue;
    }
    if (arena.steps.load() != steps) {
      steps = arena.steps.load();
      moved = Clock::now();
    }
    if (Clock::now() - moved > kHang) {
      std::fprintf(stderr, "hostile: a call of the victim (process %d) has not ended\n", victim);
      ::kill(victim, SIGABRT);
      ::kill(hostile, SIGKILL);
      return false;
    }
    ::usleep(10'000);
  }
  return good;
}

int fuzz(unsigned seconds, unsigned seed) {
  std::printf("softnic_hostile_fuzz: %u s, seed %u\n", seconds, seed);
  std::fflush(stdout);
  void* shared = ::mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& arena = *new (shared) Arena();
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  bool good = true;
  for (unsigned life = 0; good && Clock::now() < end; ++life) {
    const auto life_ends = std::min(end, Clock::now() + kVictimLife);
    const pid_t victim = start([&] { return be_victim(arena, seed + life, life_ends); });
    const pid_t hostile = start([&] { return be_hostile(arena, seed + life, life_ends); });
    good = watch(arena, victim, hostile);
    ++arena.lives;
  }
  const auto number = [](const std::atomic<std::uint64_t>& value) {
    return static_cast<unsigned long long>(value.load());
  };
  std::printf("figure: hostile peer: %llu calls of %llu victims, %llu requests delivered, %llu words written over, "
              "%llu packets, %llu false listeners' answers in %u s\n",
              number(arena.steps), number(arena.lives), number(arena.board.delivered), number(arena.tally.words),
              number(arena.tally.packets), number(arena.tally.answers), seconds);
  if (arena.board.delivered == 0) std::fprintf(stderr, "hostile: nothing was delivered\n");
  const bool busy = arena.board.delivered > 0 && arena.tally.words > 0 && arena.tally.packets > 0;
  return good && busy ? 0 : 1;
}

unsigned option(int argc, char** argv, const char* name, unsigned otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
  }
  return otherwise;
}

void set_options(const char* variable, const std::string& options) {
  const char* given = std::getenv(variable);
  ::setenv(variable, (options + (given != nullptr ? std::string(":") + given : "")).c_str(), 1);
}

}  // namespace
}  // namespace softnic_fuzz

int main(int argc, char** argv) {
  using namespace softnic_fuzz;
  const char* preloaded = std::getenv("LD_PRELOAD");
  if (preloaded == nullptr || std::strstr(preloaded, SOFTNIC_LIBRARY) == nullptr) {
    ::setenv("LD_PRELOAD", SOFTNIC_LIBRARY, 1);
    set_options("ASAN_OPTIONS", "verify_asan_link_order=0");
    set_options("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1");
    // Not through the kernel: a process of the same user may write what it likes, where it likes, and
    // the hostile one would, with addresses from a table that it has written over itself.
    ::setenv("SOFTNIC",
             "soft0:kernel=never;soft1:kernel=never;stay0:move=never,kernel=never;agent0:move=never,kernel=never", 1);
    ::execv("/proc/self/exe", argv);
    std::perror("execv");
    return 1;
  }
  const char* wanted = std::getenv("SOFTNIC_FUZZ_SECONDS");
  const unsigned seconds = wanted != nullptr ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10))
                                             : option(argc, argv, "--seconds", 10);
  return fuzz(seconds, option(argc, argv, "--seed", static_cast<unsigned>(::getpid())));
}
