#!/bin/bash
# Which of these hosts is slow: scripts/cluster/mpirun.sh HOSTFILE [OPTION...]
# One process per host of HOSTFILE, by OpenMPI; options go to gdrperf cluster.
set -euo pipefail
if [ $# -lt 1 ] || [ ! -r "$1" ]; then
  echo "usage: $0 HOSTFILE [OPTION...], one host per line" >&2
  exit 2
fi
hostfile=$1
shift

# A rank that dies ends the whole job unless both of these are given; with them gdrperf drops and names it.
exec mpirun --hostfile "$hostfile" --map-by ppr:1:node --bind-to none \
  --mca orte_abort_on_non_zero_status 0 --enable-recovery \
  gdrperf cluster "$@"
