"""What the rules of the house are about: house_test.py checks them."""
import re

LAYERS = [
    {"base"},
    {"stats", "topo", "proto"},
    {"verbs", "report"},
    {"export", "import"},
    {"mem", "conn"},
    {"engine"},
    {"perftest"},
    {"doctor", "compare", "cluster"},
    {"page"},
    {"app"},
]
LAYER_OF = {module: level for level, modules in enumerate(LAYERS) for module in modules}
# Two modules of one layer that one may include the other, and why.
SIBLINGS = {("conn", "mem")}
# Rooms of a module that include private headers of another, and why.
PRIVATE = {
    ("perftest", "engine"): "runs perftest's tests by the engine's parts, in perftest's order",
    ("cluster/wire", "app"): "a rank of a cluster is a client and a server of this program",
    ("cluster/ranks", "app"): "the same",
    ("cluster/output", "app"): "the same",
    ("app", "cluster"): "the command `cluster` starts ranks",
    ("export", "report"): "writes records as the document does, byte for byte",
}
# These are compiled with the program, so they may include what it may.
OF_THE_PROGRAM = {"cluster/wire", "cluster/ranks", "cluster/output"}
# The device that stands in front of libibverbs: nothing includes it, and it
# includes base alone.
SOFTNIC = "softnic"
SOURCE_TOPS = {"include/gdrperf": None, "src": None, "softnic/src": SOFTNIC}
SUFFIXES = {".h", ".cc", ".cu"}
# Its folders (softnic/docs/internals.md): each includes only those before it.
SOFTNIC_FOLDERS = ["shared", "model", "device", "memory", "gpu", "remote", "host", "cm", "paths", "transport", "flight",
                   "mlx5", "objects", "abi", "standin"]

LIBRARIES = {
    r"nlohmann/": {"proto", "report", "export", "import", "topo", "compare", "page", "app", "cluster"},
    r"cuda": {"mem"},
    r"infiniband/": {"verbs", "conn", "mem", "engine", "perftest", SOFTNIC},
    r"rdma/(?!rdma_netlink|rdma_user_cm|ib_user_sa|ib_user_verbs)": {"conn"},
    r"rdma/(rdma_netlink|rdma_user_cm|ib_user_sa|ib_user_verbs)": {SOFTNIC},
    r"CLI/": {"app"},
}

# Where options are spelled; all else takes them from there.
FLAG_SOURCES = ("src/proto/spec/setting_table.cc", "include/gdrperf/base/flags.h")
# Where they may be spelled besides, and why.
FLAG_SPELLERS = {
    "app": "declares the options of each command",
    "perftest": "has perftest's options, too",
    "doctor": "prints whole commands to type, most of them of other programs",
    SOFTNIC: "is no part of the program and has no options",
}
# Command lines of other programs, and whole ones of this program in quotes.
OTHER_COMMANDS = re.compile(r"(?:ulimit|ethtool|setpci|ss|ip|nvidia-smi topo|lstopo|ibv_devinfo|srun|mpirun|openssl "
                            r"rand)"
                            r"(?: -{1,2}[\w=-]+)+|'gdrperf [^']*'|container's --ulimit")
# (file, literal): arguments of a program that is run here.
OTHER_ARGUMENTS = {("src/topo/readers/nvidia_smi_run.cc", "-m")}

# Where it is decided, and where classes are chosen by it.
WAY_OF_DATA = ("include/gdrperf/engine/resolve.h", "src/engine/setup/resolve.cc", "src/engine/transfer/data_path.cc")

# Who lets a peer in, and by which proof.
GATE_KEEPERS = {
    "prove_as_client": ["src/app/client/client.cc", "src/cluster/ranks/agent.cc", "src/cluster/ranks/hosts.cc"],
    "prove_as_server": ["src/app/server/server.cc", "src/cluster/ranks/gate.cc", "src/cluster/wire/relay.cc"],
    "admit_perftest": ["src/app/client/client.cc", "src/app/server/server.cc"],
    "admit_own_process": ["src/app/client/client.cc"],
}

# Who opens a port, and which of the above stands behind it. The metrics endpoint is read by anybody who reaches it, and
# the server of connect_rate connects with anybody: SECURITY.md says what stops them.
PORTS = {
    "src/app/commands/serve.cc": "src/app/server/server.cc",
    "src/cluster/ranks/servers.cc": "src/app/server/server.cc",
    "src/cluster/ranks/agent.cc": "src/cluster/wire/relay.cc",
    "src/app/commands/cluster.cc": "src/cluster/ranks/gate.cc",
    "src/app/intervals/metrics_server.cc": "",
    "src/conn/connect_cost.cc": "",
    "src/conn/rdma_cm.cc": "src/app/server/server.cc",
}

# "A file past 400 lines or a function past 60 asks to be split."
FILE_LINES, FUNCTION_LINES = 400, 60
# Of C++ and Python. Where a line may be longer, and how many are: texts that are drawn, read or compared as they stand.
LINE_COLUMNS = 120
LONG_LINES = {
    "src/page/svg.cc": 3,
    "tests/cli/plan/accept_test.py": 2,
    "tests/cli/doctor/doctor_record_test.py": 2,
    "tests/fuzz/cluster_files_fuzz.cc": 1,
    "tests/fuzz/topo_hwloc_fuzz.cc": 1,
    "tests/fuzz/topo_nccl_fuzz.cc": 2,
    "tests/page/chromium.py": 3,
    "tests/page/page_test.py": 8,
    "tests/unit/compare/markdown_test.cc": 1,
    "tests/unit/compare/placement_text_test.cc": 1,
    "tests/unit/page/cluster_page_test.cc": 1,
    "tests/unit/topo/devices_test.cc": 2,
    "bench/overhead.py": 1,
}
# "A folder has at most 20 files and a sentence."
ROOM_FILES = 20
TEST_TOPS = ("tests", "softnic/tests")
# A declaration, not a function, begins so.
NO_FUNCTION = re.compile(r"\s*(namespace|struct|class|enum|extern|union|constexpr|static const|const|#|//)\b")
