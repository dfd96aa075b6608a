"""A reader sees one commit in every call, whatever a writer does meanwhile."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from descriptors import open_files

import simindex
from simindex import Batch, IndexOptions
from simindex._kernels import _native
from simindex.errors import CorruptFile
from simindex.storage.tables.table import Table
from simindex.storage.view import View

FILES = len(IndexOptions().structures)
"""Of a segment."""

MARKER = np.array([0x0123_4567_89AB_CDEF], np.uint64)
GROUP = 1000
OPTIONS = IndexOptions(batch_rows=4096, min_merge=2)

READER = """
import sys, numpy as np, simindex
path, rounds = sys.argv[1], int(sys.argv[2])
marker = np.array([0x0123_4567_89AB_CDEF], np.uint64)
last = seen = 0
with simindex.open(path) as reader:
    print("ready", flush=True)
    while last < rounds * 1000:
        found = len(reader.query(marker, h=2))
        assert found % 1000 == 0, found
        assert found >= last, (found, last)
        seen += found != last
        last = found
    assert [f for f in reader.check() if f.severity == "error"] == []
print("seen", seen)
"""


def group(number: int) -> Batch:
    """A thousand rows within one bit of the marker, and as many elsewhere."""
    rng = np.random.default_rng(number)
    near = np.repeat(MARKER, GROUP) ^ (np.uint64(1) << rng.integers(0, 64, GROUP).astype(np.uint64))
    far = rng.integers(0, 2**64, GROUP, dtype=np.uint64) | np.uint64(1 << 63)
    return Batch(np.concatenate([near, far]))


def write(path: Path, commits: int, stop: threading.Event | None = None) -> None:
    with simindex.open(path, "w") as writer:
        for number in range(commits):
            writer.append(group(number))
            writer.commit()
            if number % 5 == 4:
                writer.compact(full=True)
            if stop is not None and stop.is_set():
                break


@pytest.mark.slow
def test_reader_of_another_process_sees_whole_commits(index_path: Path) -> None:
    simindex.open(index_path, "c", options=OPTIONS).close()
    commits = 25
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(index_path), str(commits)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        write(index_path, commits)
        out, errors = reader.communicate(timeout=60)
        assert reader.returncode == 0, errors
        assert int(out.split()[1]) >= 1


@pytest.mark.slow
def test_readers_of_this_process_see_whole_commits(index_path: Path) -> None:
    simindex.open(index_path, "c", options=OPTIONS).close()
    commits = 10
    errors: list[BaseException] = []
    rounds = [0, 0]

    def read(place: int, reader: simindex.Index) -> None:
        try:
            last = 0
            while last < commits * GROUP:
                found = len(reader.query(MARKER, h=2))
                assert found % GROUP == 0
                assert found >= last
                rounds[place] += found != last
                last = found
                assert len(reader) % (2 * GROUP) == 0
        except BaseException as error:
            errors.append(error)
            stop.set()

    stop = threading.Event()
    shared = simindex.open(index_path)
    threads = [threading.Thread(target=read, args=(place, shared)) for place in range(2)]
    for thread in threads:
        thread.start()
    write(index_path, commits, stop)
    for thread in threads:
        thread.join(60)
    shared.close()
    assert errors == []
    assert min(rounds) >= 1


@pytest.mark.slow
def test_replacement_is_never_seen_half_done(index_path: Path) -> None:
    """Each commit replaces all rows: a reader that saw both or neither would count wrongly."""
    ids = np.arange(GROUP, dtype=np.uint64)
    with simindex.open(index_path, "c", options=OPTIONS) as writer:
        writer.append(Batch(np.repeat(MARKER, GROUP), ids=ids))
    errors: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            with simindex.open(index_path) as reader:
                while not done.is_set():
                    found = reader.query(MARKER, h=0)
                    assert len(found) == GROUP
                    assert np.array_equal(found.id, ids)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    with simindex.open(index_path, "w") as writer:
        for number in range(25):
            writer.replace(Batch(np.repeat(MARKER, GROUP), ids=ids))
            writer.commit()
            if number % 6 == 5:
                writer.compact(full=True)
    done.set()
    thread.join(60)
    assert errors == []


# -- following and keeping ------------------------------------------------------------------------


@pytest.fixture
def filled(index_path: Path) -> Path:
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=64, min_merge=0)) as index:
        for start in range(0, 256, 64):
            index.append(np.arange(start, start + 64, dtype=np.uint64))
            index.commit()
    return index_path


def test_refresh_says_whether_there_was_a_commit(filled: Path) -> None:
    with simindex.open(filled) as reader, simindex.open(filled, "w") as writer:
        assert not reader.refresh()
        writer.append(np.arange(5, dtype=np.uint64))
        assert not reader.refresh()
        writer.commit()
        assert reader.refresh()
        assert not reader.refresh()
        writer.commit()  # nothing to commit
        assert not reader.refresh()


def test_snapshot_outlives_the_compaction_of_its_files(filled: Path) -> None:
    """Its maps keep the unlinked files; its directories are computed where they were not loaded."""
    with simindex.open(filled) as reader, simindex.open(filled, "w") as writer:
        old = reader._current()
        writer.compact(full=True)
        assert not any((filled / "segments" / s.name).exists() for s in old.segments)
        for segment in old.segments:
            assert segment.directory[-1] == len(segment)
        assert old.stored_rows == 256
        assert sum(int(s.fingerprints[:, 0].sum()) for s in old.segments) == sum(range(256))
        assert len(reader) == 256


@pytest.mark.slow
def test_tables_are_reused_and_given_up_with_their_commit(filled: Path) -> None:
    gc.collect()  # what other tests left
    with simindex.open(filled, "w") as writer:
        before = writer._current()
        writer.append(np.arange(3, dtype=np.uint64))
        writer.commit()
        after = writer._current()
        assert all(a is b for a, b in zip(before.segments, after.segments, strict=True))
        descriptors = len(open_files())
        watched = weakref.ref(before)
        maps = [weakref.ref(segment.envelope) for segment in before.segments]
        del before, after
        writer.compact(full=True)
        writer.refresh()
        gc.collect()
        assert watched() is None
        assert [found() for found in maps] == [None] * 4
        assert len(open_files()) == descriptors - 3 * FILES


def test_matches_keep_their_keys_after_compaction_and_closing(index_path: Path) -> None:
    options = IndexOptions(batch_rows=8, min_merge=0, keys=True)
    with simindex.open(index_path, "c", options=options) as index:
        index.append(Batch(np.arange(16, dtype=np.uint64), keys=[f"k{i}" for i in range(16)]))
        index.commit()
        found = index.query(np.arange(16, dtype=np.uint64), h=0)
        index.delete(keys=[f"k{i}" for i in range(16)])
        index.commit()
        index.compact(full=True)
    assert found.keys() == [f"k{i}" for i in range(16)]


def test_file_that_vanished_for_ever_is_damage(filled: Path) -> None:
    file = max((filled / "segments").iterdir())
    kept = filled.parent / "kept"
    file.rename(kept)
    with pytest.raises(CorruptFile, match="missing") as caught:
        simindex.open(filled)
    assert caught.value.data["path"] == str(file)
    kept.rename(file)
    with simindex.open(filled) as reader:
        assert len(reader) == 256


def test_reader_takes_a_newer_head_when_a_file_vanishes_under_it(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction between reading the head and opening its files."""
    from simindex.storage import snapshot as module

    real = module.open_segment
    writer = simindex.open(filled, "w")

    def compact_first(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(module, "open_segment", real)
        writer.compact(full=True)
        return real(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "open_segment", compact_first)
    with simindex.open(filled) as reader:
        assert len(reader._current().segments) == 1
        assert len(reader) == 256
    writer.close()


def test_sample_of_an_old_snapshot_is_never_another_commits(index_path: Path) -> None:
    weights = np.ones((64, 64), np.float32)
    options = IndexOptions(batch_rows=64, reservoir_rows=16, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        index.append(Batch(np.arange(64, dtype=np.uint64), weights=weights))
        index.commit()
        old = index._current()
        index.append(Batch(np.arange(64, 128, dtype=np.uint64), weights=weights))
        index.commit()
        assert len(index._current().reservoir) == 16
        assert set(old.reservoir.fingerprints[:, 0].tolist()) <= set(range(64))


def test_dead_rows_follow_commits(filled: Path) -> None:
    with simindex.open(filled, "w") as writer:
        writer.delete(ids=np.arange(100, dtype=np.uint64))
        writer.commit()
        assert writer._current().dead_rows == 100
        assert len(writer) == 156
        writer.append(np.arange(5, dtype=np.uint64), ids=np.arange(5, dtype=np.uint64))
        writer.commit()
        assert len(writer) == 161


def test_tombstones_are_decoded_only_when_they_have_changed(filled: Path) -> None:
    with simindex.open(filled, "w") as writer:
        writer.delete(ids=[1])
        writer.commit()
        before = writer._current().tombstones
        writer.append(np.arange(5, dtype=np.uint64))
        writer.commit()
        assert writer._current().tombstones is before
        writer.delete(ids=[2])
        writer.commit()
        assert len(writer._current().tombstones) == 2
        assert writer._current().tombstones.runs[0] is before.runs[0]


def test_masks_of_deleted_rows_follow_every_commit(filled: Path) -> None:
    """A reader that looks at some commits only sees what a new one sees."""
    rng = np.random.default_rng(4)
    with simindex.open(filled, "w") as writer, simindex.open(filled) as reader:
        for number, ids in enumerate(np.array_split(rng.permutation(200), 30)):
            writer.delete(ids=ids.astype(np.uint64))
            if number % 4 == 0:
                writer.append(np.arange(3, dtype=np.uint64), ids=ids[:3].astype(np.uint64))
            writer.commit()
            if number % 3:
                continue
            now = reader._current()
            with simindex.open(filled) as other:
                fresh = other._current()
                assert now.dead_rows == fresh.dead_rows > 0
                for mine, its in zip(now.tables, fresh.tables, strict=True):
                    mask, wanted = now.dead(mine), fresh.dead(its)
                    assert (mask is None) == (wanted is None)
                    assert mask is None or np.array_equal(mask, wanted)
                    assert now.dead_share(mine) == fresh.dead_share(its)


def test_directory_in_the_catalog_is_the_one_that_would_be_computed(filled: Path) -> None:
    with simindex.open(filled) as reader:
        for segment in reader._current().segments:
            assert np.array_equal(segment.directory, Table.compute_directory(segment))
            assert segment._load is not None
            assert np.array_equal(segment._load(), segment.directory)


def test_a_pinned_reader_stays_at_its_commit_until_it_is_told(index_path: Path) -> None:
    row = np.array([5], np.uint64)
    with simindex.open(index_path, "c") as writer:
        writer.append(row, ids=[1])
        writer.commit()
        pinned = simindex.open(index_path, refresh=False)
        following = simindex.open(index_path)
        writer.append(row, ids=[2])
        writer.commit()
        writer.compact(full=True)
        assert following.query(row, h=0).id.tolist() == [1, 2]
        assert pinned.query(row, h=0).id.tolist() == [1]
        assert len(pinned) == 1
        assert pinned.refresh()
        assert pinned.query(row, h=0).id.tolist() == [1, 2]
        assert not pinned.refresh()
        pinned.close()
        following.close()


def test_keys_that_come_while_a_reader_opens_are_read(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows say whether an index has keys; a reader has looked just before them."""
    opened = View.open

    def late(view: View) -> None:
        monkeypatch.setattr(View, "open", opened)
        writer.append(Batch(MARKER, keys=["a"]))
        writer.commit()
        opened(view)

    with simindex.open(index_path, "c") as writer:
        monkeypatch.setattr(View, "open", late)
        with simindex.open(index_path) as reader:
            assert reader.options == writer.options
            assert reader.query(MARKER, h=0).keys() == ["a"]


def test_tables_of_the_kernels_are_made_for_as_many_segments_as_a_commit_has(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they had to grow later, and there was no memory, nanobind would end the process."""
    options = IndexOptions(batch_rows=10, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        for _ in range(3):
            index.append(np.arange(10, dtype=np.uint64))
            index.commit()
        segments = index.stats().segments
    asked: list[int] = []
    expect = _native.expect_segments

    def expected(count: int) -> None:
        asked.append(count)
        expect(count)

    monkeypatch.setattr(_native, "expect_segments", expected)
    simindex.open(index_path).close()
    assert segments > 1 and asked == [segments]
