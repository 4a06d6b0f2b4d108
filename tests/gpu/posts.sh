#!/usr/bin/env bash
# Prints what docs/evidence has of messages that a kernel posts: posts.sh BUILD_FOLDER. Each command is in front of its output.
set -u
gdrperf=$1/src/app/gdrperf
export SOFTNIC="${SOFTNIC:-soft0:mlx5=on}"

show() {
  printf '\n$ gdrperf %s\n' "$*"
  timeout -k 1 30 "$gdrperf" "$@" 2>&1 | grep -v '^  warning\|^  RoCE\|^  RC by\|^  CPU time\|^  Results of\|^  Figures of'
}

printf 'date: %s\n' "$(date -u +%FT%TZ)"
printf 'machine: one %s, no RDMA NIC; %s CPUs, driver %s, %s\n' \
  "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" "$(nproc)" \
  "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)" "$(nvcc --version | grep -o 'release [0-9.]*')"
printf 'SOFTNIC="%s"\n' "$SOFTNIC"

on_gpu=(--local --softnic --buffer cuda:0 --peer-buffer cuda:0)
pinned=(--local --softnic --buffer cuda-host --peer-buffer host)
echo; echo '# Every operation, each byte compared'
for test in write_bw write_imm_bw read_bw send_bw write_lat write_imm_lat read_lat send_lat; do
  show "$test" "${on_gpu[@]}" --initiator gpu -s 8,4K,64K,1M -n 500 --verify
done
for test in atomic_bw atomic_lat; do show "$test" "${on_gpu[@]}" --initiator gpu -s 8 -n 500 --verify; done
for signal in write imm atomic; do show write_lat "${on_gpu[@]}" --initiator gpu --signal "$signal" -s 8,4K -n 2000; done
echo; echo '# Who posts'
show write_lat "${on_gpu[@]}" --initiator all -s 8,64,512,4K,32K,256K,1M -D 500ms
show write_bw "${on_gpu[@]}" --initiator all -s 8,64,512,4K,32K,256K,1M -D 500ms
show write_lat --local --softnic --buffer cuda-host --peer-buffer cuda-host --initiator all -s 8,4K,64K -D 500ms
show write_bw "${pinned[@]}" --initiator all -s 8,4K,64K,1M -D 500ms
echo; echo '# Threads and QPs, messages of 8 bytes from pinned host memory'
rate() { show write_bw "${pinned[@]}" -s 8 -D 500ms "$@" | sed -n '/^\$/p;/ B .*\//p;/rror:/p'; }
rate --initiator cpu -l 32
rate --initiator cpu-rings -l 32
rate --initiator gpu
for list in 4 16 32; do rate --initiator gpu -l "$list"; done
for qps in 1 2 4 8; do rate --initiator gpu -l 32 -q "$qps" --gpu-blocks "$qps"; done
for threads in 2 8 32; do rate --initiator gpu -l 4 --gpu-threads "$threads"; done
rate --initiator gpu -l 32 --gpu-threads 32 --gpu-scope warp
rate --initiator gpu -l 32 --gpu-threads 32 --gpu-scope warp -q 4 --gpu-blocks 4
rate --initiator gpu -l 32 --gpu-threads 128 --gpu-scope block
rate --initiator gpu -l 32 --gpu-threads 64 --gpu-scope warp -q 4 --gpu-blocks 4
