// decode() on hostile text: it throws gdrperf::Error, or yields a message that
// encodes to text which means the same.
#include <cstdlib>

#include "fuzz.h"
#include "gdrperf/base/error.h"
#include "proto_seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrperf::proto;
  std::string text;
  try {
    text = encode(decode({reinterpret_cast<const char*>(data), size}));
  } catch (const gdrperf::Error& error) {
    if (error.what()[0] == '\0') std::abort();
    return 0;
  }
  if (encode(decode(text)) != text) std::abort();
  return 0;
}

std::vector<std::string> fuzz_seeds() { return message_seeds(); }
