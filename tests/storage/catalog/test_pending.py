"""A pending run is a table like any other; bytes that make none are noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import CorruptFile
from simindex.storage.catalog import pending
from simindex.storage.catalog.pending import PENDING
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.table import Table, sort_table

NONE = Reservoir.empty(1)


def a_table(rows: int, words: int = 1, keyed: bool = False) -> Table:
    rng = np.random.default_rng(rows)
    keys = KeyHeap.of([f"key {i}" * (i % 3) for i in range(rows)]) if keyed else None
    return sort_table(
        "", rng.integers(0, 2**64, (rows, words), dtype=np.uint64),
        rng.integers(0, 2**64, rows, dtype=np.uint64), keys, horizon=3,
    )


def decode(
    name: str, payload: bytes, rows: int, words: int = 1, keyed: bool = False, horizon: int = 0
) -> tuple[Table, Reservoir]:
    return pending.decode(name, payload, rows=rows, words=words, keyed=keyed, horizon=horizon)


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 1000])
@pytest.mark.parametrize("words", [1, 2, 64])
@pytest.mark.parametrize("keyed", [False, True])
def test_encoded_rows_decode(rows: int, words: int, keyed: bool) -> None:
    table = a_table(rows, words, keyed)
    sample = Reservoir.drawn(
        table.fingerprints, np.ones((rows, 64 * words), np.float32), first=0, size=5
    )
    payload = pending.encode(table, sample)
    read, read_sample = decode("run 1", payload, rows, words, keyed, horizon=9)
    assert read.horizon == 9
    assert read.name == "run 1"
    assert np.array_equal(read.fingerprints, table.fingerprints)
    assert np.array_equal(read.ids, table.ids)
    assert np.array_equal(read.directory, table.directory)
    assert np.array_equal(read_sample.priority, sample.priority)
    assert (read.keys is None) == (not keyed)
    if read.keys is not None and table.keys is not None:
        assert read.keys.decoded("str") == table.keys.decoded("str")


def test_read_rows_cannot_be_changed() -> None:
    read, _ = decode("x", pending.encode(a_table(5), NONE), 5)
    for column in (read.fingerprints, read.ids):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


@given(cut=st.integers(1, 400), extra=st.integers(1, 40))
def test_run_of_a_wrong_size_is_noticed(cut: int, extra: int) -> None:
    payload = pending.encode(a_table(9, keyed=True), NONE)
    for wrong in (payload[: max(0, len(payload) - cut)], payload + bytes(extra)):
        with pytest.raises(CorruptFile):
            decode("x", wrong, 9, keyed=True)


@given(
    field=st.sampled_from(list(PENDING.names or ())),
    value=st.one_of(st.integers(0, 40), st.sampled_from([2**31, 2**32 - 1, 2**61 + 1, 2**64 - 1])),
    keyed=st.booleans(),
)
def test_forged_header_is_noticed_or_means_the_same(field: str, value: int, keyed: bool) -> None:
    payload = bytearray(pending.encode(a_table(9, keyed=keyed), NONE))
    header: Any = np.frombuffer(bytes(payload[: PENDING.itemsize]), PENDING).copy()
    limit = int(np.iinfo(header[field].dtype).max)
    header[field] = value & limit
    payload[: PENDING.itemsize] = header.tobytes()
    try:
        table, _ = decode("x", bytes(payload), 9, keyed=keyed)
    except CorruptFile:
        return
    assert len(table) == 9
    assert table.fingerprints.shape == (9, 1)


@pytest.mark.parametrize(("rows", "words", "keyed"), [(8, 1, True), (9, 2, True), (9, 1, False)])
def test_run_of_other_rows_than_were_asked_for_is_noticed(
    rows: int, words: int, keyed: bool
) -> None:
    payload = pending.encode(a_table(9, keyed=True), NONE)
    assert len(decode("x", payload, 9, 1, keyed=True)[0]) == 9
    with pytest.raises(CorruptFile, match="not the one the head names"):
        decode("x", payload, rows, words, keyed)
