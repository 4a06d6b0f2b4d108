// Runs one fuzz target for a number of rounds, the same inputs on every run:
//   TARGET [ROUNDS [SEED]]      TARGET 30s [SEED]      TARGET --file INPUT
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz.h"

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

void mutate(std::string& input, const std::vector<std::string>& seeds, Random& random) {
  static const char* const kTokens[] = {
      "{",  "}",  "[",    "]",    ":",     ",",        "\"",  "\\u0000",
      "-1", "0",  "1e99", "null", "true",  "\xff\xfe", "\n",  "18446744073709551615",
      "\t", "[]", "{}",   " ",    "65536", "\\",       "NaN", "-9223372036854775808"};
  const std::size_t at = below(random, input.size() + 1);
  switch (below(random, 7)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(random());
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(random, 8)));
      break;
    case 2:
      input.erase(at, 1 + below(random, 16));
      break;
    case 3:
      input.insert(at, kTokens[below(random, std::size(kTokens))]);
      break;
    case 4: {  // a piece of another seed
      const std::string& other = seeds[below(random, seeds.size())];
      const std::size_t from = below(random, other.size() + 1);
      input.insert(at, other, from, below(random, 64));
      break;
    }
    case 5:  // a piece of itself again
      input.insert(at, std::string(input, at, below(random, 64)));
      break;
    default:
      input.resize(at);
  }
}

int run(const std::string& input) {
  return LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--file") == 0) {
    std::ifstream in(argv[2], std::ios::binary);
    return run(std::string(std::istreambuf_iterator<char>(in), {}));
  }
  using Clock = std::chrono::steady_clock;
  unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20000;
  Clock::time_point end = Clock::time_point::max();
  if (argc > 1 && argv[1][std::strlen(argv[1]) - 1] == 's') {
    end = Clock::now() + std::chrono::seconds(rounds);
    rounds = ULONG_MAX;
  }
  Random random(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1);
  const std::vector<std::string> seeds = fuzz_seeds();
  for (const std::string& seed : seeds) run(seed);
  unsigned long done = 0;
  for (; done < rounds && Clock::now() < end; ++done) {
    std::string input = seeds[below(random, seeds.size())];
    for (std::size_t n = 1 + below(random, 6); n > 0; --n) mutate(input, seeds, random);
    run(input);
  }
  std::printf("%lu inputs from %zu seeds\n", done, seeds.size());
}
