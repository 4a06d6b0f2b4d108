// import_results() on hostile text: it throws gdrperf::Error that names the file, or yields runs that make a
// document which can be read again.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "fuzz.h"
#include "gdrperf/base/error.h"
#include "gdrperf/compare/session.h"
#include "gdrperf/report/document.h"
#include "gdrperf/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrperf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const report::Imported imported = report::import_results(text, "x.txt", {"PIX", "", ""});
    if (imported.runs.empty()) std::abort();
    report::Document document({"0", "x", {}}, "2026-01-31T12:00:00Z");
    for (const report::RunRecord& run : imported.runs) {
      const auto& measured = run.measured;
      if (measured.bandwidth.has_value() == measured.latency.has_value() || run.spec.size_bytes == 0) std::abort();
      if (measured.bandwidth &&
          !(measured.bandwidth->median_gbytes >= 0 && std::isfinite(measured.bandwidth->median_gbytes)))
        std::abort();
      document.add(run);
    }
    if (!compare::parse_session(document.to_json(), "y.json").imported) std::abort();
  } catch (const Error& error) {
    if (!std::string_view(error.what()).starts_with("x.txt:")) std::abort();
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "                    RDMA_Write Bidirectional BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
      " Number of qps   : 2\t\tTransport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n TX depth        : "
      "128\n"
      " Mtu             : 4096[B]\n---\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   "
      "MsgRate[Mpps]\n"
      " 2          1000             3.10               2.99               0.000130\n"
      " 65536      1000             11743.18            11742.06\t\t   0.187873\n---\n",
      "Picking device No. 1\n Send Latency Test\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
      "t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n 8       1000          1.02           5.11      "
      "   1.06     "
      "\t       1.07     \t0.05\t\t1.21    \t\t3.90   \n---\n",
      "{\ntest_info: {\ntest: RDMA_Write_BW_Test,\nDevice: \"mlx5_0\",\nTX_depth : 128,\n},\nresults: {\nMsgSize: "
      "65536,\n"
      "n_iterations: 5000,\nBW_peak: 23452.10,\nBW_average: 23448.37,\nMsgRate: 0.375174,\n},\n}\n",
      "{\n\"test_info\": {\n\"test\": \"RDMA_Read_Latency_Test\",\n\"cuda_device\": 1\n},\n\"results\": "
      "{\n\"MsgSize\": 2,\n"
      "\"n_iterations\": 1000,\n\"t_typical\": 1.01,\n\"t_avg\": 1.02,\n\"percentile_99.9\": 2.95\n}\n}\n"};
}
