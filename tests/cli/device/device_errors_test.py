#!/usr/bin/env python3
"""A device that cannot do it, at either end: cause, end and remedy within 5 s."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, sys.path[0] + "/..")
from support import BINARY, PROMISE_S, CliTest, Server, main, run, softnic_works

DOWN = {"SOFTNIC": "soft0:port=down;soft1"}
ALL_DOWN = {"SOFTNIC": "soft0:port=down;soft1:port=down"}
NO_GID = {"SOFTNIC": "soft0:gid=none;soft1"}
NO_MR = {"SOFTNIC": "soft0:fail=reg_mr:ENOMEM;soft1"}
RUN = ["-n", "100", "-s", "64"]


class NoDevice(CliTest):
    def test_a_machine_without_devices_names_softnic_and_the_doctor(self):
        if run("devices").code == 0:
            self.skipTest("this machine has an RDMA device")
        for command in (["write_bw", "--local"], ["sweep", "--local"], ["devices"], ["serve", "-p", "0"],
                        ["write_bw", "-p", "0"]):
            with self.subTest(command[0]):
                self.expect_error(run(*command), 3, "no RDMA device", "--softnic", "doctor",
                                  within=PROMISE_S)


@unittest.skipIf(softnic_works(), "no software device")
class OwnEnd(CliTest):
    """The failing end is this process's own: no peer's name in front."""

    def local(self, code, *says, test="write_bw", options=(), env=None):
        result = run(test, "--local", "--softnic", *RUN, *options, env=env)
        self.expect_error(result, code, *says, within=PROMISE_S)
        return result

    def test_unknown_device(self):
        result = self.local(2, "soft9", "soft0", options=["-d", "soft9"])
        self.assertNotIn("server (local): ", result.err)

    def test_an_unknown_device_of_the_server_names_the_option_for_it(self):
        result = self.local(2, "--peer-dev soft9", "soft0", "choose one with --peer-dev",
                            options=["--peer-dev", "soft9"])
        self.assertNotIn("with -d", result.err)

    def test_a_kind_of_memory_for_the_server_that_is_none(self):
        self.local(2, "--peer-buffer", "tape", options=["--peer-buffer", "tape"])

    def test_port_down(self):
        self.local(3, "soft0", "port 1", "DOWN", options=["-d", "soft0"], env=DOWN)
        self.local(3, "DOWN", "port=down", env=ALL_DOWN)
        self.local(3, "soft0", "port 1 is DOWN", "port=down", test="send_lat", env={"SOFTNIC": "soft0:port=down"})

    def test_a_port_the_device_does_not_have(self):
        self.local(2, "soft0", "port 7", options=["-d", "soft0", "-i", "7"])

    def test_no_gid(self):
        self.local(3, "soft0", "GID", options=["-d", "soft0"], env=NO_GID)

    def test_a_gid_index_that_is_not_there(self):
        self.local(2, "-x 77", options=["-x", "77"])

    def test_registration_refused(self):
        result = self.local(3, "ibv_reg_mr", "Cannot allocate memory", "locked memory",
                            options=["-d", "soft0", "--peer-dev", "soft1"], env=NO_MR)
        self.assertNotIn("server (local): ", result.err)

    def test_each_of_the_six_tests_says_so(self):
        for test in ("write_bw", "write_lat", "send_bw", "send_lat", "read_bw", "read_lat"):
            with self.subTest(test):
                self.local(3, "ibv_reg_mr", test=test, options=["-d", "soft0"], env=NO_MR)

    def test_a_buffer_kind_that_is_not_there(self):
        self.local(2, "tape", options=["--buffer", "tape"])


@unittest.skipIf(softnic_works(), "no software device")
class ServersEnd(CliTest):
    """The failing end is the server: the client says so, the server goes on."""

    def refused(self, server_env, code, *says, options=(), test="write_bw"):
        with Server(env=server_env) as server:
            result = run(test, "127.0.0.1", "-p", server.port, "--softnic", *RUN, *options)
            self.expect_error(result, code, f"server 127.0.0.1:{server.port}: ", *says,
                              within=PROMISE_S)
            self.expect_ok(run(test, "127.0.0.1", "-p", server.port, "--softnic", *RUN,
                               "-d", "soft1", "--peer-dev", "soft1"))

    def test_unknown_device(self):
        self.refused(None, 2, "soft9", "soft0", options=["--peer-dev", "soft9"])

    def test_port_down(self):
        self.refused(DOWN, 3, "soft0", "DOWN", options=["--peer-dev", "soft0"])

    def test_no_gid(self):
        self.refused(NO_GID, 3, "soft0", "GID", options=["--peer-dev", "soft0"])

    def test_a_gid_index_that_is_not_there(self):
        self.refused(None, 2, "--peer-gid-index 77", options=["--peer-gid-index", "77"])

    def test_registration_refused(self):
        for test in ("write_bw", "send_lat", "read_bw"):
            with self.subTest(test):
                self.refused(NO_MR, 3, "ibv_reg_mr", "Cannot allocate memory", "locked memory",
                             options=["--peer-dev", "soft0"], test=test)

    @unittest.skipIf(os.geteuid() != 0, "only root can be two users")
    def test_a_software_device_of_another_user(self):
        try:
            subprocess.run([BINARY, "--version"], user=65534, stdout=subprocess.DEVNULL, check=True)
        except (PermissionError, subprocess.CalledProcessError):
            self.skipTest("other users may not run what lies in this build folder")
        with Server() as server:
            result = run("write_bw", "127.0.0.1", "-p", server.port, "--softnic", *RUN, user=65534)
            self.expect_error(result, 5, "software device", "run client and server as one user")
            self.assertNotIn("NIC no longer answers", result.err)

    def test_the_clients_own_failure_leaves_the_server_serving(self):
        with Server() as server:
            result = run("write_bw", "127.0.0.1", "-p", server.port, "--softnic", "-d", "soft0",
                         *RUN, env=NO_MR)
            self.expect_error(result, 3, "ibv_reg_mr", within=PROMISE_S)
            self.assertNotIn(f"server 127.0.0.1:{server.port}: ", result.err)
            self.expect_ok(run("write_bw", "127.0.0.1", "-p", server.port, "--softnic", *RUN))


@unittest.skipIf(softnic_works(), "no software device")
class Exchange(CliTest):
    def test_queue_pairs_refused(self):
        for call in ("create_qp", "modify_qp"):
            with self.subTest(call):
                env = {"SOFTNIC": f"soft0:fail={call}:ENOSPC"}
                self.expect_error(run("write_bw", "--local", "--softnic", *RUN, env=env), 3,
                                  "soft0: ", "No space left", within=PROMISE_S)

    def test_a_wrong_SOFTNIC_is_named(self):
        result = run("write_bw", "--local", "--softnic", env={"SOFTNIC": "soft0:port=sideways"})
        self.expect_error(result, 2, "error: SOFTNIC 'soft0:port=sideways'", "give up or down",
                          "softnic/docs/softnic.md")
        self.assertNotIn("--softnic", result.err)


if __name__ == "__main__":
    main()
