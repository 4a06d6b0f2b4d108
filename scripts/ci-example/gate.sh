#!/usr/bin/env bash
# A bandwidth and latency gate for any CI: measures, compares with a committed
# baseline, writes a Markdown summary, and fails on a regression.
#
#   gate.sh record FOLDER   measure SESSIONS times and keep the results as the baseline
#   gate.sh check FOLDER    measure and compare with the baseline in FOLDER
#
# Exit status of check: 0 no regression, 1 regression, 4 inconclusive (too few sessions,
# another machine, or so noisy that a change of SENSITIVITY would not show), 2 or 3 when
# something is wrong.
#
# Settings, as environment variables:
#   GDRPERF   the program                      (default: gdrperf in PATH)
#   TARGET    where to                         (default: --local on a NIC, else on a simulated link)
#   SWEEP     what to measure                  (default: write_bw and read_bw of 16 to 64 KiB; on a NIC write_lat, too)
#   SESSIONS  invocations                      (default: record 12, check 4)
#   ACROSS    conditions that may differ       (default: host; on a simulated link also cpu and kernel)
#   SENSITIVITY  change that must not go unseen (default: 10%)
#   OUT       folder for results and summary   (default: gdrperf-results)
#   SUMMARY   file that the summary is added to (default: $GITHUB_STEP_SUMMARY, else none)
set -euo pipefail

usage() {
  sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
}

case ${1:-} in
  record | check) ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
[ $# -eq 2 ] || { usage >&2; exit 2; }
task=$1 folder=$2

# What cannot work is said before an hour is spent on measuring.
gdrperf=${GDRPERF:-gdrperf}
command -v "$gdrperf" >/dev/null || {
  echo "gate.sh: no program '$gdrperf': set GDRPERF to where gdrperf is" >&2
  exit 3
}
if [ "$task" = check ] && [ -z "$(find "$folder" -name '*.json' ! -name noise.json 2>/dev/null | head -n 1)" ]; then
  echo "gate.sh: no baseline in '$folder': make one with 'gate.sh record $folder'" >&2
  exit 2
fi
out=${OUT:-gdrperf-results}
summary=${SUMMARY:-${GITHUB_STEP_SUMMARY:-}}
across=host
tests=write_bw,read_bw,write_lat
if [ -z "${TARGET:-}" ]; then
  if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    TARGET=--local
  else
    # No NIC: a link of known rate and latency, so that figures are the link's and not
    # this machine's, and a baseline made elsewhere holds here. It is so slow that a
    # busy machine, too, keeps it filled.
    link=rate=50MB/s,latency=2ms
    export SOFTNIC=${SOFTNIC:-soft0:$link;soft1:$link}
    TARGET="--local --softnic -d soft0 --peer-dev soft1"
    across=host,cpu,cpus,governor,clock_source,kernel
    # How soon a program wakes up is the machine's, and latency with it.
    tests=write_bw,read_bw
  fi
fi
across=${ACROSS:-$across}
read -r -a target <<<"$TARGET"
read -r -a sweep <<<"${SWEEP:---ops $tests --sizes 16K,32K,64K -D 200ms}"

# measure COUNT NAME: one document per invocation, each with fresh memory and QPs.
measure() {
  local i
  mkdir -p "$out/$2"
  rm -f "$out/$2"/*.json
  for ((i = 1; i <= $1; i++)); do
    # 4: no run of it was stable; the comparison says what that is worth.
    "$gdrperf" sweep "${target[@]}" "${sweep[@]}" --json "$out/$2/$i.json" >"$out/$2.log" 2>&1 || [ $? -eq 4 ] || {
      cat "$out/$2.log" >&2
      exit 3
    }
  done
}

if [ "$task" = record ]; then
  measure "${SESSIONS:-12}" baseline
  "$gdrperf" baseline add "$out/baseline" --dir "$folder"
  "$gdrperf" baseline noise "$folder" --dir "$folder"
  exit 0
fi

measure "${SESSIONS:-4}" new
# A regression has to come back before it counts.
again=$(printf '%q ' "$gdrperf" sweep "${target[@]}" "${sweep[@]}" --json)
status=0
"$gdrperf" compare "$folder" "$out/new" --across "$across" \
  --sensitivity "${SENSITIVITY:-10%}" --rerun "$again{} >/dev/null 2>&1 || [ \$? -eq 4 ]" \
  --markdown "$out/summary.md" --json "$out/comparison.json" || status=$?
if [ -n "$summary" ] && [ -s "$out/summary.md" ]; then cat "$out/summary.md" >>"$summary"; fi
exit "$status"
