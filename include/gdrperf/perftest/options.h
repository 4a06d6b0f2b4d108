#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gdrperf::app {

/// What becomes of an option of perftest in a test of this program.
enum class PerftestFate {
  kSame,     ///< an option here, too, with that meaning
  kMapped,   ///< not an option here: done by others
  kIgnored,  ///< accepted, changes nothing; a note says why
  kRefused,  ///< what it asks for would be missing from the figure
};

/// One option of perftest's programs, as versions 4.5 to 6.29 have it.
struct PerftestOption {
  const char* flags;  ///< "-F,--CPU-freq"
  const char* value;  ///< stands for its value; "": a flag
  PerftestFate fate;
  const char* text;   ///< same: what differs, if anything; taken: as what; noted, refused: why
  const char* instead = "";  ///< refused: what to type
};

/// In the order of perftest's help.
std::span<const PerftestOption> perftest_options();

/// "--report_gbits" of "--report_gbit": the only option of perftest that begins like the word, as getopt_long() takes
/// it, with what stands behind '='. Other words as they are.
std::string whole_perftest_option(const std::string& word);

/// "same", "taken", "noted", "refused".
std::string_view to_string(PerftestFate fate);

/// Of a word that a command without these options was given: what it is in perftest and what to type; "" of other
/// words.
std::string perftest_note(std::string_view word);

/// "noted: there is no peak search to switch off".
std::string fate_of(const PerftestOption& option);

}  // namespace gdrperf::app
