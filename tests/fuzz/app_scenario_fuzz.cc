// parse_scenario() on hostile text: it throws gdrperf::Error that names the file, or yields tests whose words are
// those of a command line.
#include <cstdlib>
#include <string_view>

#include "app/plan/scenario.h"
#include "fuzz.h"
#include "gdrperf/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrperf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const app::Scenario scenario = app::parse_scenario("x.conf", std::string(text));
    if (scenario.tests.empty()) std::abort();
    for (const app::ScenarioTest& test : scenario.tests) {
      const std::vector<std::string> words = test.words();
      if (words.empty() || words.front().empty() || words.front().starts_with('-')) std::abort();
      for (const std::string& word : words) {
        if (word.find('\0') != std::string::npos || word.find('\n') != std::string::npos) std::abort();
      }
    }
  } catch (const Error& error) {
    if (!std::string_view(error.what()).starts_with("x.conf")) std::abort();
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "# what a new node has to pass\n[global]\nlocal   ; here\nsoftnic\n\n[small writes]\ntest = write_lat\nsize = "
      "8\niters = 2000\n\n"
      "[large writes, both ways]\ntest = write_bw\nsize = 64K,1M\nduration = 200ms\nbidirectional\n",
      "[global]\nhost = node2\nport=19000\n[a]\ntest=sweep\nops = write_bw,read_lat\nsizes=2:64K\n[b]\ntest = "
      "verify\nq = 4\n"};
}
