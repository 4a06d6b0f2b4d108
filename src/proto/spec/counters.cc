#include "gdrperf/proto/counters.h"

namespace gdrperf {

Counters risen(const Counters& before, const Counters& after) {
  Counters rose;
  for (const auto& [name, value] : after) {
    const auto old = before.find(name);
    if (old != before.end() && value > old->second) rose[name] = value - old->second;
  }
  return rose;
}

}  // namespace gdrperf
