#!/usr/bin/env python3
"""How large the report of a large sweep is and how fast it opens: bench/report_page.py [BINARY] [--repeat N].

64 pairs of GPU and NIC, 24 sizes, 8 tests, a run each, in headless Chromium. Told: MB of the document and of the page,
seconds to make it, to the page's load event and until all charts are drawn (medians of N)."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "page"))
from chromium import Chromium, find  # noqa: E402
from made_documents import machine  # noqa: E402

OPS = ("write_bw", "read_bw", "send_bw", "write_lat", "read_lat", "send_lat")  # two of them both ways, too


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", default=os.path.join(ROOT, "build", "src", "app", "gdrperf"))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if not find():
        sys.exit("no Chromium here (apt-get install chromium)")
    with tempfile.TemporaryDirectory(prefix="gdrperf-page-") as folder:
        source, page = os.path.join(folder, "large.json"), os.path.join(folder, "large.html")
        with open(source, "w", encoding="utf-8") as out:
            json.dump(machine(8, 8, [2 ** i for i in range(24)], ops=OPS, both_ways=True), out)
        begin = time.monotonic()
        subprocess.run([options.binary, "report", source, "-o", page], check=True, stderr=subprocess.DEVNULL)
        made = time.monotonic() - begin
        loads, drawn = [], []
        with Chromium(find()) as browser:
            for _ in range(options.repeat):
                loads.append(browser.open(page))
                drawn.append(browser.run("gdrperf.drawnAfterMs") / 1000)
        print(f"64 pairs x 24 sizes x 8 tests: document {os.path.getsize(source) / 1e6:.1f} MB, page "
              f"{os.path.getsize(page) / 1e6:.2f} MB, "
              f"made in {made:.1f} s; loaded after {statistics.median(loads):.2f} s, all drawn after "
              f"{statistics.median(drawn):.2f} s")


if __name__ == "__main__":
    main()
