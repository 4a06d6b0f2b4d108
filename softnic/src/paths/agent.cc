#include "paths/ways.h"

/// For memory that this process neither sees nor may have copied by the kernel: a thread of
/// the target's copies.
namespace gdrperf::softnic {
namespace {

class AgentWay final : public Way {
 public:
  const char* name() const noexcept override { return "agent"; }
  std::string words() const override { return "what the kernel may not copy either: a thread of the target does"; }
  std::optional<std::string> obstacle(const Device&) const override { return ""; }
  std::optional<ibv_wc_status> put(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& from) const noexcept override {
    AgentLink* agent = target.peer != nullptr ? target.peer->agent() : nullptr;
    if (agent == nullptr) return std::nullopt;
    return copy_failure(agent->copy_to(target.regions, region, address, from));
  }
  std::optional<ibv_wc_status> get(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& to) const noexcept override {
    AgentLink* agent = target.peer != nullptr ? target.peer->agent() : nullptr;
    if (agent == nullptr) return std::nullopt;
    return copy_failure(agent->copy_from(target.regions, region, address, to));
  }
};

}  // namespace

const Way& agent_way() noexcept {
  static const AgentWay way;
  return way;
}

}  // namespace gdrperf::softnic
