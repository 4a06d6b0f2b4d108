#include "gdrperf/cluster/exchange.h"

#ifdef GDRPERF_PMIX

#include <dlfcn.h>
#include <pmix.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "cluster/plan/rank_flags.h"

namespace gdrperf::cluster {
namespace {

constexpr const char* kPmixKey = "gdrperf.root";

// Loaded when it is needed: a machine without PMIx runs everything else.
class Pmix {
 public:
  Pmix() : library_(::dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    whole_ = take(init, "PMIx_Init") && take(put, "PMIx_Put") && take(commit, "PMIx_Commit") &&
             take(fence, "PMIx_Fence") && take(get, "PMIx_Get") && take(finalize, "PMIx_Finalize") &&
             take(error_string, "PMIx_Error_string");
  }
  explicit operator bool() const { return whole_; }

  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Fence) fence = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;

  void check(pmix_status_t status, const char* call) const {
    if (status == PMIX_SUCCESS) return;
    throw Error(ExitCode::kEnvironment, fmt::format("PMIx: {}: {}", call, error_string(status)),
                type_ranks() + ", or start it without PMIx (srun --mpi=none)");
  }

 private:
  template <typename Function>
  bool take(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    return function != nullptr;
  }

  void* library_;  // stays: threads of its own may still end
  bool whole_ = false;
};

// Values are PMIx's to allocate and, being plain malloc()ed, ours to free.
struct FreeValue {
  void operator()(pmix_value_t* value) const {
    if (value->type == PMIX_STRING) std::free(value->data.string);
    std::free(value);
  }
};
using Value = std::unique_ptr<pmix_value_t, FreeValue>;

pmix_proc_t process_of(const pmix_proc_t& own, pmix_rank_t rank) {
  pmix_proc_t process = own;
  process.rank = rank;
  return process;
}

Value get(const Pmix& pmix, const pmix_proc_t& process, const char* key) {
  pmix_value_t* value = nullptr;
  pmix.check(pmix.get(&process, key, nullptr, 0, &value), "PMIx_Get");
  return Value(value);
}

void put_address(const Pmix& pmix, std::string address) {
  pmix_value_t value;
  std::memset(&value, 0, sizeof value);
  value.type = PMIX_STRING;
  value.data.string = address.data();
  pmix.check(pmix.put(PMIX_GLOBAL, kPmixKey, &value), "PMIx_Put");
  pmix.check(pmix.commit(), "PMIx_Commit");
}

// Only a fence that collects data is a barrier under Slurm.
void fence(const Pmix& pmix, const pmix_proc_t& own) {
  const pmix_proc_t all = process_of(own, PMIX_RANK_WILDCARD);
  pmix_info_t collect;
  std::memset(&collect, 0, sizeof collect);
  std::strncpy(collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
  collect.value.type = PMIX_BOOL;
  collect.value.data.flag = true;
  pmix.check(pmix.fence(&all, 1, &collect, 1), "PMIx_Fence");
}

}  // namespace

bool has_pmix() { return true; }

std::optional<Launch> exchange_by_pmix(const OwnAddress& own_address) {
  static const Pmix pmix;
  if (!pmix) return std::nullopt;
  pmix_proc_t own;
  std::memset(&own, 0, sizeof own);
  if (pmix.init(&own, nullptr, 0) != PMIX_SUCCESS) return std::nullopt;
  Launch launch;
  launch.origin = "PMIx";
  launch.rank = static_cast<int>(own.rank);
  launch.ranks = static_cast<int>(get(pmix, process_of(own, PMIX_RANK_WILDCARD), PMIX_JOB_SIZE)->data.uint32);
  if (launch.rank == 0) {
    launch.root = own_address();
    put_address(pmix, launch.root);
  }
  fence(pmix, own);
  if (launch.rank != 0) {
    const Value value = get(pmix, process_of(own, 0), kPmixKey);
    if (value->type == PMIX_STRING && value->data.string != nullptr) launch.root = value->data.string;
  }
  // From here on a rank may end without the others.
  pmix.check(pmix.finalize(nullptr, 0), "PMIx_Finalize");
  return launch;
}

}  // namespace gdrperf::cluster

#else

namespace gdrperf::cluster {

bool has_pmix() { return false; }
std::optional<Launch> exchange_by_pmix(const OwnAddress&) { return std::nullopt; }

}  // namespace gdrperf::cluster

#endif
