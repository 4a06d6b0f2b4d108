# In a clone:
#   spack repo add scripts/release/spack
#   spack dev-build -d "$PWD" gdrperf@main
from spack.package import *


class Gdrperf(MesonPackage):
    """RDMA bandwidth and latency between two hosts, with host or GPU memory."""

    homepage = "https://example.org/gdrperf"
    git = "https://example.org/gdrperf.git"
    license("Apache-2.0")

    version("main", branch="main")

    variant("cuda", default=False, description="GPU memory through the CUDA runtime")
    variant("token", default=True, description="--token: who may use a server")
    variant("metrics", default=False, description="--listen-metrics: results for Prometheus")
    variant("pmix", default=False, description="gdrperf cluster finds its ranks by PMIx")

    depends_on("cxx", type="build")
    depends_on("meson@0.61:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.8:", type=("build", "run"))
    depends_on("rdma-core@33:")
    depends_on("hwloc@2:")
    depends_on("expat")
    depends_on("zlib-api")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("cli11@2:", type="build")
    depends_on("fmt@9:")
    depends_on("nettle", when="+token")
    depends_on("libmicrohttpd", when="+metrics")
    depends_on("pmix", when="+pmix")
    depends_on("cuda@11.8:", when="+cuda")

    conflicts("%gcc@:11", msg="needs g++ 12 or later, or clang 14 or later")
    conflicts("%clang@:13", msg="needs g++ 12 or later, or clang 14 or later")

    def meson_args(self):
        args = ["-Dtests=disabled", "-Dbench=disabled"]
        for name in ("cuda", "token", "metrics", "pmix"):
            args.append(f"-D{name}=" + ("enabled" if f"+{name}" in self.spec else "disabled"))
        return args
