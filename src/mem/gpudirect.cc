#include "gdrperf/mem/gpudirect.h"

#include <cerrno>

#include "gdrperf/verbs/compat.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::mem {

int ask_for_dma_buf(ibv_pd* pd) {
  errno = 0;
  const verbs::Mr mr(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
  return mr ? 0 : errno;
}

}  // namespace gdrperf::mem
