#pragma once

#include <functional>
#include <optional>
#include <string>

#include "gdrperf/cluster/launch.h"

namespace gdrperf::cluster {

/// Called on rank 0 alone: what the others need to reach it (no blank in it).
using OwnAddress = std::function<std::string()>;

/// Rank and size from a launcher's process manager, and rank 0's address through it: PMI-1 where PMI_FD is
/// set (MPICH's mpiexec.hydra, srun --mpi=pmi2), else PMIx where PMIX_RANK is (OpenMPI's mpirun, srun
/// --mpi=pmix). nullopt where neither is there, or PMIx alone and not to be had. Talks to the manager once,
/// all ranks together, and never again: that would hang once a node is lost. Throws Error(kEnvironment) when
/// the manager does not answer as agreed, usage_error for half an environment.
std::optional<Launch> exchange(const Variables& variables, const OwnAddress& own_address);

/// The same by PMI-1 over the connected descriptor `fd`, which stays open.
Launch exchange_by_pmi1(int fd, const Variables& variables, const OwnAddress& own_address);

/// Whether this build knows PMIx.
bool has_pmix();
/// The same by PMIx; nullopt when its library is not installed or no server answers.
std::optional<Launch> exchange_by_pmix(const OwnAddress& own_address);

}  // namespace gdrperf::cluster
