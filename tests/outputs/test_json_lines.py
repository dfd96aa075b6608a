"""JSON lines, and the values of columns as text."""

from __future__ import annotations

import io
import json

import numpy as np

from simindex.outputs.columns import Schema
from simindex.outputs.json_lines import write_json_lines

SCHEMA: Schema = {"name": "text", "id": "uint64", "key": "bytes", "keep": "bool"}


def test_rows_are_objects_with_the_columns_in_order() -> None:
    stream = io.StringIO()
    with write_json_lines(stream, SCHEMA) as write:
        write({
            "keep": np.array([True, False]), "id": np.array([2**64 - 1, 0], np.uint64),
            "name": ["é\n", "\udcff"], "key": [b"\xff\xc3\xa9", None],
        })
        write({"name": [], "id": [], "key": [], "keep": []})
    lines = stream.getvalue().split("\n")
    assert lines.pop() == ""
    assert lines == [
        '{"name": "é\\n", "id": 18446744073709551615, "key": "\\\\xffé", "keep": true}',
        '{"name": "\\udcff", "id": 0, "key": null, "keep": false}',
    ]
    assert json.loads(lines[1])["name"] == "\udcff"
