// Two processes, a rank and a GPU each, add up arrays with NCCL, and compare every element with the sum. How the
// ranks reach each other is NCCL's business and that of its variables: nccl_test.py makes it the software device.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kRanks = 2;
constexpr int kSkipped = 77;

// Declarations of nccl.h that are needed, which few machines have: its ABI has not changed since version 2.0.
struct NcclId {
  char bytes[128];
};
enum NcclType { kNcclInt64 = 4, kNcclFloat = 7 };
constexpr int kNcclSum = 0;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "nccl_all_reduce: %s\n", what.c_str());
  std::exit(1);
}

void check_cuda(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail(std::string(call) + ": " + cudaGetErrorString(error));
}

/// libnccl, loaded at run time.
class Nccl {
 public:
  Nccl() : library_(::dlopen("libnccl.so.2", RTLD_NOW)) {
    if (library_ == nullptr) return;
    find(get_version, "ncclGetVersion");
    find(get_id, "ncclGetUniqueId");
    find(init_rank, "ncclCommInitRank");
    find(all_reduce, "ncclAllReduce");
    find(destroy, "ncclCommDestroy");
    find(error_text, "ncclGetErrorString");
  }
  bool loaded() const { return library_ != nullptr; }
  void check(int result, const char* call) const {
    if (result != 0) fail(std::string(call) + ": " + error_text(result));
  }

  int (*get_version)(int*) = nullptr;
  int (*get_id)(NcclId*) = nullptr;
  int (*init_rank)(void**, int, NcclId, int) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*destroy)(void*) = nullptr;
  const char* (*error_text)(int) = nullptr;

 private:
  template <typename F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(::dlsym(library_, name));
    if (function == nullptr) fail(std::string("libnccl.so.2 lacks ") + name);
  }
  void* library_;
};

/// Exact in float as well: sums stay below 2^24.
template <typename T>
T value_of(int rank, std::size_t index) {
  return static_cast<T>((index * 7 + static_cast<std::size_t>(rank) * 13) % 4001);
}

/// Element sums that are wrong.
template <typename T>
std::size_t add_up(const Nccl& nccl, void* comm, int rank, std::size_t count, NcclType type) {
  std::vector<T> host(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = value_of<T>(rank, i);
  T* sent = nullptr;
  T* received = nullptr;
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&sent), count * sizeof(T)), "cudaMalloc");
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&received), count * sizeof(T)), "cudaMalloc");
  check_cuda(cudaMemcpy(sent, host.data(), count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  check_cuda(cudaMemset(received, 0xff, count * sizeof(T)), "cudaMemset");
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  nccl.check(nccl.all_reduce(sent, received, count, type, kNcclSum, comm, stream), "ncclAllReduce");
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  check_cuda(cudaMemcpy(host.data(), received, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    T sum = 0;
    for (int from = 0; from < kRanks; ++from) sum += value_of<T>(from, i);
    if (host[i] != sum && wrong++ == 0) std::fprintf(stderr, "rank %d: element %zu is wrong\n", rank, i);
  }
  check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
  check_cuda(cudaFree(sent), "cudaFree");
  check_cuda(cudaFree(received), "cudaFree");
  return wrong;
}

/// The exit status. `id_pipe` carries the id from rank 0 to rank 1.
int run_rank(int rank, int id_pipe) {
  if (rank != 0 && std::getenv("NCCL_ALL_REDUCE_TWO_HOSTS") != nullptr) ::setenv("NCCL_HOSTID", "other", 1);
  const Nccl nccl;
  if (!nccl.loaded()) {
    std::printf("skipped: %s\n", ::dlerror());
    return kSkipped;
  }
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::printf("skipped: no GPU\n");
    return kSkipped;
  }
  check_cuda(cudaSetDevice(rank % gpus), "cudaSetDevice");
  NcclId id{};
  if (rank == 0) {
    nccl.check(nccl.get_id(&id), "ncclGetUniqueId");
    if (::write(id_pipe, &id, sizeof id) != sizeof id) fail("write");
  } else if (::read(id_pipe, &id, sizeof id) != sizeof id) {
    return kSkipped;  // rank 0 has said why
  }
  void* comm = nullptr;
  nccl.check(nccl.init_rank(&comm, kRanks, id, rank), "ncclCommInitRank");
  int version = 0;
  nccl.check(nccl.get_version(&version), "ncclGetVersion");
  std::size_t wrong = 0;
  std::size_t sums = 0;
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{262147}, std::size_t{8} << 20}) {
    wrong += add_up<float>(nccl, comm, rank, count, kNcclFloat);
    wrong += add_up<std::int64_t>(nccl, comm, rank, count, kNcclInt64);
    sums += 2 * count;
  }
  nccl.check(nccl.destroy(comm), "ncclCommDestroy");
  std::printf("rank %d on GPU %d, NCCL %d: %zu sums, %zu wrong\n", rank, rank % gpus, version, sums, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main() {
  int id_pipe[2];
  if (::pipe(id_pipe) != 0) fail("pipe");
  // Before CUDA: a child may not use its parent's.
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    ::close(id_pipe[1]);
    const int status = run_rank(1, id_pipe[0]);
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::close(id_pipe[0]);
  int status = run_rank(0, id_pipe[1]);
  ::close(id_pipe[1]);
  int other = 0;
  ::waitpid(child, &other, 0);
  if (status == 0) status = WIFEXITED(other) ? WEXITSTATUS(other) : 1;
  return status;
}
