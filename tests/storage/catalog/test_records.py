"""Records of the catalog are the same after a way through their bytes, or damage is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex import IndexOptions
from simindex.errors import CorruptFile
from simindex.storage.catalog.records import (
    PAGE_HEADERS,
    PENDING,
    assemble_directory,
    decode_pending,
    encode_pending,
    header_pages,
    page_count,
    page_key,
    stored_options,
)
from simindex.storage.catalog.sealed_values import pack, seal, unseal
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.table import Table, sort_table

NAME = "0000000000000001-00000001.rows"
NONE = Reservoir.empty(1)
SECRET = bytes(range(200, 216))


def test_stored_options_with_keys_have_a_secret() -> None:
    whole = IndexOptions(keys=True, key_secret=SECRET).to_dict()
    assert stored_options(pack(whole)).key_secret == SECRET
    for other in (None, b"", bytes(15), "0" * 16, 7):
        with pytest.raises(CorruptFile, match="meta/options"):
            stored_options(pack({**whole, "key_secret": other}))
    with pytest.raises(CorruptFile, match="no secret"):
        stored_options(pack({name: whole[name] for name in whole if name != "key_secret"}))
    with pytest.raises(CorruptFile, match="key_secret"):
        stored_options(pack({**IndexOptions().to_dict(), "key_secret": SECRET}))


def a_directory(header_bits: int, rows: int, seed: int = 0) -> np.ndarray:
    """First rows of random headers, made by counting."""
    drawn = np.random.default_rng(seed).integers(0, 1 << header_bits, rows)
    counts = np.bincount(drawn, minlength=1 << header_bits)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)


@pytest.mark.parametrize("header_bits", range(21))
def test_pages_join_to_the_directory_they_came_from(header_bits: int) -> None:
    directory = a_directory(header_bits, 1000, header_bits)
    stored = dict(header_pages(NAME, 0, directory))
    assert len(stored) == page_count(header_bits)
    assert max(map(len, stored.values())) <= 4 * (PAGE_HEADERS + 1)
    read = assemble_directory(NAME, 0, header_bits, 1000, stored.__getitem__)
    assert read.dtype == np.dtype("<u4")
    assert np.array_equal(read, directory)


def test_keys_of_tables_and_pages_differ() -> None:
    keys = [page_key(NAME, table, page) for table in (0, 1, 256) for page in (0, 1, 65_536)]
    assert len(set(keys)) == 9


@given(data=st.data())
def test_directory_that_is_not_one_is_noticed(data: st.DataObject) -> None:
    """Whatever a kernel gets is monotone, begins at 0 and ends at the number of rows."""
    header_bits = data.draw(st.integers(0, 6))
    directory = a_directory(header_bits, 50).astype(np.int64)
    place = data.draw(st.integers(0, len(directory) - 1))
    directory[place] = data.draw(
        st.one_of(st.integers(0, 60), st.integers(2**32 - 4, 2**32 - 1))
    )
    stored = dict(header_pages(NAME, 0, directory.astype(np.uint32)))
    sound = directory[0] == 0 and directory[-1] == 50 and (np.diff(directory) >= 0).all()
    if sound:
        assemble_directory(NAME, 0, header_bits, 50, stored.__getitem__)
    else:
        with pytest.raises(CorruptFile):
            assemble_directory(NAME, 0, header_bits, 50, stored.__getitem__)


@pytest.mark.parametrize("cut", [-4, -1, 0, 4])
def test_directory_of_a_wrong_size_is_noticed(cut: int) -> None:
    (key, payload), = header_pages(NAME, 0, a_directory(4, 9))
    changed = payload + b"\0" * cut if cut > 0 else payload[: len(payload) + cut]
    if cut == 0:
        with pytest.raises(CorruptFile):
            assemble_directory(NAME, 0, 5, 9, {key: changed}.__getitem__)
    else:
        with pytest.raises(CorruptFile):
            assemble_directory(NAME, 0, 4, 9, {key: changed}.__getitem__)


def test_pages_that_change_places_are_noticed() -> None:
    stored = {
        key: seal("headers", key, payload)
        for key, payload in header_pages(NAME, 0, a_directory(17, 3000))
    }
    first, second = sorted(stored)[1:3]
    assert len(stored[first]) == len(stored[second])
    stored[first], stored[second] = stored[second], stored[first]
    with pytest.raises(CorruptFile, match="damaged"):
        assemble_directory(
            NAME, 0, 17, 3000, lambda key: unseal("headers", key, stored.get(key))
        )


def test_missing_page_is_noticed() -> None:
    stored = {
        key: seal("headers", key, payload)
        for key, payload in header_pages(NAME, 0, a_directory(16, 3000))
    }
    del stored[sorted(stored)[-1]]
    with pytest.raises(CorruptFile, match="has no record"):
        assemble_directory(
            NAME, 0, 16, 3000, lambda key: unseal("headers", key, stored.get(key))
        )


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
    return decode_pending(name, payload, rows=rows, words=words, keyed=keyed, horizon=horizon)


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 1000])
@pytest.mark.parametrize("words", [1, 2, 64])
@pytest.mark.parametrize("keyed", [False, True])
def test_encoded_rows_decode(rows: int, words: int, keyed: bool) -> None:
    table = a_table(rows, words, keyed)
    sample = Reservoir.drawn(
        table.fingerprints, np.ones((rows, 64 * words), np.float32), first=0, size=5
    )
    payload = encode_pending(table, sample)
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
    read, _ = decode("x", encode_pending(a_table(5), NONE), 5)
    for column in (read.fingerprints, read.ids):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


@given(cut=st.integers(1, 400), extra=st.integers(1, 40))
def test_run_of_a_wrong_size_is_noticed(cut: int, extra: int) -> None:
    payload = encode_pending(a_table(9, keyed=True), NONE)
    for wrong in (payload[: max(0, len(payload) - cut)], payload + bytes(extra)):
        with pytest.raises(CorruptFile):
            decode("x", wrong, 9, keyed=True)


@given(
    place=st.sampled_from(range(5)),
    value=st.one_of(st.integers(0, 40), st.sampled_from([2**31, 2**32 - 1, 2**61 + 1, 2**64 - 1])),
    keyed=st.booleans(),
)
def test_forged_header_is_noticed_or_means_the_same(place: int, value: int, keyed: bool) -> None:
    payload = bytearray(encode_pending(a_table(9, keyed=keyed), NONE))
    header = list(PENDING.unpack_from(payload))
    header[place] = value & (2**32 - 1 if place in (1, 2) else 2**64 - 1)
    PENDING.pack_into(payload, 0, *header)
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
    payload = encode_pending(a_table(9, keyed=True), NONE)
    assert len(decode("x", payload, 9, 1, keyed=True)[0]) == 9
    with pytest.raises(CorruptFile, match="not the one that the head names"):
        decode("x", payload, rows, words, keyed)
