"""Rows with the times when they came, from one index into another."""

from __future__ import annotations

from collections.abc import Iterator

from simindex.arrays import U32
from simindex.index.index import Index
from simindex.records.batch import Batch
from simindex.storage.files.refusals import each, told
from simindex.storage.snapshot import live_rows


def aged_rows(index: Index, chunk_rows: int) -> Iterator[tuple[Batch, U32 | None]]:
    """What `Index.rows` yields, each with its times; None in an index without times."""
    snapshot = index._current()
    return each(index.path, live_rows(snapshot, chunk_rows, index.options, index.recipe))


def append_aged(index: Index, batch: Batch, times: U32 | None) -> None:
    """`Index.append` of rows that came at these times, or now if these are not known."""
    with told(index.path):
        index._changes.append(batch, {}, times)
