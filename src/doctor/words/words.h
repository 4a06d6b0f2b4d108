#pragma once

#include <string>
#include <string_view>

#include "doctor/check.h"
#include "gdrperf/doctor/words.h"

namespace gdrperf::doctor {

/// Which rules apply.
enum class WordScope { kAll,
                       kKernelLog };

/// Adds a finding for each rule that `text` matches, with the line as evidence, in the order of the lines; what
/// follows from an error comes after the errors. True when there was one.
bool read_words(std::string_view text, const Words& words, WordScope scope, const std::string& source,
                Findings& findings);

/// Whether `rule` would take `line` alone as the whole text.
bool matches_alone(const WordRule& rule, std::string_view line);

}  // namespace gdrperf::doctor
