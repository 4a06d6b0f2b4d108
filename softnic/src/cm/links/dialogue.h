#pragma once

#include <rdma/rdma_user_cm.h>

#include <functional>
#include <memory>

#include "cm/state/events.h"
#include "cm/links/link.h"
#include "cm/wire/message.h"
#include "cm/state/table.h"

namespace gdrperf::softnic {

/// Connecting, accepting and parting: the states of ids, and the messages that lead
/// from one to the next (specification, 12.9). Callers exclude each other. What
/// programs ask for returns 0 or a negative errno.
class CmDialogue {
 public:
  /// `linger` is called with the number of a connection that has ended, to report
  /// it once more when its packets can be under way no longer.
  CmDialogue(CmTable& table, std::function<void(std::uint32_t)> linger) : table_(table), linger_(std::move(linger)) {}

  /// `link`: to the process that listens; null where there is none, or (`error`, a
  /// negative errno) where its host does not answer.
  int connect(CmId& id, const rdma_ucm_conn_param& param, const rdma_ucm_ece& ece, std::shared_ptr<CmLink> link,
              int error);
  /// `uid`: of a request that a program takes from now on.
  int accept(CmId& id, std::uint64_t uid, const rdma_ucm_conn_param& param, const rdma_ucm_ece& ece);
  int reject(CmId& id, CmReject reason, std::span<const std::uint8_t> private_data);
  int disconnect(CmId& id);
  /// The QP got a message before the other end's RTU.
  int notify(CmId& id, std::uint32_t event);
  /// Tells the other end; the id is about to be destroyed.
  void part(CmId& id);

  void handle(const std::shared_ptr<CmLink>& link, const CmMessage& message);
  /// A request for a port that nobody listens at.
  bool lacks_listener(const CmMessage& message);
  void handle_loss(const std::shared_ptr<CmLink>& link);
  /// Some time after `linger`.
  void end_of_linger(std::uint32_t number);

 private:
  CmMessage message_of(const CmId& id, CmKind kind) const;
  static void put_connection(const CmId& id, const rdma_ucm_conn_param& param, CmMessage& message);
  void send(const CmId& id, const CmMessage& message) const;
  void send_reject(CmId& id, CmReject reason) const;
  int accept_request(CmId& id, const rdma_ucm_conn_param& param, const rdma_ucm_ece& ece);
  int accept_datagrams(CmId& id, const rdma_ucm_conn_param& param);
  CmId* listener_for(const CmMessage& message);
  void handle_request(const std::shared_ptr<CmLink>& link, const CmMessage& message);
  void handle_reply(CmId& id, const CmMessage& message);
  void handle_sidr_reply(CmId& id, const CmMessage& message);
  void handle_reject(CmId& id, const CmMessage& message);
  void handle_disconnect(CmId& id);
  void end(CmId& id);
  void refuse(const std::shared_ptr<CmLink>& link, const CmMessage& request, CmReject reason) const;

  CmTable& table_;
  std::function<void(std::uint32_t)> linger_;
};

}  // namespace gdrperf::softnic
