#include "objects/mlx5/devx.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "gpu/memory.h"
#include "mlx5/command.h"
#include "mlx5/nic.h"
#include "objects/mlx5/devx_qp.h"
#include "objects/mlx5/devx_rmp.h"
#include "objects/queues/failure.h"

namespace gdrperf::softnic {
namespace {

/// What commands name by numbers. Numbers are never used again, as long as there are others.
struct Known {
  Mutex mutex;
  std::map<std::uint32_t, DevxUmem*> umems GUARDED_BY(mutex);
  std::map<std::uint32_t, Cq*> cqs GUARDED_BY(mutex);
  std::map<std::uint32_t, Srq*> rmps GUARDED_BY(mutex);
  std::uint32_t next_umem GUARDED_BY(mutex) = 1;
  std::uint32_t next_rmp GUARDED_BY(mutex) = 1;
};
Known& known() {
  static Known& all = *new Known();
  return all;
}

/// All of it is mapped.
bool is_mapped(std::uint8_t* address, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + bytes;
  return end >= from && ::msync(reinterpret_cast<void*>(from), end - from, MS_ASYNC) == 0;
}

}  // namespace

DevxUmem* register_umem(Context& context, void* memory, std::size_t bytes) {
  auto* const address = static_cast<std::uint8_t*>(memory);
  if (bytes == 0) throw VerbsFailure{EINVAL};
  const bool in_gpu = gpu::recognises(address, bytes);
  if (!in_gpu && !is_mapped(address, bytes)) throw VerbsFailure{EFAULT};
  auto umem = std::make_unique<DevxUmem>(DevxUmem{0, &context, address, bytes, in_gpu});
  const MutexLock guard(known().mutex);
  umem->id = known().next_umem++;
  known().umems[umem->id] = umem.get();
  return umem.release();
}

int deregister_umem(DevxUmem* umem) {
  {
    const MutexLock guard(known().mutex);
    known().umems.erase(umem->id);
  }
  delete umem;
  return 0;
}

mlx5::Span find_umem(const Context& owner, std::uint32_t id, std::uint64_t offset, std::uint64_t bytes) {
  const MutexLock guard(known().mutex);
  const auto found = known().umems.find(id);
  if (found == known().umems.end() || found->second->owner != &owner) return {};
  const DevxUmem& umem = *found->second;
  if (offset > umem.bytes || bytes > umem.bytes - offset) return {};
  return {umem.address + offset, umem.in_gpu};
}

namespace {

constexpr std::uint32_t kCollapsedEntries = 1024;

/// A CQ, or a refusal in `out`. Bits that say that a umem is valid are the kernel's to set, and not looked at.
std::unique_ptr<Cq> create_cq(Context& context, const mlx5::Words& in, mlx5::Words& out) {
  using namespace mlx5;
  const auto field = [&](Field it) { return in.get32(it.within(cq::kContextAt)); };
  const std::uint32_t shift = field(cq::kLogSize);
  const auto refuse = [&](std::uint32_t syndrome) {
    answer(out, kBadParameter, syndrome);
    return nullptr;
  };
  const bool one_cqe = field(cq::kCollapsed) != 0;
  if ((shift == 0 && !one_cqe) || (1u << shift) > kMaxCqe || field(cq::kCqeSize) != 0) return refuse(1);
  const mlx5::Span ring = find_umem(context, in.get32(cq::kUmem), in.get(cq::kUmemOffset), sizeof(Cqe) << shift);
  const mlx5::Span record = find_umem(context, field(cq::kDbrUmem), in.get(cq::kDbrAddress.within(cq::kContextAt)),
                                      2 * sizeof(std::uint32_t));
  auto page = context.nic->pages.page(field(cq::kUarPage));
  if (ring.address == nullptr || record.address == nullptr || page == nullptr) return refuse(3);
  if ((reinterpret_cast<std::uintptr_t>(ring.address) & 63) != 0 ||
      (reinterpret_cast<std::uintptr_t>(record.address) & 7) != 0)
    return refuse(4);
  // Of a collapsed one, the size says nothing of how many come before the device looks.
  const std::uint32_t entries = one_cqe ? std::max(1u << shift, kCollapsedEntries) : 1u << shift;
  auto made = std::make_unique<Cq>(context, entries, nullptr, nullptr);
  CompletionRing::Placed placed{ring, record, std::move(page), shift, field(cq::kOverrunIgnored) != 0, one_cqe};
  made->cqes = std::make_unique<CompletionRing>(placed);
  if (made->watch_cqes() != 0) {
    answer(out, kNoResources, 5);
    return nullptr;
  }
  return made;
}

}  // namespace

ibv_pd* find_pd(Context& owner, std::uint32_t number) {
  const MutexLock guard(owner.nic->mutex);
  const auto found = owner.nic->pds.find(number);
  return found != owner.nic->pds.end() ? found->second : nullptr;
}

Cq* find_devx_cq(const Context& owner, std::uint32_t number) {
  const MutexLock guard(known().mutex);
  const auto found = known().cqs.find(number);
  return found != known().cqs.end() && &found->second->owner == &owner ? found->second : nullptr;
}

Srq* find_rmp(const Context& owner, std::uint32_t number) {
  const MutexLock guard(known().mutex);
  const auto found = known().rmps.find(number);
  return found != known().rmps.end() && &Context::of(found->second->context) == &owner ? found->second : nullptr;
}

struct DevxObject {
  Context& owner;
  std::unique_ptr<Cq> cq;
  std::unique_ptr<DevxQp> qp;
  std::unique_ptr<Srq> rmp;
  std::uint32_t rmp_number = 0;
};

DevxObject* create_object(Context& context, const void* in_memory, std::size_t in_size, void* out_memory,
                          std::size_t out_size) {
  const mlx5::Words in(const_cast<void*>(in_memory), in_size);
  mlx5::Words out(out_memory, out_size);
  out.clear();
  auto object = std::make_unique<DevxObject>(DevxObject{context, nullptr, nullptr, nullptr});
  switch (in.get32(mlx5::kOpcode)) {
    case mlx5::kCreateCq: {
      object->cq = create_cq(context, in, out);
      if (object->cq == nullptr) break;
      out.set(mlx5::cq::kNumber, object->cq->index);
      const MutexLock guard(known().mutex);
      known().cqs[object->cq->index] = object->cq.get();
      break;
    }
    case mlx5::kCreateQp:
      object->qp = create_devx_qp(context, in, out);
      break;
    case mlx5::kCreateRmp: {
      object->rmp = create_rmp(context, in, out);
      if (object->rmp == nullptr) break;
      const MutexLock guard(known().mutex);
      object->rmp_number = known().next_rmp++ & 0xffffff;
      known().rmps[object->rmp_number] = object->rmp.get();
      out.set(mlx5::rmp::kNumber, object->rmp_number);
      break;
    }
    default:
      answer(out, mlx5::kBadOperation, 0);
  }
  if (object->cq == nullptr && object->qp == nullptr && object->rmp == nullptr) throw VerbsFailure{EREMOTEIO};
  return object.release();
}

int modify_object(DevxObject& object, const void* in_memory, std::size_t in_size, void* out_memory,
                  std::size_t out_size) {
  const mlx5::Words in(const_cast<void*>(in_memory), in_size);
  mlx5::Words out(out_memory, out_size);
  out.clear();
  if (object.qp == nullptr) return answer(out, mlx5::kBadOperation, 0);
  const int error = modify_devx_qp(*object.qp, in);
  return error == 0 ? 0 : answer(out, mlx5::kBadParameter, static_cast<std::uint32_t>(error));
}

int query_object(DevxObject& object, const void* in_memory, std::size_t in_size, void* out_memory,
                 std::size_t out_size) {
  const mlx5::Words in(const_cast<void*>(in_memory), in_size);
  mlx5::Words out(out_memory, out_size);
  out.clear();
  if (object.qp == nullptr || in.get32(mlx5::kOpcode) != mlx5::kQueryQp) return answer(out, mlx5::kBadOperation, 0);
  query_devx_qp(*object.qp, out);
  return 0;
}

int destroy_object(DevxObject* object) {
  if (object->cq != nullptr) {
    if (object->cq->users.load() != 0) return EBUSY;
    const MutexLock guard(known().mutex);
    known().cqs.erase(object->cq->index);
  }
  if (object->rmp != nullptr) {
    if (object->rmp->users.load() != 0) return EBUSY;
    const MutexLock guard(known().mutex);
    known().rmps.erase(object->rmp_number);
  }
  delete object;
  return 0;
}

namespace {

int query_capabilities(const Device& device, const mlx5::Words& in, mlx5::Words& out) {
  using namespace mlx5;
  const auto set = [&](Field field, std::uint64_t value) { out.set(field.within(cap::kAt), value); };
  // The lowest bit: the values at present, or the most that there could be.
  switch (in.get32(kOperationModifier) >> 1) {
    case cap::kGeneral:
      set(cap::kLogQpSize, 15);
      set(cap::kLogQps, kQpIndexBits);
      set(cap::kLogCqSize, 22);
      set(cap::kLogCqs, 12);
      set(cap::kGidTable, 0);  // 8 entries
      set(cap::kPortType, device.infiniband() ? 0 : 1);
      set(cap::kPorts, device.port_count());
      set(cap::kLogMessage, 30);
      set(cap::kRc, 1);
      set(cap::kSqWqeBytes, 1024);
      set(cap::kRqWqeBytes, 512);
      set(cap::kCyclicReceives, 1);
      set(cap::kLogRmps, 16);
      return 0;
    case cap::kRoce:
      set(cap::kRoceFirstPort, 0xc000);
      set(cap::kRoceLastPort, 0xffff);
      set(cap::kRoceAddresses, device.gid_slots());
      return 0;
    default:
      return answer(out, kBadParameter, 6);
  }
}

int query_roce_address(const Device& device, const mlx5::Words& in, mlx5::Words& out) {
  using namespace mlx5;
  ibv_gid_entry entry{};
  if (describe_gid(device, in.get32(roce::kIndex), entry) != 0) return answer(out, kBadParameter, 7);
  out.set_bytes(roce::kAddressAt, entry.gid.raw, sizeof entry.gid.raw);
  out.set_bytes(roce::kAddressAt + roce::kMacAt, device.mac.data(), device.mac.size());
  const std::uint32_t index = entry.gid_index % kGidsPerPort;
  out.set(roce::kL3Type.within(roce::kAddressAt), kGidKinds[index].ipv4 ? 0 : 1);
  out.set(roce::kVersion.within(roce::kAddressAt), entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0);
  return 0;
}

}  // namespace

int general_command(Context& context, const void* in_memory, std::size_t in_size, void* out_memory,
                    std::size_t out_size) {
  const mlx5::Words in(const_cast<void*>(in_memory), in_size);
  mlx5::Words out(out_memory, out_size);
  out.clear();
  switch (in.get32(mlx5::kOpcode)) {
    case mlx5::kQueryHcaCap: return query_capabilities(context.device, in, out);
    case mlx5::kQueryLag: return 0;  // its ports are not bonded
    case mlx5::kQueryRoceAddress: return query_roce_address(context.device, in, out);
    default: return answer(out, mlx5::kBadOperation, 0);
  }
}

}  // namespace gdrperf::softnic
