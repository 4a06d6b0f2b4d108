# shellcheck shell=bash
# What every script here shares: messages on stderr, exit codes, quoting.
# stdout belongs to results alone, so nothing in this file writes there.

# Exit codes of the whole project; these are the ones scripts need.
# shellcheck disable=SC2034  # read by the scripts that source this file
readonly kExitUsage=2 kExitEnvironment=3 kExitSkipped=77

if [ -t 2 ]; then
  readonly kBold=$'\e[1m' kPlain=$'\e[0m'
else
  readonly kBold='' kPlain=''
fi

say() { printf '%s\n' "$*" >&2; }

# A stage of a longer job, so that a long wait has a name.
stage() { printf '%s==> %s%s\n' "$kBold" "$*" "$kPlain" >&2; }

# die EXIT_CODE MESSAGE...: the cause first, then one line per hint.
die() {
  local code=$1
  shift
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  shift
  if [ $# -gt 0 ]; then printf '  %s\n' "$@" >&2; fi
  exit "$code"
}

# Quotes one word for any POSIX shell (bash's %q speaks $'...', busybox may not).
quote() {
  local word=$1
  printf "'%s'" "${word//\'/\'\\\'\'}"
}
