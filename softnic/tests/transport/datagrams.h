#pragma once

#include <cerrno>
#include <cstring>

#include "modelled_link.h"

/// Ends that send datagrams.
namespace softnic_test {

inline constexpr std::uint32_t kGrh = 40;

inline EndOptions ud(const char* device = "soft0", std::uint8_t gid_index = kGidIndex) {
  EndOptions options = on(device);
  options.type = IBV_QPT_UD;
  options.gid_index = gid_index;
  return options;
}

/// An end that is ready, and sends.
struct Sender : End {
  explicit Sender(const EndOptions& given = ud()) : End(given) { EXPECT_EQ(connect({}), 0); }

  Owned<ibv_ah> handle(const ibv_gid& gid) {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = options.port;
    attr.grh.dgid = gid;
    attr.grh.sgid_index = options.gid_index;
    attr.grh.hop_limit = 1;
    Owned<ibv_ah> made(ibv_create_ah(pd.get(), &attr));
    EXPECT_NE(made, nullptr) << std::strerror(errno);
    return made;
  }
  ibv_wc_status send(const Address& to, std::size_t offset, std::uint32_t length, std::uint32_t qkey = kQkey,
                     unsigned opcode = IBV_WR_SEND) {
    const Owned<ibv_ah> ah = handle(to.gid);
    ibv_sge sge = memory->sge(offset, length);
    ibv_send_wr wr = request(static_cast<ibv_wr_opcode>(opcode), {}, sge);
    wr.imm_data = 77;
    wr.wr.ud.ah = ah.get();
    wr.wr.ud.remote_qpn = to.qpn;
    wr.wr.ud.remote_qkey = qkey;
    EXPECT_EQ(post(wr), 0);
    return status_of(send_cq.get());
  }
};

}  // namespace softnic_test
