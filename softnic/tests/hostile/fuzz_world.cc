#include "fuzz_world.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace softnic_fuzz {
namespace {

constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "softnic_fuzz: %s\n", what);
  std::abort();
}

ibv_context* open_named(const char* name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_context* context = nullptr;
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  require(context != nullptr, "no software device");
  return context;
}

ibv_ah* make_handle(ibv_pd* pd, const ibv_gid& to) {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.sgid_index = 2;
  path.grh.dgid = to;
  ibv_ah* const made = ibv_create_ah(pd, &path);
  require(made != nullptr, "ibv_create_ah failed");
  return made;
}

}  // namespace

World::World(Board& board, int side) : board_(board), side_(side), ends_(kSlots) {
  for (const char* name : {"soft0", "soft1", "stay0", "agent0"}) {
    contexts_.push_back(open_named(name));
    pds_.push_back(ibv_alloc_pd(contexts_.back()));
    require(pds_.back() != nullptr, "ibv_alloc_pd failed");
    ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
    domains_.push_back(ibv_open_xrcd(contexts_.back(), &attr));
    require(domains_.back() != nullptr, "ibv_open_xrcd failed");
  }
  for (ibv_pd* pd : pds_) {
    handles_.emplace_back();
    for (ibv_context* there : contexts_) {
      ibv_gid gid{};
      require(ibv_query_gid(there, 1, 2, &gid) == 0, "ibv_query_gid failed");
      handles_.back().push_back(make_handle(pd, gid));
    }
    for (std::uint32_t group = 0; group < kGroups; ++group)
      handles_.back().push_back(make_handle(pd, multicast_group(group)));
  }
  channel_ = ibv_create_comp_channel(contexts_[0]);
  for (ibv_context* context : contexts_) ::fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
  ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    constexpr std::size_t kAll = kRegionBytes + 2 * kPageBytes;
    void* base = ::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(base != MAP_FAILED, "mmap failed");
    std::memset(base, kGuard, kAll);
    regions_.push_back({static_cast<std::uint8_t*>(base)});
  }
}

World::~World() {
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) unmake(slot);
  require(ibv_destroy_comp_channel(channel_) == 0, "ibv_destroy_comp_channel failed");
  for (const auto& handles : handles_) {
    for (ibv_ah* ah : handles) require(ibv_destroy_ah(ah) == 0, "ibv_destroy_ah failed");
  }
  for (ibv_xrcd* domain : domains_) require(ibv_close_xrcd(domain) == 0, "ibv_close_xrcd failed");
  for (ibv_pd* pd : pds_) require(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd failed at the end");
  for (ibv_context* context : contexts_) require(ibv_close_device(context) == 0, "ibv_close_device failed");
}

bool World::guards_whole() const {
  for (const Region& region : regions_) {
    for (std::size_t i = 0; i < kPageBytes; ++i) {
      if (region.base[i] != kGuard || region.data()[kRegionBytes + i] != kGuard) return false;
    }
  }
  return true;
}

std::uint32_t World::peer_slot(std::uint32_t slot) const {
  return slot < kSlots * 2 / 3 ? slot : slot ^ 1;
}

ibv_gid multicast_group(std::uint32_t number) {
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  gid.raw[1] = 0x0e;
  // Not those of another fuzzer.
  const pid_t all = ::getpgrp();
  std::memcpy(gid.raw + 4, &all, sizeof all);
  gid.raw[15] = static_cast<std::uint8_t>(number);
  return gid;
}

ibv_qp_type World::type_of(std::uint32_t slot) const {
  // Six pairs of slots between processes, and three within one.
  constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_RC,
                                    IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND};
  static_assert(sizeof kTypes / sizeof *kTypes * 2 == kSlots);
  const ibv_qp_type type = kTypes[slot / 2];
  const bool within = slot >= kSlots * 2 / 3;
  const bool sends = ((slot ^ (within ? 0u : static_cast<unsigned>(side_))) & 1) == 0;
  return type == IBV_QPT_XRC_SEND && !sends ? IBV_QPT_XRC_RECV : type;
}

ibv_ah* World::handle(const End& end, std::uint32_t slot, Random& random) const {
  if (random.one_in(8)) return handles_[static_cast<std::size_t>(end.device)][contexts_.size() + random.below(kGroups)];
  const std::uint32_t there = random.wrong(6) ? random() : peer(slot).device.load();
  const auto& handles = handles_[static_cast<std::size_t>(end.device)];
  return handles[there % handles.size()];
}

const Entry& World::peer(std::uint32_t slot) const {
  return board_.entries[slot < kSlots * 2 / 3 ? 1 - side_ : side_][peer_slot(slot)];
}

void World::step(Random& random) {
  board_.calls.fetch_add(1, std::memory_order_relaxed);
  random.wild = random.one_in(8);
  if (random.one_in(400)) {
    const std::unique_lock alone(mutex_);
    change(random);
  } else {
    const std::shared_lock together(mutex_);
    use(random);
  }
}

void World::change(Random& random) {
  const std::uint32_t slot = random.below(kSlots);
  if (ends_[slot].qp == nullptr) {
    make(slot, random);
  } else if (random.one_in(2)) {
    window(ends_[slot], slot, random);  // changes the window's key, which others read
  } else if (random.one_in(3)) {
    unmake_in_wrong_order(slot, random);
  } else if (random.one_in(2)) {
    unmake(slot);
  }
}

void World::make(std::uint32_t slot, Random& random) {
  End& end = ends_[slot];
  end.device = static_cast<int>(random() % contexts_.size());
  ibv_context* context = contexts_[static_cast<std::size_t>(end.device)];
  end.pd = pds_[static_cast<std::size_t>(end.device)];
  ibv_comp_channel* channel = end.device == 0 && random.one_in(2) ? channel_ : nullptr;
  end.extended_cq = type_of(slot) != IBV_QPT_XRC_RECV && random.one_in(3);
  if (end.extended_cq) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 1 + random() % 100;
    attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    attr.channel = channel;
    end.send_cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &attr));
  } else {
    end.send_cq = ibv_create_cq(context, static_cast<int>(1 + random() % 100), nullptr, channel, 0);
  }
  // Not with the extended one: it is read between start and end.
  const bool one_queue = type_of(slot) == IBV_QPT_XRC_RECV;
  end.recv_cq = !one_queue && (end.extended_cq || random.one_in(2))
                    ? ibv_create_cq(context, static_cast<int>(1 + random() % 100), nullptr, channel, 0)
                    : end.send_cq;
  require(end.send_cq != nullptr && end.recv_cq != nullptr, "ibv_create_cq failed");
  if (!is_xrc(type_of(slot)) && random.one_in(3)) {
    ibv_srq_init_attr attr{};
    attr.attr = {1 + random.below(40), 1 + random.below(3),
                 random.below(4)};
    end.srq = ibv_create_srq(end.pd, &attr);
    require(end.srq != nullptr, "ibv_create_srq failed");
  }
  const int access = random.one_in(10) ? IBV_ACCESS_LOCAL_WRITE : kAllAccess;
  end.mr = ibv_reg_mr_iova2(end.pd, regions_[slot].data(), kRegionBytes,
                            reinterpret_cast<std::uint64_t>(regions_[slot].data()), static_cast<unsigned>(access));
  require(end.mr != nullptr, "ibv_reg_mr failed");
  if (type_of(slot) == IBV_QPT_XRC_RECV) {
    make_xrc_receiver(end, random);
  } else {
    make_qp(end, slot, random);
  }
  if (random.one_in(2)) end.mw = ibv_alloc_mw(end.pd, random.one_in(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
  Entry& entry = board_.entries[side_][slot];
  entry.device = static_cast<std::uint32_t>(end.device);
  entry.gid_index = 2;
  entry.address = reinterpret_cast<std::uint64_t>(end.mr->addr);
  entry.rkey = end.mr->rkey;
  entry.window = end.mw != nullptr ? end.mw->rkey : 0;
  std::uint32_t srq = 0;
  if (type_of(slot) == IBV_QPT_XRC_RECV) require(ibv_get_srq_num(end.srq, &srq) == 0, "ibv_get_srq_num failed");
  entry.srq = srq;
  entry.qpn = end.qp->qp_num;
  if (!random.one_in(8)) connect(end, slot, random);
}

void World::make_qp(End& end, std::uint32_t slot, Random& random) {
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = end.send_cq;
  attr.recv_cq = end.recv_cq;
  attr.srq = end.srq;
  attr.qp_type = type_of(slot);
  attr.sq_sig_all = random.one_in(2) ? 1 : 0;
  attr.cap = {1 + random.below(60), 1 + random.below(60), 4, 4, 64};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = end.pd;
  if (random.one_in(2)) {
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
    if (attr.qp_type != IBV_QPT_UD) attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;
  }
  end.qp = ibv_create_qp_ex(contexts_[static_cast<std::size_t>(end.device)], &attr);
  require(end.qp != nullptr, "ibv_create_qp_ex failed");
}

/// Its SRQ, which completes into the one CQ, and what receives for that.
void World::make_xrc_receiver(End& end, Random& random) {
  ibv_xrcd* const domain = domains_[static_cast<std::size_t>(end.device)];
  ibv_srq_init_attr_ex of_srq{};
  of_srq.attr = {1 + random.below(40), 1 + random.below(3), 0};
  of_srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  of_srq.srq_type = IBV_SRQT_XRC;
  of_srq.pd = end.pd;
  of_srq.xrcd = domain;
  of_srq.cq = end.recv_cq;
  end.srq = ibv_create_srq_ex(contexts_[static_cast<std::size_t>(end.device)], &of_srq);
  require(end.srq != nullptr, "ibv_create_srq_ex failed");
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_XRC_RECV;
  attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  attr.xrcd = domain;
  end.qp = ibv_create_qp_ex(contexts_[static_cast<std::size_t>(end.device)], &attr);
  require(end.qp != nullptr, "ibv_create_qp_ex of XRC failed");
}

void World::unmake(std::uint32_t slot) {
  End& end = ends_[slot];
  if (end.qp == nullptr) return;
  if (end.qp->qp_type == IBV_QPT_UD) {
    for (std::uint32_t group = 0; group < kGroups; ++group) {
      const ibv_gid gid = multicast_group(group);
      ibv_detach_mcast(end.qp, &gid, 0);
    }
  }
  require(ibv_destroy_qp(end.qp) == 0, "ibv_destroy_qp failed");
  if (end.mw != nullptr) require(ibv_dealloc_mw(end.mw) == 0, "ibv_dealloc_mw failed");
  require(ibv_dereg_mr(end.mr) == 0, "ibv_dereg_mr failed");
  if (end.srq != nullptr) require(ibv_destroy_srq(end.srq) == 0, "ibv_destroy_srq failed");
  require(ibv_destroy_cq(end.send_cq) == 0, "ibv_destroy_cq failed");
  if (end.recv_cq != end.send_cq) require(ibv_destroy_cq(end.recv_cq) == 0, "ibv_destroy_cq failed");
  end = {};
}

/// Objects in use are not destroyed, and go on to work.
void World::unmake_in_wrong_order(std::uint32_t slot, Random& random) {
  End& end = ends_[slot];
  require(ibv_dealloc_pd(end.pd) != 0, "a PD in use was destroyed");
  require(ibv_destroy_cq(end.send_cq) != 0, "a CQ in use was destroyed");
  // Of XRC nobody is tied to an SRQ: requests name it.
  if (end.srq != nullptr && !is_xrc(end.qp->qp_type))
    require(ibv_destroy_srq(end.srq) != 0, "an SRQ in use was destroyed");
  // A region goes while peers use it.
  if (end.mw == nullptr) {
    require(ibv_dereg_mr(end.mr) == 0, "ibv_dereg_mr failed");
    end.mr = ibv_reg_mr_iova2(end.pd, regions_[slot].data(), kRegionBytes,
                              reinterpret_cast<std::uint64_t>(regions_[slot].data()), kAllAccess);
    require(end.mr != nullptr, "ibv_reg_mr failed");
    if (!random.one_in(3)) board_.entries[side_][slot].rkey = end.mr->rkey;
  }
}

}  // namespace softnic_fuzz
