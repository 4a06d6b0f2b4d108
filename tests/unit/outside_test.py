#!/usr/bin/env python3
"""Text from outside becomes output by printable() or shell_word() alone: all else does not compile.

usage: outside_test.py SOURCE_ROOT COMPILER...
"""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
COMPILER = sys.argv[2:]
HEAD = """
#include <fmt/format.h>
#include <iostream>
#include <string>
#include <vector>
#include "gdrperf/base/error.h"
#include "gdrperf/base/outside.h"
#include "gdrperf/base/terminal.h"
using gdrperf::Outside;
void take(const std::string&);
void look(std::string_view);
"""
GOOD = """
void use(const Outside& name) {
  std::cout << printable(name) << fmt::format("{}", printable(name)) << "sudo ip link set " + shell_word(name);
  take(name.raw());
  throw gdrperf::usage_error("no device " + printable(name));
}
"""
BAD = {
    "a stream": "void use(const Outside& name) { std::cout << name; }",
    "a stream of errors": "void use(const Outside& name) { std::cerr << \"x\" << name; }",
    "fmt": "std::string use(const Outside& name) { return fmt::format(\"{}\", name); }",
    "a list in fmt":
        "std::string use(const std::vector<Outside>& names) { return fmt::format(\"{}\", fmt::join(names, \", \")); }",
    "text with it": "std::string use(const Outside& name) { return \"no device \" + name; }",
    "it with text": "std::string use(const Outside& name) { return name + \": no such device\"; }",
    "text that grows": "void use(std::string& text, const Outside& name) { text += name; }",
    "a string of it": "std::string use(const Outside& name) { return name; }",
    "a string made from it": "std::string use(const Outside& name) { return std::string(name); }",
    "a view of it": "std::string_view use(const Outside& name) { return name; }",
    "a function that takes a string": "void use(const Outside& name) { take(name); }",
    "a function that takes a view": "void use(const Outside& name) { look(name); }",
    "an error": "void use(const Outside& name) { throw gdrperf::usage_error(name); }",
    "wrapped lines": "std::string use(const Outside& name) { return gdrperf::wrapped(name, 80, 0); }",
}


def errors_of(code):
    """What the compiler says about it."""
    command = COMPILER + ["-std=c++20", "-w", "-x", "c++", "-fsyntax-only", f"-I{ROOT}/include", "-"]
    return subprocess.run(command, input=HEAD + code, capture_output=True, text=True, check=False).stderr


class OutsideTest(unittest.TestCase):
    def test_what_is_right_compiles(self):
        self.assertEqual(errors_of(GOOD), "")

    def test_what_prints_it_raw_does_not(self):
        # Each in a namespace and on a line of its own: the compiler goes on behind an error.
        errors = errors_of("".join(f"namespace n{number} {{ {code} }}\n" for number, code in enumerate(BAD.values())))
        first = HEAD.count("\n") + 1
        for number, name in enumerate(BAD):
            self.assertIn(f"<stdin>:{first + number}:", errors, f"{name} compiles")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
