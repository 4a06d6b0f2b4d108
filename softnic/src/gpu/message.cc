#include "gpu/message.h"

#include "gpu/memory.h"
#include "memory/careful.h"

namespace gdrperf::softnic {

bool copy_out(void* to, const Pieces& message) noexcept {
  if (in_gpu(message)) return gpu::copy_to(to, nullptr, message.items, message.count) == 0;
  if (needs_care(message)) return copy_within(to, message) == 0;
  copy_pieces_to(static_cast<std::uint8_t*>(to), message.items, message.count);
  return true;
}

bool copy_in(const void* from, const Pieces& message) noexcept {
  if (in_gpu(message)) return gpu::copy_from(from, nullptr, message.items, message.count) == 0;
  if (needs_care(message)) return copy_within(message, from) == 0;
  copy_pieces_from(static_cast<const std::uint8_t*>(from), message.items, message.count);
  return true;
}

}  // namespace gdrperf::softnic
