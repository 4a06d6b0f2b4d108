// What `gdrperf cluster` and `gdrperf report` read of a fabric and of results, on hostile text: it is refused with an
// Error, or what is made of it for people, Slurm and Kubernetes holds no control characters.
#include <cstdlib>
#include <string>

#include "cluster/output/export.h"
#include "cluster/output/file.h"
#include "cluster/output/hops.h"
#include "cluster/output/lldp.h"
#include "fuzz.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/cluster/topology_file.h"
#include "gdrperf/page/page.h"

namespace {

using namespace gdrperf;

void require_clean(const std::string& text) {
  if (text != printable_lines(text)) std::abort();
}

template <typename Read>
void try_to(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.what()[0] == '\0') std::abort();
  }
}

void export_all(const std::string& text) {
  const app::ClusterFile file = app::parse_cluster(text, "x.json");
  for (const char* format : {"prometheus", "slurm", "kubernetes", "markdown"}) {
    require_clean(app::export_cluster(file, app::parse_cluster_format(format)));
  }
  page::Page page;
  page.clusters.push_back(page::parse_cluster_page(text, "x.json"));
  require_clean(page::to_markdown(page));
}

// Whatever is read, distances are the same both ways.
void check_hops(const cluster::Wiring& wiring) {
  const app::Hops hops = app::find_hops(wiring, {{"n1", {"mlx5_0", "eth2"}}, {"n2", {"mlx5_0", "eth2"}}, {"m1", {}}});
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      if (hops.of(a, b) != hops.of(b, a)) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_to([&] {
    for (const auto& [host, leaf] : cluster::parse_slurm_topology(text, "x.conf")) {
      if (host.empty()) std::abort();
    }
  });
  try_to([&] { check_hops(app::parse_any_wiring(text, "x.conf")); });
  try_to([&] {
    for (const auto& [host, leaf] : app::parse_leaves(text, "x.conf")) {
      if (leaf.empty()) std::abort();
    }
    app::parse_leaf_pods(text);
  });
  try_to([&] { export_all(text); });
  try_to([&] {
    page::Page page;
    page.documents.push_back(page::parse_document(text, "x.json"));
    require_clean(page::to_markdown(page));
  });
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "SwitchName=leaf1 Nodes=n[1-8,10]\nSwitchName=leaf2 Nodes=m1\nSwitchName=spine Switches=leaf[1-2]\n",
      "vendid=0x2c9\nswitchguid=0xb8599f(b8599f)\nSwitch\t41 \"S-b8599f\"\t\t# \"MF0;leaf1:MQM8700/U1\" port 0\n"
      "[1]\t\"H-248a07\"[1](248a07) \t\t# \"n1 mlx5_0\" lid 7 4xHDR\n\n"
      "vendid=0x2c9\ncaguid=0x248a07\nCa\t1 \"H-248a07\"\t\t# \"n1 mlx5_0\"\n"
      "[1](248a07) \t\"S-b8599f\"[1]\t\t# lid 7 lmc 0 \"MF0;leaf1:MQM8700/U1\" lid 3 4xHDR\n",
      R"({"hosts":{"n1":{"lldp":{"interface":{"eth2":{"chassis":{"leaf1":{"id":{"type":"mac","value":"1"}}}}}}},)"
      R"("n2":{"lldp":[{"interface":[{"name":"eth2","chassis":[{"id":[{"value":"2"}],"name":[{"value":"leaf2"}]}]}]}]}},)"
      R"("switches":{"spine":{"lldp":{"interface":[{"a":{"chassis":{"leaf1":{"id":{"value":"1"}}}}},)"
      R"({"b":{"chassis":{"leaf2":{"id":{"value":"2"}}}}}]}}}})",
      R"({"schema":"gdrperf-results/1","started":"2026-01-01T00:00:00Z","relations":{"PIX":{"write_bw":[)"
      R"({"op":"write_bw",)"
      R"("size_bytes":65536,"pair":"GPU0/mlx5_0","client":{"device":"mlx5_0","buffer":"cuda:0","counters":{"x":1}},)"
      R"("server":{"device":"mlx5_0","buffer":"cuda:0"},"unstable":false,"bw":{"median_gbps":100}}]}}})",
      R"({"schema":"gdrperf-cluster/1","tool":{"version":"0.1.0","git":"x"},"started":"2026-11-22T21:17:00Z","lau)"
      R"(ncher":"PMIx","verdict":"slow","partial":false,"test":{"test":"write_bw","size_bytes":16384,"small_bytes)"
      R"(":0,"buffer":"host","duration_s":0.25,"rounds":63,"rounds_done":63,"seed":1,"matchings":16,"start_s":1.1)"
      R"(842423250054708,"seconds":95.97043795,"runs_per_round":2,"seconds_per_round":1.3236843124603175},"typica)"
      R"(l_gbytes":0.00199781899518151,"nic_sigma_percent":0.008836984634399414,"pair_sigma_percent":0.1012364959)"
      R"(7167969,"slow_share":0.0,"suspects":[{"series":"bandwidth","part":"nic","verdict":"slow","rank":1,"nic":)"
      R"(1,"peer_nic":null,"rail":0,"leaf":null,"way":"sends","shift_percent":-20.006982692158825,"sigmas":-2232.)"
      R"(3083877563477,"measurements":126,"retest_shift_percent":-20.00274863572934,"retests":9}],"patterns":[],")"
      R"(inspections":[{"nic":1,"loopback_gbytes":0.0015991635154932737,"other_nic":0,"other_loopback_gbytes":0.0)"
      R"(01998909516260028,"has_counters":true,"counters_that_rose":{}}],"ranks":[{"rank":0,"host":"vm","address")"
      R"(:"192.0.2.2","devices":["nic0"],"leaf":"","lost":null},{"rank":1,"host":"vm","address":"192.0.2.2","devi)"
      R"(ces":["nic1"],"leaf":"","lost":null},{"rank":2,"host":"vm","address":"192.0.2.2","devices":["nic2"],"lea)"
      R"(f":"","lost":null}],"nics":[{"nic":0,"rank":0,"host":"vm","device":"nic0","rail":0,"buffer":"host","send)"
      R"(s":{"shift_percent":0.009966393218419078,"ci95_low_percent":-0.008678059713906894,"ci95_high_percent":0.)"
      R"(023033887133694364,"measurements":63},"receives":{"shift_percent":0.013829233738271718,"ci95_low_percent)"
      R"(":-0.004148397227987655,"ci95_high_percent":0.023272360914150525,"measurements":63}},{"nic":1,"rank":1,")"
      R"(host":"vm","device":"nic1","rail":0,"buffer":"host","sends":{"shift_percent":0.01869376366783193,"ci95_l)"
      R"(ow_percent":0.016833768404378446,"ci95_high_percent":0.027564986188455265,"measurements":63},"receives":)"
      R"({"shift_percent":-0.004672894967250318,"ci95_low_percent":-0.030894274587411896,"ci95_high_percent":0.01)"
      R"(1492435842508364,"measurements":63}},{"nic":2,"rank":2,"host":"vm","device":"nic2","rail":0,"buffer":"ho)"
      R"(st","sends":{"shift_percent":0.014735353735084722,"ci95_low_percent":0.00286106387688001,"ci95_high_perc)"
      R"(ent":0.02594330609997364,"measurements":63},"receives":{"shift_percent":0.0,"ci95_low_percent":-0.025078)"
      R"(489342489352,"ci95_high_percent":0.014163066466199581,"measurements":63}}],"differences":{},"failed":[],)"
      R"("measurements_file":null,"measurements":[[0,1,0.002],[1,0,0.0016],[0,2,0.002],[2,0,0.002],[1,2,0.0016],[)"
      R"(2,1,0.002]],"retests":[[1,0,0.0016]],"more":[]})"};
}
