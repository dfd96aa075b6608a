"""An answer in parts is the answer, however it is cut, and takes the memory of a part."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from descriptors import open_files
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex import IndexOptions, TooManyMatches
from simindex._kernels import _native
from simindex.errors import InvalidOption
from simindex.query import call, windows
from simindex.query.parts import in_parts
from simindex.records.matches import Matches, QueryStats

STATS = QueryStats("scan", "exact", True, 0, 0, 0, 1, 0.0)
METHODS = ("auto", "psm", "scan", "bphs", "issl")

Answer = list[tuple[int, int, int]]


def matches_of(counts: list[int]) -> Matches:
    """So many matches of each query."""
    query = np.repeat(np.arange(len(counts)), counts)
    return Matches(query, query.astype(np.uint64), np.zeros(len(query), np.uint16), STATS)


@given(
    counts=st.lists(st.integers(0, 40), max_size=40), room=st.integers(1, 60),
    size=st.integers(1, 50), most=st.integers(1, 50), refused=st.integers(1, 50),
)
@pytest.mark.slow
def test_queries_come_in_order_in_parts_for_which_there_is_room(
    counts: list[int], room: int, size: int, most: int, refused: int
) -> None:
    """Where a call refuses so many queries, fewer are asked; a lone query is left to windows."""
    alone: list[int] = []

    def ask(start: int, stop: int) -> Matches:
        if stop - start > refused:
            raise InvalidOption("too many", option="memory_limit")
        found = matches_of(counts[start:stop])
        if len(found) > room:
            raise _native.NoRoom
        return found

    def lone(number: int) -> Iterator[Matches]:
        alone.append(number)
        assert counts[number] > room
        yield matches_of([counts[number]])

    parts = list(in_parts(len(counts), ask, lone, size=size, most=most, matches=lambda: room))
    assert parts
    found = np.concatenate([part.query for part in parts])
    assert found.tolist() == matches_of(counts).query.tolist()
    assert alone == [query for query, count in enumerate(counts) if count > room]


def test_another_error_ends_the_parts() -> None:
    def refuse(start: int, stop: int) -> Matches:
        raise InvalidOption("no", option="h")

    def fail(start: int, stop: int) -> Matches:
        raise MemoryError("the system has no memory")

    for ask, error in ((refuse, InvalidOption), (fail, MemoryError)):
        with pytest.raises(error):
            list(in_parts(5, ask, lambda number: iter(()), size=5, most=5, matches=lambda: 9))


def told(parts: Any) -> Answer:
    """(query, distance, id) of parts, in their order."""
    return [
        row for part in parts for row in
        zip(part.query.tolist(), part.distance.tolist(), part.id.tolist(), strict=True)
    ]


def fill(
    path: Path, rng: np.random.Generator, words: int
) -> tuple[oracle.U64, oracle.U64, oracle.U64]:
    """An index of crowded families, equal rows, rows of one id and deleted ones.

    Returns live rows, their ids, and queries.
    """
    rows = oracle.skewed(rng, 1500, words, templates=8, flips=5)
    rows[600:900] = rows[0]
    ids = rng.permutation(1500).astype(np.uint64)
    ids[650:700] = ids[0]
    structures = ("psm", "bphs:G=5,g=1", "issl")
    options = IndexOptions(bits=64 * words, structures=structures, batch_rows=512, min_merge=0)
    gone = ids[800:840]
    with simindex.open(path, "n", options=options) as index:
        for start in range(0, 1500, 600):
            index.append(rows[start : start + 600], ids=ids[start : start + 600])
            index.commit()
        index.delete(ids=gone)
    live = ~np.isin(ids, gone)
    queries = np.concatenate([rows[:1], rows[:1], rows[rng.integers(0, 1500, 20)],
                              oracle.uniform(rng, 3, words)])
    return rows[live], ids[live], queries


Filled = tuple[Path, oracle.U64, oracle.U64, oracle.U64]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Filled]:
    """By the words of a fingerprint."""
    folder = tmp_path_factory.mktemp("parts")
    return {
        words: (folder / f"{words}.sim",
                *fill(folder / f"{words}.sim", np.random.default_rng(words), words))
        for words in (1, 2)
    }


@settings(max_examples=25, deadline=None)
@given(
    room=st.sampled_from([1, 7, 50, 400, 1 << 21]), size=st.sampled_from([1, 5, 256]),
    piece=st.sampled_from([64, 1 << 20]), method=st.sampled_from(METHODS),
    words=st.sampled_from([1, 2]), h=st.sampled_from([0, 2, 4]),
    limit=st.sampled_from([None, 1, 9, 350]),
)
@pytest.mark.slow
def test_any_cut_into_parts_gives_the_matches_of_one_query(
    filled: dict[int, Filled], room: int, size: int, piece: int, method: str, words: int, h: int,
    limit: int | None,
) -> None:
    """Skewed and wide rows, ids of several rows, deleted rows, with a limit and without."""
    path, live, ids, queries = filled[words]
    expected = oracle.answers(live, ids, queries, h)
    if limit is not None:
        expected = [row for query in range(len(queries))
                    for row in [one for one in expected if one[0] == query][:limit]]
    with pytest.MonkeyPatch.context() as patch, simindex.open(path) as index:
        patch.setattr(call, "PART_MATCHES", room)
        patch.setattr(call, "FIRST_QUERIES", size)
        patch.setattr(windows, "LEAST_ROWS", piece)
        parts = list(index.query_stream(queries, h=h, method=method, limit=limit))
        assert told(parts) == expected
        if limit is None:
            assert all(len(part) <= 2 * room for part in parts)
        assert told([index.query(queries, h=h, method=method, limit=limit)]) == expected


@pytest.mark.slow
def test_what_takes_more_than_the_limit_is_refused_with_the_remedy(
    index_path: Path, rng: np.random.Generator
) -> None:
    equal = np.zeros(4000, np.uint64)
    with simindex.open(index_path, "n") as index:
        index.append(equal)
    with simindex.open(index_path) as index:
        for method in ("auto", "scan"):
            with pytest.raises(TooManyMatches, match="query_stream") as caught:
                index.query(equal, h=0, method=method, memory_limit=64 << 20)
            assert caught.value.data["memory_limit"] == 64 << 20
            assert caught.value.exit_code == 2
        found = index.query(equal, h=0, limit=2, memory_limit=64 << 20)
        assert np.array_equal(found.id, np.tile(np.arange(2, dtype=np.uint64), 4000))
        assert len(index.query(equal, h=0, first=True, memory_limit=64 << 20)) == 4000
        rows = 0
        for part in index.query_stream(equal, h=0, memory_limit=64 << 20):
            rows += len(part)
            assert len(part) * 80 <= 64 << 20
        assert rows == 16_000_000
        with pytest.raises(TooManyMatches, match="limit=N"):
            index.query(equal, h=0, limit=3000, memory_limit=40 << 20)


def test_without_a_limit_an_answer_may_take_a_share_of_the_memory(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("answerer", "call"):
        monkeypatch.setattr(f"simindex.query.{module}.answer_bytes", lambda: 1 << 20)
    equal = np.zeros(1000, np.uint64)
    with simindex.open(index_path, "n") as index:
        index.append(equal)
    with simindex.open(index_path) as index:
        assert len(index.query(equal[:10], h=0)) == 10_000
        with pytest.raises(TooManyMatches, match="1 MiB, 1/4 of the memory"):
            index.query(equal, h=0)
        with pytest.raises(TooManyMatches, match="smaller k") as caught:
            index.top(equal, k=1000)
        assert caught.value.data["memory_limit"] == 1 << 20
        assert len(index.query(equal, h=0, first=True)) == 1000
    with simindex.open(index_path, "w") as index:
        with pytest.raises(TooManyMatches):
            index.ingest(equal[:100], h=0)
        assert len(index) == 1000


def test_an_ingest_keeps_its_limit_over_the_whole_batch(index_path: Path) -> None:
    """Matches within the batch and stored ones are too many together only."""
    values = np.zeros(1400, np.uint64)
    with simindex.open(index_path, "n") as index:
        index.append(values[:700])
        index.commit()
        for rows in (values[:900], values[:1000]):
            with pytest.raises(TooManyMatches):
                index.ingest(rows, h=0, memory_limit=64 << 20)
            assert len(index) == 700
        index.ingest(values[:100], h=0, memory_limit=64 << 20)
        assert len(index) == 800


@pytest.mark.parametrize("limit", [1.5, 0, -1, "3", True])
def test_a_limit_is_a_number_of_matches(index_path: Path, limit: Any) -> None:
    with simindex.open(index_path, "n") as index:
        for ask in (index.query, index.query_stream):
            with pytest.raises(InvalidOption, match="limit"):
                ask(np.zeros(1, np.uint64), limit=limit)
            with pytest.raises(InvalidOption, match="first"):
                ask(np.zeros(1, np.uint64), limit=1, first=True)


def test_a_stream_is_of_one_commit_and_outlives_the_handle(index_path: Path) -> None:
    """It is asked before anything is read of it: a wrong option raises at the call."""
    with simindex.open(index_path, "n", options=IndexOptions(keys=True)) as writer:
        writer.append(simindex.Batch(np.zeros(300, np.uint64), keys=[f"k{i}" for i in range(300)]))
        writer.commit()
        reader = simindex.open(index_path)
        with pytest.raises(InvalidOption):
            reader.query_stream(np.zeros(1, np.uint64), h=99)
        for index in (reader, writer):
            stream = index.query_stream(np.zeros(600, np.uint64), h=0)
            first = next(stream)
            writer.delete(keys=["k5"])
            writer.append(simindex.Batch(np.zeros(1, np.uint64), keys=["new"]))
            writer.commit()
            if index is reader:
                reader.close()
            rest = list(stream)
            counts = np.bincount(np.concatenate([first.query, *(part.query for part in rest)]))
            assert counts.tolist() == [300] * 600
            assert (rest[-1].keys() or [])[-300:].count("k5") == (index is reader)
            writer.append(simindex.Batch(np.zeros(0, np.uint64), keys=[]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_a_stream_that_is_dropped_leaves_nothing_open(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.zeros(70_000, np.uint64))
    gc.collect()  # what other tests have left
    descriptors = Counter(open_files())

    def maps() -> int:
        return sum(
            str(index_path) in line for line in Path("/proc/self/maps").read_text().splitlines()
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for end in ("close", "drop"):
            index = simindex.open(index_path)
            stream = index.query_stream(np.zeros(500, np.uint64), h=0, threads=2)
            assert len(next(stream))
            index.close()
            assert maps() > 0
            if end == "close":
                stream.close()
                assert list(stream) == []
            del stream, index
            gc.collect()
            assert maps() == 0
            assert Counter(open_files()) <= descriptors


def test_fewer_queries_are_asked_in_proportion_to_the_least_that_works() -> None:
    """A call that is refused says what it needs, and the next is as large as fits."""
    asked: list[int] = []

    def ask(start: int, stop: int) -> Matches:
        asked.append(stop - start)
        if stop - start > 600:
            raise InvalidOption(
                "no", option="memory_limit", found=700, expected=100 + stop - start
            )
        return matches_of([1] * (stop - start))

    parts = list(
        in_parts(2000, ask, lambda number: iter(()), size=2000, most=2000, matches=lambda: 1)
    )
    assert sum(len(part) for part in parts) == 2000
    assert asked[0] == 2000
    assert asked[1] == 633
    assert asked[2:] == [574, 574, 574, 278]


def test_the_answer_of_first_matches_has_its_share_of_the_limit(index_path: Path) -> None:
    equal = np.zeros(100_000, np.uint64)
    with simindex.open(index_path, "n") as index:
        index.append(equal[:10])
    with simindex.open(index_path) as index:
        found = index.query(equal, h=0, first=True, memory_limit=16 << 20)
        assert np.array_equal(found.query, np.arange(100_000))
        with pytest.raises(TooManyMatches, match="ask fewer queries at a time") as caught:
            index.query(np.zeros(250_000, np.uint64), h=0, first=True, memory_limit=16 << 20)
        assert caught.value.data["memory_limit"] == 16 << 20
        parts = index.query_stream(
            np.zeros(250_000, np.uint64), h=0, first=True, memory_limit=16 << 20
        )
        assert sum(len(part) for part in parts) == 250_000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory otherwise")
@pytest.mark.parametrize("rows", ["equal", "near"])
def test_first_matches_keep_the_limit_where_tables_take_more_than_half_of_it(
    index_path: Path, rows: str
) -> None:
    """Half of all rows are within the radius of every query, and others were deleted."""
    rng = np.random.default_rng(8)
    stored = oracle.uniform(rng, 2_000_000)
    stored[::2] = 0
    if rows == "near":
        stored[::2, 0] ^= np.uint64(1) << rng.integers(0, 64, 1_000_000, np.uint64)
    with simindex.open(index_path, "n", options=IndexOptions(structures=("psm",))) as index:
        index.append(stored, ids=np.arange(2_000_000, dtype=np.uint64))
        index.commit()
        index.delete(ids=[0, 1])
    program = textwrap.dedent("""
        import sys
        import numpy as np, simindex
        def status(name):
            lines = open("/proc/self/status").read().split(name + ":")
            return int(lines[1].split()[0]) << 10
        index = simindex.open(sys.argv[1])
        asked = np.zeros(50_000, np.uint64)
        index.query(asked[:1], h=3, first=True)
        for limit in (24 << 20, 32 << 20):
            open("/proc/self/clear_refs", "w").write("5")
            before = status("VmRSS")
            found = index.query(asked, h=3, first=True, memory_limit=limit)
            assert np.array_equal(found.query, np.arange(50_000)), len(found)
            grown = status("VmHWM") - before
            assert grown <= limit + (6 << 20), (limit, grown)
    """)
    subprocess.run([sys.executable, "-c", program, str(index_path)], check=True, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory otherwise")
def test_first_matches_of_many_different_queries_keep_the_limit(index_path: Path) -> None:
    """Tables over the queries count, also where the index takes less than half of the limit."""
    stored = oracle.uniform(np.random.default_rng(9), 1_000_000)
    with simindex.open(index_path, "n", options=IndexOptions(structures=("psm",))) as index:
        index.append(stored, ids=np.arange(1_000_000, dtype=np.uint64))
        index.commit()
        index.compact(full=True)
    program = textwrap.dedent("""
        import sys
        import numpy as np, simindex
        def status(name):
            lines = open("/proc/self/status").read().split(name + ":")
            return int(lines[1].split()[0]) << 10
        index = simindex.open(sys.argv[1])
        asked = next(iter(index.rows())).rows[:50_000, 0]
        asked = np.concatenate([asked ^ np.uint64(1 << 40), asked ^ np.uint64(1 << 3)])
        index.query(asked[:1], h=3, first=True)
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        found = index.query(asked, h=3, first=True, memory_limit=32 << 20, threads=1)
        assert np.array_equal(found.query, np.arange(100_000)), len(found)
        grown = status("VmHWM") - before
        assert grown <= 24 << 20, grown
    """)
    subprocess.run([sys.executable, "-c", program, str(index_path)], check=True, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory otherwise")
def test_answers_of_any_size_take_the_memory_of_a_part(index_path: Path) -> None:
    """A hundred thousand queries that match 300,000 rows each, and a query that matches all."""
    rng = np.random.default_rng(7)
    rows = oracle.uniform(rng, 600_000)
    rows[::2] = 0
    with simindex.open(index_path, "n") as index:
        index.append(rows)
    program = textwrap.dedent("""
        import resource, sys, itertools
        import numpy as np, simindex
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        index = simindex.open(sys.argv[1])
        equal = np.zeros(100_000, np.uint64)
        index.query(equal[:1], first=True)
        before = peak()
        seen = sum(len(part) for part in itertools.islice(index.query_stream(equal, h=0), 20))
        assert seen > 5_000_000, seen
        assert peak() - before < 350, peak() - before
        try:
            index.query(equal, h=0, memory_limit=200 << 20)
        except simindex.TooManyMatches:
            pass
        else:
            raise AssertionError("not refused")
        assert peak() - before < 350, peak() - before
        everything = sum(len(part) for part in index.query_stream(equal[:1], h=64))
        assert everything == 600_000
        assert len(index.query(equal[:20], h=0, limit=5)) == 100
        assert peak() - before < 350, peak() - before
    """)
    subprocess.run([sys.executable, "-c", program, str(index_path)], check=True, timeout=300)
