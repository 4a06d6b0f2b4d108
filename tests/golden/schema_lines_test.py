#!/usr/bin/env python3
"""Lines of results/schema.json that follow from the table of fields (option_table.py), on copies of the schema.

usage: schema_lines_test.py REPORT_GOLDEN SCHEMA
"""

import contextlib
import copy
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import option_table

PROGRAM, SCHEMA = (pathlib.Path(each) for each in sys.argv[1:3])
del sys.argv[1:3]


def parsed(text):
    """The schema; a key that comes twice is an error."""
    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), [key for key, _ in pairs]
        return dict(pairs)
    return json.loads(text, object_pairs_hook=once)


def without(text, place):
    """The schema's text without the line of a field, and without the field among the required."""
    name, _ = option_table.owner_of(json.loads(text), place)
    key = place.split(".")[-1]
    block = re.search(rf'^( *)"{name}": \{{\n.*?^\1\}}', text, flags=re.MULTILINE | re.DOTALL)
    line = rf'{block[1]}    "{key}": .*?'
    body = re.sub(rf'(?<={{\n){line},\n|,\n{line}(?=,?\n)', "", block[0], count=1)
    required, colon, rest = body.partition('"properties": {')
    required = re.sub(rf'"{key}",\s*|,\s*"{key}"(?=\s*\])', "", required, count=1)
    return text[:block.start()] + required + colon + rest + text[block.end():]


def without_order(schema):
    """The same with each list of required keys sorted."""
    if isinstance(schema, dict):
        return {key: sorted(each) if key == "required" and isinstance(each, list) else without_order(each)
                for key, each in schema.items()}
    return schema


class SchemaLines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        subprocess.run([PROGRAM, cls.folder], check=True)
        cls.lines = option_table.lines_of(cls.folder)
        # The test "report" judges whether the schema has them all, or writes them at this moment.
        _, _, cls.text = cls.check(SCHEMA.read_text(encoding="utf-8"), UPDATE_GOLDEN="1")

    @classmethod
    def check(cls, text, **environment):
        """Failures, what was printed, and the schema's text after the check."""
        file = cls.folder / "schema.json"
        file.write_text(text, encoding="utf-8")
        out = io.StringIO()
        others = {key: value for key, value in os.environ.items() if key != "UPDATE_GOLDEN"}
        with unittest.mock.patch.dict(os.environ, {**others, **environment}, clear=True), \
                contextlib.redirect_stdout(out):
            failures = option_table.check_lines(cls.folder, json.loads(text), file)
        return failures, out.getvalue(), file.read_text(encoding="utf-8")

    def test_a_missing_line_is_named_with_what_writes_it(self):
        text = without(self.text, "network.pause_share")
        failures, printed, after = self.check(text)
        self.assertEqual((failures, after), (1, text))
        self.assertIn("network.pause_share", printed)
        self.assertIn("UPDATE_GOLDEN=1 writes it", printed)

    def test_each_line_is_written_where_it_is_missing_and_all_others_stay(self):
        for place, line in self.lines.items():
            text = without(self.text, place)
            self.assertIsNone(option_table.entry_of(parsed(text), place), place)
            failures, printed, after = self.check(text, UPDATE_GOLDEN="1")
            self.assertEqual((failures, printed), (0, ""), place)
            schema, whole = parsed(after), parsed(self.text)
            self.assertEqual(option_table.entry_of(schema, place), line["schema"])
            key = place.split(".")[-1]
            self.assertRegex(after, rf'(?m)^ +"{key}": {re.escape(json.dumps(line["schema"]))},?$')
            option_table.owner_of(whole, place)[1]["properties"][key] = line["schema"]
            self.assertEqual(without_order(schema), without_order(whole), place)

    def test_a_line_stands_after_the_field_before_it(self):
        for place, before in (("efficiency", "limited_by"), ("network.pause_share", "pause_frames"),
                              ("server.sent_gbps", "cpu_per_gigabyte_us"), ("latency.p90_ns", "p50_ns")):
            _, _, after = self.check(without(self.text, place), UPDATE_GOLDEN="1")
            keys = list(option_table.owner_of(parsed(after), place)[1]["properties"])
            self.assertEqual(keys[keys.index(place.split(".")[-1]) - 1], before)

    def test_lines_that_persons_wrote_stay_and_those_of_described_rows_do_not(self):
        richer = self.text.replace('"description": "why the run ended', '"description": "why this run ended', 1)
        self.assertNotEqual(richer, self.text)
        self.assertEqual(self.check(richer, UPDATE_GOLDEN="1"), (0, "", richer))
        changed = self.text.replace(': "median over the theoretical maximum (ceiling_gbps)"}', ': "share"}', 1)
        self.assertNotEqual(changed, self.text)
        self.assertEqual(self.check(changed)[0], 1)
        self.assertEqual(self.check(changed, UPDATE_GOLDEN="1"), (0, "", self.text))

    def test_an_object_that_the_schema_lacks_is_left_to_persons(self):
        lines = {"nowhere.value": {"schema": {"type": "boolean"}, "exact": False}}
        with unittest.mock.patch.object(option_table, "lines_of", lambda _: lines):
            failures, printed, after = self.check(self.text, UPDATE_GOLDEN="1")
        self.assertEqual((failures, after), (1, self.text))
        self.assertIn("nowhere.value", printed)
        self.assertNotIn("UPDATE_GOLDEN", printed)

    def test_documents_are_valid_by_the_lines_of_the_table_alone(self):
        try:
            from jsonschema import Draft202012Validator
        except ImportError:
            self.skipTest("python3-jsonschema 4.0 or newer is not installed")
        schema = copy.deepcopy(parsed(self.text))
        for place, line in self.lines.items():
            option_table.owner_of(schema, place)[1]["properties"][place.split(".")[-1]] = line["schema"]
        for name in ("all", "odd"):
            document = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            self.assertEqual([each.message for each in Draft202012Validator(schema).iter_errors(document)], [])


if __name__ == "__main__":
    unittest.main()
