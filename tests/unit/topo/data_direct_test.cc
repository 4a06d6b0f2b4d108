// DMA functions of ConnectX NICs (Data Direct): which NIC they belong to, and when data take them.
#include "gdrperf/topo/data_direct.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "made_tree.h"

namespace gdrperf::topo {
namespace {

void make_dma(PciFunction& function) {
  function.vendor = 0x15b3;
  function.device = 0x2100;
}

TEST(DmaFunctions, AreKnownByTheirIds) {
  PciFunction function;
  EXPECT_FALSE(is_dma_function(function));
  make_dma(function);
  EXPECT_TRUE(is_dma_function(function));
  function.device = 0x2101;
  EXPECT_FALSE(is_dma_function(function));
  function.device = 0x2100;
  function.vendor = 0x10de;
  EXPECT_FALSE(is_dma_function(function));
}

TEST(DmaFunctions, AreTakenWhereTheyAreNearer) {
  MadeTree made;
  const std::size_t port = made.bridge_on(made.root());
  const std::size_t gpu = made.device_below(port);
  const std::size_t dma = made.device_below(port);
  const std::size_t twin = made.device_below(port);
  const std::size_t other = made.device_below(made.bridge_on(0));
  TreeNic nic;
  nic.function = other;
  EXPECT_EQ(function_towards(made.tree, gpu, nic), other);
  nic.data_direct = dma;
  EXPECT_EQ(function_towards(made.tree, gpu, nic), dma);
  EXPECT_EQ(path_to_nic(made.tree, gpu, nic).hops.back().function, dma);
  nic.function = twin;
  EXPECT_EQ(function_towards(made.tree, gpu, nic), twin) << "as near";
  nic.data_direct = other;
  EXPECT_EQ(function_towards(made.tree, gpu, nic), twin) << "farther";
}

/// Two NICs and three DMA functions; what each has as keyword V3.
struct Paired {
  MadeTree made;
  std::map<std::size_t, std::string> v3;

  Paired() {
    made.tree.nics.resize(2);
    made.tree.nics[0].function = made.device_on(made.root());
    for (int i = 0; i < 3; ++i) make_dma(made.at(made.device_on(0)));
    made.tree.nics[1].function = made.device_on(0);
  }
  std::string pairs() {
    pair_dma_functions(made.tree, [&](const PciFunction& function) { return v3[function.address.bus]; });
    std::string shown;
    for (const TreeNic& nic : made.tree.nics) shown += nic.data_direct ? std::to_string(*nic.data_direct) + " " : "- ";
    return shown;
  }
};

TEST(DmaFunctions, BelongToTheNicOfTheSameV3) {
  Paired all;
  all.v3 = {{0, "b"}, {1, "a"}, {2, "b"}, {3, "b"}, {4, "a"}};
  EXPECT_EQ(all.pairs(), "2 1 ") << "the first of two alike";
  EXPECT_TRUE(all.made.tree.notes.empty());
  Paired unread;
  unread.v3 = {{0, "b"}, {1, ""}, {2, "b"}, {3, ""}, {4, "a"}};
  EXPECT_EQ(unread.pairs(), "2 - ");
  const auto note = [](const char* address) {
    return std::string(address) +
           " is a DMA function (Data Direct), but its vital product data cannot be read (only root may), "
           "so that its NIC is not known";
  };
  EXPECT_EQ(unread.made.tree.notes, (std::vector<std::string>{note("0000:01:00.0"), note("0000:03:00.0")}));
  Paired none;
  EXPECT_EQ(none.pairs(), "- - ");
  EXPECT_EQ(none.made.tree.notes.size(), 3u);
}

TEST(DmaFunctions, WithoutThemNothingIsRead) {
  MadeTree made;
  made.tree.nics.resize(1);
  made.tree.nics[0].function = made.device_on(made.root());
  int read = 0;
  pair_dma_functions(made.tree, [&](const PciFunction&) { return ++read, std::string("a"); });
  EXPECT_EQ(read, 0);
}

TEST(DmaFunctions, AreNamedWhereTheTreeHasBoth) {
  MadeTree made;
  made.tree.nics.resize(2);
  made.tree.nics[0].name = "mlx5_0";
  made.tree.nics[1].name = "mlx5_1";
  made.root();
  for (int i = 0; i < 3; ++i) made.device_on(0);
  const auto named = [&](const char* nic, std::uint8_t bus) {
    for (TreeNic& each : made.tree.nics) each.data_direct.reset();
    name_dma_function(made.tree, nic, {0, bus, 0, 0});
    std::string shown;
    for (const TreeNic& each : made.tree.nics)
      shown += each.data_direct ? std::to_string(*each.data_direct) + " " : "- ";
    return shown;
  };
  EXPECT_EQ(named("mlx5_1", 2), "- 2 ");
  EXPECT_EQ(named("mlx5_0", 0), "0 - ");
  EXPECT_EQ(named("mlx5_2", 2), "- - ");
  EXPECT_EQ(named("mlx5_1", 3), "- - ");
}

/// What this machine's tree knows: a root port, a switch that nvidia-smi's source does not list, a DMA function below
/// it.
struct Known {
  MadeTree made;
  std::size_t port = made.bridge_on(made.root());
  std::size_t up = made.bridge_below(port);
  std::size_t down = made.bridge_below(up);
  std::size_t dma = made.device_below(down);
  std::size_t plain = made.device_below(up);
  std::size_t lonely = made.device_below(made.bridge_below(made.bridge_on(made.root())));

  Known() {
    make_dma(made.at(dma));
    make_dma(made.at(lonely));
    made.tree.nics.resize(2);
    made.tree.nics[0].name = "mlx5_0";
    made.tree.nics[0].data_direct = dma;
    made.tree.nics[1].name = "mlx5_1";
  }
};

TEST(DmaFunctions, OfAnotherTreeAreAddedBelowBridgesOfBoth) {
  Known known;
  MadeTree sparse;
  sparse.root();
  sparse.root();
  const std::size_t first = sparse.device_on(0);
  sparse.at(first).address.bus = 200;
  const std::size_t port = sparse.bridge_on(1);
  sparse.at(port).address = known.made.at(known.port).address;
  sparse.tree.nics.resize(2);
  sparse.tree.nics[0].name = "mlx5_1";
  sparse.tree.nics[1].name = "mlx5_0";
  add_dma_functions(sparse.tree, known.made.tree);
  std::string shown;
  for (const PciFunction& each : sparse.tree.functions)
    shown +=
        to_string(each.address) + " below " + std::to_string(each.parent) + " of " + std::to_string(each.root) + "; ";
  EXPECT_EQ(
      shown,
      "0000:c8:00.0 below -1 of 0; 0000:00:00.0 below -1 of 1; 0000:01:00.0 below 1 of 1; 0000:02:00.0 below 2 of 1; "
      "0000:03:00.0 below 3 of 1; ");
  EXPECT_FALSE(sparse.tree.nics[0].data_direct);
  EXPECT_EQ(sparse.tree.nics[1].data_direct, 4u);
  add_dma_functions(sparse.tree, known.made.tree);
  EXPECT_EQ(sparse.tree.functions.size(), 5u) << "they are there";
}

}  // namespace
}  // namespace gdrperf::topo
