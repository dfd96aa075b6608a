"""What every method promises, written once; `tests/methods/` runs it for each of them.

The index under test has all that a method meets: several segments, pending rows, deleted rows,
names in no order, names with many rows, equal fingerprints, and families of near-duplicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import damaged
import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile, InvalidOption
from simindex.planning import registry
from simindex.storage.files.envelope import CHUNK_BYTES

ROWS = 1700
BATCH_ROWS = 400
"""Commits of a sixteenth of them and more make segments; the last, of fewer, stays pending."""


@dataclass
class Case:
    """An index, its model, and queries that find something in it."""

    index: simindex.Index
    model: oracle.Model
    queries: oracle.U64
    weights: oracle.F32
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What brute force found, by what was asked: the rows and queries of a case never change."""

    def truth(self, h: int) -> list[tuple[int, int, Any]]:
        """All (query, distance, name) within h, by brute force."""
        if h not in self.kept:
            self.kept[h] = self.model.query(self.queries, h)
        found: list[tuple[int, int, Any]] = self.kept[h]
        return found

    def batch(self, *, weighted: bool = True) -> Batch:
        """The queries as a batch."""
        return Batch(self.queries, weights=self.weights if weighted else None)


def rows_of(kind: str, rng: np.random.Generator, rows: int, words: int) -> oracle.U64:
    """Fingerprints of a kind, a tenth of them near-duplicates and a twentieth equal to others."""
    made = oracle.uniform(rng, rows, words)
    if kind == "skewed":
        made = oracle.skewed(rng, rows, words, templates=60)
    if kind == "hot":
        made = hot(rng, rows, words)
    near, equal = rows // 10, rows // 20
    made[-near:] = oracle.flip(rng, made[:near], rng.integers(0, 9, near))
    made[near : near + equal] = made[2 * near : 2 * near + equal]
    return made[rng.permutation(rows)]


def hot(rng: np.random.Generator, rows: int, words: int) -> oracle.U64:
    """Fingerprints with long runs: half share five headers, a sixth are equal.

    Of those that share a header of 32 bits, every other one is one of 40 others with 0 to 6 bits
    flipped, anywhere.
    """
    made = oracle.uniform(rng, rows, words)
    shared, equal = rows // 2, rows // 6
    headers = rng.integers(0, 1 << 32, 5, dtype=np.uint64) << np.uint64(32)
    made[:shared, 0] = made[:shared, 0] >> np.uint64(32) | headers[rng.integers(0, 5, shared)]
    family = np.arange(1, shared, 2)
    templates = made[2 * rng.integers(0, 40, len(family))]
    made[family] = oracle.flip(rng, templates, rng.integers(0, 7, len(family)))
    made[shared : shared + equal] = made[0]
    return made


def weights_of(rng: np.random.Generator, fingerprints: oracle.U64) -> oracle.F32:
    """Weights whose signs are the fingerprints."""
    bits = np.unpackbits(fingerprints.astype(">u8").view(np.uint8), axis=1)
    size = np.abs(rng.standard_normal(bits.shape, dtype=np.float32)) + np.float32(1e-6)
    return np.where(bits == 1, size, -size).astype(np.float32)


def fill(
    path: Path, kind: str, bits: int, keys: bool | str, structures: tuple[str, ...] = ("psm",)
) -> tuple[oracle.Model, oracle.U64]:
    """Builds the index at `path`; returns its model and every fingerprint ever appended."""
    rng = np.random.default_rng([bits, len(kind), bool(keys)])
    fingerprints = rows_of(kind, rng, ROWS, bits // 64)
    weights = weights_of(rng, fingerprints)
    numbers = rng.integers(0, 1 << 64, ROWS, dtype=np.uint64)
    repeated = rng.choice(ROWS, 200, replace=False)
    numbers[repeated] = rng.choice(numbers, 200)  # names of several rows, in different commits
    names: list[Any] = numbers.tolist()
    if keys:
        names = [f"page/{number:x}?ü" for number in names]
    model = oracle.Model()
    options = IndexOptions(
        bits=bits, batch_rows=BATCH_ROWS, min_merge=0, keys=keys, structures=structures
    )

    def named(some: list[Any]) -> dict[str, Any]:
        return {"keys": some} if keys else {"ids": np.array(some, dtype=np.uint64)}

    with simindex.open(path, "n", options=options) as index:
        for start, stop in [(0, 400), (400, 1000), (1000, 1400), (1400, 1680), (1680, ROWS)]:
            index.append(
                Batch(
                    fingerprints[start:stop],
                    weights=weights[start:stop],
                    **named(names[start:stop]),
                )
            )
            model.append(fingerprints[start:stop], names[start:stop])
            # Names of this and of earlier commits.
            gone = [names[row] for row in rng.choice(stop, 30, replace=False)]
            index.delete(**named(gone))
            model.delete(gone)
            index.commit()
            model.commit()
        gone = [names[row] for row in rng.choice(ROWS, 30, replace=False)]
        index.delete(**named(gone))
        model.delete(gone)
        model.commit()
    return model, fingerprints


Kind = tuple[str, int, bool | str]

KINDS: tuple[Kind, ...] = (
    ("uniform", 64, False),
    ("skewed", 64, False),
    ("skewed", 64, "str"),
    ("hot", 64, False),
    ("uniform", 128, False),
    ("skewed", 1024, False),
    ("hot", 256, False),
)
"""(distribution, bits, keys) of the indexes every method answers on."""

QUICK: tuple[Kind, ...] = (
    ("skewed", 64, "str"), ("hot", 64, False), ("uniform", 128, False), ("skewed", 1024, False),
)
"""Those that `make check` takes."""


def indexes(kinds: Iterable[Kind], quick: Container[Kind]) -> list[Any]:
    """Kinds of indexes as parameters of a fixture; those that are not quick left to `make test`."""
    return [
        pytest.param(
            kind, id=f"{kind[0]}-{kind[1]}-{'keys' if kind[2] else 'ids'}",
            marks=() if kind in quick else pytest.mark.slow,
        )
        for kind in kinds
    ]


INDEXES = indexes(KINDS, QUICK)


def opened_case(
    path: Path, kind: str, bits: int, keys: bool | str, structures: tuple[str, ...] = ("psm",)
) -> Iterator[Case]:
    """A filled index, open for reading, with queries near its rows and far from them."""
    model, fingerprints = fill(path, kind, bits, keys, structures)
    rng = np.random.default_rng(7)
    near = oracle.flip(rng, fingerprints[rng.choice(ROWS, 120)], rng.integers(0, 9, 120))
    queries = np.concatenate([
        near,
        oracle.uniform(rng, 60, bits // 64),
        np.zeros((1, bits // 64), dtype=np.uint64),
        np.full((1, bits // 64), 2**64 - 1, dtype=np.uint64),
        near[:5],
    ])
    with simindex.open(path) as index:
        stats = index.stats()
        assert stats.segments >= 3
        assert stats.pending_rows > 0
        if kind == "hot":
            runs = np.unique(fingerprints[:, 0] >> np.uint64(32), return_counts=True)[1]
            assert np.sort(runs)[-5] > ROWS // 20
            assert np.unique(fingerprints, axis=0, return_counts=True)[1].max() > ROWS // 10
        yield Case(index, model, queries, weights_of(rng, queries))


RADII = [pytest.param(h, marks=() if h in (0, 3, 8) else pytest.mark.slow) for h in range(9)]
"""Of which `make check` takes a third."""


class MethodContract:
    """Inherit, name the method, and say which widths it takes."""

    method: str
    every_width = True
    """Whether the method takes any width; one that does not must say so, never answer wrongly."""
    structures: tuple[str, ...] = ("psm",)
    """What the indexes carry that a test makes for itself."""

    def options(self, **options: Any) -> IndexOptions:
        """Options of an index that a test makes for itself."""
        return IndexOptions(structures=self.structures, **options)

    def ask(self, case: Case, batch: Any, **options: Any) -> simindex.Matches:
        """The method's answer, or a skip where it truthfully refuses the width."""
        try:
            return case.index.query(batch, method=self.method, **options)
        except InvalidOption as error:
            if self.every_width or case.queries.shape[1] == 1:
                raise
            assert str(64 * case.queries.shape[1]) in str(error)
            pytest.skip(f"{self.method} refuses {64 * case.queries.shape[1]} bits, as it may")

    def explained(self, case: Case, batch: Any, **options: Any) -> simindex.Explanation:
        """What is told of the same call."""
        return case.index.explain(batch, method=self.method, **options)

    def expected(self, case: Case, h: int) -> list[tuple[int, int, Any]]:
        return case.truth(h)

    def test_the_answer_and_its_explanation_name_the_method(self, case: Case) -> None:
        found = self.ask(case, case.batch(), h=3)
        told = self.explained(case, case.batch(), h=3)
        told_of = "+".join([found.stats.method, *(one.method for one in told.segments)])
        named = {name.partition(":")[0] for name in told_of.split("+")}
        asked = self.method.partition(":")[0]
        if asked == "auto":
            assert named <= set(registry.METHODS)
        else:  # a scan answers for tables that have not what the method takes, such as pending rows
            assert asked in named <= {asked, registry.ANY_TABLE.name}
        assert told.method.partition(":")[0] == asked
        assert (told.guarantee, told.exact) == (found.stats.guarantee, found.stats.exact)
        for segment in told.segments:
            assert segment.expected_s > 0 < segment.seconds
            assert segment.matches <= segment.rows_compared

    @pytest.mark.parametrize("h", RADII)
    def test_exact_recall_finds_every_row_within_h_and_no_other(self, case: Case, h: int) -> None:
        found = self.ask(case, case.batch(), h=h, recall=1.0)
        expected = self.expected(case, h)
        assert h == 0 or len(expected) > 20
        assert named(found) == expected
        assert found.stats.exact
        assert found.stats.guarantee == "exact"

    @pytest.mark.parametrize("threads", [1, 2])
    def test_answers_do_not_depend_on_threads(self, case: Case, threads: int) -> None:
        found = self.ask(case, case.batch(), h=5, recall=1.0, threads=threads)
        assert named(found) == self.expected(case, 5)

    def test_weights_change_no_exact_answer(self, case: Case) -> None:
        with_weights = self.ask(case, case.batch(), h=4, recall=1.0)
        without = self.ask(case, case.queries, h=4, recall=1.0)
        assert named(without) == named(with_weights) == self.expected(case, 4)

    def test_columns_have_their_types_and_order(self, case: Case) -> None:
        found = self.ask(case, case.batch(), h=6, recall=1.0)
        assert (found.query.dtype, found.id.dtype, found.distance.dtype) == (
            np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.uint16)
        )
        assert len(found) == len(found.query) == len(found.id) == len(found.distance) > 0
        order = list(
            zip(found.query.tolist(), found.distance.tolist(), found.id.tolist(), strict=True)
        )
        assert order == sorted(order)
        assert len(list(found)) == len(found)

    @pytest.mark.parametrize("h", [0, 3, 6])
    def test_first_answers_exactly_the_queries_that_have_a_match(self, case: Case, h: int) -> None:
        found = self.ask(case, case.batch(), h=h, recall=1.0, first=True)
        expected = self.expected(case, h)
        assert found.query.tolist() == sorted({query for query, _, _ in expected})
        assert Counter(named(found)) <= Counter(expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("recall", [0.5, 0.99])
    def test_less_recall_never_adds_a_match(self, case: Case, recall: float) -> None:
        found = Counter(named(self.ask(case, case.batch(), h=5, recall=recall)))
        assert found <= Counter(self.expected(case, 5))

    def test_one_query_gives_what_it_gives_in_a_batch(self, case: Case) -> None:
        expected = self.expected(case, 5)
        for query in (0, 1, 5, 60, 180):
            alone = self.ask(
                case,
                Batch(case.queries[query : query + 1], weights=case.weights[query : query + 1]),
                h=5,
                recall=1.0,
            )
            assert named(alone) == [(0, *rest) for at, *rest in expected if at == query]

    def test_no_queries_give_no_matches(self, case: Case) -> None:
        words = case.queries.shape[1]
        shape = (0,) if words == 1 else (0, words)
        found = self.ask(case, np.empty(shape, dtype=np.uint64), h=3, recall=1.0)
        assert len(found) == 0
        assert list(found) == []
        assert found.keys() in (None, [])

    @pytest.mark.parametrize("bits", [64, 256])
    def test_an_empty_index_gives_no_matches(self, index_path: Path, bits: int) -> None:
        words = bits // 64
        queries = oracle.uniform(np.random.default_rng(3), 4, words)
        with simindex.open(index_path, "n", options=self.options(bits=bits)):
            pass
        with simindex.open(index_path) as index:
            assert len(index) == 0
            weights = weights_of(np.random.default_rng(4), queries)
            case = Case(index, oracle.Model(), queries, weights)
            assert len(self.ask(case, case.batch(), h=3, recall=1.0)) == 0

    def test_an_index_of_deleted_rows_gives_no_matches(self, index_path: Path) -> None:
        rows = oracle.uniform(np.random.default_rng(3), 50)
        options = self.options(batch_rows=20, min_merge=0)
        with simindex.open(index_path, "n", options=options) as index:
            index.append(rows[:, 0], ids=np.arange(50))
            index.commit()
            index.delete(ids=np.arange(50))
            index.commit()
            assert len(index) == 0
            case = Case(index, oracle.Model(), rows, weights_of(np.random.default_rng(4), rows))
            assert named(self.ask(case, case.batch(), h=8, recall=1.0)) == []

    def test_compaction_changes_no_answer(self, index_path: Path) -> None:
        model, fingerprints = fill(index_path, "skewed", 64, False, self.structures)
        rng = np.random.default_rng(5)
        queries = oracle.flip(rng, fingerprints[:100], 2)
        with simindex.open(index_path, "w") as index:
            index.compact(full=True)
            case = Case(index, model, queries, weights_of(rng, queries))
            assert named(self.ask(case, case.batch(), h=5, recall=1.0)) == self.expected(case, 5)
            stats = index.stats()
            assert (stats.segments, stats.dead_rows, stats.rows) == (1, 0, len(model))
            assert [found for found in index.check() if found.severity == "error"] == []

    @pytest.mark.parametrize("damaged_kind", [1, 2], ids=["rows", "ids"])
    def test_damaged_rows_are_refused(self, index_path: Path, damaged_kind: int) -> None:
        """A method verifies rows before it compares them, and ids before it gives them."""
        _, fingerprints = fill(index_path, "uniform", 64, False, self.structures)
        found = damaged.chunks(damaged.files(index_path, ".rows")[0])
        (offset, size), = [(at, size) for kind, at, size in found if kind == damaged_kind]
        assert size < CHUNK_BYTES  # all rows of the segment are in the chunk
        with (
            damaged.flipped(damaged.files(index_path, ".rows")[0], offset + size // 2),
            simindex.open(index_path) as index,
        ):
            weights = weights_of(np.random.default_rng(4), fingerprints)
            case = Case(index, oracle.Model(), fingerprints, weights)
            with pytest.raises(CorruptFile):
                self.ask(case, case.batch(), h=2, recall=1.0)


def named(found: simindex.Matches) -> list[tuple[int, int, Any]]:
    """The matches as sorted (query, distance, key or id)."""
    return sorted(
        (match.query, match.distance, match.id if match.key is None else match.key)
        for match in found
    )
