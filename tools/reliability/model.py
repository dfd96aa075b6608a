"""An index under random use answers as a list of rows does; also when it crashes or is damaged.

    Walk     one small index, and as many random steps on it as are asked for
    Rows     the model: a list of rows, and what is buffered; everything by comparing all rows

Batches are so small that commits seal pending rows, and merge, all the time. Beside the writer
there are readers: one that follows, and some that are pinned to a commit and must go on to show it.
Steps are drawn from a `random.Random`, or whatever draws as it does, so that the quick form can
shrink them. `python -m reliability.model SEED [STEPS]` repeats a walk.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import simindex
from reliability.report import Outcome, Pace
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile, InvalidOption, SimindexError
from simindex.storage.tables import times
from simindex.storage.tables.keys import key_hash

U64 = NDArray[np.uint64]

STEPS = 200
"""Of one walk."""

CHILD_S = 30
"""After which a forked child counts as hanging."""

NUMBERS = (*range(13), 2**63, 2**64 - 2, 2**64 - 1)
"""Names that meet again, and those at the ends of their range."""

WIDTHS: dict[int, tuple[tuple[str, ...], ...]] = {
    64: (("psm", "bphs:G=3,g=1,r=2"), ("psm", "bphs:G=3,g=1,r=2", "issl"),
         ("psm", "bphs:nested=4x4", "bphs:G=5,g=2"), ("psm",)),
    128: (("psm",), ("psm", "bphs:G=4,g=1", "issl:w=8")),
    256: (("psm", "issl:w=8"), ("psm", "bphs:G=4,g=1")),
}

SECRET = bytes(range(16))
"""Of all indexes with keys, so that a seed repeats their ids, too."""

KINDS: tuple[Any, ...] = (False, False, "str", "bytes")
"""Of keys."""

EXACT_H = 2
"""Within which every design above is exact."""


Row = tuple[tuple[int, ...], Any, int | None]
"""A fingerprint, a name, and when the row came; None while it waits for a change to come with."""

BEGAN = 1000
"""The time of day when a walk begins, in seconds."""


class Rows:
    """What an index holds: rows with their names, and the steps since the last commit."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.appended: list[Row] = []
        self.deleted: set[Any] = set()
        self.latest = self.expired = 0
        """The last time that a row was given, and the time before which rows are gone."""
        self._committed = 0, 0

    def append(self, values: U64, names: list[Any], now: int | None) -> None:
        """Buffers rows that come now; without a time, with the next change."""
        came = None
        if now is not None:
            self.hand_over(now)
            came = self.latest = max(self.latest, self.expired, now)
        self.appended += [
            (tuple(row), name, came) for row, name in zip(values.tolist(), names, strict=True)
        ]

    def hand_over(self, now: int) -> None:
        """A change comes: so do the rows that wait for one."""
        if any(row[2] is None for row in self.appended):
            self.latest = max(self.latest, self.expired, now)
        self.appended = [
            (values, name, self.latest if came is None else came)
            for values, name, came in self.appended
        ]

    def delete(self, names: list[Any], now: int) -> None:
        """Buffers deletions of what is here by now."""
        self.hand_over(now)
        self.deleted.update(names)
        self.appended = [row for row in self.appended if row[1] not in names]

    def expire(self, before: int, now: int) -> int:
        """Rows that came before go; how many of those that nothing had deleted."""
        self.hand_over(now)
        here = [row for row in self.rows if row[1] not in self.deleted] + self.appended
        gone = sum(self._stays(row) and (row[2] or 0) < before for row in here)
        if gone:
            self.expired = max(self.expired, before)
            self.appended = [row for row in self.appended if self._stays(row)]
        return gone

    def _stays(self, row: Row) -> bool:
        return (row[2] or 0) >= self.expired

    def commit(self, now: int) -> None:
        """Deletions take effect, then appends."""
        self.hand_over(now)
        self.rows = [
            row for row in self.rows if row[1] not in self.deleted and self._stays(row)
        ] + self.appended
        self._committed = self.latest, self.expired
        self.discard()

    def discard(self) -> None:
        """Forgets what is buffered."""
        self.appended, self.deleted = [], set()
        self.latest, self.expired = self._committed

    def copy(self) -> Rows:
        """What is committed."""
        other = Rows()
        other.rows = list(self.rows)
        return other

    def apart(self, queries: U64, rows: list[Row] | None = None) -> Any:
        """Distances of all queries to all rows, int64 (m, n)."""
        given = self.rows if rows is None else rows
        words = queries.shape[1]
        stored = np.array([row[0] for row in given], np.uint64).reshape(-1, words)
        return np.bitwise_count(queries[:, None, :] ^ stored[None, :, :]).sum(2, dtype=np.int64)

    def matches(self, queries: U64, h: int) -> set[tuple[int, int, Any]]:
        """All (query, distance, name) within h."""
        apart = self.apart(queries)
        return {(int(q), int(apart[q, r]), self.rows[r][1]) for q, r in np.argwhere(apart <= h)}

    def contents(self) -> list[tuple[tuple[int, ...], Any]]:
        """All rows, sorted."""
        return sorted(row[:2] for row in self.rows)


class Walk:
    """Random steps on an index in a directory of its own."""

    def __init__(self, rng: random.Random, directory: Path) -> None:
        self.rng, self.directory, self.path = rng, directory, directory / "pages.sim"
        gc.collect()
        self.base = descriptors()
        self.bits = rng.choice([64, 64, 128, 256])
        self.kind: Any = KINDS[rng.randrange(len(KINDS))]
        self.designs = rng.choice(WIDTHS[self.bits])
        self.options = IndexOptions(
            bits=self.bits, structures=self.designs, batch_rows=rng.choice([16, 64]),
            min_merge=rng.choice([0, 2, 3]), keys=self.kind, reservoir_rows=32,
            key_secret=SECRET if self.kind else None, times=rng.random() < 0.7,
            sketch_bits=128 if rng.random() < 0.5 else 0,
        )
        self.now = BEGAN
        state = np.random.default_rng(rng.randrange(1 << 32))
        self.templates = state.integers(0, 1 << 64, (5, self.bits // 64), dtype=np.uint64)
        self.model = Rows()
        self.writer = simindex.open(self.path, "n", options=self.options)
        self.reader: simindex.Index | None = None
        self.pinned: list[tuple[simindex.Index, Rows]] = []
        self.generation = 0
        self.steps: list[str] = []
        self.counts: Counter[str] = Counter()

    # what steps are made of -----------------------------------------------------------------------

    def values(self, count: int) -> U64:
        """Fingerprints of few families, some equal, uint64 (count, W)."""
        rng = np.random.default_rng(self.rng.randrange(1 << 16))
        rows = self.templates[rng.integers(0, len(self.templates), count)]
        for flip in range(4):
            bit = rng.integers(0, self.bits, count)
            value = np.uint64(1) << (bit % 64).astype(np.uint64)
            few = rng.integers(0, 5, count) > flip
            rows[np.arange(count), bit // 64] ^= np.where(few, value, np.uint64(0))
        return rows

    def names(self, count: int) -> list[Any]:
        """Ids or keys."""
        rng = np.random.default_rng(self.rng.randrange(1 << 16))
        numbers = [NUMBERS[place] for place in rng.integers(0, len(NUMBERS), count)]
        if self.kind == "str":
            return [f"k{number}" for number in numbers]
        if self.kind == "bytes":
            return [b"k%d" % number for number in numbers]
        return list(numbers)

    def named(self, names: list[Any]) -> dict[str, Any]:
        """As an argument of a call."""
        return {"keys": names} if self.kind else {"ids": np.array(names, np.uint64)}

    def number(self, name: Any) -> int:
        """The id of a name."""
        if not self.kind:
            return int(name)
        return key_hash(name, self.options.stored_secret)[0]  # tests/siphash.py defines it

    def weights(self, values: U64) -> NDArray[np.float32]:
        """Whose signs are the bits."""
        octets = values.astype(">u8").view(np.uint8).reshape(-1, self.bits // 8)
        bits = np.unpackbits(octets, axis=1)
        size = np.linspace(0.1, 6.4, self.bits, dtype=np.float32)
        return np.where(bits == 1, size, -size).astype(np.float32)

    def batch(self, most: int) -> tuple[Batch, U64, list[Any]]:
        """A batch, its rows and their names."""
        count = self.rng.randrange(most + 1)
        values, names = self.values(count), self.names(count)
        weights = self.weights(values) if self.rng.random() < 0.4 else None
        return self.of(values, names, weights), values, names

    def of(self, values: U64, names: list[Any], weights: Any = None) -> Batch:
        """Rows with their names, and with sketches and sizes that say whose they are."""
        further: dict[str, Any] = self.named(names)
        if self.options.sketch_bits:
            further |= {"sketch": sketch_of(values), "features": sizes_of(values)}
        return Batch(values, weights=weights, **further)

    def any_index(self) -> tuple[simindex.Index, Rows]:
        """A handle, and what it must show."""
        others = list(self.pinned)
        if self.reader is not None:
            others.append((self.reader, self.model))
        if others and self.rng.random() < 0.5:
            return others[self.rng.randrange(len(others))]
        return self.writer, self.model

    def contents(self, index: simindex.Index) -> list[tuple[tuple[int, ...], Any]]:
        """All rows of a handle, sorted."""
        parts = list(index.rows(chunk_rows=7))
        for part in parts if self.options.sketch_bits else ():
            given: list[Any] = [part.sketch, part.sizes]
            assert np.array_equal(given[0], sketch_of(part.rows)), "sketches of other rows"
            assert np.array_equal(given[1], sizes_of(part.rows)), "sizes of other rows"
        return sorted(
            (tuple(words), name)
            for part in parts
            for words, name in zip(
                part.rows.tolist(), (part.keys if self.kind else part.ids.tolist()) or [],  # type: ignore[union-attr]  # ids are there where keys are not
                strict=True,
            )
        )

    def found(self, matches: simindex.Matches) -> list[tuple[int, int, Any]]:
        """(query, distance, name), whose order is that of (query, distance, id)."""
        triples = [(m.query, m.distance, m.id) for m in matches]
        assert triples == sorted(set(triples)), "matches are not unique or not in order"
        return [(m.query, m.distance, m.key if self.kind else m.id) for m in matches]

    # steps that change ----------------------------------------------------------------------------

    def append(self) -> None:
        """Buffers rows; also more than a segment holds."""
        batch, values, names = self.batch(self.rng.choice([3, 40]))
        ids = self.writer.append(batch)
        assert ids.tolist() == [self.number(name) for name in names]
        self.model.append(values, names, self.now)

    def replace(self) -> None:
        """Deletes names and appends them anew."""
        batch, values, names = self.batch(12)
        self.writer.replace(batch)
        self.model.delete(names, self.now)
        self.model.append(values, names, self.now)

    def delete(self) -> None:
        """Buffers deletions, also of names that are not there."""
        names = self.names(self.rng.randrange(6))
        self.writer.delete(**self.named(names))
        self.model.delete(names, self.now)

    def expire(self) -> None:
        """Rows that came before some time go; the clock went on since, or back."""
        self.now += self.rng.choice([-2, 0, 1, 1, 2, 5])
        age = self.rng.randrange(9)
        given: Any = age
        if self.rng.random() < 0.5:
            given = datetime.fromtimestamp(self.now - age, UTC)
        if self.options.times:
            gone = self.model.expire(self.now - age, self.now)
            assert self.writer.expire(older_than=given) == gone
            return
        try:
            self.writer.expire(older_than=given)
        except InvalidOption:
            return
        raise AssertionError("rows of an index without times have expired")

    def commit(self) -> None:
        """Commits."""
        self.writer.commit()
        self.model.commit(self.now)

    def ingest(self) -> None:
        """Rows match what is stored and the rows before them; then all of them are in."""
        batch, values, names = self.batch(10)
        first, h = self.rng.random() < 0.3, self.rng.randrange(4)
        found = self.found(self.writer.ingest(batch, h=h, first=first))
        self.model.commit(self.now)
        expected = self.model.matches(values, h)
        apart = self.model.apart(values, [(tuple(row), None, None) for row in values.tolist()])
        expected |= {
            (int(i), int(apart[i, j]), names[j]) for i, j in np.argwhere(apart <= h) if j < i
        }
        self.judge(found, expected, first)
        self.model.append(values, names, self.now)
        self.model.commit(self.now)

    @staticmethod
    def judge(
        found: list[tuple[int, int, Any]], expected: set[tuple[int, int, Any]], first: bool
    ) -> None:
        """All matches; or, with `first`, one of each query that has any."""
        if first:
            assert set(found) <= expected
            assert [q for q, _, _ in found] == sorted({q for q, _, _ in expected})
        else:
            assert sorted(found) == sorted(expected)

    def seen_or_add(self) -> None:
        """The nearest of what is stored and what waits, or one more that waits."""
        value, (name,) = self.values(1), self.names(1)
        h, before = self.rng.randrange(4), self.writer.generation
        match = self.writer.seen_or_add(self.of(value, [name]), h=h, commit_s=None)
        if self.writer.generation != before:
            self.model.commit(self.now)
        rows = [*self.model.rows, *self.model.appended]
        near = [
            (int(distance), row[1])
            for distance, row in zip(self.model.apart(value, rows)[0], rows, strict=True)
            if distance <= h
        ]
        if match is None:
            assert not near
            self.model.append(value, [name], None)
        else:
            got = (match.distance, match.key if self.kind else match.id)
            assert got in near
            assert got[0] == min(near)[0]

    def compact(self) -> None:
        """Nothing changes but the files."""
        self.writer.commit()
        self.model.commit(self.now)
        kind = self.rng.randrange(3)
        if kind == 2:
            self.designs = self.rng.choice(WIDTHS[self.bits])
            self.writer.compact(structures=self.designs)
        else:
            self.writer.compact(full=kind == 1)
        assert self.contents(self.writer) == self.model.contents()
        if kind == 1:
            stats = self.writer.stats()
            assert stats.segments <= 1
            assert (stats.dead_rows, stats.pending_rows) == (0, 0)

    # steps of handles -----------------------------------------------------------------------------

    def pin(self) -> None:
        """A reader that stays at its commit."""
        if len(self.pinned) == 3:
            index, _ = self.pinned.pop(self.rng.randrange(3))
            index.close()
        self.pinned.append((simindex.open(self.path, refresh=False), self.model.copy()))

    def look_back(self) -> None:
        """A pinned reader shows what it showed."""
        for index, model in self.pinned:
            assert self.contents(index) == model.contents()

    def refresh(self) -> None:
        """A pinned reader follows when it is told to."""
        if self.pinned:
            index, model = self.pinned[self.rng.randrange(len(self.pinned))]
            index.refresh()
            model.rows = list(self.model.rows)
            assert index.generation == self.writer.generation

    def open_reader(self) -> None:
        """A reader that follows, or none."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None
        else:
            self.reader = simindex.open(self.path)

    def reopen(self) -> None:
        """The writer is left in one of four ways; then nothing is left but what is named."""
        way = self.rng.randrange(4)
        if way == 0:
            with self.writer:
                pass
        elif way == 1:
            self.writer.close()
            self.writer.close()
        elif way == 2:
            try:
                with self.writer:
                    raise InterruptedError
            except InterruptedError:
                self.model.discard()
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                del self.writer
                gc.collect()
        self.model.commit(self.now)
        self.writer = simindex.open(self.path, "w")
        self.check_files()

    def close_writer(self) -> None:
        """Closes the writer, which commits what waits, or after throwing that away."""
        if self.rng.random() < 0.5:
            self.writer.discard()
            self.model.discard()
        self.writer.close()
        self.model.commit(self.now)

    def close_all(self) -> None:
        """With all handles, descriptors and maps are given back."""
        self.close_writer()
        for index, _ in self.pinned:
            index.close()
        self.pinned = []
        if self.reader is not None:
            self.reader.close()
            self.reader = None
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:  # what was unlinked is given back by a thread
            gc.collect()
            if descriptors() <= self.base and not maps(self.directory):
                break
            time.sleep(0.01)
        assert descriptors() <= self.base, "descriptors are left"
        assert not maps(self.directory), "maps are left"
        self.writer = simindex.open(self.path, "w")
        self.check_files()

    def check_files(self) -> None:
        """What a writer finds when it opens is all there is, and whole."""
        assert self.writer.check() == []
        segments = self.writer.stats().segments
        files = [f for f in (self.path / "segments").iterdir() if f.suffix != ".dead"]
        assert len(files) == segments * len(self.writer.options.structures), files

    def crash(self) -> None:
        """A writer that ends in the middle leaves its commits and nothing else."""
        self.close_writer()
        first, values, names = self.batch(40)
        second, more_values, more_names = self.batch(40)
        gone, (waiting,) = self.names(self.rng.randrange(3)), self.names(1)
        late = self.rng.random() < 0.5

        def child() -> int:
            with simindex.open(self.path, "w") as index:
                index.delete(**self.named(gone))
                index.append(first)
                index.commit()
                index.append(second)
                if late:  # what is buffered is committed first
                    document = self.of(~self.templates[:1], [waiting])
                    index.seen_or_add(document, commit_s=None)
                os._exit(0)

        assert forked(child) == 0
        self.model.delete(gone, self.now)
        self.model.append(values, names, self.now)
        self.model.commit(self.now)
        if late:
            self.model.append(more_values, more_names, self.now)
            self.model.commit(self.now)
        self.writer = simindex.open(self.path, "w")
        self.check_files()
        assert self.contents(self.writer) == self.model.contents()

    def damage(self) -> None:
        """A copy with a changed file: an error with a name, or the right answers."""
        self.close_writer()
        copy = self.directory / "damaged.sim"
        shutil.copytree(self.path, copy, ignore=shutil.ignore_patterns("lock.mdb", "LOCK"))
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        # Shares, since names and sizes of files differ from run to run, and draws may not.
        path = files[int(self.rng.random() * len(files))]
        data = bytearray(path.read_bytes())
        at, how = int(self.rng.random() * len(data)), self.rng.randrange(4)
        if how == 0:
            data[at] ^= 1 << self.rng.randrange(8)
        elif how == 1:
            data[at : at + 512] = bytes(len(data[at : at + 512]))
        elif how == 2:
            del data[at:]
        else:
            data += b"\0" * 4096
        path.write_bytes(data)
        queries = self.values(3)
        self.counts["damaged " + (path.suffix or path.name)] += 1

        def child() -> int:
            try:
                with simindex.open(copy) as index:
                    noticed = any(finding.severity == "error" for finding in index.check())
                with simindex.open(copy) as index:  # whose maps nothing has looked at
                    for method in ("auto", "psm", "scan", "bphs", "issl", "rows"):
                        noticed |= not self.right_or_refused(index, method, queries)
            except CorruptFile:
                return 3
            return 3 * noticed

        code = forked(child)
        shutil.rmtree(copy)
        assert code in (0, 3), f"{path.name}, {at}, {how}: {code}"
        self.writer = simindex.open(self.path, "w")

    def right_or_refused(self, index: simindex.Index, method: str, queries: U64) -> bool:
        """Whether a damaged index answers; if it does, as it must."""
        try:
            if method == "rows":
                assert self.contents(index) == self.model.contents()
            elif method in ("auto", "psm", "scan") or any(
                structure.startswith(method) for structure in index.options.structures
            ):
                found = self.found(index.query(queries, h=EXACT_H, method=method))
                self.judge(found, self.model.matches(queries, EXACT_H), False)
        except CorruptFile:
            return False
        return True

    # questions ------------------------------------------------------------------------------------

    def query(self) -> None:
        """By every method that the index has; at any recall what is found is right."""
        index, model = self.any_index()
        methods = ["auto", "psm", "scan"]
        methods += ["bphs"] * any(s.startswith("bphs") for s in index.options.structures)
        methods += ["issl"] * any(s.startswith("issl") for s in index.options.structures)
        method = self.rng.choice(methods)
        h = self.rng.randrange(EXACT_H + 1 if method == "bphs" else 6)
        if method == "psm" and self.bits > 64:
            h = min(h, 3)
        first = self.rng.random() < 0.2
        values = self.values(self.rng.randrange(1, 6))
        weighted = self.rng.random() < 0.5
        recall = self.rng.choice([0.5, 0.9]) if weighted and self.rng.random() < 0.4 else 1.0
        matches = index.query(
            Batch(values, weights=self.weights(values) if weighted else None),
            h=h, first=first, recall=recall, method=method,
        )
        found, expected = self.found(matches), model.matches(values, h)
        self.counts[f"query {method}"] += 1
        if recall < 1:
            assert set(found) <= expected
        else:
            self.judge(found, expected, first)

    def top(self) -> None:
        """The nearest documents, where all rows are looked at."""
        index, model = self.any_index()
        k, values = self.rng.randrange(1, 9), self.values(self.rng.randrange(1, 4))
        lists = any(s.startswith("issl") for s in index.options.structures)
        method = self.rng.choice(["auto", "scan", *["issl"] * lists])
        asked: dict[str, Any] = {"k": k, "method": method, "max_error": 1, "rerank": 10_000}
        if k > len(model.rows):
            try:
                index.top(values, **asked)
            except InvalidOption:
                return
            raise AssertionError("more than the index holds was given")
        found = index.top(values, **asked)
        apart = model.apart(values)
        for at in range(len(values)):
            least: dict[int, int] = {}
            for row, far in enumerate(apart[at].tolist()):
                name = self.number(model.rows[row][1])
                least[name] = min(far, least.get(name, far))
            expected = sorted((far, name) for name, far in least.items())[:k]
            filled = int(found.found[at])
            got = zip(
                found.distance[at, :filled].tolist(), found.id[at, :filled].tolist(), strict=True
            )
            assert list(got) == expected

    def pairs(self) -> None:
        """All pairs of rows of different names."""
        index, model = self.any_index()
        h = self.rng.randrange(4)
        words = self.bits // 64
        values = np.array([row[0] for row in model.rows], np.uint64).reshape(-1, words)
        numbers = [self.number(row[1]) for row in model.rows]
        expected = Counter(
            (min(numbers[i], numbers[j]), max(numbers[i], numbers[j]), int(apart))
            for (i, j), apart in np.ndenumerate(model.apart(values))
            if i < j and apart <= h and numbers[i] != numbers[j]
        )
        found: Counter[tuple[int, int, int]] = Counter()
        for part in index.pairs(h=h):
            found.update(zip(part.a.tolist(), part.b.tolist(), part.distance.tolist(), strict=True))
        assert found == expected

    def clusters(self) -> None:
        """Components of the documents, and stars: each member is near its representative, and no
        two representatives are near."""
        index, model = self.any_index()
        h = self.rng.randrange(3)
        words = self.bits // 64
        values = np.array([row[0] for row in model.rows], np.uint64).reshape(-1, words)
        numbers = [self.number(row[1]) for row in model.rows]
        least = {number: number for number in numbers}
        near = [(i, j) for i, j in np.argwhere(model.apart(values) <= h) if i < j]
        changed = True
        while changed:
            changed = False
            for i, j in near:
                a, b = least[numbers[i]], least[numbers[j]]
                if a != b:
                    least[numbers[i]] = least[numbers[j]] = min(a, b)
                    changed = True
        found = index.clusters(h=h, mode="components")
        assert dict(zip(found.id.tolist(), found.cluster.tolist(), strict=True)) == least
        stars = index.clusters(h=h)
        chosen = dict(zip(stars.id.tolist(), stars.representative.tolist(), strict=True))
        assert set(chosen) == set(numbers)
        joined = {(numbers[i], numbers[j]) for i, j in near}
        joined |= {(other, one) for one, other in joined}
        assert all(one == centre or (one, centre) in joined for one, centre in chosen.items())
        centres = set(chosen.values())
        assert not any(a != b and a in centres and b in centres for a, b in joined)

    def everything(self) -> None:
        """All rows of a handle."""
        index, model = self.any_index()
        assert self.contents(index) == model.contents()

    # walking --------------------------------------------------------------------------------------

    ODDS: tuple[tuple[str, int], ...] = (
        ("append", 14), ("replace", 4), ("delete", 6), ("expire", 6), ("commit", 14), ("ingest", 5),
        ("seen_or_add", 6), ("compact", 3), ("pin", 3), ("look_back", 2), ("refresh", 3),
        ("open_reader", 2), ("reopen", 3), ("close_all", 1), ("crash", 2), ("damage", 2),
        ("query", 24), ("top", 8), ("pairs", 3), ("clusters", 1), ("everything", 2),
    )

    def step(self) -> None:
        """One step, and what must hold after each."""
        odds = np.cumsum([odds for _, odds in self.ODDS])
        name = self.ODDS[int(np.searchsorted(odds, self.rng.randrange(odds[-1]), "right"))][0]
        self.steps.append(name)
        self.counts[name] += 1
        getattr(self, name)()
        assert len(self.writer) == len(self.model.rows)
        generation = self.writer.generation
        assert generation >= self.generation, "time went back"
        self.generation = generation
        if self.reader is not None:
            assert len(self.reader) == len(self.model.rows)
            assert self.reader.generation == generation
        for index, model in self.pinned:
            assert len(index) == len(model.rows)

    def close(self) -> None:
        """Closes what is open."""
        handles = [index for index, _ in self.pinned]
        handles += [index for index in (self.reader, getattr(self, "writer", None)) if index]
        for index in handles:
            index.close()


def sketch_of(values: U64) -> U64:
    """Two words that say whose they are."""
    mixed: U64 = values[:, :1] * np.array([3, 0x9E3779B97F4A7C15], np.uint64)
    return mixed


def sizes_of(values: U64) -> NDArray[np.int64]:
    """Numbers of features that say whose they are: powers of two, which a byte has exactly. Of one
    row in seven it is not known."""
    powers = np.int64(1) << (values[:, 0] % np.uint64(31)).astype(np.int64)
    return np.where(values[:, 0] % np.uint64(7) == 3, 0, powers)


def descriptors() -> int:
    """That this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  names only, and fast


def maps(directory: Path) -> list[str]:
    """Of files below a directory."""
    return [line for line in Path("/proc/self/maps").read_text().splitlines()
            if str(directory) in line]


def forked(work: Callable[[], int]) -> int:
    """Exit code of a forked child that does `work`; minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(CHILD_S)
            os._exit(work())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def walk(rng: random.Random, steps: int, parent: Path | None = None) -> Counter[str]:
    """As many steps on a new index; raises AssertionError, with the steps, where they differ."""
    directory = Path(tempfile.mkdtemp(prefix="simindex-model-", dir=parent))
    one = Walk(rng, directory)
    try:
        with mock.patch.object(times, "clock", lambda: float(one.now)):
            for _ in range(steps):
                one.step()
    except (AssertionError, SimindexError) as error:
        tail = ", ".join(one.steps[-40:])
        raise AssertionError(f"{error!r} after {len(one.steps)} steps: {tail}") from error
    finally:
        try:
            one.close()
        finally:
            shutil.rmtree(directory, ignore_errors=True)  # a merge may still write there
    return one.counts


def _walk(seed: int, steps: int, parent: Path | None) -> tuple[int, Counter[str], str]:
    logging.getLogger("simindex").setLevel(logging.ERROR)  # of damage that was met
    try:
        return seed, walk(random.Random(seed), steps, parent), ""
    except Exception:
        return seed, Counter(), traceback.format_exc()


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """`goal` steps, STEPS on each index; those of the n-th are drawn with seed + n."""
    began = time.monotonic()
    shm = Path("/dev/shm")  # noqa: S108  nothing is to outlive the trial
    parent = shm if os.access(shm, os.W_OK) else None
    counts: Counter[str] = Counter()
    wrong = signals = 0
    seeds = range(seed, seed + -(-goal // STEPS))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = [pool.submit(_walk, one, STEPS, parent) for one in seeds]
        pace = Pace("model", goal)
        for number, future in enumerate(futures):
            pace.at(number * STEPS)
            try:
                walked, found, trace = future.result()
            except Exception as error:  # the process is gone
                print(f"a walk ended its process: {error!r}", file=sys.stderr)
                signals += 1
                continue
            counts += found
            if trace:
                wrong += 1
                print(f"seed {walked}:\n{trace}", file=sys.stderr, flush=True)
    done = sum(counts[name] for name, _ in Walk.ODDS)
    print(", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())), file=sys.stderr)
    return [Outcome("model: steps", goal, done, time.monotonic() - began, seed, wrong=wrong,
                    signals=signals)]


if __name__ == "__main__":
    print(walk(random.Random(int(sys.argv[1])), int(([*sys.argv, str(STEPS)])[2])))
