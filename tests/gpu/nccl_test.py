#!/usr/bin/env python3
"""NCCL's own IB transport on the software device: two ranks, all_reduce, every sum compared. Through host memory, and
straight from and to GPU memory (dma-buf) where the driver allows it.

Usage: nccl_test.py PROGRAM STANDIN     (STANDIN: the device as libibverbs.so.1)
"""

import os
import re
import subprocess
import sys
import unittest

PROGRAM, STANDIN = sys.argv[1:3]
SKIPPED = 77


def gpu_count():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


GPUS = gpu_count()


def environment(**more):
    env = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")}
    # NCCL asks for libibverbs.so by its name; and in front of libc as well, since it reads sysfs. Devices at no place
    # on the PCI bus are all one card to it, and it would make one NIC of them: not with NCCL_NET_MERGE_LEVEL=LOC.
    env.update(LD_LIBRARY_PATH=os.path.dirname(STANDIN), LD_PRELOAD=STANDIN, SOFTNIC="soft0;soft1", NCCL_NET="IB",
               NCCL_NET_PLUGIN="none", NCCL_NET_MERGE_LEVEL="LOC",
               NCCL_IB_HCA="=soft0:1,soft1:1", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_SOCKET_IFNAME="lo",
               NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,GRAPH,ENV")
    if GPUS < 2:
        # NCCL refuses a GPU to two ranks of one host.
        env["NCCL_ALL_REDUCE_TWO_HOSTS"] = "1"
    env.update(more)
    return env


@unittest.skipIf(GPUS == 0, "no GPU")
class Nccl(unittest.TestCase):
    def all_reduce(self, **more):
        """NCCL's words, after the sums were found right."""
        done = subprocess.run([PROGRAM], env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=400, check=False)
        if done.returncode == SKIPPED:
            self.skipTest(done.stdout.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stdout)
        said = re.findall(r"rank \d on GPU \d, NCCL \d+: \d+ sums, 0 wrong", done.stdout)
        self.assertEqual(len(said), 2, done.stdout)
        # By the device and by nothing else.
        channels = re.findall(r"via (\S+)", done.stdout)
        self.assertTrue(channels, done.stdout)
        for it in channels:
            self.assertTrue(it.startswith("NET/IB"), f"via {it}\n{done.stdout}")
        self.assertRegex(done.stdout, r"NET/IB : Using.*soft0:1/RoCE")
        print("\n".join(said))
        print("\n".join(sorted(set(re.findall(r"NET/IB : Using.*|via NET/IB\S*|GPU Direct RDMA \w+ for.*|.*DMA-BUF.*",
                                              done.stdout)))),
              flush=True)
        return done.stdout

    def test_through_host_memory(self):
        text = self.all_reduce(NCCL_NET_GDR_LEVEL="LOC")
        self.assertNotIn("GDRDMA", text)

    def test_straight_between_gpus(self):
        text = self.all_reduce(NCCL_NET_GDR_LEVEL="SYS", NCCL_NET_GDR_READ="1", NCCL_DMABUF_ENABLE="1")
        if "GDRDMA" not in text:
            self.skipTest("NCCL takes no GPU memory for the network here (no dma-buf of the driver's, no "
                          "nvidia-peermem)")

    def test_both_devices_at_once(self):
        self.all_reduce(NCCL_IB_HCA="=soft0:1,soft1:1", NCCL_MIN_NCHANNELS="4", NCCL_NET_GDR_LEVEL="LOC",
                        NCCL_IB_QPS_PER_CONNECTION="2", NCCL_IB_SPLIT_DATA_ON_QPS="1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
