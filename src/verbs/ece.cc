#include "gdrperf/verbs/ece.h"

#include <cerrno>

#include <fmt/format.h>

#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/compat.h"

namespace gdrperf::verbs {

proto::Ece query_ece(ibv_qp* qp) {
  ibv_ece ece{};
  if (::ibv_query_ece(qp, &ece) != 0) return {};
  return {ece.vendor_id, ece.options};
}

int set_ece(ibv_qp* qp, proto::Ece ece) {
  ibv_ece asked{ece.vendor, ece.options, 0};
  const int result = ::ibv_set_ece(qp, &asked);
  return result >= 0 ? result : errno;
}

std::string to_text(proto::Ece ece) {
  return ece ? fmt::format("vendor {:#x}, options {:#x}", ece.vendor, ece.options) : std::string();
}

Error no_ece(std::string_view device) {
  return Error(
      ExitCode::kEnvironment,
      fmt::format("{} on: {} has no enhanced connection establishment (ibv_query_ece)", flag<&TestSpec::ece>(), device),
      fmt::format("leave it out, or give {} auto: the QPs connect without", flag<&TestSpec::ece>()));
}

}  // namespace gdrperf::verbs
