#!/usr/bin/env python3
"""A source includes, itself or through others, a header that has each constant and type of the project it names.

usage: includes_test.py SOURCE_ROOT

Builds that compile the sources of a module as one (-Dunity=on) do not tell: there a name may come from what a
neighbour includes. `meson setup` without options compiles each source alone.
"""
import collections
import re
import unittest

from include_tree import ROOT, headers, reached

# Comments, strings and characters: what they contain names nothing.
TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
CONSTANT = re.compile(r"^(?:inline |static |extern )*const(?:expr|init)?\b[^;{}()=]*?\b(k[A-Z]\w*)\s*[={[;]", re.M)
TYPE = re.compile(r"^(?:class|struct|union|enum(?: class| struct)?) (?:alignas\(\w+\) )?([A-Z]\w+)\b[^;\n]*$", re.M)
ALIAS = re.compile(r"^using ([A-Z]\w+) =", re.M)
# In a source: what brings in a name of its own.
OWN = (r"\b(?:class|struct|enum|union|using|typename|concept|auto)(?: class)? (?:\w+::)*{0}\b|"
       r"\bconst(?:expr|init)?\b[^;{{}}()=]*\b{0}\s*[={{[;]|"
       r"\bconstexpr\b[^;{{}}()]*, {0} =|\benum\b[^{{}};]*\{{[^}}]*\b{0}\b|"
       # Suites, tests and functions of the same name.
       r"\bTEST(?:_[FP])?\([^)]*\b{0}\b|SUITE_P\([^)]*\b{0}\b|^[\w:<>,&* ]+[&* ]{0}\(")


def code_of(text):
    # An apostrophe within a number begins no character.
    return TEXT.sub('""', re.sub(r"(?<=\d)'(?=\d)", "", text))


def words_of(code):
    return set(re.findall(r"(?<![.\w>:])[A-Za-z_]\w+", code))


def declared_in(code):
    return {name for pattern in (CONSTANT, TYPE, ALIAS) for name in pattern.findall(code)}


def unknown_in(code, known, declared):
    """Names of `declared` in a source that neither its own code nor `known` explains."""
    return sorted(name for name in words_of(code) & declared.keys() - known
                  if not re.search(OWN.format(name), code, re.M))


class Includes(unittest.TestCase):
    def test_each_name_comes_from_an_included_header(self):
        words, declared = {}, collections.defaultdict(list)
        for header in headers():
            code = code_of((ROOT / header).read_text(encoding="utf-8"))
            words[header] = set(re.findall(r"[A-Za-z_]\w+", code))
            for name in declared_in(code):
                declared[name].append(header)
        wrong = []
        for top in ("src", "softnic", "tests", "bench"):
            for path in sorted((ROOT / top).rglob("*.cc")):
                source = path.relative_to(ROOT).as_posix()
                known = set().union(*(words.get(each, ()) for each in reached(source)))
                for name in unknown_in(code_of(path.read_text(encoding="utf-8")), known, declared):
                    wrong.append(f"{source}: {name} is of {' or '.join(declared[name])}, which it does not include")
        self.assertEqual(wrong, [])

    def test_what_names_are_found(self):
        self.assertEqual(declared_in("constexpr int kLimit = 3;\nstruct Port {\nusing Gid = int;\nclass Later;\n"),
                         {"kLimit", "Port", "Gid"})
        declared = dict.fromkeys(("kLimit", "Port"))
        self.assertEqual(unknown_in("return kLimit + Port{}.a;", set(), declared), ["Port", "kLimit"])
        self.assertEqual(unknown_in("Port find(int a);", set(), declared), ["Port"])
        self.assertEqual(unknown_in("Port find(int a);", {"Port"}, declared), [])
        self.assertEqual(unknown_in("struct Port {};\nPort find();", set(), declared), [])
        self.assertEqual(unknown_in(code_of('// kLimit\nsay("kLimit", \'"\', "Port");'), set(), declared), [])
        self.assertEqual(unknown_in("f(a, kLimit, b);\ng({\n    kLimit, Port});", set(), declared), ["Port", "kLimit"])
        self.assertEqual(unknown_in("enum class Way {\n  kFirst,\n  kLimit,\n};\nf(kLimit);", set(), declared), [])
        self.assertEqual(unknown_in("constexpr int kLeast = 1, kLimit = 2;\nf(kLimit);", set(), declared), [])
        self.assertEqual(unknown_in("a::kLimit, b.kLimit", set(), declared), [])


if __name__ == "__main__":
    unittest.main(argv=["includes_test.py"], verbosity=1)
