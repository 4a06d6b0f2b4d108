# shellcheck shell=bash disable=SC2034,SC2154  # shared with the scripts that source this
# Configuring and compiling with meson, quiet when it works. Needs common.sh.

build_log=$(mktemp "${TMPDIR:-/tmp}/gdrperf-build.XXXXXX")
files_in_memory=
trap 'rm -rf "$build_log" ${files_in_memory:+"$files_in_memory"}' EXIT
trap 'exit 130' INT HUP TERM

# Has tests make their files in memory, if there is room for them and programs may be run from there: tests make and
# remove tens of thousands, which takes ext4 as long as the tests themselves.
readonly kMemoryFreeKib=1000000
use_files_in_memory() {
  local free
  if [ -n "${TMPDIR-}" ]; then return; fi
  free=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1) || return 0
  if [ "$free" -lt "$kMemoryFreeKib" ]; then return; fi
  files_in_memory=$(mktemp -d -p /dev/shm --suffix .gdrperf-test 2>/dev/null) || return 0
  # As /tmp: some tests become other users.
  chmod 1777 "$files_in_memory"
  printf '#!/bin/sh\n' >"$files_in_memory/program"
  chmod +x "$files_in_memory/program"
  if "$files_in_memory/program" 2>/dev/null; then export TMPDIR=$files_in_memory; fi
}

# For builds without optimization: clang++ needs two thirds of the time of g++, and lld half that of ld. Whoever
# names a compiler gets that one.
# prefer_clang [-fsanitize=NAMES]: only a clang that has what they need.
prefer_clang() {
  local ccache= program=$'#include <string>\nint main() {}'
  if [ -n "${CC-}${CXX-}" ] || ! command -v clang >/dev/null; then return; fi
  # A clang that found the folder of a g++ without its headers is of no use.
  if ! clang++ -std=c++20 "$@" -x c++ -o "$build_log" - <<<"$program" 2>/dev/null; then return; fi
  # meson finds ccache by itself only where nobody names a compiler.
  if command -v ccache >/dev/null; then ccache="ccache "; fi
  export CC="${ccache}clang" CXX="${ccache}clang++"
  if command -v ld.lld >/dev/null; then export CC_LD=lld CXX_LD=lld; fi
}

# Prints what -Dcpp_args is to be. g++ collects its garbage only past a gigabyte, which no unit fills: an eighth of
# its time, or more.
compiler_args() {
  local arguments=${CXXFLAGS-}
  if ${CXX:-c++} --version 2>/dev/null | grep -q 'Free Software Foundation'; then
    arguments+=" --param=ggc-min-expand=1000 --param=ggc-min-heapsize=1000000"
  fi
  echo "$arguments"
}

# Sets sanitized to what a build with them takes: programs at fixed places, which spares each of thousands of starts a
# million relocations; and to what clang needs besides -fsanitize=address,undefined: its runtime as a library, as g++
# has it, for programs that are not ours and load the software device; no check of the types of functions that
# libraries hand out as pointers, which g++ does not have; and what is undefined ends in a trap, whose place
# AddressSanitizer prints: texts for each of half a million checks are a third of the programs.
sanitized=()
sanitized_by_clang() {
  local runtime linked
  sanitized=(-Db_pie=false)
  case ${CXX-} in *clang*) ;; *) return ;; esac
  runtime=$(${CXX#ccache } -print-file-name="libclang_rt.asan-$(uname -m).so")
  linked="-no-pie -Wno-unused-command-line-argument -shared-libasan -Wl,-rpath,${runtime%/*}"
  cpp_args+=" -fno-sanitize=function -fsanitize-trap=undefined"
  sanitized+=("-Dc_link_args=$linked" "-Dcpp_link_args=$linked")
}

# Compiles forty files together: less than half the time from scratch, as each header is read once
# for all of them.
together=(-Dunity=on -Dunity_size=40)

# A warning is an error where nobody reads it; a user's newer compiler may warn of more.
if [ -n "${CI-}" ]; then strict=(-Dwerror=true); else strict=(-Dwerror=false); fi

# Runs a command with its output in a log, shown only when it fails.
logged() {
  if ! "$@" >"$build_log" 2>&1 </dev/null; then
    tail -n 60 "$build_log" | sed 's/^/  | /' >&2
    die "$kExitEnvironment" "this failed (its last lines stand above): $*"
  fi
}

# configure_build FOLDER MESON_OPTION...: a folder that is configured already is left as it is. cpp_args, if set, are
# the compiler's as well.
configure_build() {
  local folder=$1
  shift
  if [ -f "$folder/build.ninja" ]; then return; fi
  say "configuring $folder"
  logged meson setup "$folder" "-Dcpp_args=$(compiler_args) ${cpp_args-}" "$@"
}

# compile_build FOLDER [TARGET...]: on a terminal ninja shows its own progress line; otherwise one line says how long it
# took.
compile_build() {
  local folder=$1 begin=$SECONDS
  shift
  if [ -t 2 ]; then
    ninja -C "$folder" "$@" >&2 || die "$kExitEnvironment" "compiling $folder failed"
  else
    say "compiling $folder"
    logged ninja -C "$folder" "$@"
    say "compiled in $((SECONDS - begin)) s"
  fi
}
