"""`simindex export`: the rows of an index as text."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.choices import index_argument, json_option
from simindex.cli.console import emit, key_text
from simindex.storage.tables.keys import key_hash


@program.command()
@index_argument
@click.option(
    "--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True
)
@json_option
def export(index_path: str, kind: str, as_json: bool) -> None:
    """Print every row of INDEX.

    Its id, its key, and its fingerprint in hexadecimal.
    """
    with simindex.open(index_path, "r") as index:
        if kind == "jsonl" or as_json:
            for row_id, key, fingerprint in _rows(index):
                emit({"id": row_id, "key": key, "fingerprint": fingerprint})
            return
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["id", "key", "fingerprint"])
        writer.writerows(_rows(index))


def _rows(index: Any) -> Iterator[tuple[int, str | None, str]]:
    secret = index.options.key_secret
    for batch in index.rows():
        fingerprints = ["".join(f"{word:016x}" for word in row) for row in batch.rows.tolist()]
        if batch.keys is not None:
            for key, fingerprint in zip(batch.keys, fingerprints, strict=True):
                yield key_hash(key, secret)[0], key_text(key), fingerprint
        else:
            for row_id, fingerprint in zip(batch.ids.tolist(), fingerprints, strict=True):
                yield row_id, None, fingerprint
