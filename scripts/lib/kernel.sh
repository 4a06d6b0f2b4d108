# shellcheck shell=bash disable=SC2154,SC2034  # shared with scripts/softroce-vm
# Fetches the distribution's kernel package and packs the initramfs for scripts/softroce-vm.
# Needs common.sh, and the variable 'here': the folder scripts/. Nothing is installed: packages are downloaded and unpacked in a cache
# folder, $XDG_CACHE_HOME/gdrperf/softroce or ~/.cache/gdrperf/softroce:
#
#   DISTRIBUTION/current         name of the newest kernel package fetched
#   DISTRIBUTION/PACKAGE/*.deb   the package and, on Ubuntu, its modules packages
#   DISTRIBUTION/PACKAGE/vmlinuz
#   DISTRIBUTION/PACKAGE/initramfs-KEY   KEY: checksum of the scripts and tools it is made from

# What the guest needs, before dependencies; the second list may be missing or built in.
readonly kModules='virtio_pci 9pnet_virtio 9p overlay veth virtio_net rdma_rxe rdma_ucm'
readonly kModulesIfAny='crc32_generic crc32-pclmul crc32c_generic'

find_busybox() {
  local path
  for path in /bin/busybox /usr/bin/busybox /bin/busybox-static; do
    # A dynamic busybox would need its libraries in the initramfs.
    if [ -x "$path" ] && ! ldd "$path" >/dev/null 2>&1; then
      echo "$path"
      return 0
    fi
  done
  return 1
}

# Prints the name of the kernel package the distribution currently offers.
current_kernel_package() {
  local meta name
  for meta in linux-image-amd64 linux-image-generic; do
    name=$(apt-cache depends --no-recommends --no-suggests "$meta" 2>/dev/null |
      awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
    if [ -n "$name" ]; then
      echo "$name"
      return 0
    fi
  done
  return 1
}

# Downloads exactly the named package, or returns 1 where there is none of that name. apt takes
# a name it does not know for a regular expression and would fetch everything that matches.
download_package() {
  local name=$1 version
  version=$(apt-cache show --no-all-versions "$name" 2>/dev/null |
    awk -v name="$name" '$1 == "Package:" { hit = ($2 == name) } hit && $1 == "Version:" { print $2; exit }')
  [ -n "$version" ] || return 1
  local sandbox=()
  # As root apt would download as user _apt, who cannot enter a private cache folder.
  [ "$(id -u)" = 0 ] && sandbox=(-o APT::Sandbox::User=root)
  apt-get -q "${sandbox[@]+"${sandbox[@]}"}" download "$name=$version" >&2
}

# Fetches the current kernel into the cache and points 'current' at it.
fetch_kernel() {
  local cache=$1 package part
  if ! package=$(current_kernel_package) && [ "$(id -u)" = 0 ]; then
    say "softroce-vm: apt knows no kernel package; running apt-get update"
    apt-get -q update >&2 || true
    package=$(current_kernel_package) || true
  fi
  [ -n "$package" ] || die "$kExitSkipped" \
    "apt offers neither linux-image-amd64 nor linux-image-generic" \
    "to refresh its lists: sudo apt-get update"
  if [ ! -e "$cache/$package/complete" ]; then
    say "softroce-vm: fetching $package (once; kept in $cache)"
    rm -rf "${cache:?}/$package"
    mkdir -p "$cache/$package"
    (
      cd "$cache/$package"
      download_package "$package" || exit 1
      # Ubuntu keeps the modules apart, and rdma_rxe in the second of the two.
      for part in linux-modules linux-modules-extra; do
        case $package in
          *-generic) download_package "${package/linux-image/$part}" || true ;;
        esac
      done
      touch complete
    ) || die "$kExitSkipped" "downloading $package failed (apt's message stands above)" \
      "if the package has gone: sudo apt-get update"
  fi
  echo "$package" >"$cache/current"
}

# Prints the modules to load, in order, each once.
ordered_modules() {
  local root=$1 release=$2 module plan
  for module in $kModules $kModulesIfAny; do
    if plan=$(modprobe -d "$root" -S "$release" --show-depends "$module" 2>/dev/null); then
      awk '$1 == "insmod" { print $2 }' <<<"$plan"
    elif [[ " $kModules " == *" $module "* ]]; then
      die "$kExitSkipped" "the distribution's kernel $release has no module $module"
    fi
  done | awk '!seen[$0]++'
}

# Copies the modules as plain .ko files (busybox knows no compressed ones) and lists their order.
copy_modules() {
  local list=$1 to=$2 module name
  while read -r module; do
    name=$(basename "$module")
    case $name in
      *.xz) name=${name%.xz}; xz -dc "$module" >"$to/$name" ;;
      *.zst) name=${name%.zst}; zstd -qdc "$module" >"$to/$name" ;;
      *) cp "$module" "$to/$name" ;;
    esac
    echo "$name" >>"$to/order"
  done <"$list"
}

# pack_initramfs FOLDER OUT: init, busybox and the modules. The packages are unpacked for the
# duration only; 'unpacked' names that tree, and the caller's trap removes it on failure.
pack_initramfs() {
  local folder=$1 out=$2 deb root init release
  unpacked=$(mktemp -d "$folder/unpacked.XXXXXX")
  root=$unpacked/root
  init=$unpacked/init
  for deb in "$folder"/*.deb; do dpkg-deb -x "$deb" "$root"; done
  # Where /usr is merged, packages may carry their modules below it.
  if [ ! -d "$root/lib/modules" ] && [ -d "$root/usr/lib/modules" ]; then
    ln -s usr/lib "$root/lib"
  fi
  release=$(ls "$root/lib/modules")
  depmod -b "$root" "$release"
  ordered_modules "$root" "$release" >"$unpacked/list"

  mkdir -p "$init"/{bin,dev,proc,sys,share,lower,cow,host,modules}
  cp "$(find_busybox)" "$init/bin/busybox"
  cp "$here/lib/softroce-init" "$init/init"
  chmod 755 "$init/init" "$init/bin/busybox"
  copy_modules "$unpacked/list" "$init/modules"
  (cd "$init" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$out.part"
  cp "$root/boot/vmlinuz-$release" "$folder/vmlinuz"
  mv "$out.part" "$out"
  rm -rf "$unpacked"
  unpacked=
}

# prepare_kernel REFRESH(yes|no): sets kernel_image and initramfs, fetching and packing what is
# not in the cache. One process at a time; others wait for it.
prepare_kernel() {
  local refresh=$1 distribution cache package key
  PATH=$PATH:/usr/sbin:/sbin
  # shellcheck disable=SC1091
  distribution=$(. /etc/os-release && echo "${ID:-linux}-${VERSION_ID:-unstable}")
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/gdrperf/softroce/$distribution
  mkdir -p "$cache" || die "$kExitEnvironment" "cannot make the cache folder $cache"
  exec 9>"$cache/lock"
  flock 9
  if [ "$refresh" = yes ] || [ ! -s "$cache/current" ]; then fetch_kernel "$cache"; fi
  package=$(cat "$cache/current")
  key=$(cat "$here/lib/kernel.sh" "$here/lib/softroce-init" "$(find_busybox)" | sha256sum | cut -c1-16)
  kernel_image=$cache/$package/vmlinuz
  initramfs=$cache/$package/initramfs-$key
  if [ ! -s "$initramfs" ]; then
    say "softroce-vm: packing the initramfs for $package (once)"
    rm -f "$cache/$package"/initramfs-*
    pack_initramfs "$cache/$package" "$initramfs"
  fi
  exec 9>&-
}
