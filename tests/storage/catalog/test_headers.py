"""A header directory is the same after a way through the catalog, or its damage is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import CorruptFile
from simindex.storage.catalog import headers
from simindex.storage.catalog.values import seal, unseal

NAME = "0000000000000001-00000001.rows"


def a_directory(header_bits: int, rows: int, seed: int = 0) -> np.ndarray:
    """First rows of random headers, made by counting."""
    drawn = np.random.default_rng(seed).integers(0, 1 << header_bits, rows)
    counts = np.bincount(drawn, minlength=1 << header_bits)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)


@pytest.mark.parametrize("header_bits", range(21))
def test_pages_join_to_the_directory_they_came_from(header_bits: int) -> None:
    directory = a_directory(header_bits, 1000, header_bits)
    stored = dict(headers.pages(NAME, 0, directory))
    assert len(stored) == headers.page_count(header_bits)
    assert max(map(len, stored.values())) <= 4 * (headers.PAGE_HEADERS + 1)
    read = headers.assemble(NAME, 0, header_bits, 1000, stored.__getitem__)
    assert read.dtype == np.dtype("<u4")
    assert np.array_equal(read, directory)


def test_keys_of_tables_and_pages_differ() -> None:
    keys = [headers.page_key(NAME, table, page) for table in (0, 1, 256) for page in (0, 1, 65_536)]
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
    stored = dict(headers.pages(NAME, 0, directory.astype(np.uint32)))
    sound = directory[0] == 0 and directory[-1] == 50 and (np.diff(directory) >= 0).all()
    if sound:
        headers.assemble(NAME, 0, header_bits, 50, stored.__getitem__)
    else:
        with pytest.raises(CorruptFile):
            headers.assemble(NAME, 0, header_bits, 50, stored.__getitem__)


@pytest.mark.parametrize("cut", [-4, -1, 0, 4])
def test_directory_of_a_wrong_size_is_noticed(cut: int) -> None:
    (key, payload), = headers.pages(NAME, 0, a_directory(4, 9))
    changed = payload + b"\0" * cut if cut > 0 else payload[: len(payload) + cut]
    if cut == 0:
        with pytest.raises(CorruptFile):
            headers.assemble(NAME, 0, 5, 9, {key: changed}.__getitem__)
    else:
        with pytest.raises(CorruptFile):
            headers.assemble(NAME, 0, 4, 9, {key: changed}.__getitem__)


def test_pages_that_change_places_are_noticed() -> None:
    stored = {
        key: seal("headers", key, payload)
        for key, payload in headers.pages(NAME, 0, a_directory(17, 3000))
    }
    first, second = sorted(stored)[1:3]
    assert len(stored[first]) == len(stored[second])
    stored[first], stored[second] = stored[second], stored[first]
    with pytest.raises(CorruptFile, match="damaged"):
        headers.assemble(
            NAME, 0, 17, 3000, lambda key: unseal("headers", key, stored.get(key))
        )


def test_missing_page_is_noticed() -> None:
    stored = {
        key: seal("headers", key, payload)
        for key, payload in headers.pages(NAME, 0, a_directory(16, 3000))
    }
    del stored[sorted(stored)[-1]]
    with pytest.raises(CorruptFile, match="lacks"):
        headers.assemble(
            NAME, 0, 16, 3000, lambda key: unseal("headers", key, stored.get(key))
        )
