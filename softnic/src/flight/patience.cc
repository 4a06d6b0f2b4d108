#include "flight/patience.h"

#include "shared/segment/completion.h"

namespace gdrperf::softnic {
namespace {

/// InfiniBand specification, table 45: RNR NAK timer field, in 10 us.
constexpr std::uint32_t kRnrTimer10us[32] = {
    65536, 1,   2,   3,   4,   6,   8,   12,   16,   24,   32,   48,   64,   96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
constexpr unsigned kRnrForever = 7;

std::uint64_t rnr_ns(std::uint8_t timer) { return kRnrTimer10us[timer & 31] * 10'000ull; }

}  // namespace

void Patience::start(Outcome::Kind reason, std::uint8_t rnr_timer) noexcept {
  reason_ = reason;
  if (reason == Outcome::Kind::kNoReceive) {
    rnr_left_ = attributes_.rnr_retry;
    until_ns_ = monotonic_ns() + rnr_ns(rnr_timer);
  } else {
    // Specification 9.7.6.1.3: 4.096 us * 2^timeout, for each try.
    until_ns_ = attributes_.timeout == 0
                    ? ~0ull
                    : monotonic_ns() + (4096ull << attributes_.timeout) * (attributes_.retry_cnt + 1u);
  }
}

bool Patience::ends(Outcome::Kind reason, std::uint8_t rnr_timer) noexcept {
  if (reason != reason_) start(reason, rnr_timer);
  const std::uint64_t now = monotonic_ns();
  if (now < until_ns_) return false;
  if (reason == Outcome::Kind::kUnreachable) return true;
  if (rnr_left_ == 0) return true;
  if (rnr_left_ != kRnrForever) --rnr_left_;
  until_ns_ = now + rnr_ns(rnr_timer);
  return false;
}

}  // namespace gdrperf::softnic
