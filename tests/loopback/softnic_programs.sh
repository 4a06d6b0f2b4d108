#!/bin/bash
# Programs that nobody here wrote, on the software device, between two
# processes: Debian's perftest and the examples of libibverbs.
#
# usage: softnic_programs.sh LIBRARY
#
# Prints a table and exits 1 when one failed, 77 when none is installed.
set -u

library=$1
here=$(cd "$(dirname "$0")" && pwd)
runner=$here/../../scripts/softnic
GDRPERF_BUILD=$(cd "$(dirname "$library")/../.." && pwd)
export GDRPERF_BUILD
unset SOFTNIC
# The programs leave their memory to the kernel when they exit.
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
folder=$(mktemp -d "${TMPDIR:-/tmp}/softnic-programs.XXXXXX")
server=
cleanup() {
  if [ -n "$server" ]; then kill -9 "$server" 2>/dev/null; fi
  rm -rf "$folder"
}
trap cleanup EXIT
port=$((20000 + $$ % 20000))
passed=0 failed=0 skipped=0

report() { printf '%-8s %s\n' "$1" "$2"; }

# Whether somebody listens on a TCP port.
listening() {
  local hex
  hex=$(printf '%04X' "$1")
  grep -qs "^ *[0-9]*: [0-9A-F]*:$hex [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6
}

fail() {
  failed=$((failed + 1))
  report FAILED "$1"
  sed 's/^/    server: /' "$folder/server" | tail -n 15
  sed 's/^/    client: /' "$folder/client" | tail -n 15
}

# pair CHECK PROGRAM OPTION...: both ends; each must exit 0 and the client's
# output must match CHECK.
pair() {
  local check=$1
  shift
  if ! command -v "$1" >/dev/null; then
    skipped=$((skipped + 1))
    report skipped "$* ($1 is not installed)"
    return
  fi
  port=$((port + 1))
  : >"$folder/client"
  timeout 60 "$runner" "$@" -p "$port" >"$folder/server" 2>&1 &
  server=$!
  local tries=0
  until listening "$port"; do
    tries=$((tries + 1))
    if [ $tries -gt 200 ] || ! kill -0 $server 2>/dev/null; then
      fail "$* (the server does not listen)"
      return
    fi
    sleep 0.05
  done
  timeout 60 "$runner" "$@" -p "$port" 127.0.0.1 >"$folder/client" 2>&1
  local client_status=$?
  wait $server
  local server_status=$?
  server=
  if [ $client_status -ne 0 ] || [ $server_status -ne 0 ]; then
    fail "$* (exit status: client $client_status, server $server_status)"
  elif ! grep -Eq "$check" "$folder/client"; then
    fail "$* (its output lacks: $check)"
  else
    passed=$((passed + 1))
    report passed "$*"
  fi
}

# alone CHECK PROGRAM OPTION...: one process.
alone() {
  local check=$1
  shift
  if ! command -v "$1" >/dev/null; then
    skipped=$((skipped + 1))
    report skipped "$* ($1 is not installed)"
    return
  fi
  : >"$folder/server"
  if ! timeout 60 "$runner" "$@" >"$folder/client" 2>&1; then
    fail "$* (exit status)"
  elif ! grep -Eq "$check" "$folder/client"; then
    fail "$* (its output lacks: $check)"
  else
    passed=$((passed + 1))
    report passed "$*"
  fi
}

alone 'soft1[[:space:]]+[0-9a-f]{16}' ibv_devices
alone 'GID\[ +2\]:.*::ffff:127\.0\.0\.1, RoCE v2' ibv_devinfo -v -d soft0
alone 'PORT_ACTIVE' ibv_devinfo -d soft1

for option in '' -e -c -N '-s 100000 -n 50'; do
  # shellcheck disable=SC2086  # the options are words
  pair '[0-9]+ iters in' ibv_rc_pingpong -d soft0 -g 1 $option
done
pair '[0-9]+ iters in' ibv_srq_pingpong -d soft0 -g 2 -q 4
pair '[0-9]+ iters in' ibv_srq_pingpong -d soft0 -g 2 -q 4 -e

row='^ *[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+'
for tool in ib_write_bw ib_read_bw ib_send_bw; do
  pair "$row" $tool -d soft0
  pair "$row" $tool -d soft1 -s 8 -N -n 50000
  pair '^ *8388608 ' $tool -d soft0 -a -n 100
  pair "$row" $tool -d soft0 -b -n 500
  pair "$row" $tool -d soft0 -q 4 -n 500
  # Writes have no events in perftest.
  if [ $tool != ib_write_bw ]; then pair "$row" $tool -d soft0 -e -n 500; fi
  pair "$row" $tool -d soft0 -l 16 -n 1600 -s 1024
done
pair "$row" ib_send_bw -d soft0 --use-srq -n 1000
pair "$row" ib_write_bw -d soft0 -I 64 -s 64 -n 1000
pair "$row" ib_atomic_bw -d soft0 -n 1000
for tool in ib_write_lat ib_read_lat ib_send_lat; do
  pair "$row" $tool -d soft0 -s 8
done
pair '^ *8388608 ' ib_write_lat -d soft0 -a -n 100
pair "$row" ib_send_lat -d soft0 -e -n 500
pair "$row" ib_atomic_lat -d soft0 -n 1000

echo "$passed passed, $skipped skipped, $failed failed"
if [ $failed -gt 0 ]; then exit 1; fi
if [ $passed -eq 0 ]; then exit 77; fi
