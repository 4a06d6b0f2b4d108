// The program's own copy of the known messages (src/doctor/words/*.words), so that it knows them wherever it runs.

#include <array>
#include <string>

#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kKnownWords = {
#include "known_words.inc"
};

}  // namespace

const Words& known_words() {
  static const Words words = [] {
    std::string text;
    for (const char* piece : kKnownWords) text += piece;
    return parse_words(text, "known messages");
  }();
  return words;
}

}  // namespace gdrperf::doctor
