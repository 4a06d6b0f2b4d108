#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cm/wire/channel.h"
#include "cm/state/id.h"

namespace gdrperf::softnic {

/// The ids and channels of this process. Callers exclude each other.
class CmTable {
 public:
  CmChannel& add_channel(std::uint64_t number);
  CmChannel* channel(std::uint64_t number);
  void remove_channel(std::uint64_t number) { channels_.erase(number); }

  /// Null: all handles that librdmacm can keep are in use.
  CmId* add_id(CmChannel& channel);
  /// Null: no such id, or another channel's.
  CmId* id(const CmChannel& channel, std::uint32_t handle);
  /// With the events that are its own; returns the ids of requests among them, which
  /// no program knows.
  std::vector<CmId*> remove_id(CmId& id);
  CmId* any_id_of(const CmChannel& channel);
  void for_each_id(const std::function<void(CmId&)>& visit);
  void for_each_channel(const std::function<void(CmChannel&)>& visit);

  /// Null: all handles are in use.
  CmGroup* add_group(CmId& id, std::uint64_t uid, const ibv_gid& gid);
  /// Null: no such group, or another channel's.
  CmGroup* group(const CmChannel& channel, std::uint32_t handle);
  /// With the events that are its own.
  void remove_group(const CmGroup& group);

  /// Gives the id a number for a connection.
  void number(CmId& id);
  /// Null: none has it.
  CmId* numbered(std::uint32_t number);
  void unnumber(CmId& id);

 private:
  std::map<std::uint64_t, std::unique_ptr<CmChannel>> channels_;
  std::map<std::uint32_t, std::unique_ptr<CmId>> ids_;
  std::map<std::uint32_t, std::unique_ptr<CmGroup>> groups_;
  std::map<std::uint32_t, CmId*> numbered_;
  std::uint32_t next_number_ = 1;
};

}  // namespace gdrperf::softnic
