// Two ranks of gloo add up their numbers through its transport of verbs.
#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr int kRanks = 2;
constexpr std::size_t kRounds = 20;

void add_up(int rank, const std::string& folder) {
  gloo::rendezvous::FileStore store(folder);
  gloo::transport::ibverbs::attr wanted{.name = rank == 0 ? "soft0" : "soft1", .port = 1, .index = 1};
  auto device = gloo::transport::ibverbs::CreateDevice(wanted);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, kRanks);
  context->connectFullMesh(store, device);
  std::vector<float> numbers(100000);
  std::vector<float*> places{numbers.data()};
  gloo::AllreduceRing<float> sum(context, places, static_cast<int>(numbers.size()));
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto number = [round](std::size_t i) { return static_cast<float>((i + round) % 1000); };
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = number(i) + static_cast<float>(rank);
    sum.run();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float right = 2 * number(i) + 1;
      if (numbers[i] == right) continue;
      std::fprintf(stderr, "rank %d, round %zu: number %zu is %g, not %g\n", rank, round, i,
                   static_cast<double>(numbers[i]), static_cast<double>(right));
      std::exit(1);
    }
  }
}

int run_rank(int rank, const std::string& folder) {
  try {
    add_up(rank, folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main() {
  char folder[] = "/tmp/softnic_gloo.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const pid_t other = fork();
  if (other == 0) return run_rank(1, folder);
  const int mine = run_rank(0, folder);
  int status = 0;
  waitpid(other, &status, 0);
  if (std::system(("rm -r " + std::string(folder)).c_str()) != 0) return 1;
  if (mine != 0 || status != 0) return 1;
  std::printf("%d ranks, %zu sums right\n", kRanks, kRounds);
  return 0;
}
