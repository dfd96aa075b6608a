"""A merge is the sorted union of its inputs without their dead rows, in bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.storage.tables import compaction


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[int]:
    monkeypatch.setattr(compaction, "WINDOW_ROWS", request.param)
    yield request.param


def drawn(shape: str, rng: np.random.Generator, rows: int, words: int) -> np.ndarray:
    """Fingerprints whose first words are of some shape, and whose others vary."""
    values = rng.integers(0, 2**64, (rows, words), dtype=np.uint64)
    if shape == "equal":
        values[:, 0] = 77
    elif shape == "skewed":
        values[:, 0] = np.where(rng.random(rows) < 0.7, 5, rng.integers(0, 9, rows))
    elif shape == "hot":
        hot = np.array([0, 1 << 63, 2**64 - 1], np.uint64)
        values[:, 0] = np.where(rng.random(rows) < 0.9, hot[rng.integers(0, 3, rows)], values[:, 0])
    return values


WINDOWS = (1, 3, 16, 1 << 20)
SHAPES = ("uniform", "equal", "skewed", "hot")
STORED = ((64, False), (128, True), (1024, False), (64, True))


@pytest.mark.parametrize(
    ("window", "shape", "bits", "keyed"),
    [(WINDOWS[(i + j) % 4], SHAPES[i], *STORED[j]) for i in range(4) for j in range(4)],
    indirect=["window"],
)
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.slow
def test_merge_is_the_sorted_union(
    index_path: Path, window: int, shape: str, bits: int, keyed: bool, deleted: bool
) -> None:
    """Each two of window, shape and kind of rows meet, with deletions and without."""
    rng = np.random.default_rng(bits + len(shape))
    options = IndexOptions(bits=bits, keys=keyed, batch_rows=32, min_merge=0)
    expected: list[tuple[list[int], str | int]] = []
    with simindex.open(index_path, "c", options=options) as index:
        for size in (32, 4, 25, 32, 7):
            values = drawn(shape, rng, size, bits // 64)
            names = [f"n{len(expected) + i}" for i in range(size)]
            ids = None if keyed else np.arange(len(expected), len(expected) + size, dtype=np.uint64)
            index.append(Batch(values, ids=ids, keys=names if keyed else None))
            index.commit()
            labels = names if keyed else ids.tolist()  # type: ignore[union-attr]
            expected += list(zip(values.tolist(), labels, strict=True))
        if deleted:
            doomed = expected[::3] + expected[:32]
            if keyed:
                index.delete(keys=[str(label) for _, label in doomed])
            else:
                index.delete(ids=np.array([label for _, label in doomed], np.uint64))
            index.commit()
            expected = [row for row in expected if row not in doomed]
        index.compact(full=True)
        segment, = index._current().segments
        assert index.stats().dead_rows == 0
        assert index.stats().tombstones == 0
        assert index.check() == []
        labels = (
            segment.keys.decoded("str") if segment.keys is not None else segment.ids.tolist()
        )
        assert sorted(zip(segment.fingerprints.tolist(), labels, strict=True)) == sorted(expected)
        # Rows of an equal first word stand in the order in which they came.
        order = sorted(range(len(expected)), key=lambda i: expected[i][0][0])
        assert labels == [expected[i][1] for i in order]
        assert len(list((index_path / "segments").glob("*.rows"))) == 1


def test_merge_of_dead_rows_alone_leaves_no_segment(index_path: Path) -> None:
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        index.append(np.arange(16, dtype=np.uint64))
        index.commit()
        index.delete(ids=np.arange(16, dtype=np.uint64))
        index.commit()
        index.compact(full=True)
        assert (len(index), index.stats().segments, index.stats().tombstones) == (0, 0, 0)
        assert list((index_path / "segments").iterdir()) == []
        assert index.check() == []
        index.append(np.arange(16, dtype=np.uint64))
        index.commit()
        assert len(index) == 16


def test_progress_counts_to_the_end(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "WINDOW_ROWS", 8)
    seen: list[tuple[int, int]] = []
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        index.append(np.arange(40, dtype=np.uint64))
        index.commit()
        index.compact(full=True, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (40, 40)
    assert {total for _, total in seen} == {40}


@pytest.mark.parametrize("stop_after", [1, 3])
def test_interrupted_merge_leaves_the_index_as_it_was(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int
) -> None:
    monkeypatch.setattr(compaction, "WINDOW_ROWS", 8)
    calls = 0

    def stop(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_after:
            raise KeyboardInterrupt

    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        index.append(np.arange(40, dtype=np.uint64))
        index.commit()
        files = sorted((index_path / "segments").iterdir())
        with pytest.raises(KeyboardInterrupt):
            index.compact(full=True, progress=stop)
        assert sorted((index_path / "segments").iterdir()) == files
        index.compact(full=True)
        assert len(index) == 40
        assert index.check() == []


@pytest.mark.slow
def test_memory_of_a_merge_does_not_grow_with_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "WINDOW_ROWS", 1 << 12)
    rng = np.random.default_rng(0)
    peaks = []
    # Sections of more than 2 MiB, which is what the writer holds back of each.
    for rows in (600_000, 1_800_000):
        options = IndexOptions(batch_rows=rows // 4, min_merge=0)
        with simindex.open(tmp_path / str(rows), "c", options=options) as index:
            index.append(rng.integers(0, 2**64, rows, dtype=np.uint64))
            index.commit()
            snapshot, writer = index._current(), index._handle.writer
            tracemalloc.start()
            merged = compaction.merge(snapshot.segments, snapshot.tombstones)
            assert writer is not None
            with writer.committer.files.open_writer(
                merged.rows, merged.key_bytes, horizon=0, generation=1
            ) as made:
                for block in merged.blocks():
                    made.write(*block)
                record = made.finish()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert record.rows == rows
            assert merged.dead == (0,) * len(snapshot.segments)
    assert peaks[1] < 1.3 * peaks[0] < 16_000_000
