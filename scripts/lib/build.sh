# shellcheck shell=bash disable=SC2034,SC2154  # shared with the scripts that source this
# Configuring and compiling with meson, quiet when it works. Needs common.sh.

build_log=$(mktemp "${TMPDIR:-/tmp}/gdrperf-build.XXXXXX")
trap 'rm -f "$build_log"' EXIT

# For -Dcpp_args. g++ collects its garbage only past a gigabyte, which no unit fills: an eighth of its time, or more.
compiler_args=${CXXFLAGS-}
if ${CXX:-c++} --version 2>/dev/null | grep -q 'Free Software Foundation'; then
  compiler_args+=" --param=ggc-min-expand=1000 --param=ggc-min-heapsize=1000000"
fi

# Compiles forty files together: less than half the time from scratch, as each header is read once
# for all of them.
together=(-Dunity=on -Dunity_size=40 "-Dcpp_args=$compiler_args")

# A warning is an error where nobody reads it; a user's newer compiler may warn of more.
if [ -n "${CI-}" ]; then strict=(-Dwerror=true); else strict=(-Dwerror=false); fi

# Runs a command with its output in a log, shown only when it fails.
logged() {
  if ! "$@" >"$build_log" 2>&1 </dev/null; then
    tail -n 60 "$build_log" | sed 's/^/  | /' >&2
    die "$kExitEnvironment" "this failed (its last lines stand above): $*"
  fi
}

# configure_build FOLDER MESON_OPTION...: a folder that is configured already is left as it is.
configure_build() {
  local folder=$1
  shift
  if [ -f "$folder/build.ninja" ]; then return; fi
  say "configuring $folder"
  logged meson setup "$folder" "$@"
}

# On a terminal ninja shows its own progress line; otherwise one line says how long it took.
compile_build() {
  local folder=$1 begin=$SECONDS
  if [ -t 2 ]; then
    ninja -C "$folder" >&2 || die "$kExitEnvironment" "compiling $folder failed"
  else
    say "compiling $folder"
    logged ninja -C "$folder"
    say "compiled in $((SECONDS - begin)) s"
  fi
}
