#include "session_common.h"

namespace gdrperf::engine {

void tell_failure(proto::Channel& channel, const Error& error) noexcept {
  try {
    channel.send(proto::Failure{static_cast<int>(error.code()), error.what(), error.hint()});
  } catch (const Error&) {
    // The peer is gone; it cannot be told.
  }
}

report::EndRecord end_record(const proto::Endpoint& endpoint) {
  report::EndRecord record;
  record.device = endpoint.device;
  record.kind = endpoint.kind;
  record.firmware = endpoint.firmware;
  record.driver = endpoint.driver;
  record.port = endpoint.port;
  record.gid_index = endpoint.gid_index;
  record.gid = endpoint.gid;
  record.gid_type = endpoint.gid_family;
  record.gid_why = endpoint.gid_why;
  record.buffer = endpoint.buffer;
  record.registration = endpoint.registration;
  record.checker = endpoint.checker;
  record.gpu = endpoint.gpu;
  record.cpu = endpoint.cpu;
  record.numa = endpoint.numa;
  return record;
}

}  // namespace gdrperf::engine
