"""Readers: files and streams in, documents out.

    source        format    documents
    folder        text      one per file that is no binary file, below it at any depth
    file          text      one
    *.jsonl       jsonl     one per line, an object with a text field
    *.csv *.tsv   csv       one per row, a column of text
    -             jsonl     standard input

`formats` holds the table of formats. Every reader is a generator that holds one record at a time,
whatever the size of its file; .gz and .zst are decompressed as they are read. What cannot be read
becomes a bad record: counted, reported with its file and line, and skipped up to a limit
(`Intake`).
"""

from __future__ import annotations

from simindex.inputs.document import BadRecord, Document, Intake
from simindex.inputs.reading import ReadOptions, read, require_inputs, rereadable

__all__ = [
    "BadRecord",
    "Document",
    "Intake",
    "ReadOptions",
    "read",
    "require_inputs",
    "rereadable",
]
