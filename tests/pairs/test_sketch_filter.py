"""Pairs and clusters of an index by a similarity, against all sketches compared."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.bits.cosine import candidate_radius, threshold
from simindex.errors import CorruptFile, InvalidOption
from simindex.pairs.live_rows import StoredRows
from simindex.pairs.sketch_filter import PairSketches
from simindex.planning.similarity import similar
from simindex.records.sketches import packed, words_of
from simindex.storage.tables.table import sort_table

ROWS, WORDS, H, MOST = 1500, 4, candidate_radius(0.9, 0.85, 64), threshold(0.9, 256)
ROOM = 40 << 20


@pytest.fixture
def rows(rng: np.random.Generator) -> tuple[Any, Any]:
    """Families whose members differ in 0 to 24 % of all bits; a third equal an earlier fingerprint,
    half of these the sketch, too."""
    signs = rng.integers(0, 1 << 64, (ROWS // 20 + 1, 1 + WORDS), dtype=np.uint64)
    share = rng.uniform(0, 0.14, ROWS)[:, None]
    flips = np.packbits(rng.random((ROWS, 64 * (1 + WORDS))) < share, axis=1).view(np.uint64)
    made = signs[rng.integers(0, len(signs), ROWS)] ^ flips
    again = np.arange(ROWS // 3, 2 * ROWS // 3)
    of = rng.integers(0, ROWS // 3, len(again))
    made[again, 0] = made[of, 0]
    half = len(again) // 2
    made[again[:half], 1:] = made[of[:half], 1:]
    # The same sketch as another fingerprint has.
    made[-20:, 1:] = made[:20, 1:]
    made[-20:, 0] = made[:20, 0] ^ np.uint64(3)
    return np.ascontiguousarray(made[:, 0]), np.ascontiguousarray(made[:, 1:])


def filled(path: Path, rows: tuple[Any, Any], ids: Any, *, sketch_bits: int = 64 * WORDS) -> None:
    """Two segments, pending rows, and one row that is deleted."""
    options = IndexOptions(sketch_bits=sketch_bits, batch_rows=600, min_merge=0)
    with simindex.open(path, "n", options=options) as index:
        for start, stop in ((0, 600), (600, 1200), (1200, ROWS)):
            sketch = rows[1][start:stop] if sketch_bits else None
            index.append(Batch(rows[0][start:stop], ids=ids[start:stop], sketch=sketch))
            index.commit()
        index.delete(ids=[5000])


def all_pairs(
    rows: tuple[Any, Any], ids: Any, h: int = H, most: int = MOST
) -> dict[tuple[int, int], int]:
    """The distance of sketches, by (a, b), of the pairs within both bounds."""
    near = np.bitwise_count(rows[0][:, None] ^ rows[0][None])
    far = np.bitwise_count(rows[1][:, None] ^ rows[1][None]).sum(axis=2, dtype=np.int64)
    a, b = np.nonzero((near <= h) & (far <= most) & (ids[:, None] < ids[None]))
    return {
        (int(ids[i]), int(ids[j])): int(far[i, j]) for i, j in zip(a, b, strict=True)
    }


@pytest.fixture
def ids(rng: np.random.Generator) -> Any:
    return rng.permutation(ROWS).astype(np.uint64)


@pytest.mark.parametrize("memory_limit", [None, ROOM])
def test_pairs_are_those_of_all_sketches(
    index_path: Path, rows: tuple[Any, Any], ids: Any, memory_limit: int | None
) -> None:
    filled(index_path, rows, ids)
    truth = all_pairs(rows, ids)
    assert len(truth) > len(set(truth.values())) > 10
    assert len(truth) < len(all_pairs(rows, ids, most=256))
    with simindex.open(index_path) as index:
        parts = list(index.pairs(similarity=0.9, memory_limit=memory_limit))
        found = [pair for part in parts for pair in part]
        assert len(found) == len(truth)
        assert {(a, b): distance for a, b, distance, _, _ in found} == truth
        for part in parts:
            assert part.similarity_bits == 64 * WORDS
            assert part.similarity == pytest.approx(
                np.cos(np.pi * part.distance / (64 * WORDS)), abs=1e-6
            )
            assert part.similarity_error is not None
            assert f"kept within {MOST} of {64 * WORDS} bits of sketch" in part.guarantee
        assert found[0].similarity == pytest.approx(np.cos(np.pi * found[0].distance / 256))
        more = [pair for part in index.pairs(similarity=0.9, recall=0.95) for pair in part]
        wider = candidate_radius(0.9, 0.95, 64)
        assert wider > H
        assert {(a, b): d for a, b, d, _, _ in more} == all_pairs(rows, ids, h=wider)


@pytest.mark.parametrize("memory_limit", [None, ROOM])
def test_collapsed_rows_equal_the_first_in_all_bits(
    index_path: Path, rows: tuple[Any, Any], ids: Any, memory_limit: int | None
) -> None:
    filled(index_path, rows, ids)
    first: dict[tuple[int, bytes], int] = {}
    for name, print_, sketch in sorted(zip(ids.tolist(), *rows, strict=True), key=lambda x: x[0]):
        first.setdefault((int(print_), sketch.tobytes()), name)
    leaders = np.array([
        first[int(print_), sketch.tobytes()] for print_, sketch in zip(*rows, strict=True)
    ], np.uint64)
    heads = leaders == ids
    assert int((~heads).sum()) > 10
    with simindex.open(index_path) as index:
        parts: list[Any] = list(
            index.pairs(similarity=0.9, collapse_equal=True, memory_limit=memory_limit)
        )
    links = sorted(link for part in parts for link in part.groups)
    assert links == sorted(
        zip(leaders[~heads].tolist(), ids[~heads].tolist(), strict=True)
    )
    found = {(a, b): distance for part in parts for a, b, distance, _, _ in part}
    assert found == all_pairs((rows[0][heads], rows[1][heads]), ids[heads])
    assert 0 in found.values()  # equal sketches of two fingerprints are no link


@pytest.mark.parametrize("mode", ["components", "star"])
def test_clusters_are_those_of_the_kept_pairs(
    index_path: Path, rows: tuple[Any, Any], ids: Any, mode: str
) -> None:
    filled(index_path, rows, ids)
    truth = all_pairs(rows, ids)
    with simindex.open(index_path) as index:
        found = index.clusters(similarity=0.9, mode=mode, singletons=False)
    far = {int(name): sketch for name, sketch in zip(ids, rows[1], strict=True)}
    for member, head, distance in zip(
        found.id.tolist(), found.representative.tolist(), found.distance.tolist(), strict=True
    ):
        assert distance == int(np.bitwise_count(far[member] ^ far[head]).sum())
        if mode == "star" and member != head:
            assert (min(member, head), max(member, head)) in truth
    cosines = np.cos(np.pi * found.distance / (64 * WORDS))
    assert found.similarity == pytest.approx(cosines, abs=1e-6)
    documents = list(found)
    assert [one[:5] for one in documents[:3]] == [
        (one.id, one.cluster, one.representative, one.distance, one.size) for one in documents[:3]
    ]
    assert [one.similarity for one in documents] == found.similarity.tolist()
    assert [one.similarity_error for one in documents] == found.similarity_error.tolist()
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert again.similarity == pytest.approx(cosines, abs=1e-6)
    if mode == "components":
        labels = {int(name): int(name) for name in ids}
        changed = True
        while changed:
            changed = False
            for a, b in truth:
                least = min(labels[a], labels[b])
                changed |= labels[a] != labels[b]
                labels[a] = labels[b] = least
        told = dict(zip(found.id.tolist(), found.cluster.tolist(), strict=True))
        assert told == {
            name: label for name, label in labels.items()
            if sum(other == label for other in labels.values()) > 1
        }


def test_without_a_sketch_the_radius_decides(
    index_path: Path, rows: tuple[Any, Any], ids: Any
) -> None:
    filled(index_path, rows, ids, sketch_bits=0)
    with simindex.open(index_path) as index:
        (found,) = index.pairs(similarity=0.9)
        (plain,) = index.pairs(h=H)
        assert found.a.tolist() == plain.a.tolist()
        assert found.similarity == pytest.approx(np.cos(np.pi * plain.distance / 64), abs=1e-6)
        assert "0.88 of the pairs at similarity 0.9" in found.guarantee
        assert plain.similarity is None
        assert plain.similarity_error is None
        assert plain.guarantee == "exact"
        assert index.clusters(h=H).similarity is None


@pytest.mark.parametrize("call", ["pairs", "clusters"])
def test_bad_similarities_are_refused(
    index_path: Path, rows: tuple[Any, Any], ids: Any, call: str
) -> None:
    filled(index_path, rows, ids)
    with simindex.open(index_path) as index:
        asking = getattr(index, call)
        for wrong in (0.4, 1.5, float("nan"), "0.9", True):
            with pytest.raises(InvalidOption, match="similarity="):
                asking(similarity=wrong)
        with pytest.raises(InvalidOption, match="contradict"):
            asking(similarity=0.9, h=3)
        for h in (None, 3):
            with pytest.raises(InvalidOption, match="recall="):
                asking(h=h, recall=0)


@pytest.mark.parametrize("call", ["pairs", "collapsed", "components", "star"])
def test_a_damaged_sketch_is_an_error(
    index_path: Path, rows: tuple[Any, Any], ids: Any, call: str
) -> None:
    filled(index_path, rows, ids)
    for path in (index_path / "segments").glob("*.rows"):
        held = bytearray(path.read_bytes())
        at = max(held.find(rows[1][0].tobytes()), 0)  # the first document is in several pairs
        held[at + 3] ^= at > 0
        path.write_bytes(held)
    with simindex.open(index_path) as index, pytest.raises(CorruptFile, match=r"\.rows"):
        if call in ("components", "star"):
            index.clusters(similarity=0.9, mode=call)
        else:
            list(index.pairs(similarity=0.9, collapse_equal=call == "collapsed"))


def test_sketches_are_read_in_portions(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More pairs than a portion has, in any order, some of one row with itself."""
    sketch = rng.integers(0, 1 << 64, (300, 2), dtype=np.uint64)
    tables = [
        sort_table(
            "part", some[:, :1].copy(), np.arange(len(some), dtype=np.uint64), None, horizon=0,
            sketches=packed(some, None),
        )
        for some in np.split(sketch, [100, 100, 250])
    ]
    stored = StoredRows(tables, None, words=1, numbered=True)
    numbered = np.concatenate([
        words_of(table.sketches) for table in tables if table.sketches is not None and len(table)
    ])
    pairs = 3000
    monkeypatch.setattr("simindex.pairs.sketch_filter.COMPARED_BYTES", 17 * 1000)
    a, b = rng.integers(0, 300, (2, pairs), dtype=np.uint64)
    sketches = PairSketches(
        stored, similar(0.9, h=None, recall=1.0, bits=64, sketch_bits=128)
    )
    expected = np.bitwise_count(numbered[a] ^ numbered[b]).sum(axis=1)
    assert (sketches.distance(a, b) == expected).all()
    assert sketches.distance(a[:0], b[:0]).tolist() == []
    digests = sketches.digests(np.arange(300, dtype=np.uint64))
    assert len(np.unique(digests)) == 300
    assert (sketches.digests(a) == digests[a]).all()
