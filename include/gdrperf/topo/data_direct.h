#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "gdrperf/topo/path.h"
#include "gdrperf/topo/pci_tree.h"

namespace gdrperf::topo {

/// The DMA function of a ConnectX (15b3:2100), through which Data Direct reaches a GPU without the CPU.
bool is_dma_function(const PciFunction& function);

/// The function that data between GPU and NIC pass: the NIC's DMA function where it has one that is nearer to the
/// GPU, else its own.
std::size_t function_towards(const PciTree& tree, std::size_t gpu, const TreeNic& nic);

/// path_between() the GPU and function_towards().
PciPath path_to_nic(const PciTree& tree, std::size_t gpu, const TreeNic& nic);

/// Vital product data as a recording may keep them: keyword V3 alone, and a hash in place of it, the same for the same.
std::string vpd_for_recording(std::string_view bytes);

/// Gives each NIC the DMA function whose vital product data have the same keyword V3, as rdma_topo of rdma-core does.
/// `v3_of` reads that of a function; "" where it cannot be read, which makes a note. Reads nothing without DMA
/// functions.
void pair_dma_functions(PciTree& tree, const std::function<std::string(const PciFunction&)>& v3_of);

/// The DMA functions of `known` and the bridges to them that `tree` lacks, below bridges that both have, and the pairs.
void add_dma_functions(PciTree& tree, const PciTree& known);

/// Names the DMA function of a NIC, as its driver tells it. Nothing happens where the tree has not both.
void name_dma_function(PciTree& tree, std::string_view nic, const PciAddress& address);

}  // namespace gdrperf::topo
