// A program of librpma: one process offers memory, another writes to it and reads it back.
#include <librpma.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr std::size_t kBytes = 65536;
using Memory = std::array<char, kBytes>;

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: %s\n", what, rpma_err_2str(result));
  std::exit(1);
}

rpma_peer* peer_at(rpma_util_ibv_context_type type) {
  ibv_context* context = nullptr;
  rpma_peer* peer = nullptr;
  check(rpma_utils_get_ibv_context(kAddress, type, &context), "rpma_utils_get_ibv_context");
  check(rpma_peer_new(context, &peer), "rpma_peer_new");
  return peer;
}

void await(rpma_conn* connection, rpma_conn_event wanted) {
  rpma_conn_event event = RPMA_CONN_UNDEFINED;
  check(rpma_conn_next_event(connection, &event), "rpma_conn_next_event");
  if (event == wanted) return;
  std::fprintf(stderr, "%s instead of %s\n", rpma_utils_conn_event_2str(event), rpma_utils_conn_event_2str(wanted));
  std::exit(1);
}

void serve(const char* port, int listening) {
  static Memory memory;
  rpma_peer* peer = peer_at(RPMA_UTIL_IBV_CONTEXT_LOCAL);
  rpma_ep* endpoint = nullptr;
  rpma_mr_local* region = nullptr;
  rpma_conn_req* request = nullptr;
  rpma_conn* connection = nullptr;
  check(rpma_ep_listen(peer, kAddress, port, &endpoint), "rpma_ep_listen");
  check(rpma_mr_reg(peer, memory.data(), kBytes, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC, &region),
        "rpma_mr_reg");
  std::size_t size = 0;
  check(rpma_mr_get_descriptor_size(region, &size), "rpma_mr_get_descriptor_size");
  std::string descriptor(size, '\0');
  check(rpma_mr_get_descriptor(region, descriptor.data()), "rpma_mr_get_descriptor");
  if (write(listening, "!", 1) != 1) std::exit(1);
  check(rpma_ep_next_conn_req(endpoint, nullptr, &request), "rpma_ep_next_conn_req");
  rpma_conn_private_data data{.ptr = descriptor.data(), .len = static_cast<std::uint8_t>(size)};
  check(rpma_conn_req_connect(&request, &data, &connection), "rpma_conn_req_connect");
  await(connection, RPMA_CONN_ESTABLISHED);
  await(connection, RPMA_CONN_CLOSED);
  check(rpma_conn_disconnect(connection), "rpma_conn_disconnect");
  check(rpma_conn_delete(&connection), "rpma_conn_delete");
  check(rpma_mr_dereg(&region), "rpma_mr_dereg");
  check(rpma_ep_shutdown(&endpoint), "rpma_ep_shutdown");
  check(rpma_peer_delete(&peer), "rpma_peer_delete");
}

void complete(rpma_conn* connection) {
  rpma_cq* queue = nullptr;
  check(rpma_conn_get_cq(connection, &queue), "rpma_conn_get_cq");
  check(rpma_cq_wait(queue), "rpma_cq_wait");
  ibv_wc completion{};
  check(rpma_cq_get_wc(queue, 1, &completion, nullptr), "rpma_cq_get_wc");
  if (completion.status != IBV_WC_SUCCESS) {
    std::fprintf(stderr, "completion: %s\n", ibv_wc_status_str(completion.status));
    std::exit(1);
  }
}

void ask(const char* port) {
  static Memory sent;
  static Memory read_back;
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<char>(i * 7 + i / 256);
  rpma_peer* peer = peer_at(RPMA_UTIL_IBV_CONTEXT_REMOTE);
  rpma_conn_req* request = nullptr;
  rpma_conn* connection = nullptr;
  rpma_mr_local* from = nullptr;
  rpma_mr_local* to = nullptr;
  rpma_mr_remote* there = nullptr;
  check(rpma_conn_req_new(peer, kAddress, port, nullptr, &request), "rpma_conn_req_new");
  check(rpma_conn_req_connect(&request, nullptr, &connection), "rpma_conn_req_connect");
  await(connection, RPMA_CONN_ESTABLISHED);
  rpma_conn_private_data data{};
  check(rpma_conn_get_private_data(connection, &data), "rpma_conn_get_private_data");
  check(rpma_mr_remote_from_descriptor(data.ptr, data.len, &there), "rpma_mr_remote_from_descriptor");
  check(rpma_mr_reg(peer, sent.data(), kBytes, RPMA_MR_USAGE_WRITE_SRC, &from), "rpma_mr_reg");
  check(rpma_mr_reg(peer, read_back.data(), kBytes, RPMA_MR_USAGE_READ_DST, &to), "rpma_mr_reg");
  check(rpma_write(connection, there, 0, from, 0, kBytes, RPMA_F_COMPLETION_ALWAYS, nullptr), "rpma_write");
  complete(connection);
  check(rpma_read(connection, to, 0, there, 0, kBytes, RPMA_F_COMPLETION_ALWAYS, nullptr), "rpma_read");
  complete(connection);
  if (read_back != sent) {
    std::fprintf(stderr, "what was read is not what was written\n");
    std::exit(1);
  }
  check(rpma_mr_remote_delete(&there), "rpma_mr_remote_delete");
  check(rpma_conn_disconnect(connection), "rpma_conn_disconnect");
  await(connection, RPMA_CONN_CLOSED);
  check(rpma_conn_delete(&connection), "rpma_conn_delete");
  check(rpma_mr_dereg(&from), "rpma_mr_dereg");
  check(rpma_mr_dereg(&to), "rpma_mr_dereg");
  check(rpma_peer_delete(&peer), "rpma_peer_delete");
  std::printf("%zu bytes written and read back\n", kBytes);
}

}  // namespace

int main() {
  // One that another run of this beside it does not take.
  const std::string port = std::to_string(20000 + getpid() % 20000);
  int listening[2];
  if (pipe(listening) != 0) return 1;
  const pid_t server = fork();
  if (server == 0) {
    serve(port.c_str(), listening[1]);
    return 0;
  }
  close(listening[1]);
  char sign = 0;
  if (read(listening[0], &sign, 1) != 1) return 1;
  ask(port.c_str());
  int status = 0;
  waitpid(server, &status, 0);
  return status == 0 ? 0 : 1;
}
