"""A similarity in place of a radius, in every call that takes it, against all rows compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe
from simindex.bits.cosine import candidate_radius, threshold
from simindex.errors import CorruptFile, InvalidBatch, InvalidOption

ROWS, WORDS = 3000, 8
BITS = 64 * WORDS


def documents(rng: np.random.Generator, rows: int = ROWS) -> tuple[Any, Any]:
    """Fingerprints and sketches of families, whose members differ in 0 to 24 % of all bits."""
    signs = rng.integers(0, 1 << 64, (rows // 20 + 1, 1 + WORDS), dtype=np.uint64)
    family = rng.integers(0, len(signs), rows)
    share = rng.uniform(0, 0.14, rows)[:, None]
    flips = np.packbits(rng.random((rows, 64 * (1 + WORDS))) < share, axis=1).view(np.uint64)
    made = signs[family] ^ flips
    return np.ascontiguousarray(made[:, 0]), np.ascontiguousarray(made[:, 1:])


def expected(
    queries: tuple[Any, Any], rows: tuple[Any, Any], similarity: float, bits: int = BITS
) -> dict[tuple[int, int], int]:
    """The distance of sketches by (query, row) of those that are within both bounds."""
    near = np.bitwise_count(queries[0][:, None] ^ rows[0][None])
    far = np.bitwise_count(queries[1][:, None] ^ rows[1][None]).sum(axis=2, dtype=np.int64)
    kept = near <= candidate_radius(similarity, 0.85, 64)
    if bits:
        kept &= far <= threshold(similarity, bits)
    told = far if bits else near
    return {(int(q), int(r)): int(told[q, r]) for q, r in zip(*np.nonzero(kept), strict=True)}


def got(found: simindex.Matches) -> dict[tuple[int, int], int]:
    every = zip(found.query.tolist(), found.id.tolist(), found.distance.tolist(), strict=True)
    return {(query, row): distance for query, row, distance in every}


@pytest.fixture
def rows(rng: np.random.Generator) -> tuple[Any, Any]:
    return documents(rng)


@pytest.fixture
def filled(index_path: Path, rows: tuple[Any, Any]) -> Path:
    """Two segments, pending rows and rows that are deleted: the last ten."""
    options = IndexOptions(sketch_bits=BITS, batch_rows=1600, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        for start in (0, 1600, 2900):
            stop = min(start + 1600, 2900) if start < 2900 else ROWS
            index.append(Batch(
                rows[0][start:stop], ids=np.arange(start, stop), sketch=rows[1][start:stop]
            ))
            index.commit()
        index.delete(ids=np.arange(ROWS - 10, ROWS))
    return index_path


def asked(rows: tuple[Any, Any], rng: np.random.Generator, count: int = 60) -> tuple[Any, Any]:
    chosen = rng.choice(ROWS, count, replace=False)
    return rows[0][chosen] ^ np.uint64(1), rows[1][chosen] ^ np.uint64(6)


@pytest.mark.parametrize("similarity", [0.8, 0.9, 0.97, 1.0])
def test_a_query_finds_what_comparing_all_sketches_finds(
    filled: Path, rows: tuple[Any, Any], rng: np.random.Generator, similarity: float
) -> None:
    queries = asked(rows, rng)
    if similarity == 1.0:
        queries = rows[0][:60], rows[1][:60]
    live = rows[0][:-10], rows[1][:-10]
    batch = Batch(queries[0], sketch=queries[1])
    truth = expected(queries, live, similarity)
    assert len(truth) >= 60
    with simindex.open(filled) as index:
        found = index.query(batch, similarity=similarity)
        assert got(found) == truth
        assert len(found) == len(truth)
        order = list(zip(found.query.tolist(), found.distance.tolist(), found.id.tolist(),
                         strict=True))
        assert order == sorted(order)
        assert found.similarity is not None
        assert found.similarity_error is not None
        cosines = np.cos(np.pi * found.distance / BITS)
        assert found.similarity == pytest.approx(cosines, abs=1e-6)
        assert (found.similarity >= similarity - 1e-6).all()
        assert found.stats.similarity_bits == BITS
        assert "sketch" in found.stats.guarantee
        assert not found.stats.exact
        match = found[0]
        assert match.similarity == pytest.approx(cosines[0], abs=1e-6)
        assert match.similarity_error == pytest.approx(found.similarity_error[0])
        assert next(iter(found)) == match
        parts = list(index.query_stream(batch, similarity=similarity))
        assert [one for part in parts for one in part] == list(found)
        best = {q: min((d, r) for (p, r), d in truth.items() if p == q) for q, _ in truth}
        first = index.query(batch, similarity=similarity, first=True)
        assert got(first) == {(q, r): d for q, (d, r) in best.items()}
        limited = index.query(batch, similarity=similarity, limit=3)
        wanted = {
            (q, r): d for q, _ in truth
            for d, r in sorted((d, r) for (p, r), d in truth.items() if p == q)[:3]
        }
        assert got(limited) == wanted
        bounded = index.query(batch, similarity=similarity, memory_limit=64 << 20)
        assert got(bounded) == truth


def test_a_candidate_that_its_sketch_rejects_hides_no_other(index_path: Path) -> None:
    """The first row within h is not enough where sketches decide."""
    rows = np.array([0, 1, 3], np.uint64)
    sketches = np.array([[(1 << 64) - 1], [7], [0]], np.uint64)
    with simindex.open(index_path, "n", options=IndexOptions(sketch_bits=64)) as index:
        index.append(Batch(rows, sketch=sketches))
        index.commit()
        batch = Batch(rows[:1], sketch=np.zeros((1, 1), np.uint64))
        for first in (False, True):
            found = index.query(batch, similarity=0.9, first=first)
            assert found.id.tolist() == ([2] if first else [2, 1])


def test_more_candidates_than_memory_holds_are_compared_in_windows(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one query, most of which are rejected."""
    from simindex.query import call

    count = 20_000
    sketches = np.full((count, 1), (1 << 64) - 1, np.uint64)
    kept = [5, 777, 19_000]
    sketches[kept] = np.array([[1], [0], [3]], np.uint64)
    with simindex.open(index_path, "n", options=IndexOptions(sketch_bits=64)) as index:
        index.append(Batch(np.zeros(count, np.uint64), sketch=sketches))
        index.commit()
        monkeypatch.setattr(call, "PART_MATCHES", 5000)
        monkeypatch.setattr(call, "FIRST_MATCHES", 5000)
        batch = Batch(np.zeros(1, np.uint64), sketch=np.zeros((1, 1), np.uint64))
        found = [one.id for part in index.query_stream(batch, similarity=0.9) for one in part]
        assert found == [777, 5, 19_000]
        assert index.query(batch, similarity=0.9, first=True).id.tolist() == [777]
        assert index.query(batch, similarity=0.9, limit=2).id.tolist() == [777, 5]
        told = {part.stats.similarity_bits for part in index.query_stream(batch, similarity=0.9)}
        assert told == {64}


@pytest.mark.parametrize("sketch_bits", [0, BITS])
@pytest.mark.slow
def test_a_batch_is_matched_within_itself_and_the_index(
    index_path: Path, rows: tuple[Any, Any], sketch_bits: int
) -> None:
    sketches = rows[1] if sketch_bits else None

    def part(start: int, stop: int) -> Batch:
        sketch = None if sketches is None else sketches[start:stop]
        return Batch(rows[0][start:stop], ids=np.arange(start, stop), sketch=sketch)

    every = expected(rows, rows, 0.9, sketch_bits)
    earlier = {(q, r): d for (q, r), d in every.items() if r < q}
    with simindex.open(index_path, "n") as index:
        assert got(index.ingest(part(0, 1000), similarity=0.9)) == {
            (q, r): d for (q, r), d in earlier.items() if q < 1000
        }
        found = index.ingest(part(1000, 2000), similarity=0.9)
        assert got(found) == {
            (q - 1000, r): d for (q, r), d in earlier.items() if 1000 <= q < 2000
        }
        assert found.stats.similarity_bits == (sketch_bits or 64)
        best: dict[int, list[tuple[int, int]]] = {}
        for (q, r), d in earlier.items():
            best.setdefault(q, []).append((d, r))
        first = index.ingest(part(2000, 2500), similarity=0.9, first=True)
        assert set(first.query.tolist()) == {q - 2000 for q in best if 2000 <= q < 2500}
        assert got(first).items() <= {(q - 2000, r): d for (q, r), d in earlier.items()}.items()


@pytest.mark.parametrize("commit", [False, True], ids=["waiting", "committed"])
@pytest.mark.parametrize("sketch_bits", [0, BITS])
@pytest.mark.slow
def test_one_document_at_a_time_is_compared_with_all_before_it(
    index_path: Path, rows: tuple[Any, Any], sketch_bits: int, commit: bool
) -> None:
    count = 300
    every = expected(rows, rows, 0.9, sketch_bits)
    added: list[int] = []
    with simindex.open(index_path, "n") as index:
        for number in range(count):
            sketch = rows[1][number : number + 1] if sketch_bits else None
            one = Batch(rows[0][number : number + 1], ids=[number], sketch=sketch)
            near = sorted(
                (every[number, row], row) for row in added if (number, row) in every
            )
            found = index.seen_or_add(one, similarity=0.9, commit_s=None)
            if near:
                assert (found.distance, found.id) in near
                assert found.distance == near[0][0]
                assert found.id == near[0][1] or not sketch_bits  # of equally near ones any
                bits = sketch_bits or 64
                assert found.similarity == pytest.approx(np.cos(np.pi * found.distance / bits))
                assert found.similarity_error > 0
            else:
                assert found is None
                added.append(number)
            if commit:
                index.commit()
        assert 0 < len(added) < count


def test_without_sketches_the_radius_decides(index_path: Path, rows: tuple[Any, Any]) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(rows[0])
        index.commit()
        found = index.query(rows[0][:50], similarity=0.9)
        assert got(found) == got(index.query(rows[0][:50], h=12))
        assert found.stats.similarity_bits == 64
        assert found.similarity == pytest.approx(np.cos(np.pi * found.distance / 64), abs=1e-6)
        told = found.stats.guarantee
        assert "0.88 of the pairs at similarity 0.9; without a sketch, 0.66 of those at" in told
        plain = index.query(rows[0][:50], h=12)
        assert plain.similarity is None
        assert plain.similarity_error is None
        assert plain[0].similarity is None


def test_texts_are_compared_by_the_sketches_of_the_recipe(index_path: Path) -> None:
    recipe = Recipe(ngram=1, weighting="tf", sketch_bits=512)
    text = " ".join(f"word{number}" for number in range(200))
    other = text.replace("word1 ", "another ").replace("word77 ", "more ")
    far = " ".join(f"thing{number}" for number in range(200))
    with simindex.open(index_path, "n", options=IndexOptions(recipe=recipe, keys=True)) as index:
        assert index.seen_or_add(text, "a", similarity=0.9) is None
        assert index.seen_or_add(far, "b", similarity=0.9) is None
        found = index.seen_or_add(other, "c", similarity=0.9)
        assert found.key == "a"
        assert abs(found.similarity - 0.99) < 4 * found.similarity_error
    with simindex.open(index_path) as index:
        found = index.query([far, "", other], similarity=0.9)
        assert list(zip(found.query.tolist(), found.keys(), strict=True)) == [(0, "b"), (2, "a")]


CALLS: dict[str, Callable[..., Any]] = {
    "query": lambda index, batch, **options: index.query(batch, **options),
    "query_stream": lambda index, batch, **options: index.query_stream(batch, **options),
    "ingest": lambda index, batch, **options: index.ingest(batch, **options),
    "seen_or_add": lambda index, batch, **options: index.seen_or_add(
        batch.take(np.array([0])), **options
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_cannot_be_answered_is_refused(
    filled: Path, rows: tuple[Any, Any], call: str
) -> None:
    ask = CALLS[call]
    good = Batch(rows[0][:3], sketch=rows[1][:3])
    with simindex.open(filled, "w") as index:
        before = len(index)
        for wrong in (0.3, 1.5, "0.9", True):
            with pytest.raises(InvalidOption, match="similarity="):
                ask(index, good, similarity=wrong)
        with pytest.raises(InvalidOption, match="contradict"):
            ask(index, good, similarity=0.9, h=3)
        for batch in (Batch(rows[0][:3]), Batch(rows[0][:3], sketch=rows[1][:3, :2])):
            with pytest.raises(InvalidBatch, match="sketches"):
                ask(index, batch, similarity=0.9)
        index.discard()
        assert len(index) == before
        if call == "query":
            with pytest.raises(InvalidBatch, match="no sketches"):
                index.query(rows[0][:3], similarity=0.9)


@pytest.mark.parametrize("call", CALLS)
def test_a_damaged_sketch_is_an_error_and_keeps_nothing(
    filled: Path, rows: tuple[Any, Any], call: str
) -> None:
    """The file is damaged where the sketch of a candidate lies."""
    file = max((filled / "segments").glob("*.rows"), key=lambda one: one.stat().st_size)
    with simindex.open(filled) as index:
        segment = next(one for one in index._current().segments if one.name == file.name)
        address = segment.sketches.ctypes.data - segment.fingerprints.ctypes.data
        row = int(np.asarray(segment.ids)[0])
    raw = bytearray(file.read_bytes())
    raw[4096 + address + 3] ^= 1
    file.write_bytes(raw)
    batch = Batch(rows[0][row : row + 1], sketch=rows[1][row : row + 1])
    with simindex.open(filled, "w") as index:
        before = len(index)
        with pytest.raises(CorruptFile, match=file.name):
            found = CALLS[call](index, batch, similarity=0.9)
            if call == "query_stream":
                list(found)
        assert len(index) == before
        assert index.query(rows[0][row : row + 1], h=0).id.tolist()
