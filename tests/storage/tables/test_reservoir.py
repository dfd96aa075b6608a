"""The sample of weights is uniform, bounded, and the same however the rows were cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.errors import CorruptFile
from simindex.storage.tables.reservoir import (
    LARGEST_WEIGHT,
    RESERVOIR,
    Reservoir,
    draw_priorities,
    in_root_mean_squares,
)


def rows_of(first: int, count: int, words: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Fingerprints that say their ordinal, and weights that vary."""
    ordinals = np.arange(first, first + count, dtype=np.uint64)
    weights = np.ones((count, 64 * words), np.float32)
    weights[:, 0] = 1 + ordinals % 7
    return np.repeat(ordinals[:, None], words, axis=1), weights


def drawn(first: int, count: int, size: int, words: int = 1) -> Reservoir:
    return Reservoir.drawn(*rows_of(first, count, words), first=first, size=size)


def splitmix64(ordinal: int) -> int:
    """The published generator, in whole numbers."""
    mask = 2**64 - 1
    x = (ordinal + 1) * 0x9E3779B97F4A7C15 & mask
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
    return x ^ x >> 31


@pytest.mark.parametrize("first", [0, 1, 12345, 2**40])
def test_priorities_are_those_of_splitmix64(first: int) -> None:
    assert draw_priorities(first, 50).tolist() == [splitmix64(first + i) for i in range(50)]


def test_sample_is_uniform_over_all_rows_ever_appended() -> None:
    """Chi-square over 40 stretches of the stream; 39 degrees of freedom, 5 sigma."""
    size, total, batch = 2000, 400_000, 10_000
    sample = Reservoir.empty(1)
    for first in range(0, total, batch):
        sample = Reservoir.merged([sample, drawn(first, batch, size)], size)
    assert len(sample) == size
    ordinals = sample.fingerprints[:, 0].astype(np.int64)
    assert len(np.unique(ordinals)) == size
    counts = np.bincount(ordinals * 40 // total, minlength=40)
    chi_square = ((counts - size / 40) ** 2 / (size / 40)).sum()
    assert chi_square < 39 + 5 * np.sqrt(2 * 39)


@settings(max_examples=50)
@given(
    cuts=st.lists(st.integers(0, 3000), max_size=8), size=st.integers(150, 400),
    order=st.randoms(use_true_random=False),
)
def test_sample_does_not_depend_on_how_the_rows_came(
    cuts: list[int], size: int, order: object
) -> None:
    """Merging is associative and commutative, and early dropping loses none of the lowest."""
    edges = sorted({0, 3000, *cuts})
    parts = [drawn(a, b - a, size) for a, b in pairwise(edges)]
    order.shuffle(parts)  # type: ignore[attr-defined]
    middle = len(parts) // 2
    merged = Reservoir.merged(
        [
            Reservoir.merged([Reservoir.empty(1), *parts[:middle]], size),
            Reservoir.merged([Reservoir.empty(1), *parts[middle:]], size),
        ],
        size,
    )
    lowest = np.argsort(draw_priorities(0, 3000))[:size]
    assert merged.fingerprints[:, 0].tolist() == lowest.tolist()
    assert (np.diff(merged.priority.astype(object)) > 0).all()


@pytest.mark.parametrize(("count", "size"), [(0, 4), (3, 4), (4, 4), (5, 4), (1000, 4), (1000, 1)])
def test_part_is_never_larger_than_asked(count: int, size: int) -> None:
    assert len(drawn(0, count, size)) <= size
    assert len(drawn(10**12, count, size)) <= size
    assert len(Reservoir.merged([drawn(0, count, size)] * 3, size)) <= size


def test_late_rows_are_dropped_early() -> None:
    """Of a million rows after a billion others, few are copied."""
    assert len(draw_priorities(10**9, 10**5)) == 10**5
    assert len(drawn(10**9, 10_000, 100)) <= 1


def test_weights_are_kept_in_units_of_their_row() -> None:
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(40, 64)).astype(np.float32)
    scale = 10.0 ** rng.integers(-30, 30, (40, 1))
    kept = in_root_mean_squares((weights * scale).astype(np.float32))
    expected = weights / np.sqrt((weights.astype(np.float64) ** 2).mean(axis=1, keepdims=True))
    assert kept.dtype == np.float16
    assert np.allclose(kept, expected, rtol=2e-3, atol=1e-3)


def test_extreme_weights_stay_finite() -> None:
    rows = np.zeros((3, 4096), np.float32)
    rows[1, 5] = np.finfo(np.float32).max
    rows[2] = np.finfo(np.float32).tiny
    kept = in_root_mean_squares(rows)
    assert np.isfinite(kept).all()
    assert (kept[0] == 0).all()
    assert kept[1, 5] == 64
    assert (np.abs(kept) <= LARGEST_WEIGHT).all()


@pytest.mark.parametrize("words", [1, 2, 16])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_encoded_sample_decodes(words: int, count: int) -> None:
    written = drawn(0, count, 9, words)
    read = Reservoir.decode("x", written.encode(), words)
    for name in ("priority", "fingerprints", "weights"):
        assert np.array_equal(getattr(read, name), getattr(written, name))
        assert getattr(read, name).shape == getattr(written, name).shape


@given(cut=st.integers(1, 2000))
def test_cut_sample_is_noticed(cut: int) -> None:
    payload = drawn(0, 9, 9).encode()
    with pytest.raises(CorruptFile):
        Reservoir.decode("x", payload[: max(0, len(payload) - cut)], 1)
    with pytest.raises(CorruptFile):
        Reservoir.decode("x", payload + bytes(cut), 1)


@pytest.mark.parametrize("rows", [10, 2**32, 2**60, 2**61 + 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("words", [0, 1, 2**32 - 1])
def test_forged_counts_are_noticed(rows: int, words: int) -> None:
    payload = bytearray(drawn(0, 9, 9).encode())
    RESERVOIR.pack_into(payload, 0, rows, words, 0)
    with pytest.raises(CorruptFile):
        Reservoir.decode("x", bytes(payload), words)


def test_sample_of_another_width_is_noticed() -> None:
    """Without rows, too: it would be joined with samples of the index's own width."""
    for count in (0, 3):
        with pytest.raises(CorruptFile, match="rows of 2 words, not of 1"):
            Reservoir.decode("x", drawn(0, count, 9, 2).encode(), 1)
