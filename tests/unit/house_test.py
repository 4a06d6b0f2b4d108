#!/usr/bin/env python3
"""The rules of the house that a compiler does not check.

usage: house_test.py SOURCE_ROOT [--rooms]

- a module includes only modules of lower layers (docs/explanation/architecture.md), and of these only their public
  headers;
- a folder of the software device includes only those below it, and no files include each other in a circle;
- each folder has at most 20 sources and a sentence in docs/explanation/architecture.md: --rooms prints folder, files,
  sentence;
- libraries stay where they belong (JSON, CUDA, verbs, CLI parsing);
- an option is spelled in one place, and a command to type is one that exists;
- how data travels is asked in one place;
- no file is longer than 400 lines, no function than 60, no line than 120 columns.
"""
import ast
import collections
import pathlib
import re
import sys
import unittest

from house_rules import (FILE_LINES, FLAG_SOURCES, FLAG_SPELLERS, FUNCTION_LINES, GATE_KEEPERS, LAYER_OF,
                         LIBRARIES, LINE_COLUMNS, LONG_LINES, NO_FUNCTION, OF_THE_PROGRAM, OTHER_ARGUMENTS,
                         OTHER_COMMANDS, PORTS, PRIVATE, ROOM_FILES, SIBLINGS, SOFTNIC, SOFTNIC_FOLDERS, SOURCE_TOPS,
                         SUFFIXES, TEST_TOPS, WAY_OF_DATA)

ROOT = pathlib.Path(sys.argv[1])


def written_by_hand():
    """Everything that is read: sources, tests, scripts."""
    for top in ("include", "src", "softnic", "tests", "bench", "scripts"):
        for path in sorted((ROOT / top).rglob("*")):
            script = top == "scripts" and path.is_file() and not path.suffix
            if script or path.suffix in {".h", ".cc", ".cu", ".py", ".sh", ".build"}:
                yield path


def cpp_functions(lines):
    """(first line, length) of each, as clang-format lays them out: what ends with its own indent's brace."""
    for first, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if indent > 2 or not line.endswith("{") or "(" not in line or NO_FUNCTION.match(line) or " = {" in line:
            continue
        last = next((at for at in range(first + 1, len(lines)) if lines[at].startswith(" " * indent + "}")), first)
        yield first + 1, last - first + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.end_lineno - node.lineno + 1


def literals(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for match in re.finditer(r'"((?:[^"\\]|\\.)*)"', re.sub(r"(^|\s)//.*", "", line)):
            yield number, match.group(1)


def flags_in(text):
    return re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text)


def own_flags():
    texts = [text for name in FLAG_SOURCES for _, text in literals(ROOT / name)]
    whole = [text for text in texts if re.fullmatch(r"-[\w,-]+", text)]
    return {flag for text in whole for flag in text.split(",")}


def sources():
    for top, module in SOURCE_TOPS.items():
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path, module or path.relative_to(ROOT / top).parts[0]


def test_sources():
    for top in TEST_TOPS:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in SUFFIXES | {".py"} and "data" not in path.relative_to(ROOT).parts:
                yield path


def rooms():
    """Folder -> number of its sources."""
    return collections.Counter(path.parent.relative_to(ROOT).as_posix()
                               for path in [*(path for path, _ in sources()), *test_sources()])


def sentences():
    """Folder -> sentence, of the tables in docs/explanation/architecture.md and softnic/docs/internals.md."""
    text = "".join((ROOT / name).read_text()
                   for name in ("docs/explanation/architecture.md", "softnic/docs/internals.md"))
    told = dict(re.findall(r"^\| `((?:src|softnic/src|include/gdrperf|tests|softnic/tests)[\w/]*)` \| (.+?) \|$", text,
                           re.M))
    # tests/unit has a folder for each module, of the same name.
    told.update({f"tests/unit/{module}": f"unit tests of `{module}`" for module in LAYER_OF
                 if (ROOT / "tests/unit" / module).is_dir()})
    return told


def circles(needs):
    """Units that include each other, of unit -> units it includes."""
    # What includes nothing that is left goes, until nothing is left or only knots.
    while free := [unit for unit, others in needs.items() if not others & needs.keys()]:
        for unit in free:
            del needs[unit]
    return {str(unit): sorted(map(str, others & needs.keys())) for unit, others in needs.items()}


def room_of(path):
    """Its folder below src: "cluster/ranks"."""
    return path.parent.relative_to(ROOT / "src").as_posix() if path.is_relative_to(ROOT / "src") else ""


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if match:
            yield number, match.group(1)


class House(unittest.TestCase):
    def test_modules_include_downward_only(self):
        wrong = []
        for path, module in sources():
            for number, name in includes(path):
                match = re.match(r"gdrperf/(\w+)/", name)
                if not match or match.group(1) == module:
                    continue
                other = match.group(1)
                if module == SOFTNIC:
                    allowed = other == "base"
                else:
                    level = LAYER_OF["app" if room_of(path) in OF_THE_PROGRAM else module]
                    allowed = (other in LAYER_OF and LAYER_OF[other] < level) or (module, other) in SIBLINGS
                if not allowed:
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {module} includes {name}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_private_headers_are_their_modules_own(self):
        wrong = []
        for path, module in sources():
            for number, name in includes(path):
                other = name.split("/")[0]
                if module == SOFTNIC or other == module or not (ROOT / "src" / name).is_file():
                    continue
                if (module, other) not in PRIVATE and (room_of(path), other) not in PRIVATE:
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {name}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_each_folder_is_a_room_with_a_sentence(self):
        found, told = rooms(), sentences()
        crowded = {name: count for name, count in found.items() if count > ROOM_FILES}
        self.assertEqual(crowded, {})
        self.assertEqual(sorted(found.keys() - told.keys()), [], "no sentence in docs/explanation/architecture.md")
        self.assertEqual(sorted(name for name in told if not (ROOT / name).is_dir()), [], "a sentence about no folder")

    def test_folders_of_softnic_include_downward_only(self):
        wrong = []
        root = ROOT / "softnic/src"
        self.assertEqual(sorted(path.name for path in root.iterdir() if path.is_dir()), sorted(SOFTNIC_FOLDERS))
        for path in sorted(root.rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            folder = path.relative_to(root).parts[0]
            for number, name in includes(path):
                if not (root / name).is_file():
                    continue
                other = name.split("/")[0]
                if SOFTNIC_FOLDERS.index(other) > SOFTNIC_FOLDERS.index(folder):
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {folder} includes {name}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    # A unit is a header and the source of its name.
    def test_units_of_softnic_form_no_knot(self):
        root = ROOT / "softnic/src"
        needs = {}
        for path in sorted(root.rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            unit = path.relative_to(root).with_suffix("")
            ours = (pathlib.Path(name).with_suffix("") for _, name in includes(path) if (root / name).is_file())
            needs.setdefault(unit, set()).update(it for it in ours if it != unit)
        self.assertEqual(circles(needs), {})

    def test_libraries_stay_where_they_belong(self):
        wrong = []
        for path, module in sources():
            for number, name in includes(path):
                for pattern, modules in LIBRARIES.items():
                    if re.match(pattern, name) and module not in modules:
                        wrong.append(f"{path.relative_to(ROOT)}:{number}: {name} in {module}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_an_option_is_spelled_in_one_place(self):
        own = own_flags()
        self.assertLessEqual({"-s", "--size", "--cap", "--peer-cpu", "--token"}, own)
        wrong = []
        for path, module in sources():
            name = str(path.relative_to(ROOT))
            if module in FLAG_SPELLERS or room_of(path) in OF_THE_PROGRAM or name in FLAG_SOURCES:
                continue
            for number, text in literals(path):
                if (name, text) in OTHER_ARGUMENTS:
                    continue
                wrong += [f"{name}:{number}: {flag}" for flag in flags_in(OTHER_COMMANDS.sub("", text)) if flag in own]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong) + "\ntake flag<&TestSpec::member>(), or base/flags.h")

    def test_commands_in_messages_have_the_options_that_they_name(self):
        own = own_flags()
        for path, module in sources():
            if module == "app":
                own |= {flag for _, text in literals(path) for flag in flags_in(text)}
        wrong = []
        for path, module in sources():
            for number, text in literals(path):
                for command in re.findall(r"gdrperf (?:[a-z_]+ )?((?:-[^;:'#)]*)+)", text):
                    wrong += [f"{path.relative_to(ROOT)}:{number}: {flag}" for flag in flags_in(command)
                              if flag not in own]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_the_way_of_data_is_chosen_in_one_place(self):
        wrong = []
        for path, module in sources():
            name = str(path.relative_to(ROOT))
            text = path.read_text()
            if module == "engine" and name not in WAY_OF_DATA and re.search(r"\bDataPath::|data_path\(\)", text):
                wrong.append(f"{name}: asks how data travels; that is for the kinds of LocalEnd and Transfer")
            # parse_words.cc: CLI11 tells its errors apart by class alone.
            if "dynamic_cast" in text and name != "src/app/options/parse_words.cc":
                wrong.append(f"{name}: dynamic_cast")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_lines_are_short(self):
        long = {}
        for path in written_by_hand():
            if path.suffix in SUFFIXES | {".py"}:
                count = sum(len(line) > LINE_COLUMNS for line in path.read_text().splitlines())
                long[path.relative_to(ROOT).as_posix()] = count
        more = {name: count for name, count in long.items() if count > LONG_LINES.get(name, 0)}
        self.assertEqual(more, {}, f"lines of more than {LINE_COLUMNS} columns")
        self.assertEqual({name for name, count in LONG_LINES.items() if count > long.get(name, 0)}, set())

    def test_files_and_functions_are_short(self):
        wrong, functions = [], 0
        for path in written_by_hand():
            text = path.read_text()
            lines = text.splitlines()
            name = path.relative_to(ROOT)
            if len(lines) > FILE_LINES:
                wrong.append(f"{name}: {len(lines)} lines")
            cpp = cpp_functions(lines) if path.suffix in SUFFIXES else []
            found = python_functions(text) if path.suffix == ".py" else cpp
            for line, length in found:
                functions += 1
                if length > FUNCTION_LINES:
                    wrong.append(f"{name}:{line}: a function of {length} lines")
        self.assertGreater(functions, 3000, "the rule by which functions are found")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    # An Admission (proto/admission.h) opens every service: who makes one has to be looked at.
    def test_the_gate_has_few_keepers(self):
        found = {}
        for path, _ in sources():
            for name in re.findall(rf"\b(?<!friend Admission )({'|'.join(GATE_KEEPERS)})\(", path.read_text()):
                found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
        home = {"include/gdrperf/proto/admission.h", "src/proto/control/token.cc"}
        self.assertEqual({name: sorted(files - home) for name, files in found.items()}, GATE_KEEPERS)

    # Whatever listens is an entry: tests/cli/control/token_test.py asks each without the token.
    def test_each_port_has_its_gate(self):
        opens = re.compile(r"\bproto::Listener\([^)]|\bListener\(\"|\blistener_?\.emplace\(|\bMHD_start_daemon\(|"
                           r"(?<!\w)::listen\(|\brdma_listen\(")
        found = {path.relative_to(ROOT).as_posix() for path, module in sources()
                 if module != SOFTNIC and opens.search(path.read_text())}
        self.assertEqual(sorted(found - {"src/proto/control/tcp.cc"}), sorted(PORTS))
        for gate in filter(None, PORTS.values()):
            self.assertIn(gate, GATE_KEEPERS["prove_as_server"])

    # std::mutex says nothing to clang's -Wthread-safety, which scripts/check reads.
    def test_locks_say_what_they_guard(self):
        wrong = []
        for path, module in sources():
            if module == SOFTNIC or path.name == "mutex.h":
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if re.search(r"std::(mutex|shared_mutex|recursive_mutex) \w+;", line) and "guards nothing" not in line:
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: Mutex of gdrperf/base/mutex.h, and GUARDED_BY")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    # A thread object that is left joinable ends the process, and so does what a thread throws; start_thread() does
    # neither.
    def test_threads_are_started_in_one_place(self):
        wrong = []
        for path, module in sources():
            if module == SOFTNIC or path.name == "thread.h":
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if re.search(r"std::thread\b(?!::)|std::jthread ?[({\[]|std::async\b|pthread_create", line):
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: start_thread() of gdrperf/base/thread.h")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    # A member without a row would be left out of the command line, the protocol and the record.
    def test_every_member_of_a_test_has_a_row_in_the_option_table(self):
        spec = (ROOT / "include/gdrperf/proto/spec.h").read_text()
        table = "".join((ROOT / "src/proto/spec" / name).read_text() for name in ("setting_table.cc", "setting_ends.h"))
        rows = set(re.findall(r"to<([^>]*)>", table))
        rows |= {row.replace("End,", f"{end},") for row in rows for end in ("kClient", "kServer")}
        missing = []
        for struct, prefixes, nested in (("TestSpec", ("&T::",), {"test", "client", "server", "stop"}),
                                         ("EndSpec", ("kClient, &E::", "kServer, &E::"), set()),
                                         ("StopRule", ("kStop, &S::",), set())):
            body = re.search(rf"struct {struct} {{(.*?)\n}};", spec, re.S).group(1)
            members = re.findall(r"^  [\w:<>]+ (\w+)(?: = [^;]+)?;", body, re.M)
            self.assertGreater(len(members), 3, struct)
            missing += [prefix + name for name in members if name not in nested for prefix in prefixes
                        if prefix + name not in rows]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    if "--rooms" in sys.argv[2:]:
        for folder, count in sorted(rooms().items()):
            print(f"| `{folder}` | {count} | {sentences().get(folder, '')} |")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=1)
