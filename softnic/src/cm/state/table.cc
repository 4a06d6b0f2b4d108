#include "cm/state/table.h"

#include <utility>

namespace gdrperf::softnic {
namespace {

/// librdmacm's table ends there.
constexpr std::uint32_t kMaxHandles = 65536;

template <typename T>
std::uint32_t free_handle(const std::map<std::uint32_t, std::unique_ptr<T>>& taken) {
  std::uint32_t free = 0;
  for (const auto& it : taken) {
    if (it.first != free) break;
    ++free;
  }
  return free;
}

}  // namespace

CmChannel& CmTable::add_channel(std::uint64_t number) {
  auto channel = std::make_unique<CmChannel>();
  channel->number = number;
  return *(channels_[number] = std::move(channel));
}

CmChannel* CmTable::channel(std::uint64_t number) {
  const auto found = channels_.find(number);
  return found == channels_.end() ? nullptr : found->second.get();
}

CmId* CmTable::add_id(CmChannel& channel) {
  const std::uint32_t free = free_handle(ids_);
  if (free >= kMaxHandles) return nullptr;
  auto id = std::make_unique<CmId>();
  id->handle = free;
  id->channel = &channel;
  return (ids_[free] = std::move(id)).get();
}

CmId* CmTable::id(const CmChannel& channel, std::uint32_t handle) {
  const auto found = ids_.find(handle);
  return found == ids_.end() || found->second->channel != &channel ? nullptr : found->second.get();
}

std::vector<CmId*> CmTable::remove_id(CmId& id) {
  std::vector<CmId*> fresh;
  std::deque<CmEvent>& events = id.channel->events;
  for (auto it = events.begin(); it != events.end();) {
    if (it->id != &id) {
      ++it;
      continue;
    }
    if (it->fresh != nullptr) fresh.push_back(it->fresh);
    it = events.erase(it);
  }
  unnumber(id);
  std::erase_if(groups_, [&](const auto& it) { return it.second->id == &id; });
  ids_.erase(id.handle);
  return fresh;
}

CmId* CmTable::any_id_of(const CmChannel& channel) {
  for (const auto& it : ids_) {
    if (it.second->channel == &channel) return it.second.get();
  }
  return nullptr;
}

void CmTable::for_each_id(const std::function<void(CmId&)>& visit) {
  std::vector<CmId*> all;
  for (const auto& it : ids_) all.push_back(it.second.get());
  for (CmId* it : all) visit(*it);
}

void CmTable::for_each_channel(const std::function<void(CmChannel&)>& visit) {
  for (const auto& it : channels_) visit(*it.second);
}

CmGroup* CmTable::add_group(CmId& id, std::uint64_t uid, const ibv_gid& gid) {
  const std::uint32_t free = free_handle(groups_);
  if (free >= kMaxHandles) return nullptr;
  auto group = std::make_unique<CmGroup>();
  group->handle = free;
  group->uid = uid;
  group->id = &id;
  group->gid = gid;
  return (groups_[free] = std::move(group)).get();
}

CmGroup* CmTable::group(const CmChannel& channel, std::uint32_t handle) {
  const auto found = groups_.find(handle);
  return found == groups_.end() || found->second->id->channel != &channel ? nullptr : found->second.get();
}

void CmTable::remove_group(const CmGroup& group) {
  std::erase_if(group.id->channel->events, [&](const CmEvent& it) { return it.group == &group; });
  groups_.erase(group.handle);
}

void CmTable::number(CmId& id) {
  unnumber(id);
  while (next_number_ == 0 || numbered_.contains(next_number_)) ++next_number_;
  id.connection.number = next_number_++;
  numbered_[id.connection.number] = &id;
}

CmId* CmTable::numbered(std::uint32_t number) {
  const auto found = numbered_.find(number);
  return found == numbered_.end() ? nullptr : found->second;
}

void CmTable::unnumber(CmId& id) {
  if (id.connection.number != 0) numbered_.erase(id.connection.number);
  id.connection.number = 0;
}

}  // namespace gdrperf::softnic
