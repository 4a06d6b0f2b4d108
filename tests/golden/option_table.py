"""What follows from tables alone: the schema's tests, its lines of plain fields and of options that are left out at
their default, and the columns of these, one more of which changes no recorded file."""
import csv
import io
import json
import os
import pathlib
import re


def lines_of(produced):
    """The schema's lines that follow from a table: place in a run -> schema, exact, and the flags of an option."""
    with open(os.path.join(produced, "lines.txt"), encoding="utf-8") as file:
        return json.load(file)


def options_of(produced):
    """The settings that follow from the option table alone: name -> its line."""
    return {place: line for place, line in lines_of(produced).items() if "flags" in line}


def places_of(produced):
    """Where a run's JSON has each field, and whether it is "null" or "omitted" without a value."""
    with open(os.path.join(produced, "places.txt"), encoding="utf-8") as file:
        return dict(line.split() for line in file)


def without_unset(text, options):
    """CSV without the columns of those options that no run sets: an option more changes no golden file."""
    rows = rows_of(text)
    kept = [column for column, name in enumerate(rows[0])
            if name not in options or any(row[column] for row in rows[1:])]
    return csv_of([row[column] for column in kept] for row in rows)


def rows_of(text):
    return list(csv.reader(io.StringIO(text.decode(), newline="")))


def csv_of(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def check_columns(text, produced, name):
    """A column for each field, in the table's order; quotes where CSV needs them."""
    rows = rows_of(text)
    columns = pathlib.Path(produced, "columns.txt").read_text(encoding="utf-8").split()
    if rows[0] == columns and csv_of(rows) == text:
        return 0
    print(f"FAIL {name}: its columns are not the fields of the table, or are quoted in another way")
    return 1


def owner_of(schema, place):
    """The object that has a place in a run, and its name in the text; None: there is no such object."""
    name, node = "run", schema["$defs"]["run"]
    for key in place.split(".")[:-1]:
        name, node = key, node.get("properties", {}).get(key, {})
        node = node.get("anyOf", [node])[0]
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            node = schema["$defs"][name]
    return (name, node) if "properties" in node else (None, None)


def entry_of(schema, place):
    """What the schema says of a place in a run; None: nothing."""
    owner = owner_of(schema, place)[1]
    return owner and owner["properties"].get(place.split(".")[-1])


def wrong_lines(schema, lines):
    """Places of which the schema has no line, or another one than it has to be."""
    found = {place: entry_of(schema, place) for place in lines}
    return [place for place, line in lines.items()
            if found[place] is None or (line["exact"] and found[place] != line["schema"])]


def with_line(text, place, line, places):
    """The schema's text with the line in place of its own, or where it has none, after the previous field of the same
    object. A field that is null without a value becomes required."""
    schema = json.loads(text)
    name, owner = owner_of(schema, place)
    if name is None:
        return text
    *path, key = place.split(".")
    block = re.search(rf'^( *)"{name}": \{{\n.*?^\1\}}', text, flags=re.MULTILINE | re.DOTALL)
    indent, body = block[1] + "    ", block[0]
    entry = f'{indent}"{key}": {json.dumps(line["schema"])}'
    if key in owner["properties"]:
        body = re.sub(rf'^{indent}"{key}": .*?(?=,?$)', lambda _: entry, body, count=1, flags=re.MULTILINE)
    else:
        beside = [each for each in places if each.split(".")[:-1] == path]
        at = beside.index(place)
        keys = [each.split(".")[-1] for each in beside[:at][::-1] + beside[at:]] + list(owner["properties"])
        near = next(each for each in keys if each in owner["properties"])
        body = re.sub(rf'^{indent}"{near}": .*?(?=,?$)', lambda it: f"{it[0]},\n{entry}", body, count=1,
                      flags=re.MULTILINE)
        if places[place] == "null":
            comma = ", " if owner["required"] else ""
            body = re.sub(r'("required": \[[^]]*?)(\s*\])', rf'\1{comma}"{key}"\2', body, count=1)
    return text[:block.start()] + body + text[block.end():]


def check_lines(produced, schema, schema_path):
    """What the schema says of options that follow from the option table alone, and of fields that have a row;
    docs/reference/formats.md says how options are named."""
    failures = 0
    lines = lines_of(produced)
    for place, option in options_of(produced).items():
        if "--" + place.replace("_", "-") not in option["flags"].split(","):
            failures += 1
            print(f"FAIL {place}: is not recorded under its option, {option['flags']}")
    if os.environ.get("UPDATE_GOLDEN") and wrong_lines(schema, lines):
        text = pathlib.Path(schema_path).read_text(encoding="utf-8")
        for place in wrong_lines(schema, lines):
            if place in wrong_lines(json.loads(text), lines):  # client and server share theirs
                text = with_line(text, place, lines[place], places_of(produced))
        schema.update(json.loads(text))
        pathlib.Path(schema_path).write_text(text, encoding="utf-8")
    for place in wrong_lines(schema, lines):
        failures += 1
        how = "UPDATE_GOLDEN=1 writes it" if owner_of(schema, place)[0] else "its object is written by hand"
        print(f"FAIL schema: has no line of {place}, or another one than the table ({how})")
    return failures


def check_tests(produced, schema, schema_path):
    """The schema names the tests that there are, each with its runs."""
    tests = pathlib.Path(produced, "tests.txt").read_text(encoding="utf-8").split()
    if tests_of(schema) == (tests, tests):
        return 0
    if not os.environ.get("UPDATE_GOLDEN"):
        print("FAIL schema: its tests are not those of the program (UPDATE_GOLDEN=1 writes them anew)")
        return 1
    text = pathlib.Path(schema_path).read_text(encoding="utf-8")
    enum = f'        "op": {{"enum": {json.dumps(tests)}}},'
    text = re.sub(r'^        "op": \{"enum": .*$', lambda _: enum, text, count=1, flags=re.MULTILINE)
    run = '          "{0}": {{"type": "array", "minItems": 1, "items": {{"$ref": "#/$defs/any_run", "properties": ' \
          '{{"op": {{"const": "{0}"}}}}}}}}'
    lines = ",\n".join(run.format(test) for test in tests) + "\n"
    old = r'(?:^          "\w+_(?:bw|lat)": \{"type": "array", "minItems": 1, .*\n)+'
    text = re.sub(old, lambda _: lines, text, count=1, flags=re.MULTILINE)
    pathlib.Path(schema_path).write_text(text, encoding="utf-8")
    schema.clear()
    schema.update(json.loads(text))
    return 0 if tests_of(schema) == (tests, tests) else 1


def tests_of(schema):
    """The tests by their runs, and by what a run is called."""
    relation = schema["properties"]["relations"]["additionalProperties"]
    return list(relation["properties"]), schema["$defs"]["run"]["properties"]["op"]["enum"]
