#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "objects/attributes/context.h"
#include "shared/segment/request.h"

namespace gdrperf::softnic {

/// An address handle: where datagrams go.
struct Ah : ibv_ah {
  ibv_ah_attr attributes;
  alignas(8) std::uint8_t mlx5_vector[48];  ///< filled in where a program asks for it
};

/// VerbsFailure with EINVAL for what is no address.
ibv_ah* create_address(Pd& pd, const ibv_ah_attr& attributes);
void destroy_address(ibv_ah* handle);
/// The address of who sent a datagram: 0, or EINVAL for a header that is none or
/// names an address that is not the device's.
int address_of_sender(const Device& device, const ibv_wc& completion, const ibv_grh* header, std::uint8_t port,
                      ibv_ah_attr& attributes);
/// The request goes there.
void address(SendOp& op, const ibv_ah& handle, std::uint32_t qpn, std::uint32_t qkey) noexcept;

}  // namespace gdrperf::softnic
