// Any text either gives a tree that hangs together, or is refused with one
// short message that names the line.
#include "fuzz.h"
#include "topo_trees.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return try_tree(gdrperf::topo::parse_lspci_tree, data, size);
}

std::vector<std::string> fuzz_seeds() {
  return {
      "$ lspci -tv\n"
      "-+-[0000:00]-+-00.0  Advanced Micro Devices, Inc. [AMD] Device 14a4\n"
      " |           +-01.1-[01-03]----00.0-[02-03]--+-00.0-[03]----00.0  NVIDIA Corporation GA100\n"
      " |           |                               \\-01.0-[04]--\n"
      " |           \\-07.1-[05]--+-00.0  Mellanox Technologies MT28908 [ConnectX-6]\n"
      " |                        \\-00.1  Mellanox Technologies MT28908 [ConnectX-6]\n"
      " \\-[10000:e0]---02.0-[e1]----00.0  NVIDIA Corporation GA100\n",
      "-[0000:00]-+-00.0  Intel Corporation 440FX\n           \\-05.0  NVIDIA Corporation H200\n"};
}
