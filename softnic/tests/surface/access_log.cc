// Preloaded in front of a verbs library: appends the access flags of each registration to the file that
// ACCESS_LOG names, and the attributes of each QP on its way to RTS to that of QP_LOG, a line each.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#undef ibv_reg_mr

namespace {

void append(const char* log, const char* line) {
  const char* const path = std::getenv(log);
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", line);
  std::fclose(file);
}

void note(int access) {
  char line[32];
  std::snprintf(line, sizeof line, "%#x", static_cast<unsigned>(access));
  append("ACCESS_LOG", line);
}

void note(const ibv_qp_attr& attr, int mask) {
  char line[160] = "";
  if ((mask & IBV_QP_AV) != 0) {
    const ibv_ah_attr& ah = attr.ah_attr;
    std::snprintf(line, sizeof line, "sl=%d traffic_class=%d flow_label=%u min_rnr_timer=%d", ah.sl,
                  ah.grh.traffic_class, ah.grh.flow_label, attr.min_rnr_timer);
  } else if ((mask & IBV_QP_RETRY_CNT) != 0) {
    std::snprintf(line, sizeof line, "timeout=%d retry_cnt=%d rnr_retry=%d max_rd_atomic=%d", attr.timeout,
                  attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic);
  }
  if (*line != 0) append("QP_LOG", line);
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  note(access);
  return next<ibv_mr*(ibv_pd*, void*, std::size_t, int)>("ibv_reg_mr")(pd, address, length, access);
}

extern "C" ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                                    unsigned access) {
  note(static_cast<int>(access));
  return next<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned)>("ibv_reg_mr_iova2")(pd, address, length,
                                                                                                 iova, access);
}

extern "C" int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  note(*attr, mask);
  return next<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp")(qp, attr, mask);
}
