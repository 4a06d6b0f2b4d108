#pragma once

#include "doctor/recording/tree.h"

namespace gdrperf::doctor {

/// The tree with other MACs, GUIDs, serial numbers, UUIDs and IP addresses in
/// it: the same for the same, in one subnet what was in one subnet. Link-local,
/// loopback and empty addresses stay.
Tree masked(const Tree& tree);

/// The same for one text; `seen` carries what was given for what.
struct Masks {
  std::map<std::string, std::string> given;
  std::map<std::string, int> counts;
};
std::string masked(std::string_view text, Masks& seen);

}  // namespace gdrperf::doctor
