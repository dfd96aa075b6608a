"""Rows that equal an earlier one in fingerprint and sketch, whatever the room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.pairs import sketch_filter
from simindex.pairs.all_pairs import search_of
from simindex.pairs.live_rows import StoredRows
from simindex.pairs.repeats import Repeats
from simindex.pairs.sketch_filter import PairSketches
from simindex.pairs.tiles import Room
from simindex.planning.similarity import similar
from simindex.records.sketches import packed, words_of
from simindex.storage.tables.table import sort_table


def stored_rows(rows: Any, sketch: Any, ids: Any, cuts: Any, *, with_ids: bool) -> StoredRows:
    tables = [
        sort_table("part", rows[some], ids[some], None, horizon=0,
                   sketches=packed(sketch[some], None))
        for some in np.split(np.arange(len(rows)), cuts)
    ]
    return StoredRows(tables, None, words=1, ids=with_ids, numbered=True)


def taken(stored: StoredRows) -> Any:
    """Fingerprint, sketch and id by number."""
    return np.concatenate([
        np.column_stack([table.fingerprints, words_of(table.sketches), table.ids])
        for table in stored.tables
    ])


@given(
    seed=st.integers(0, 2**32), n=st.integers(1, 150), prints=st.sampled_from([1, 2, 40]),
    kinds=st.sampled_from([1, 3, 60]), room=st.sampled_from([4, 30, 1000]), ids=st.booleans(),
)
@pytest.mark.slow
def test_every_repeat_is_linked_to_the_first(
    seed: int, n: int, prints: int, kinds: int, room: int, ids: bool
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 1 << 64, prints, dtype=np.uint64)[rng.integers(0, prints, (n, 1))]
    sketch = rng.integers(0, 1 << 64, (kinds, 2), dtype=np.uint64)[rng.integers(0, kinds, n)]
    cuts = np.sort(rng.integers(0, n + 1, 2))
    names = rng.permutation(n).astype(np.uint64)
    stored = stored_rows(rows, sketch, names, cuts, with_ids=ids)
    column = taken(stored)
    rank = column[:, 3] if ids else np.arange(n)
    first: dict[bytes, int] = {}
    for number in np.argsort(rank).tolist():
        first.setdefault(column[number, :3].tobytes(), number)
    expected = sorted(
        (first[row[:3].tobytes()], number) for number, row in enumerate(column)
        if first[row[:3].tobytes()] != number
    )
    sketches = PairSketches(stored, similar(1.0, h=None, recall=1.0, bits=64, sketch_bits=128))
    repeats = Repeats(stored, sketches, Room(room, 7))
    links = []
    for found in repeats:
        assert found.links.all()
        assert found.a_numbers is not None
        assert found.b_numbers is not None
        links += zip(found.a_numbers.tolist(), found.b_numbers.tolist(), strict=True)
    assert sorted(links) == expected
    others = repeats.others()
    assert len(others) == n - len(expected)
    left = [stored.numbers(place, start, len(some), chosen)
            for place, start, some, chosen in others.pieces()]
    assert sorted(np.concatenate(left).tolist()) == sorted(first.values())
    assert len(stored) == n


def test_rows_whose_digests_clash_are_paired_as_others(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """If all digests were one number: no row is linked to another sketch, and none is lost."""
    monkeypatch.setattr(sketch_filter, "mixed", np.zeros_like)
    rows = np.full((30, 1), 5, np.uint64)
    sketch = np.arange(30, dtype=np.uint64).reshape(30, 1) // np.uint64(3)
    stored = stored_rows(rows, sketch, np.arange(30, dtype=np.uint64), [], with_ids=True)
    exact = similar(0.99, h=None, recall=1.0, bits=64, sketch_bits=64)
    a, b = np.triu_indices(30, 1)
    far = np.bitwise_count(sketch[a] ^ sketch[b])[:, 0]
    for room in (Room(4, 100), Room(1000, 1000)):
        found = list(search_of(stored, exact, h=exact.h, room=room, collapse=True, threads=1))
        linked = {b for part in found if part.b_ids is not None
                  for b in part.b_ids[part.links].tolist()}
        pairs = {
            (min(x, y), max(x, y)) for part in found
            if part.a_ids is not None and part.b_ids is not None
            for x, y in zip(part.a_ids.tolist(), part.b_ids.tolist(), strict=True)
        }
        assert linked == {1, 2}
        assert pairs == {
            (int(x), int(y)) for x, y, d in zip(a, b, far, strict=True)
            if d <= exact.most and not {int(x), int(y)} & linked
        } | {(0, 1), (0, 2)}
