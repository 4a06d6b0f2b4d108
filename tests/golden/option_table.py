"""What follows from tables alone: the schema's tests, and columns and the schema's lines of options that are left out
at their default. One more of them changes no recorded file."""
import csv
import io
import json
import os
import pathlib
import re


def options_of(produced):
    """The settings that follow from the option table alone: name -> flags, schema."""
    with open(os.path.join(produced, "options.txt"), encoding="utf-8") as file:
        return json.load(file)


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


def check_options(produced, schema, schema_path):
    """What the schema says of options that follow from the option table alone; docs/reference/formats.md says how they
    are named."""
    failures = 0
    properties = schema["$defs"]["run"]["properties"]
    options = options_of(produced)
    for name, option in options.items():
        if "--" + name.replace("_", "-") not in option["flags"].split(","):
            failures += 1
            print(f"FAIL {name}: is not recorded under its option, {option['flags']}")
    if all(properties.get(name) == option["schema"] for name, option in options.items()):
        return failures
    if not os.environ.get("UPDATE_GOLDEN"):
        print("FAIL schema: says something else of options than the option table (UPDATE_GOLDEN=1 writes it anew)")
        return failures + 1
    text = pathlib.Path(schema_path).read_text(encoding="utf-8")
    # Ends have fields of the same names.
    before, begin, run = text.partition('\n    "run": {\n')
    for name in options:
        run = re.sub(rf'^        "{name}": (?!{{"\$ref").*\n', "", run, flags=re.MULTILINE)
    text = before + begin + run
    lines = "".join(f'        "{name}": {json.dumps(option["schema"])},\n' for name, option in options.items())
    text = re.sub(r'^(?=        "verified": )', lambda _: lines, text, count=1, flags=re.MULTILINE)
    pathlib.Path(schema_path).write_text(text, encoding="utf-8")
    properties.update(json.loads(text)["$defs"]["run"]["properties"])
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
