// parse_session() on hostile text: it throws gdrperf::Error, or yields figures one
// can take the logarithm of and names that stay in their folder.
#include <cmath>
#include <cstdlib>

#include "../unit/compare/samples.h"
#include "fuzz.h"
#include "gdrperf/base/error.h"
#include "gdrperf/compare/by_relation.h"
#include "gdrperf/compare/session.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrperf::compare;
  try {
    const Session session = parse_session({reinterpret_cast<const char*>(data), size}, "x.json");
    if (session.machine.find('/') != std::string::npos || session.machine.starts_with(".")) std::abort();
    for (const CellValue& cell : session.cells) {
      if (!std::isfinite(cell.value) || cell.value <= 0 || cell.key.name.empty()) std::abort();
    }
    const PlacementFigures figures =
        parse_placement_figures({reinterpret_cast<const char*>(data), size}, "x.json");
    if (PlacementComparison({&figures, 1}, {&figures, 1}, {}).text().empty()) std::abort();
  } catch (const gdrperf::Error& error) {
    if (error.what()[0] == '\0') std::abort();
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace gdrperf::compare;
  MadeDocument both;
  both.runs.push_back({"PIX", "read_lat", "8", "2100", "cuda:0", "\"qps\": 4,"});
  return {text_of(MadeDocument{}), text_of(both)};
}
