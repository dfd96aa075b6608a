"""Readers: files and streams in, documents out.

    source        format    documents
    *.jsonl       jsonl     one per line, an object with a text field
    *.csv *.tsv   csv       one per row, a column of text
    other files   text      one
    folder                  those of the files below it, at any depth
    -             jsonl     standard input

    finding.py    which files there are, and their names
    foreign.py    formats that are known and cannot be read
    formats.py    formats that can, one row each
    reading.py    all of it together

Every reader is a generator that holds one record at a time, whatever the size of its file; .gz and
.zst are decompressed as they are read. What cannot be read becomes a bad record: counted, reported
with its file and line, and skipped up to a limit (`Intake`). In a folder, files of other formats
are counted and passed over.
"""

from __future__ import annotations

from simindex.inputs.document import ID_FIELDS, BadRecord, Document, Intake
from simindex.inputs.reading import ReadOptions, read, require_inputs, rereadable, size_bytes

__all__ = [
    "ID_FIELDS",
    "BadRecord",
    "Document",
    "Intake",
    "ReadOptions",
    "read",
    "require_inputs",
    "rereadable",
    "size_bytes",
]
