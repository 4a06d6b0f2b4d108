#!/usr/bin/env bash
# Messages that a kernel posts: posts.sh [--short] BUILD_FOLDER
# Prints what docs/evidence has of them, each command in front of its output. --short: a test of a minute; every
# operation and every initiator, each byte compared. Exit status: 0; 1 a command failed; 77 there is no GPU.
set -u
short=''
[ "$1" != --short ] || { short=yes; shift; }
gdrperf=$1/src/app/gdrperf
export SOFTNIC="${SOFTNIC:-soft0:mlx5=on}"

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
[ -n "$gpu" ] || { echo 'skipped: no GPU (nvidia-smi lists none)'; exit 77; }

failed=0
hidden='^  \(warning\|RoCE\|RC by\|CPU time\|Results of\|Figures of\)'
show() {
  printf '\n$ gdrperf %s\n' "$*"
  timeout -k 1 30 "$gdrperf" "$@" 2>&1 | grep -v "$hidden"
  local status=${PIPESTATUS[0]}
  [ "$status" -eq 0 ] && return
  echo "status $status"
  failed=1
  return 1
}

printf 'date: %s\n' "$(date -u +%FT%TZ)"
printf 'machine: one %s, no RDMA NIC; %s CPUs, driver %s, %s\n' \
  "$gpu" "$(nproc)" \
  "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)" \
  "$(nvcc --version 2>/dev/null | grep -o 'release [0-9.]*')"
printf 'SOFTNIC="%s"\n' "$SOFTNIC"

on_gpu=(--local --softnic --buffer cuda:0 --peer-buffer cuda:0)
pinned=(--local --softnic --buffer cuda-host --peer-buffer host)
messages=500 signals=2000
[ -z "$short" ] || messages=100 signals=200
echo; echo '# Every operation, each byte compared'
for test in write_bw write_imm_bw read_bw send_bw write_lat write_imm_lat read_lat send_lat; do
  show "$test" "${on_gpu[@]}" --initiator gpu -s 8,4K,64K,1M -n "$messages" --verify
done
for test in atomic_bw atomic_lat; do show "$test" "${on_gpu[@]}" --initiator gpu -s 8 -n "$messages" --verify; done
for signal in write imm atomic; do
  show write_lat "${on_gpu[@]}" --initiator gpu --signal "$signal" -s 8,4K -n "$signals"
done
echo; echo '# Who posts, each byte compared'
sizes=8,64,512,4K,32K,256K,1M
time=500ms
[ -z "$short" ] || sizes=8,64K time=50ms
show write_lat "${on_gpu[@]}" --initiator all -s "$sizes" -D "$time" --verify
show write_bw "${on_gpu[@]}" --initiator all -s "$sizes" -D "$time" --verify
show write_lat --local --softnic --buffer cuda-host --peer-buffer cuda-host --initiator all -s 8,4K,64K -D "$time" \
  --verify
show write_bw "${pinned[@]}" --initiator all -s 8,4K,64K,1M -D "$time" --verify
if [ -n "$short" ]; then
  show write_bw "${pinned[@]}" --initiator gpu -s 8 -n 6400 -l 32 -q 4 --gpu-blocks 4 --gpu-threads 64 \
    --gpu-scope warp --verify
  exit "$failed"
fi
echo; echo '# The device alone: softnic_rings, millions of messages a second, five runs each'
for what in 'post 1 32 1000000' 'hand 1 1 100000' 'hand 1 32 1000000' 'hand 4 32 1000000' 'hand 16 32 1000000'; do
  printf 'softnic_rings %s:' "$what"
  for _ in 1 2 3 4 5; do
    # shellcheck disable=SC2086  # words
    printf ' %s' "$(GDRPERF_SOFTNIC=1 LD_PRELOAD=$1/softnic/src/libgdrperf_softnic.so timeout -k 1 30 \
      "$1/softnic/bench/softnic_rings" $what 2>&1)"
  done
  echo
done
echo; echo '# Threads and QPs, messages of 8 bytes from pinned host memory'
rate() {
  show write_bw "${pinned[@]}" -s 8 -D 500ms "$@" | sed -n '/^\$/p;/ B .*\//p;/rror:/p;/^status/p'
  [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
}
rate --initiator cpu -l 32
rate --initiator cpu-rings -l 32
rate --initiator gpu
for list in 4 16 32; do rate --initiator gpu -l "$list"; done
for qps in 1 2 4 8 16; do rate --initiator gpu -l 32 -q "$qps" --gpu-blocks "$qps"; done
for threads in 2 8 32; do rate --initiator gpu -l 4 --gpu-threads "$threads"; done
rate --initiator gpu -l 32 --gpu-threads 32 --gpu-scope warp
rate --initiator gpu -l 32 --gpu-threads 32 --gpu-scope warp -q 4 --gpu-blocks 4
rate --initiator gpu -l 32 --gpu-threads 128 --gpu-scope block
rate --initiator gpu -l 32 --gpu-threads 64 --gpu-scope warp -q 4 --gpu-blocks 4
exit "$failed"
