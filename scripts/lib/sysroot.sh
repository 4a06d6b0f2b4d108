# shellcheck shell=bash disable=SC2154  # of the scripts that source this
# A tree of Debian 11 to build against: its C library and the libraries that are linked in.

readonly kSysrootPackages=libc6-dev,linux-libc-dev,libibverbs-dev,librdmacm-dev,libhwloc-dev,libexpat1-dev,zlib1g-dev,nettle-dev,libpmix-dev
# Header-only here, and newer than Debian 11's: this machine's are used.
readonly kOwnHeaders=(infiniband/verbs.h rdma/rdma_cma.h CLI/CLI.hpp fmt/format.h nlohmann/json.hpp)

debian_arch() { if [ "$1" = aarch64 ]; then echo arm64; else echo amd64; fi; }
triplet() { echo "$1-linux-gnu"; }
strip_of() { if [ "$1" = "$(uname -m)" ]; then echo strip; else echo "$1-linux-gnu-strip"; fi; }

# What to type where starts_arch says no, with systemd or without.
# shellcheck disable=SC2034  # read by the scripts that source this file
readonly kHowToStart="apt install qemu-user-static binfmt-support && update-binfmts --enable"

# starts_arch ARCH: whether this kernel starts programs of that architecture, wherever they lie (qemu-user by
# binfmt_misc).
starts_arch() {
  [ "$1" = "$(uname -m)" ] || grep -q '^flags:.*F' "/proc/sys/fs/binfmt_misc/qemu-$1" 2>/dev/null
}

# make_tree ARCH SUITE PACKAGES FOLDER: the minimal system of a Debian or Ubuntu and those packages, unpacked; nothing
# of it is run, so that any architecture can be had on any machine.
make_tree() {
  local arch=$1 suite=$2 packages=$3 tree=$4 package
  # The mirror and, for suites newer than debootstrap, its script.
  local from=("${DEBIAN_MIRROR:-http://deb.debian.org/debian}")
  case $arch-$suite in
    x86_64-focal | x86_64-jammy | x86_64-noble) from=("${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}" gutsy) ;;
    *-focal | *-jammy | *-noble) from=("${UBUNTU_MIRROR:-http://ports.ubuntu.com/ubuntu-ports}" gutsy) ;;
  esac
  [ -f "$tree/complete" ] && return
  command -v debootstrap >/dev/null || die "$kExitEnvironment" "debootstrap is missing" "apt install debootstrap"
  stage "$suite for $arch in $tree"
  rm -rf --one-file-system "$tree"
  mkdir -p "$tree"
  debootstrap --foreign --variant=minbase --arch="$(debian_arch "$arch")" --include="$packages" "$suite" "$tree" \
    "${from[@]}" >"$tree.log" 2>&1 ||
    { tail -n 5 "$tree.log" >&2; die "$kExitEnvironment" "debootstrap could not get $suite"; }
  for package in "$tree"/var/cache/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$tree"
    rm "$package"
  done
  if [ -L "$tree/proc" ]; then rm "$tree/proc"; fi
  mkdir -p "$tree/proc" "$tree/sys" "$tree/dev" "$tree/opt"
  touch "$tree/complete"
}

# make_sysroot ARCH FOLDER
make_sysroot() {
  local arch=$1 tree=$2 header
  [ -f "$tree/sysroot" ] && return
  make_tree "$arch" bullseye "$kSysrootPackages" "$tree"
  # Links that lead out of the tree, and what must not be linked in.
  find "$tree/usr" -type l -lname '/*' -printf '%p %l\n' | while read -r link aim; do
    ln -sfn "$(realpath -m --relative-to="${link%/*}" "$tree$aim")" "$link"
  done
  rm -f "$tree/usr/lib/$(triplet "$arch")/"lib{c,dl,m,pthread,rt}.a
  for header in "${kOwnHeaders[@]}"; do
    [ -f "/usr/include/$header" ] || die "$kExitEnvironment" "/usr/include/$header is missing" "scripts/install-deps build"
    rm -rf "$tree/usr/include/${header%%/*}"
    cp -r "/usr/include/${header%%/*}" "$tree/usr/include/"
  done
  rm -f "$tree/usr/lib/$(triplet "$arch")/pkgconfig/"{fmt,CLI11,nlohmann_json}.pc
  # The cross compiler's headers of another C library must not come first: its libstdc++ and libgcc alone.
  if [ "$arch" != "$(uname -m)" ]; then
    local cross
    cross=/usr/lib/gcc-cross/$(triplet "$arch")
    cross=$(find "$cross" -mindepth 1 -maxdepth 1 2>/dev/null | sort -V | tail -n 1) || true
    [ -n "$cross" ] || die "$kExitEnvironment" "no libstdc++ for $arch" "apt install g++-$arch-linux-gnu"
    mkdir -p "$tree/usr/lib/gcc/$(triplet "$arch")" "$tree/usr/include/c++"
    cp -r "$cross" "$tree/usr/lib/gcc/$(triplet "$arch")/"
    cp -r "/usr/$(triplet "$arch")/include/c++/${cross##*/}" "$tree/usr/include/c++/"
  fi
  local pc
  pc=$tree/usr/lib/$(triplet "$arch")/pkgconfig
  printf 'Name: fmt\nDescription: headers\nVersion: 9\nCflags: -DFMT_HEADER_ONLY\n' >"$pc/fmt.pc"
  printf 'Name: CLI11\nDescription: headers\nVersion: 2\n' >"$pc/CLI11.pc"
  printf 'Name: nlohmann_json\nDescription: headers\nVersion: 3\n' >"$pc/nlohmann_json.pc"
  # Its own leaves out where the headers are.
  printf 'Name: pmix\nDescription: headers\nVersion: 4\nCflags: -I/usr/lib/%s/pmix2/include\n' "$(triplet "$arch")" >"$pc/pmix.pc"
  # What it calls of udev is in release/glibc_floor.cc.
  sed -i 's/ -ludev//' "$pc/hwloc.pc"
  touch "$tree/sysroot"
}

# use_libraries ARCH TREE FOLDER: programs that qemu-user runs from here on find TREE's libraries, by links in FOLDER.
# Those alone: qemu takes a file that is in this folder for the one of that name in the system.
use_libraries() {
  local arch=$1 tree=$2 prefix=$3 lib
  lib=$tree/usr/lib/$(triplet "$arch")
  mkdir -p "$prefix/lib" "$prefix/usr/lib"
  ln -sfn "$lib" "$prefix/usr/lib/$(triplet "$arch")"
  ln -sfn "$lib" "$prefix/lib/$(triplet "$arch")"
  ln -sfn "$lib/ld-linux-$arch.so.1" "$prefix/lib/ld-linux-$arch.so.1"
  export QEMU_LD_PREFIX=$prefix
}

# make_googletest ARCH TREE: from the sources that googletest's package has; Debian 11's own is made for C++14.
make_googletest() {
  local arch=$1 tree=$2 source=/usr/src/googletest name lib
  lib=$tree/usr/lib/$(triplet "$arch")
  [ -f "$lib/libgmock.a" ] && return
  [ -d "$source" ] || die "$kExitEnvironment" "$source is missing" "apt install googletest"
  cp -r /usr/include/gtest /usr/include/gmock "$tree/usr/include/"
  for name in googletest/src/gtest-all googletest/src/gtest_main googlemock/src/gmock-all; do
    clang++ -std=c++20 --target="$(triplet "$arch")" --sysroot="$tree" --gcc-toolchain="$tree/usr" -fPIC \
      -I"$source/googletest" -I"$source/googlemock" -c "$source/$name.cc" -o "$tree/${name##*/}.o" ||
      die "$kExitEnvironment" "googletest does not compile for $arch"
  done
  ar rc "$lib/libgtest.a" "$tree/gtest-all.o"
  ar rc "$lib/libgtest_main.a" "$tree/gtest_main.o"
  ar rc "$lib/libgmock.a" "$tree/gmock-all.o"
}

# write_cross_file ARCH TREE FILE [WRAPPER]: WRAPPER runs programs of that architecture.
write_cross_file() {
  local arch=$1 tree=$2 file=$3 wrapper=${4-} lib toolchain=/usr
  if [ "$arch" != "$(uname -m)" ]; then toolchain=$tree/usr; fi
  lib=$tree/usr/lib/$(triplet "$arch")
  local flags
  flags="'--target=$(triplet "$arch")', '--sysroot=$tree', '--gcc-toolchain=$toolchain'"
  local floor=${file%/*}/glibc_floor.o
  # shellcheck disable=SC2086
  clang++ -std=c++20 --target="$(triplet "$arch")" --sysroot="$tree" --gcc-toolchain="$toolchain" -O2 -fPIC -ffunction-sections \
    -ffile-prefix-map="$PWD"=. -c "$here/release/glibc_floor.cc" -o "$floor" ||
    die "$kExitEnvironment" "clang++ compiles nothing for $arch" "apt install clang lld g++-$arch-linux-gnu"
  # clang finds two inline functions of one name in glibc 2.31's sys/stat.h.
  cat >"$file" <<TEXT
[binaries]
cpp = 'clang++'
cpp_ld = 'lld'
pkgconfig = 'pkg-config'
${wrapper:+exe_wrapper = ['$wrapper']}

[built-in options]
cpp_args = [$flags, '-ffile-prefix-map=${file%/*}/=', '-ffile-prefix-map=$tree/=/', '-D__NO_INLINE__']
cpp_link_args = [$flags, '-static-libstdc++', '-static-libgcc', '-Wl,-s', '-Wl,--gc-sections', '-Wl,--build-id=sha1',
  '-Wl,--exclude-libs,ALL', '$floor', '-Wl,--as-needed', '-lm', '-lpthread']

[properties]
sys_root = '$tree'
pkg_config_libdir = ['$lib/pkgconfig', '$tree/usr/share/pkgconfig']
TEXT
}
