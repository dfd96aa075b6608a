"""A long run of tombstones comes back from its file as it was, and no damaged byte is believed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import damaged
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability.forgery import Forged, forge_head, forged

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile
from simindex.storage import segment_files
from simindex.storage.tables import deletion_file
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import SegmentFolder
from simindex.storage.tables.row_names import Names
from simindex.storage.tables.table import Table
from simindex.storage.tables.tombstones import Tombstones, from_deletions
from simindex.writing import policy

SECRET = bytes(range(16))

LONG = 4
"""Tombstones of a run that is a file, in the indexes here."""


def run_of(numbers: list[int], *, keyed: bool, commit: int = 3) -> Tombstones:
    if keyed:
        names = Names.of_keys(KeyHeap.of([f"k{number}" for number in numbers]), SECRET)
    else:
        names = Names.of_ids(np.array(numbers, np.uint64))
    commits = [commit + place % 3 for place in range(len(numbers))]
    each = [
        Names(names.id[i : i + 1], names.second[i : i + 1],
              None if names.keys is None else names.keys.slice(i, i + 1))
        for i in range(len(numbers))
    ]
    return from_deletions(each, commits, keyed=keyed)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 40), min_size=1, max_size=30), keyed=st.booleans(),
    since=st.integers(0, 6), verify=st.sampled_from(["lazy", "open", "never"]),
    horizon=st.integers(0, 6),
)
@pytest.mark.slow
def test_a_run_in_a_file_does_what_it_does_in_memory(
    place: Path, numbers: list[int], keyed: bool, since: int, verify: Any, horizon: int,
) -> None:
    folder = SegmentFolder(place, bytes(16), 64, keyed, verify)
    run = run_of(numbers, keyed=keyed)
    file = deletion_file.write(folder, run, 7)
    assert deletion_file.NAME.fullmatch(file.name) and file.name.startswith(f"{7:016x}-")
    assert (place / file.name).stat().st_size == file.file_bytes
    found = deletion_file.open_run(
        folder, file.name, rows=file.rows, newest=file.newest,
        footer_checksum=file.footer_checksum,
    )
    assert (len(found), found.newest, found.keyed) == (len(run), run.newest, keyed)
    assert deletion_file.disorder(found) is None
    assert found.encode() == run.encode()
    assert found.since(since).encode() == run.since(since).encode()
    other = run_of([1, 2], keyed=keyed, commit=9)
    both = Tombstones.merged([found, other], keyed=keyed)
    assert both.encode() == Tombstones.merged([run, other], keyed=keyed).encode()
    names = range(45)
    keys = KeyHeap.of([f"k{number}" for number in names]) if keyed else None
    ids = np.arange(45, dtype=np.uint64) if keys is None else keys.hashes(SECRET)[:, 0].copy()
    rows, horizons = np.arange(45), np.full(1, horizon, np.uint64)
    assert found.killed(ids, keys, rows, horizons).tolist() == (
        run.killed(ids, keys, rows, horizons).tolist()
    )
    assert found.misplaced(SECRET) == 0
    (place / file.name).unlink()


# -- in an index ----------------------------------------------------------------------------------


def filled(path: Path, *, keyed: bool, min_merge: int = 0) -> dict[str, Any]:
    """Rows 0 to 39 in a segment; 0 to 5 are deleted by a file, 6 by the catalog."""
    options = IndexOptions(batch_rows=8 * LONG, min_merge=min_merge, keys=keyed)
    assert options.seal_rows == LONG
    with simindex.open(path, "c", options=options) as index:
        index.append(batch(range(40), keyed=keyed))
        index.commit()
        for some in (range(6), range(6, 7)):
            index.delete(**named(some, keyed=keyed))
            index.commit()
        first, second = index._current().head.tombstones
        assert deletion_file.NAME.fullmatch(first.file)
        assert second.file == ""
    return {"file": first.file}


def named(numbers: Any, *, keyed: bool) -> dict[str, Any]:
    return {"keys": [f"k{n}" for n in numbers]} if keyed else {"ids": list(numbers)}


def batch(numbers: Any, *, keyed: bool) -> Batch:
    return Batch(np.array(numbers, np.uint64), **named(numbers, keyed=keyed))


def held(index: simindex.Index) -> list[int]:
    return sorted(number for part in index.rows() for number in part.fingerprints.tolist())


def dead_files(path: Path) -> set[str]:
    return {file.name for file in damaged.files(path, ".dead")}


@pytest.mark.parametrize("keyed", [False, True], ids=["ids", "keys"])
def test_a_long_run_of_deletions_is_a_file(tmp_path: Path, keyed: bool) -> None:
    path = tmp_path / "index"
    name = filled(path, keyed=keyed)["file"]
    assert dead_files(path) == {name}
    with simindex.open(path) as index:
        assert held(index) == list(range(7, 40))
        assert index.check() == []
        assert (index.stats().tombstones, index.stats().dead_rows) == (7, 7)
        assert index.query(np.array([3, 9], np.uint64), h=0).query.tolist() == [1]
    with simindex.open(path, "w") as index, simindex.open(path, refresh=False) as reader:
        index.compact(full=True)
        assert dead_files(path) == set()
        assert held(index) == held(reader) == list(range(7, 40)), "a reader keeps what it mapped"
        assert index.stats().tombstones == 0


@pytest.mark.parametrize("keyed", [False, True], ids=["ids", "keys"])
@pytest.mark.parametrize("how", ["behind", "compact"])
@pytest.mark.slow
def test_many_files_are_merged(tmp_path: Path, keyed: bool, how: str) -> None:
    """By threads, or by `compact`; those that are settled are dropped on the way."""
    path, left = tmp_path / "index", set(range(2000, 2600)) | set(range(40))
    options = IndexOptions(batch_rows=8 * LONG, min_merge=3 if how == "behind" else 0, keys=keyed)
    with simindex.open(path, "c", options=options) as index:
        index.append(batch(range(40), keyed=keyed))
        index.append(batch(range(2000, 2600), keyed=keyed))
        index.commit()
        for first in range(2000, 2200, 5):
            gone = range(first, first + 5)
            index.delete(**named(gone, keyed=keyed))
            left -= set(gone)
            index.commit()
            assert held(index) == sorted(left)
        if how == "compact":
            assert len(dead_files(path)) == 40
            index.compact()
    with simindex.open(path, "w") as index:
        runs = index._current().head.tombstones
        assert len(runs) <= 8
        assert policy.pick([run.rows for run in runs], 3 if how == "behind" else 8) == []
        assert dead_files(path) == {run.file for run in runs if run.file}
        assert held(index) == sorted(left)
        assert index.check() == []


def test_long_keys_make_a_file_of_few_deletions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_files, "LONG_BYTES", 900)
    path = tmp_path / "index"
    with simindex.open(path, "c", options=IndexOptions(keys=True)) as index:
        index.append(Batch(np.arange(3, dtype=np.uint64), keys=["a", "b" * 900, "c"]))
        index.commit()
        for key, files in (("a", 0), ("b" * 900, 1)):
            index.delete(keys=[key])
            index.commit()
            assert len(dead_files(path)) == files
        assert held(index) == [2]


@pytest.fixture(params=[False, True], ids=["ids", "keys"])
def index_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, bool]]:
    path = tmp_path / "index"
    filled(path, keyed=request.param)
    yield path, request.param


def test_a_file_of_no_commit_is_removed_by_the_next_writer(index_path: tuple[Path, bool]) -> None:
    path, _ = index_path
    (name,) = dead_files(path)
    stray = name[:17] + "00000000.dead"
    shutil.copy(path / "segments" / name, path / "segments" / stray)
    with simindex.open(path) as index:
        assert [(f.severity, Path(f.path).name) for f in index.check()] == [("note", stray)]
    with simindex.open(path, "w") as index:
        assert index.check() == []
    assert dead_files(path) == {name}


@pytest.mark.parametrize(
    "how", ["magic", "header", "footer", "checksums", "cut", "empty", "missing"]
)
def test_a_file_that_is_not_the_one_named_is_refused(
    index_path: tuple[Path, bool], how: str
) -> None:
    """Never are its deletions left out: a deleted row would be back."""
    path, _ = index_path
    (name,) = dead_files(path)
    damaged.FOUND_WHEN_OPENED[how](path / "segments" / name)
    with pytest.raises(CorruptFile, match=name):
        simindex.open(path)
    report = simindex.repair(path, apply=True)
    assert any("6 deletions" in loss for loss in report.losses)
    assert any(name in finding.path for finding in report.findings)
    assert report.remaining == ()
    with simindex.open(path) as index:
        assert held(index) == [*range(6), *range(7, 40)]


def test_each_byte_of_a_section_is_verified_before_it_is_used(
    index_path: tuple[Path, bool]
) -> None:
    path, _ = index_path
    (name,) = dead_files(path)
    file = path / "segments" / name
    whole = file.read_bytes()
    for start in range(4096, Forged(file).checksum_offset, 4096):
        file.write_bytes(whole[:start] + bytes([whole[start] ^ 1]) + whole[start + 1 :])
        with pytest.raises(CorruptFile, match=name), simindex.open(path) as index:
            with suppress(CorruptFile):
                assert held(index) == list(range(7, 40)), "right or refused"
            with suppress(CorruptFile):
                assert len(index) == 33
            with suppress(CorruptFile):
                assert index.query(np.array([3, 9], np.uint64), h=0).query.tolist() == [1]
            index._current().tombstones.runs[0]._read()
        with simindex.open(path, verify="never") as index:
            assert any(name in f.path for f in index.check() if f.severity == "error")
    file.write_bytes(whole)
    with simindex.open(path) as index:
        assert held(index) == list(range(7, 40))


def test_what_nobody_wrote_is_found_by_check(index_path: tuple[Path, bool]) -> None:
    """Under checksums that hold: ids out of order, a commit that is not there yet."""
    path, _ = index_path
    (name,) = dead_files(path)
    file = path / "segments" / name
    for kind, value in ((2, None), (7, 99)):
        with forged(path, file) as made:
            section = made.section(kind, "<u8")
            section[:] = section[::-1].copy() if value is None else value
        with simindex.open(path) as index:
            held(index)
            assert [f.severity for f in index.check() if name in f.path] == ["error"]
        report = simindex.repair(path, apply=True)
        assert report.remaining == () and report.losses
        shutil.rmtree(path)
        filled(path, keyed=index_path[1])
        (name,) = dead_files(path)
        file = path / "segments" / name


@pytest.mark.parametrize("run", [
    [1, 2, 3, 4, "0000000000000003-0000000a.rows"], [1, 2, 3, 4, "../x.dead"], [1, 2, 3, 4, 5],
    [1, 2, 3, "0000000000000003-0000000a.dead"], [1, 2, 3], [1, 2, 3, 4, "", ""],
])
def test_a_head_that_names_no_file_of_tombstones_is_refused(
    index_path: tuple[Path, bool], run: list[Any]
) -> None:
    path, _ = index_path

    def change(head: list[Any]) -> list[Any]:
        head[4] = [run]
        return head

    forge_head(path, change)
    with pytest.raises(CorruptFile):
        simindex.open(path)


@pytest.mark.slow
def test_a_table_is_looked_up_in_the_file(tmp_path: Path) -> None:
    """No more of it than the rows that it deletes need, once its ids are verified."""
    folder = SegmentFolder(tmp_path, bytes(16), 64, keyed=False)
    run = run_of(list(range(100_000)), keyed=False)
    file = deletion_file.write(folder, run, 7)
    found = deletion_file.open_run(
        folder, file.name, rows=file.rows, newest=file.newest,
        footer_checksum=file.footer_checksum,
    )
    ids = np.array([5, 200_000], np.uint64)
    table = Table("t", np.zeros((2, 1), np.uint64), ids, None, horizon=0, header_bits=0)
    assert Deletions([found]).dead(table, ids, np.arange(2)).tolist() == [True, False]
