#pragma once

#include <atomic>
#include <cstdint>

#include "fuzz_world.h"
#include "shared/segment/layout.h"

/// Actions of a hostile peer, a step at a time.
namespace softnic_fuzz {

struct Tally {
  std::atomic<std::uint64_t> words{0};
  std::atomic<std::uint64_t> packets{0};
  std::atomic<std::uint64_t> answers{0};
};

/// The segments of the victim and of the hostile process itself, which the victim maps.
class SharedMemory {
 public:
  SharedMemory(const Board& board, Tally& tally) : board_(board), tally_(tally) {}
  ~SharedMemory();
  /// A burst of words anywhere in what the device looks at, and a pause.
  void mutate(Random& random);

 private:
  bool get_victims();
  bool get_own();
  static std::uint64_t* place(gdrperf::softnic::Segment& segment, Random& random);

  const Board& board_;
  Tally& tally_;
  gdrperf::softnic::Segment* victim_ = nullptr;
  gdrperf::softnic::Segment* own_ = nullptr;
};

/// One connection to the victim: some packets, right, wrong, half or overlong, with any descriptors.
void attack_socket(const Board& board, Random& random, Tally& tally);

/// A listener that answers the victim with a segment of its own making; QPs of the hostile process
/// are said to be there.
void listen_falsely(Board& board, Random& random, Tally& tally);

}  // namespace softnic_fuzz
