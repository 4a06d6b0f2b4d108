#!/usr/bin/env python3
"""report_check.py PROGRAM SCHEMA GOLDEN_DIR

Runs PROGRAM into a temporary folder, compares its files with the golden ones
byte by byte, validates every document against SCHEMA, and makes sure that the
schema refuses documents that are wrong in one place. UPDATE_GOLDEN=1 writes the
golden files, and what SCHEMA says of options and new fields, instead of comparing.
"""
import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

from option_table import check_columns, check_lines, check_tests, entry_of, options_of, places_of, without_unset

# File of the program -> golden file.
GOLDEN = {
    "all.json": "report_document.json",
    "table.txt": "report_table.txt",
    "table_gbits.txt": "report_table_gbits.txt",
    "table_colour.txt": "report_table_colour.txt",
    "table_80.txt": "report_table_80.txt",
    "runs.csv": "report_runs.csv",
}


def golden_files(produced, golden):
    """Those, and for each exporter's 'format.some-name' the file 'format_some_name.*'."""
    pairs = dict(GOLDEN)
    for name in sorted(os.listdir(produced)):
        if name.startswith("format."):
            stem = "format_" + name[len("format."):].replace("-", "_")
            found = [each for each in os.listdir(golden) if each.startswith(stem + ".")]
            pairs[name] = found[0] if found else stem + ".txt"
    return pairs

# The distribution's Python, which has the packages that prove our text readable.
SYSTEM_PYTHON = "/usr/bin/python3"
PARSE_PROMETHEUS = """
import re
import sys
try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    print("python3-prometheus-client is not installed")
    sys.exit(77)
text = open(sys.argv[1]).read()
families = list(text_string_to_metric_families(text))
samples = [(s.name, tuple(sorted(s.labels.items()))) for family in families for s in family.samples]
assert len(samples) > 40, samples
assert len(set(samples)) == len(samples), "a series twice"
# What `promtool check metrics` finds fault with, beyond what does not parse.
lines = text.splitlines()
for family in families:
    name = family.name
    assert family.documentation and family.type in ("gauge", "summary"), family
    for word in ("HELP", "TYPE"):
        assert sum(line.startswith(f"# {word} {name} ") for line in lines) == 1, (word, name)
    assert re.fullmatch("[a-z][a-z0-9_]*", name), f"{name}: colons are for rules, capitals for nobody"
    for wrong in ("_total", "_sum", "_count", "_bucket", "_info", "_ns", "_us", "_ms", "_gbps", "_" + family.type):
        assert not name.endswith(wrong), f"{name}: base units, and no type or kind, at the end of a name"
    if family.type == "gauge" and name != "gdrperf_unstable":
        assert name.endswith(("_seconds", "_per_second")), f"{name}: its unit is not in its name"
    for sample in family.samples:
        assert "le" not in sample.labels, sample
        assert ("quantile" in sample.labels) == (family.type == "summary" and sample.name == name), sample
"""

# Objects whose keys are data; their values follow one schema.
MAPS = {("relations",), ("topology", "pairs")}


def is_map(path):
    return path in MAPS or (len(path) == 2 and path[0] == "relations")


def walk(value, path=()):
    """Every value of a document with its path."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, path + (key,))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, path + (index,))


def changed(document, path, change):
    """A copy of the document in which change(parent, key) was applied at path."""
    result = copy.deepcopy(document)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    return result


def setter(value):
    return lambda parent, key: parent.__setitem__(key, value)


def generic_mutations(document, places):
    """Keys missing, objects with a key too many, values of a wrong type or sign."""
    for path, value in walk(document):
        name = "/".join(map(str, path))
        if isinstance(value, dict) and not is_map(path):
            grown = copy.deepcopy(value)
            grown["surplus"] = 1
            if path:
                yield name + ": surplus key", changed(document, path, setter(grown))
            else:
                yield "surplus key", grown
        if not path:
            continue
        # Not every document has them: later ones, and those of GPU memory.
        optional = path[0] == "relations" and places.get(".".join(map(str, path[4:]))) == "omitted"
        if isinstance(path[-1], str) and not is_map(path[:-1]) and not optional:
            yield name + ": missing", changed(document, path, lambda p, k: p.pop(k))
        yield name + ": wrong type", changed(document, path, setter({"not": ["the", "type"]}))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield name + ": negative", changed(document, path, setter(-1))
            yield name + ": text", changed(document, path, setter(str(value)))


def named_mutations(document):
    run = ("relations", "HOST", "write_bw", 0)
    lat = ("relations", "HOST", "write_lat", 0)
    latency = document["relations"]["HOST"]["write_lat"][0]["latency"]
    yield "newer schema", changed(document, ("schema",), setter("gdrperf-results/2"))
    yield "local time", changed(document, ("started",), setter("2025-01-31T12:00:00+01:00"))
    yield "unknown relation", changed(
        document, ("relations", "HOST"), lambda p, k: p.__setitem__("NVL", p.pop(k)))
    yield "relation without tests", changed(document, ("relations", "HOST"), setter({}))
    yield "test without runs", changed(document, run[:-1], setter([]))
    yield "run under another test", changed(document, run + ("op",), setter("read_bw"))
    yield "bandwidth with latency", changed(document, run + ("latency",), setter(latency))
    yield "bandwidth without bw", changed(document, run + ("bw",), setter(None))
    yield "latency without latency", changed(document, lat + ("latency",), setter(None))
    yield "latency with message rate", changed(document, lat + ("msg_rate_mpps",), setter(1.0))
    yield "unknown kind", changed(document, run + ("device_kind",), setter("fast"))
    yield "size 0", changed(document, run + ("size_bytes",), setter(0))
    yield "odd MTU", changed(document, run + ("mtu_bytes",), setter(1500))
    yield "half an interval", changed(document, run + ("bw", "ci95_gbps"), setter([1.0]))
    yield "interval with null", changed(document, run + ("bw", "ci95_gbps"), setter([1.0, None]))
    yield "unknown stop", changed(document, run + ("stop",), setter("bored"))
    yield "pair without NIC", changed(
        document, ("topology", "pairs", "GPU0/mlx5_0"), lambda p, k: p.__setitem__("GPU0", p.pop(k)))


def trimmed(document):
    """One run of each metric is enough to be changed."""
    result = copy.deepcopy(document)
    host = result["relations"]["HOST"]
    result["relations"]["HOST"] = {test: host[test][:1] for test in ("write_bw", "write_lat")}
    return result


def check_golden(produced, golden):
    failures = 0
    for source, name in golden_files(produced, golden).items():
        path = os.path.join(golden, name)
        with open(os.path.join(produced, source), "rb") as file:
            got = file.read()
        if name.endswith(".csv"):
            failures += check_columns(got, produced, name)
            got = without_unset(got, options_of(produced))
        if os.environ.get("UPDATE_GOLDEN"):
            with open(path, "wb") as file:
                file.write(got)
            continue
        want = pathlib.Path(path).read_bytes() if os.path.exists(path) else b""
        if got != want:
            failures += 1
            print(f"FAIL {name}: differs (UPDATE_GOLDEN=1 accepts the new one)")
            subprocess.run(["diff", "-u", path, "-"], input=got, check=False)
    return failures


def check_formats(produced):
    """Each format once through a reader that is not ours."""
    failures = 0
    path = os.path.join(produced, "format.prometheus")
    parser = subprocess.run([SYSTEM_PYTHON, "-c", PARSE_PROMETHEUS, path], capture_output=True, text=True)
    if parser.returncode == 77:
        print(parser.stdout.strip() + ": its parser was not asked")
    elif parser.returncode:
        failures += 1
        print("FAIL prometheus: " + parser.stderr)
    promtool = shutil.which("promtool")
    if promtool:
        with open(path, "rb") as file:
            lint = subprocess.run([promtool, "check", "metrics"], stdin=file, capture_output=True, text=True)
        if lint.returncode:
            failures += 1
            print(f"FAIL promtool check metrics: {lint.stdout}{lint.stderr}")
    for name in ("google-benchmark", "bmf", "custom-bigger-is-better", "custom-smaller-is-better"):
        with open(os.path.join(produced, "format." + name), encoding="utf-8") as file:
            json.load(file, parse_constant=reject_constant)
    with open(os.path.join(produced, "format.jsonl"), encoding="utf-8") as file:
        for line in file:
            json.loads(line, parse_constant=reject_constant)
    return failures


def check_fields(produced, schema, schema_path):
    """The table of fields is that of docs/reference/formats.md, and the schema names the unit of rates."""
    failures = 0
    with open(os.path.join(produced, "fields.md"), encoding="utf-8") as file:
        table = file.read()
    docs = os.path.join(os.path.dirname(schema_path), "..", "docs", "reference", "formats.md")
    with open(docs, encoding="utf-8") as file:
        text = file.read()
    if table not in text:
        head = table.splitlines()[0]
        if os.environ.get("UPDATE_GOLDEN") and head in text:
            begin = text.index(head)
            end = begin + len(text[begin:].split("\n\n")[0]) + 1
            with open(docs, "w", encoding="utf-8") as file:
                file.write(text[:begin] + table + text[end:])
        else:
            failures += 1
            print("FAIL docs/reference/formats.md: its table of fields is another one (UPDATE_GOLDEN=1 accepts the "
                  "new one)")
    for line in table.splitlines()[2:]:
        _, name, unit, _, place, _ = (cell.strip().strip("`") for cell in line.split("|"))
        entry = entry_of(schema, place)
        if entry and unit == "Gb/s" and "Gb/s" not in entry.get("description", ""):
            failures += 1
            print(f"FAIL schema: {place} ({name}) does not say that it is Gb/s")
    return failures


# What a run has beside fields: series, counts and intervals of one, and whole objects.
NO_FIELDS = {"warnings", "checked_by", "levels", "shares", "parts",
             "client.gpu", "server.gpu", "client.counters", "server.counters", "bw.ci95_gbps",
             "bw.batches_gbps", "latency.ci95_p50_ns", "latency.batches_p50_ns", "latency.samples_beyond"}


def check_places(produced, schema):
    """The schema of a run has no more than the table of fields, and requires what is always there."""
    failures = 0
    places = places_of(produced)
    run = schema["$defs"]["run"]
    seen = set()
    for key, node in run["properties"].items():
        inner = resolved(schema, node)
        whole = key in places or key in NO_FIELDS or "properties" not in inner
        parts = {key: run} if whole else {f"{key}.{part}": inner for part in inner.get("properties", {})}
        for place, owner in parts.items():
            seen.add(place)
            if place not in places and place not in NO_FIELDS:
                failures += 1
                print(f"FAIL schema: {place} is no field of the table")
            required = place.split(".")[-1] in owner["required"]
            # An object that is left out whole has parts that it always has.
            if place in places and key != "required" and required != (places[place] == "null"):
                failures += 1
                print(f"FAIL schema: {place} is {'' if required else 'not '}required, the table has it {places[place]}")
    for place in sorted((NO_FIELDS | set(places)) - seen):
        failures += 1
        print(f"FAIL schema: has no {place}")
    return failures


def resolved(schema, node):
    """The object behind references and alternatives."""
    while True:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        elif "anyOf" in node:
            node = node["anyOf"][0]
        else:
            return node


def reject_constant(text):
    raise ValueError(f"{text} is no JSON")


def main():
    program, schema_path, golden = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        failures += check_golden(folder, golden)
        failures += check_formats(folder)
        failures += check_tests(folder, schema, schema_path)
        failures += check_lines(folder, schema, schema_path)
        failures += check_fields(folder, schema, schema_path)
        failures += check_places(folder, schema)
        # Debian 11's is older than the schema's dialect: the comparisons alone.
        if not hasattr(jsonschema, "Draft202012Validator"):
            print(f"skipped: python3-jsonschema is older than 4.0; without it {failures} failures")
            return 1 if failures else 77
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        documents = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        for name in documents:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                document = json.load(file, parse_constant=reject_constant)
            for error in validator.iter_errors(document):
                failures += 1
                print(f"FAIL {name}: {error.json_path}: {error.message[:200]}")
        # The command of the README, once, as people type it.
        command = [sys.executable, "-W", "ignore", "-m", "jsonschema",
                   "-i", os.path.join(folder, "all.json"), schema_path]
        if subprocess.run(command, check=False).returncode != 0:
            failures += 1
            print("FAIL", *command)
        with open(os.path.join(folder, "all.json"), encoding="utf-8") as file:
            document = trimmed(json.load(file))
        places = places_of(folder)
    if not validator.is_valid(document):
        failures += 1
        print("FAIL: the document to change is not valid itself")
    mutants = 0
    for what, mutant in [*generic_mutations(document, places), *named_mutations(document)]:
        mutants += 1
        if validator.is_valid(mutant):
            failures += 1
            print(f"FAIL accepted: {what}")
    print(f"{len(documents)} documents, {mutants} wrong ones, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
