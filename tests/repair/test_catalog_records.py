"""Sealed records are found where no tree leads to them, and only those that are records."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import numpy as np
from repairable import Held, examine, fresh

import simindex
from simindex import Batch, IndexOptions
from simindex.repair.catalog_records import CatalogRecords
from simindex.storage.catalog.records import Head
from simindex.storage.catalog.sealed_values import seal


def test_pages_without_a_tree_still_give_waiting_rows_and_deletions(
    held: Held, tmp_path: Path
) -> None:
    """Both meta pages are gone, so nothing says where the tree begins."""
    path = fresh(held, tmp_path / "index")
    data = path / "catalog" / "data.mdb"
    data.write_bytes(bytes(8192) + data.read_bytes()[8192:])
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == held.live
    with simindex.open(path) as index:
        assert index.recipe == simindex.Recipe()
        assert index.stats().sample_rows == 4


def test_key_that_looks_like_a_page_is_no_page(tmp_path: Path) -> None:
    """A document's key that holds a page with a head, for the very place where it is stored."""

    def data_with(name: str, key: bytes) -> Path:
        options = IndexOptions(keys="bytes", batch_rows=1 << 10)
        with simindex.open(tmp_path / name, "c", options=options) as index:
            index.append(Batch(np.zeros(1, np.uint64), keys=[key]))
        return tmp_path / name / "catalog" / "data.mdb"

    marker = bytes(range(1, 251)) * 80
    at = data_with("first", marker).read_bytes().index(marker)
    number = -(-at // 4096)
    value = seal("head", b"head", Head(999, 0, 0).encode())
    node = struct.pack("<HHHH", len(value), 0, 0, 4) + b"head" + value
    node += bytes(len(node) % 2)
    page = bytearray(4096)
    struct.pack_into("<QHHHHH", page, 0, number, 0, 2, 18, 4096 - len(node), 4096 - len(node))
    page[-len(node) :] = node
    key = bytes(number * 4096 - at) + bytes(page)
    data = data_with("second", key.ljust(len(marker), b"\0"))
    content = data.read_bytes()
    assert content[number * 4096 :][:4096] == page
    data.write_bytes(bytes(8192) + content[8192:])  # without meta pages, every page is looked at
    records = CatalogRecords.read(data)
    assert records is not None
    with closing(records):
        assert [head.generation for head, _ in records.heads()] == [2, 1]
