"""What gdrperf makes of a device with faults: each fault of the software device,
and what the program says. Prints the matrix.

usage: faults_test.py BINARY [SCHEMA]
"""
import os
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import PROMISE_S, Background, CliTest, Server, cases, main, run, softnic_works

RUN = ["-s", "4K", "-n", "2000"]
SILENT = ["flip", "truncate", "stale", "misplace"]


def run_with(command, options, devices):
    return run(command, "--local", "--softnic", "-d", "soft0", "--peer-dev", "soft1", *options,
               env={"SOFTNIC": devices})


def one_line(result):
    lines = [line for line in result.err.splitlines() if "gdrperf: error:" in line]
    return (lines or result.err.splitlines() or [""])[0][:110]


@unittest.skipIf(softnic_works(), "no software device")
class Faults(CliTest):
    matrix = []

    def test_a_port_that_goes_down_in_the_middle_of_a_run_is_the_error_at_both_ends(self):
        devices = os.path.join(self.scratch(), "devices")

        def set_ports(*down):
            with open(devices + ".new", "w", encoding="ascii") as file:
                file.writelines(f"{name}:port=down\n" if name in down else f"{name}\n" for name in ("soft0", "soft1"))
            os.replace(devices + ".new", devices)

        env = {"SOFTNIC": "@" + devices}
        every = (("send_lat", "soft0"), ("write_bw", "soft1"), ("send_lat", "soft1"), ("read_lat", "soft1"),
                 ("send_bw", "soft0"))
        for test, down in cases(every[:2], every):
            set_ports()
            with self.subTest(test=test, down=down), Server(env=env) as server:
                with Background(test, "127.0.0.1", "-p", server.port, "--softnic", "-d", "soft0", "--peer-dev", "soft1",
                                "-D", "60s", "--progress", env=env) as client:
                    client.wait_measuring()
                    set_ports(down)
                    self.assertEqual(client.wait(PROMISE_S), 3, client.err)
                    self.assertIn(f"{down} port 1 went down in the middle of the run and is DOWN", client.err)
                    self.assertEqual("server 127.0.0.1" in client.err, down == "soft1", client.err)
                    self.assertIn(f"{down} port 1 went down", server.wait_line(test))

    @classmethod
    def tearDownClass(cls):
        print("\nfault matrix: what the device does, what gdrperf sees")
        for fault, command, result in cls.matrix:
            print(f"  {fault:<42} {command:<20} exit {result.code}  {one_line(result) if result.code else 'ok'}")

    def check(self, fault, command, options, devices, code, *words):
        result = run_with(command, options, devices)
        Faults.matrix.append((fault, " ".join([command, *[o for o in options if o == "--verify"]]), result))
        if code == 0:
            self.expect_ok(result)
        else:
            self.expect_error(result, code, *words)
        return result

    def test_damaged_data_is_found_by_verify_alone(self):
        every = ("write_bw", "send_bw", "read_bw")
        for number, kind in enumerate(SILENT):
            for command in cases((every[number % 3],), every):
                fault = f"fault={kind}:every=200:from=100"
                devices = f"soft0:{fault};soft1:{fault}"
                with self.subTest(fault=fault, command=command):
                    self.check(fault, command, RUN, devices, 0)
                    self.check(fault, command, [*RUN, "--verify"], devices, 5)

    def test_messages_that_vanish(self):
        fault = "fault=drop:every=500"
        devices = f"soft0:{fault};soft1:{fault}"
        for command in ("write_bw", "read_bw"):
            self.check(fault, command, [*RUN, "--verify"], devices, 5, "data is wrong")
        # The receiver waits for what never comes.
        self.check(fault, "send_lat", RUN, devices, 5, "nothing completed")

    def test_messages_that_are_late_are_no_error(self):
        for fault in ("fault=delay:time=1ms:every=500", "fault=stall:time=2ms:every=1000"):
            with self.subTest(fault):
                self.check(fault, "write_bw", [*RUN, "--verify"], f"soft0:{fault};soft1", 0)

    def test_receivers_that_are_not_ready_for_a_while(self):
        fault = "fault=rnr:time=5ms:every=1000"
        self.check(fault, "send_bw", RUN, f"soft0:{fault};soft1", 0)

    def test_calls_that_fail(self):
        for call, error, words in (("reg_mr", "ENOMEM", "ibv_reg_mr"), ("create_qp", "ENOSPC", "No space left"),
                                   ("modify_qp", "EIO", "Input/output error")):
            with self.subTest(call):
                self.check(f"fail={call}:{error}", "write_bw", RUN, f"soft0:fail={call}:{error};soft1", 3, words)

    def test_a_port_that_is_down(self):
        self.check("port=down", "write_bw", RUN, "soft0:port=down;soft1", 3, "soft0")

    def test_a_link_that_lost_a_part_of_its_rate(self):
        self.check("slow=1.05", "write_bw", RUN, "soft0:rate=2GB/s,slow=1.05;soft1", 0)


if __name__ == "__main__":
    main()
