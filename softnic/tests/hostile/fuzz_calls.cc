#include "fuzz_world.h"

/// The calls that use objects without destroying any.
namespace softnic_fuzz {
namespace {

unsigned send_flags(Random& random) {
  return static_cast<unsigned>(random()) & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE);
}

constexpr std::uint32_t kQkey = 0x4711;

/// Opcodes, some of which are none.
ibv_wr_opcode opcode(Random& random) {
  return static_cast<ibv_wr_opcode>(random.wrong(4) ? random.below(16) : random.below(random.wild ? 10 : 7));
}

}  // namespace

void World::use(Random& random) {
  const std::uint32_t slot = random() % kSlots;
  End& end = ends_[slot];
  if (end.qp == nullptr) return;
  switch (random() % 16) {
    case 0: case 1: case 2: case 3: return post_sends(end, slot, random);
    case 4: case 5: return build_sends(end, slot, random);
    case 6: case 7: case 8: return post_receives(end, random);
    case 9: case 10: case 11: case 12: return poll(end, random);
    case 13: return ask(end, random);
    case 14:
      return end.qp->qp_type == IBV_QPT_UD && random.one_in(2) ? join_or_leave(end, random) : refuse(end, random);
    default:
      if (random.wrong(2)) return modify_wildly(end, random);
      return reconnect(end, slot, random);
  }
}

/// Brings back what has failed, or whose peer is another by now.
void World::reconnect(End& end, std::uint32_t slot, Random& random) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ibv_query_qp(end.qp, &attr, IBV_QP_STATE, &init);
  const bool met = end.qp->qp_type == IBV_QPT_UD || attr.dest_qp_num == peer(slot).qpn.load();
  const bool right = attr.qp_state == IBV_QPS_RTS && met;
  if (!right || random.one_in(500)) connect(end, slot, random);
}

void World::connect(End& end, std::uint32_t slot, Random& random) {
  const Entry& other = peer(slot);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ibv_modify_qp(end.qp, &attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = end.device == 0 && random.wrong(4) ? 2 : 1;
  if (!random.one_in(8)) {
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  }
  attr.qkey = random.wrong(4) ? random() : kQkey;
  const ibv_qp_type type = end.qp->qp_type;
  ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                   (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = random.wrong(3) ? random() : other.qpn.load();
  attr.max_dest_rd_atomic = random.wrong(2) ? 0 : 4;
  attr.min_rnr_timer = static_cast<std::uint8_t>(1 + random() % 4);
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = random.wrong(8) ? 2 : attr.port_num;
  attr.ah_attr.grh.sgid_index = 2;
  attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
  attr.ah_attr.grh.dgid.raw[12] = 127;
  attr.ah_attr.grh.dgid.raw[15] = static_cast<std::uint8_t>(other.device.load() + 1);
  int ready_to_receive = IBV_QP_STATE;
  if (type != IBV_QPT_UD) ready_to_receive |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_RC || is_xrc(type)) ready_to_receive |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  ibv_modify_qp(end.qp, &attr, ready_to_receive);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = static_cast<std::uint8_t>(8 + random() % 4);
  attr.retry_cnt = static_cast<std::uint8_t>(random() % 3);
  attr.rnr_retry = static_cast<std::uint8_t>(random() % 8);
  attr.max_rd_atomic = random.wrong(2) ? 0 : 4;
  int ready_to_send = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_RC || is_xrc(type))
    ready_to_send |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  ibv_modify_qp(end.qp, &attr, ready_to_send);
}

void World::modify_wildly(End& end, Random& random) {
  ibv_qp_attr attr{};
  auto* bytes = reinterpret_cast<std::uint8_t*>(&attr);
  for (std::size_t i = 0; i < sizeof attr; ++i) {
    if (random.one_in(3)) bytes[i] = static_cast<std::uint8_t>(random());
  }
  attr.qp_state = static_cast<ibv_qp_state>(random() % 8);
  attr.cur_qp_state = static_cast<ibv_qp_state>(random() % 8);
  // Blocks of QP numbers that nobody has, not those of other programs.
  attr.dest_qp_num &= 0xfff;
  const int mask = random.one_in(2) ? int{IBV_QP_STATE} : static_cast<int>(random() & 0x1ffffff);
  ibv_modify_qp(end.qp, &attr, mask);
}

ibv_sge World::piece(const End& end, Random& random) const {
  ibv_sge sge{};
  sge.length = random.any(random.one_in(8) ? 16384 : 512);
  sge.addr = reinterpret_cast<std::uint64_t>(end.mr->addr) + random() % kRegionBytes;
  if (random.wrong(8)) sge.addr = static_cast<std::uint64_t>(random()) << 32 | random();
  // Mostly inside.
  if (!random.wrong(3)) sge.addr = reinterpret_cast<std::uint64_t>(end.mr->addr) + random() % (kRegionBytes / 2);
  sge.lkey = random.wrong(8) ? random() : end.mr->lkey;
  return sge;
}

void World::remote(std::uint32_t slot, Random& random, std::uint64_t& address, std::uint32_t& rkey) const {
  const Entry& other = peer(slot);
  // Often where the others write and what is sent inline is read.
  address = other.address + (random() % (random.one_in(4) ? 64 : kRegionBytes / 2) & ~7u);
  rkey = random.wrong(2) ? other.window.load() : other.rkey.load();
  if (random.wrong(10)) address += random();
  if (random.wrong(10)) rkey ^= 1u << random() % 32;
}

void World::post_sends(End& end, std::uint32_t slot, Random& random) {
  ibv_send_wr requests[3] = {};
  ibv_sge pieces[3][5];
  const std::size_t count = 1 + random() % 3;
  for (std::size_t i = 0; i < count; ++i) {
    ibv_send_wr& wr = requests[i];
    wr.wr_id = random();
    wr.next = i + 1 < count ? &requests[i + 1] : nullptr;
    const bool datagram = end.qp->qp_type == IBV_QPT_UD;
    wr.opcode = datagram && !random.wrong(4) ? IBV_WR_SEND : opcode(random);
    wr.send_flags = send_flags(random);
    // Inline data is read where it lies: it has to be there, with the length that is said.
    const bool inlined = (wr.send_flags & IBV_SEND_INLINE) != 0;
    wr.num_sge = random.wrong(5) ? static_cast<int>(random() % 9) - 2 : static_cast<int>(random() % 4);
    wr.sg_list = pieces[i];
    for (ibv_sge& sge : pieces[i]) {
      sge = piece(end, random);
      if (inlined) sge = {reinterpret_cast<std::uint64_t>(end.mr->addr), static_cast<std::uint32_t>(random() % 40), 0};
    }
    if (wr.num_sge > 5) wr.num_sge = random.one_in(2) ? 5 : 1 << 20;
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    remote(slot, random, address, rkey);
    if (datagram) {
      // Its address is read whatever the opcode is.
      wr.wr.ud = {random.wrong(8) ? nullptr : handle(end, slot, random), peer(slot).qpn.load(), kQkey};
      if (random.wrong(6)) wr.wr.ud.remote_qpn = random() & 0xffffff;
      if (random.wrong(6)) wr.wr.ud.remote_qkey = random();
    } else if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {address, random(), random(), rkey};
      wr.num_sge = random.wrong(2) ? wr.num_sge : 1;
      pieces[i][0].length = random.wrong(2) ? pieces[i][0].length : 8;
    } else if (wr.opcode == IBV_WR_BIND_MW) {
      if (end.mw == nullptr) wr.opcode = IBV_WR_SEND;
      wr.bind_mw.mw = end.mw;
      wr.bind_mw.rkey = end.mw != nullptr ? end.mw->rkey + static_cast<std::uint32_t>(random() % 3) : 0;
      wr.bind_mw.bind_info = {end.mr, reinterpret_cast<std::uint64_t>(end.mr->addr), random.any(kRegionBytes),
                              static_cast<unsigned>(random()) & 0xf};
    } else if (wr.opcode == IBV_WR_SEND_WITH_INV || wr.opcode == IBV_WR_LOCAL_INV) {
      wr.invalidate_rkey = random.one_in(2) ? peer(slot).window.load() : rkey;
    } else {
      wr.wr.rdma = {address, rkey};
    }
    wr.qp_type.xrc.remote_srqn = random.wrong(4) ? random() & 0xffffff : peer(slot).srq.load();
  }
  ibv_send_wr* bad = nullptr;
  ibv_post_send(end.qp, requests, &bad);
}

void World::build_sends(End& end, std::uint32_t slot, Random& random) {
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(end.qp);
  if (qp == nullptr) return;
  ibv_wr_start(qp);
  const std::size_t count = random() % 4;
  for (std::size_t i = 0; i < count; ++i) {
    qp->wr_id = random();
    qp->wr_flags = send_flags(random) & ~static_cast<unsigned>(IBV_SEND_INLINE);
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    remote(slot, random, address, rkey);
    if (end.qp->qp_type == IBV_QPT_UD) {
      ibv_wr_send(qp);
      ibv_wr_set_ud_addr(qp, handle(end, slot, random), peer(slot).qpn.load(), kQkey);
    } else if (random.one_in(2)) {
      ibv_wr_send(qp);
    } else {
      ibv_wr_rdma_write(qp, rkey, address);
    }
    if (end.qp->qp_type == IBV_QPT_XRC_SEND)
      ibv_wr_set_xrc_srqn(qp, random.wrong(4) ? random() : peer(slot).srq.load());
    const ibv_sge list[5] = {piece(end, random), piece(end, random), piece(end, random), piece(end, random),
                             piece(end, random)};
    switch (random() % 3) {
      case 0: ibv_wr_set_sge(qp, list[0].lkey, list[0].addr, list[0].length); break;
      case 1: ibv_wr_set_sge_list(qp, random() % 6, list); break;
      default: ibv_wr_set_inline_data(qp, end.mr->addr, random() % 80); break;
    }
  }
  if (random.one_in(6)) {
    ibv_wr_abort(qp);
  } else {
    ibv_wr_complete(qp);
  }
}

void World::post_receives(End& end, Random& random) {
  ibv_recv_wr requests[4] = {};
  ibv_sge pieces[4][5];
  const std::size_t count = 1 + random() % 4;
  for (std::size_t i = 0; i < count; ++i) {
    requests[i].wr_id = random();
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
    requests[i].num_sge = random.wrong(6) ? static_cast<int>(random() % 8) - 2 : 1;
    requests[i].sg_list = pieces[i];
    for (ibv_sge& sge : pieces[i]) sge = piece(end, random);
    if (!random.wrong(2)) pieces[i][0].length = kRegionBytes / 2;
    if (requests[i].num_sge > 5) requests[i].num_sge = 1 << 20;
  }
  ibv_recv_wr* bad = nullptr;
  if (end.srq != nullptr && !random.wrong(3)) {
    ibv_post_srq_recv(end.srq, requests, &bad);
  } else {
    ibv_post_recv(end.qp, requests, &bad);
  }
}

void World::poll(End& end, Random& random) {
  if (end.extended_cq && random.one_in(2)) return poll_extended(end);
  ibv_wc done[8];
  for (ibv_cq* cq : {end.send_cq, end.recv_cq}) {
    const int count = ibv_poll_cq(cq, static_cast<int>(random() % 9), done);
    for (int i = 0; i < count; ++i) {
      if (done[i].status == IBV_WC_SUCCESS) board_.delivered.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

void World::poll_extended(End& end) {
  auto* cq = reinterpret_cast<ibv_cq_ex*>(end.send_cq);
  ibv_poll_cq_attr attr{};
  if (ibv_start_poll(cq, &attr) != 0) return;
  do {
    ibv_wc_read_completion_ts(cq);
    if (cq->status == IBV_WC_SUCCESS) board_.delivered.fetch_add(1, std::memory_order_relaxed);
    ibv_wc_read_opcode(cq);
    ibv_wc_read_byte_len(cq);
    ibv_wc_read_wc_flags(cq);
  } while (ibv_next_poll(cq) == 0);
  ibv_end_poll(cq);
}

void World::ask(End& end, Random& random) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  switch (random() % 7) {
    case 0: ibv_query_qp(end.qp, &attr, static_cast<int>(random()), &init); break;
    case 1: ibv_req_notify_cq(random.one_in(2) ? end.send_cq : end.recv_cq, static_cast<int>(random() % 2)); break;
    case 2: {
      ibv_cq* cq = nullptr;
      void* user = nullptr;
      if (ibv_get_cq_event(channel_, &cq, &user) == 0) ibv_ack_cq_events(cq, 1);
      break;
    }
    case 3: {
      ibv_async_event event{};
      if (ibv_get_async_event(contexts_[random() % contexts_.size()], &event) == 0) ibv_ack_async_event(&event);
      break;
    }
    case 4: {
      ibv_srq_attr srq{};
      if (end.srq == nullptr) break;
      ibv_query_srq(end.srq, &srq);
      srq.srq_limit = random.any(40);
      ibv_modify_srq(end.srq, &srq, random.one_in(8) ? static_cast<int>(random()) : IBV_SRQ_LIMIT);
      break;
    }
    case 5:
      if (random.wrong(3)) ibv_resize_cq(end.recv_cq, static_cast<int>(random.any(200) & 0xffffff));
      break;
    default: {
      ibv_device_attr device{};
      ibv_query_device(contexts_[0], &device);
      ibv_port_attr port{};
      ibv_query_port(contexts_[0], static_cast<std::uint8_t>(random()), &port);
      ibv_gid gid{};
      ibv_query_gid(contexts_[0], static_cast<std::uint8_t>(random() % 3), static_cast<int>(random()) % 5, &gid);
    }
  }
}

void World::join_or_leave(End& end, Random& random) {
  ibv_gid gid = multicast_group(random.below(kGroups));
  // It leaves what is no group of the fuzzer's at once: with the others it is destroyed.
  const bool wrong = random.wrong(4);
  if (wrong) gid.raw[random.below(16)] = static_cast<std::uint8_t>(random());
  if (wrong || random.one_in(2)) ibv_attach_mcast(end.qp, &gid, static_cast<std::uint16_t>(random()));
  if (wrong || random.one_in(4)) ibv_detach_mcast(end.qp, &gid, 0);
}

/// Requests for objects with what cannot be.
void World::refuse(End& end, Random& random) {
  const auto pd_index = static_cast<std::size_t>(random()) % pds_.size();
  const bool other = pd_index != static_cast<std::size_t>(end.device);
  ibv_qp_init_attr init{};
  init.send_cq = random.one_in(8) ? nullptr : end.send_cq;
  init.recv_cq = random.one_in(8) ? nullptr : end.recv_cq;
  init.qp_type = static_cast<ibv_qp_type>(random() % 12);
  init.cap = {random.any(64), random.any(64), random.any(4), random.any(4), random.any(64)};
  if (other || init.qp_type != IBV_QPT_RC) {
    ibv_qp* made = ibv_create_qp(pds_[pd_index], &init);
    if (made != nullptr) ibv_destroy_qp(made);
  }
  ibv_ah_attr path{};
  path.is_global = random.one_in(2);
  path.port_num = static_cast<std::uint8_t>(random() % 3);
  path.grh.sgid_index = static_cast<std::uint8_t>(random() % 8);
  if (ibv_ah* ah = ibv_create_ah(end.pd, &path)) ibv_destroy_ah(ah);
  const auto address = reinterpret_cast<std::uint64_t>(end.mr->addr);
  auto* wild = reinterpret_cast<void*>(random.one_in(2) ? static_cast<std::uint64_t>(random()) << 24 : ~address);
  if (ibv_mr* made = ibv_reg_mr_iova2(end.pd, wild, random.any(1 << 20), random(), static_cast<unsigned>(random()))) {
    ibv_dereg_mr(made);
  }
}

void World::window(End& end, std::uint32_t slot, Random& random) {
  if (end.mw == nullptr) return;
  ibv_mw_bind bind{};
  bind.wr_id = random();
  bind.send_flags = send_flags(random) & ~static_cast<unsigned>(IBV_SEND_INLINE);
  bind.bind_info = {end.mr, reinterpret_cast<std::uint64_t>(end.mr->addr) + random() % 4096, random.any(4096),
                    static_cast<unsigned>(random()) & 0xf};
  if (random.one_in(4)) bind.bind_info = {nullptr, 0, 0, 0};
  ibv_bind_mw(end.qp, end.mw, &bind);
  board_.entries[side_][slot].window = end.mw->rkey;
}

}  // namespace softnic_fuzz
