"""An index under random use, and the list of rows whose answers it must give.

Batches are so small that commits seal pending rows into segments and merge segments all the time.
A second handle reads along: it sees commits only. The clock is the machine's, and may go back.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from siphash import key_id

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import InvalidOption
from simindex.storage.tables import times

METHODS = ("psm", "scan", "auto")
STRUCTURES = (IndexOptions().structures, ("psm", "issl"))
TEMPLATES = oracle.uniform(np.random.default_rng(64), 6)[:, 0]

# Families of a few bits' difference, so that most queries have some matches at each radius.
fingerprints = st.builds(
    lambda template, bits: int(np.bitwise_xor.reduce([TEMPLATES[template], *bits])),
    st.integers(0, len(TEMPLATES) - 1),
    st.lists(st.integers(0, 63).map(lambda bit: np.uint64(1 << bit)), max_size=4),
)
# Few names, so that they meet again; extremes, because they are where bounds break.
numbers = st.one_of(st.integers(0, 12), st.sampled_from([2**63, 2**64 - 2, 2**64 - 1]))
rows = st.lists(st.tuples(fingerprints, numbers), max_size=40)


class Discard(Exception):
    """Leaves a writer's block, so that it forgets what is not committed."""


def weights_for(values: oracle.U64) -> oracle.F32:
    """Weights with the given signs; the size of each rises with its place."""
    bits = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
    size = np.linspace(0.1, 6.4, 64, dtype=np.float32)
    return np.where(bits == 1, size, -size).astype(np.float32)


def sizes_of(values: oracle.U64) -> oracle.I64:
    """Numbers of features that say whose they are: powers of two, which a byte has exactly."""
    return np.int64(1) << (values % np.uint64(21)).astype(np.int64)


def sketch_of(values: oracle.U64) -> oracle.U64:
    """Two words that say whose they are."""
    return values[:, None] * np.array([3, 0x9E3779B97F4A7C15], np.uint64)


class IndexMachine(RuleBasedStateMachine):
    """The index at `path`, open for writing or closed, beside a reader and a model of each."""

    keyed = False

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="simindex-model-"))
        self.path = self.directory / "pages.sim"
        self.model = oracle.Model()
        self.reader: simindex.Index | None = None
        self.seen = 0
        self.now = 1000
        self.latest = self.committed = 0
        self.clock, times.clock = times.clock, lambda: self.now + 0.7

    @initialize(
        batch_rows=st.sampled_from([16, 64]), min_merge=st.sampled_from([0, 2, 3]),
        structures=st.sampled_from(STRUCTURES), timed=st.booleans(), sketched=st.booleans(),
    )
    def create(
        self, batch_rows: int, min_merge: int, structures: tuple[str, ...], timed: bool = False,
        sketched: bool = False,
    ) -> None:
        self.timed, self.sketched = timed, sketched
        self.files, self.listed = len(structures), "issl" in structures
        options = IndexOptions(
            batch_rows=batch_rows, min_merge=min_merge, keys=self.keyed, reservoir_rows=32,
            structures=structures, times=timed, sketch_bits=128 if sketched else 0,
        )
        self.writer = simindex.open(self.path, "c", options=options)

    # names ---------------------------------------------------------------------------------------

    def names(self, numbers_given: list[int]) -> list[Any]:
        return [f"k{n}" for n in numbers_given] if self.keyed else list(numbers_given)

    def named(self, numbers_given: list[int]) -> dict[str, Any]:
        if self.keyed:
            return {"keys": self.names(numbers_given)}
        return {"ids": np.array(numbers_given, dtype=np.uint64)}

    def batch(self, given: list[tuple[int, int]], weighted: bool) -> Batch:
        values = np.array([value for value, _ in given], dtype=np.uint64)
        return Batch(
            values,
            weights=weights_for(values) if weighted else None,
            sketch=sketch_of(values) if self.sketched else None,
            features=sizes_of(values) if self.sketched else None,
            **self.named([number for _, number in given]),
        )

    # steps ---------------------------------------------------------------------------------------

    @rule(given=rows, weighted=st.booleans())
    def append(self, given: list[tuple[int, int]], weighted: bool) -> None:
        batch = self.batch(given, weighted)
        ids = self.writer.append(batch)
        assert ids.dtype == np.uint64
        assert ids.shape == (len(given),)
        if not self.keyed:
            assert ids.tolist() == [number for _, number in given]
        self.model.append(batch.rows, self.names([number for _, number in given]), self.came())

    def came(self) -> int:
        """The time that rows get now."""
        self.latest = max(self.latest, self.now, self.model.expired)
        return self.latest

    @rule(seconds=st.integers(-3, 9))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(age=st.integers(0, 20))
    def expire(self, age: int) -> None:
        if not self.timed:
            with pytest.raises(InvalidOption, match="does not store when its rows came"):
                self.writer.expire(older_than=age)
            return
        assert self.writer.expire(older_than=age) == self.model.expire(self.now - age)

    @rule(given=st.lists(numbers, max_size=8))
    def delete(self, given: list[int]) -> None:
        names = self.names(given)
        there = sum(bool(self.model.document(name)) for name in set(names))
        assert self.writer.delete(**self.named(given)) == there
        self.model.delete(names)

    @rule(given=st.lists(numbers, max_size=8))
    def look_up(self, given: list[int]) -> None:
        """A writer sees what waits, a reader its commit."""
        names = self.names(given)
        there = [bool(self.model.document(name)) for name in names]
        assert self.writer.contains(**self.named(given)).tolist() == there
        for name in names:
            self.check_document(self.writer, name, self.model.document(name))
        if self.reader is not None:
            self.reader.refresh()
            committed = self.model.copy()
            for name in names:
                self.check_document(self.reader, name, committed.document(name))

    def check_document(
        self, index: simindex.Index, name: Any, rows: list[tuple[int, ...]]
    ) -> None:
        assert (name in index) == bool(rows)
        found = index.get(name, "none")
        if not rows:
            assert found == "none"
            return
        assert sorted(map(tuple, found.rows.tolist())) == rows
        self.check_sketches(found)
        given = found.keys if self.keyed else found.ids.tolist()
        assert given == [name] * len(rows)

    @rule(given=rows)
    def replace(self, given: list[tuple[int, int]]) -> None:
        batch = self.batch(given, weighted=True)
        self.writer.replace(batch)
        names = self.names([number for _, number in given])
        self.model.replace(batch.rows, names, self.came())

    def committed_now(self) -> None:
        self.latest = self.committed = max(self.latest, self.model.expired)
        self.model.commit()

    def discarded_now(self) -> None:
        self.model.discard()
        self.latest = self.committed

    @rule()
    def commit(self) -> None:
        self.writer.commit()
        self.committed_now()

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        self.writer.commit()
        self.committed_now()
        before = self.contents(self.writer)
        self.writer.compact(full=full)
        assert self.contents(self.writer) == before
        if full:
            stats = self.writer.stats()
            assert stats.segments + (stats.pending_rows > 0) <= 1
            assert stats.dead_rows == 0

    @rule()
    def discard_by_exception(self) -> None:
        with pytest.raises(Discard), self.writer:
            raise Discard
        self.discarded_now()
        self.writer = simindex.open(self.path, "w")

    @rule()
    def leave_cleanly(self) -> None:
        with self.writer:
            pass
        self.committed_now()
        self.writer = simindex.open(self.path, "c")

    @rule()
    def discard(self) -> None:
        self.writer.discard()
        self.discarded_now()

    @rule()
    def close_twice(self) -> None:
        self.writer.close()
        self.writer.close()
        self.committed_now()
        self.writer = simindex.open(self.path, "w")

    @rule()
    def open_reader(self) -> None:
        if self.reader is not None:
            self.reader.close()
        self.reader = simindex.open(self.path)

    @precondition(lambda self: self.reader is not None)
    @rule()
    def refresh_reader(self) -> None:
        assert self.reader is not None
        self.reader.refresh()
        assert self.reader.generation == self.writer.generation
        assert self.contents(self.reader) == self.model.contents()

    @precondition(lambda self: self.reader is not None)
    @rule()
    def iteration_keeps_its_commit(self) -> None:
        """What a reader has begun to read ends as it began, whatever the writer does."""
        assert self.reader is not None
        self.reader.refresh()
        before = self.model.contents()
        parts = self.reader.rows(chunk_rows=3)
        taken = [part for part in [next(parts, None)] if part is not None]
        self.writer.commit()
        self.committed_now()
        self.writer.compact(full=True)
        assert self.rows_of([*taken, *parts]) == before

    # questions -----------------------------------------------------------------------------------

    @rule(
        values=st.lists(fingerprints, min_size=1, max_size=6),
        h=st.integers(0, 5),
        method=st.sampled_from(METHODS),
        weighted=st.booleans(),
        by_reader=st.booleans(),
    )
    def query(
        self, values: list[int], h: int, method: str, weighted: bool, by_reader: bool
    ) -> None:
        index = self.writer
        if by_reader and self.reader is not None:
            index = self.reader
            index.refresh()
        queries = np.array(values, dtype=np.uint64)
        batch = Batch(queries, weights=weights_for(queries) if weighted else None)
        found = index.query(batch, h=h, recall=1.0, method=method)
        got = [(m.query, m.distance, m.key if self.keyed else m.id) for m in found]
        assert sorted(got) == self.model.query(queries, h)
        triples = [(m.query, m.distance, m.id) for m in found]
        assert triples == sorted(triples)

    @rule(
        values=st.lists(fingerprints, min_size=1, max_size=3),
        k=st.integers(1, 12),
        by_lists=st.booleans(),
        by_reader=st.booleans(),
    )
    def top(self, values: list[int], k: int, by_lists: bool, by_reader: bool) -> None:
        """Exactly: all rows are compared, be it by a scan or as those to rerank."""
        index = self.writer
        if by_reader and self.reader is not None:
            index = self.reader
            index.refresh()
        queries = np.array(values, dtype=np.uint64)
        method = "issl" if by_lists and self.listed else "auto"
        asked = {"k": k, "method": method, "rerank": 10_000, "max_error": 1}
        if k > len(self.model):
            with pytest.raises(InvalidOption, match="rows of the index"):
                index.top(queries, **asked)
            return
        found = index.top(queries, **asked)
        keys = found.keys()
        for at, expected in enumerate(self.nearest(queries, k)):
            filled = int(found.found[at])
            assert found.distance[at, :filled].tolist() == [far for far, _, _ in expected]
            assert found.id[at, :filled].tolist() == [number for _, number, _ in expected]
            assert set(found.distance[at, filled:].tolist()) <= {65}
            if keys is not None:
                assert keys[at] == [name for _, _, name in expected]

    def nearest(self, queries: oracle.U64, k: int) -> list[list[tuple[int, int, Any]]]:
        """(distance, id, name) of each query's nearest documents."""
        least: list[dict[Any, int]] = [{} for _ in queries]
        for query, distance, name in self.model.query(queries, 64):
            least[query][name] = min(distance, least[query].get(name, distance))
        return [
            sorted((far, self.number(name), name) for name, far in one.items())[:k]
            for one in least
        ]

    def number(self, name: Any) -> int:
        """The id that a name has in the index."""
        return key_id(name, self.writer.options.key_secret) if self.keyed else int(name)

    @invariant()
    def uncommitted_rows_are_not_seen(self) -> None:
        assert len(self.writer) == len(self.model)

    @invariant()
    def generations_rise_only(self) -> None:
        generation = self.writer.generation
        assert generation >= self.seen
        self.seen = generation

    def contents(self, index: simindex.Index) -> list[tuple[tuple[int, ...], Any]]:
        return self.rows_of(list(index.rows(chunk_rows=7)))

    def check_sketches(self, batch: Batch) -> None:
        """Each row has its own, if rows have any."""
        expected = sketch_of(batch.rows[:, 0]) if self.sketched else None
        assert np.array_equal(batch.sketch, expected)
        sizes = sizes_of(batch.rows[:, 0]) if self.sketched else None
        assert np.array_equal(batch.sizes, sizes)

    def rows_of(self, parts: list[Batch]) -> list[tuple[tuple[int, ...], Any]]:
        for part in parts:
            self.check_sketches(part)
        return sorted(
            (tuple(words), name)
            for part in parts
            for words, name in zip(
                part.rows.tolist(),
                (part.keys if self.keyed else part.ids.tolist()) or [],
                strict=True,
            )
        )

    def teardown(self) -> None:
        try:
            if hasattr(self, "writer"):
                self.check_what_is_left()
        finally:
            times.clock = self.clock
            if self.reader is not None:
                self.reader.close()
            shutil.rmtree(self.directory)

    def check_what_is_left(self) -> None:
        """The files say what the model says, and there is no file too many."""
        self.writer.commit()
        self.committed_now()
        assert self.contents(self.writer) == self.model.contents()
        segments = self.writer.stats().segments
        self.writer.close()
        with simindex.open(self.path, "w") as again:
            assert again.check() == []
            assert again.stats().segments == segments
        assert len(list((self.path / "segments").glob("*.rows"))) == segments
        files = [file for file in (self.path / "segments").iterdir() if file.suffix != ".dead"]
        assert len(files) == segments * self.files
        with simindex.open(self.path) as index:
            assert self.contents(index) == self.model.contents()
