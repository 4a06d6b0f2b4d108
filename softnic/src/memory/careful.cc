#include "memory/careful.h"

#include <unistd.h>

#include "memory/maps.h"

namespace gdrperf::softnic {
namespace {

struct MappedSearch {
  std::uint64_t covered;
  LocalUse use;
};

bool visit_mapped(const Mapping& mapping, void* argument) {
  auto& search = *static_cast<MappedSearch*>(argument);
  const bool allowed = search.use == LocalUse::kRead ? mapping.readable : mapping.writable;
  if (mapping.begin > search.covered || !allowed) return false;
  search.covered = mapping.end;
  return true;
}

}  // namespace

int copy_within(void* to, const Pieces& from) noexcept {
  const int error =
      copy_to_process(::getpid(), reinterpret_cast<std::uint64_t>(to), from.items, from.count, from.total);
  // The kernel copies for nobody here (a container's filter of system calls).
  if (!is_refusal(error)) return error;
  copy_pieces_to(static_cast<std::uint8_t*>(to), from.items, from.count);
  return 0;
}

int copy_within(const Pieces& to, const void* from) noexcept {
  const int error =
      copy_from_process(::getpid(), reinterpret_cast<std::uint64_t>(from), to.items, to.count, to.total);
  if (!is_refusal(error)) return error;
  copy_pieces_from(static_cast<const std::uint8_t*>(from), to.items, to.count);
  return 0;
}

bool is_mapped(const Pieces& pieces, LocalUse use) noexcept {
  for (unsigned i = 0; i < pieces.count; ++i) {
    const Piece& piece = pieces.items[i];
    if (piece.region == nullptr) continue;
    const auto begin = reinterpret_cast<std::uint64_t>(piece.address);
    MappedSearch search{begin, use};
    const PageRange range{begin, begin + piece.length};
    if (visit_mappings(range, &visit_mapped, &search) && search.covered < range.end) return false;
  }
  return true;
}

}  // namespace gdrperf::softnic
