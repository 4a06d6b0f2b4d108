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
# clang stops after twenty.
ALL_ERRORS = ["-ferror-limit=0"] if any("clang" in word for word in COMPILER) else []
# Where the distribution has no fmt, or an old one, it lies in subprojects.
INCLUDES = [f"-I{ROOT}/include", *(f"-I{folder}" for folder in ROOT.glob("subprojects/fmt-*/include"))]
HEAD = """
#include <fmt/format.h>
#include <iostream>
#include <string>
#include <vector>
#include "gdrperf/base/error.h"
#include "gdrperf/base/outside.h"
#include "gdrperf/base/terminal.h"
#include "gdrperf/compare/judge.h"
#include "gdrperf/page/page.h"
#include "gdrperf/report/document.h"
#include "gdrperf/topo/topology.h"
using gdrperf::Outside;
using namespace gdrperf;
void take(const std::string&);
void look(std::string_view);
"""
GOOD = """
void use(const Outside& name) {
  std::cout << printable(name) << fmt::format("{}", printable(name)) << "sudo ip link set " + shell_word(name);
  take(name.raw());
  throw gdrperf::usage_error("no device " + printable(name));
}
std::string use(const std::vector<Outside>& names, const Outside& name) {
  return listed(names) + markdown_text(name) + markdown_code(name);
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
    "a NIC of a topology": "std::string use(const topo::TreeNic& nic) { return nic.name; }",
    "its interface": "std::string use(const topo::TreeNic& nic) { return \"of \" + nic.netdev; }",
    "a NIC of nvidia-smi's matrix": "void use(const topo::Nic& nic) { std::cout << nic.name; }",
    "a CPU list of that matrix": "void use(const topo::Matrix& matrix) { std::cout << matrix.cpu_affinity->front(); }",
    "a model in the PCI tree": "std::string use(const topo::PciFunction& function) { return function.model; }",
    "a root bus": "std::string use(const topo::PciRoot& root) { return root.name; }",
    "a pair": "std::string use(const topo::Pair& pair) { return pair.gpu + \":\" + pair.nic; }",
    "a pair's key": "void use(const topo::Pair& pair) { std::cout << pair.key(); }",
    "a NIC of a document": "std::string use(const report::TopologyNic& nic) { return nic.firmware + \"\"; }",
    "a run's device": "std::string use(const report::EndRecord& end) { return end.device; }",
    "a run's host": "void use(const report::EndRecord& end) { std::cerr << end.host; }",
    "a run's pair": "std::string use(const report::RunPath& path) { return path.pair; }",
    "a rail": "std::string use(const report::Part& part) { return part.name; }",
    "an imported file": "void use(const report::ImportedFile& file) { std::cout << file.file; }",
    "a cell's name": "std::string use(const compare::CellKey& key) { return key.name; }",
    "a condition": "std::string use(const compare::Condition& one) { return one.name + \": \" + one.value; }",
    "a changed condition": "void use(const compare::Change& one) { std::cout << one.before << one.now; }",
    "a document's path": "void use(const compare::Session& session) { throw usage_error(session.path); }",
    "a cell that changed": "void use(const compare::CellTrend& cell) { std::cout << cell.cell; }",
    "a document of a page": "std::string use(const page::PageDocument& document) { return \"# \" + document.path; }",
}


def errors_of(code):
    """What the compiler says about it."""
    command = COMPILER + ["-std=c++20", "-w", "-x", "c++", "-fsyntax-only", *ALL_ERRORS, *INCLUDES, "-"]
    return subprocess.run(command, input=HEAD + code, capture_output=True, text=True, check=False).stderr


class OutsideTest(unittest.TestCase):
    def test_what_is_right_compiles(self):
        self.assertEqual(errors_of(GOOD), "")

    def test_what_prints_it_raw_does_not(self):
        # Each in a namespace and on a line of its own: the compiler goes on behind an error.
        errors = errors_of("".join(f"namespace n{number} {{ {code} }}\n" for number, code in enumerate(BAD.values())))
        first = HEAD.count("\n") + 1
        compiles = [name for number, name in enumerate(BAD) if f"<stdin>:{first + number}:" not in errors]
        self.assertEqual(compiles, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
