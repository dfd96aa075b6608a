"""What `simindex export` prints, as fingerprints: JSON lines or a table with a field of digits.

    {"key": "a.txt", "fingerprint": "3c92d228661540d6"}        key,fingerprint
                                                               a.txt,3c92d228661540d6

A field or column `sketch` has the digits of sketches, if the rows have them, and `size` about how
many features their texts have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.document import Source, Unusable
from simindex.inputs.fields import MISSING, field_of
from simindex.inputs.fingerprints import (
    FIELD,
    SIZE,
    SKETCH,
    Fingerprints,
    Row,
    RowNames,
    gathered,
    record_lines,
)
from simindex.inputs.json_lines import record_of
from simindex.inputs.streams import unmarked


def read_exported_lines(stream: BinaryIO, source: Source) -> Iterator[Fingerprints]:
    """Rows of JSON lines with a field of digits; bad records as of `json_lines.read_jsonl`."""
    names = RowNames(source)

    def parsed(line: bytes) -> Row:
        record = record_of(line)
        if FIELD not in record:
            raise Unusable(f"has no field {FIELD!r}")
        return record[FIELD], names.of(record), record.get(SKETCH), record.get(SIZE)

    return gathered(source, record_lines(stream, source), parsed)


def read_exported_table(stream: BinaryIO, source: Source) -> Iterator[Fingerprints]:
    """Rows of a table with a column of digits; bad records as of `csv_table.read_table`."""
    from simindex.inputs.csv_table import TableRows  # lines need none

    names = RowNames(source)
    return gathered(
        source, TableRows(stream, source, FIELD),
        lambda row: (row[FIELD], names.of(row), row.get(SKETCH), row.get(SIZE)),
    )


def is_exported_lines(head: bytes, text_field: str) -> bool:
    """Whether the first line is an object of digits without a text."""
    line = unmarked(head).lstrip().partition(b"\n")[0]
    if not line.startswith(b"{") or b'"fingerprint"' not in line:
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return FIELD in record and field_of(record, text_field) is MISSING


def is_exported_table(head: bytes, text_field: str) -> bool:
    """Whether the first row names a column of digits and none of texts."""
    import csv

    line = unmarked(head).partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    for delimiter in (",", "\t"):
        try:
            columns = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            continue
        if FIELD in columns and text_field not in columns:
            return True
    return False
