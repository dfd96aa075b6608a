"""What a repair brings back is what was committed, and what it does not bring back it says.

An index with several segments, waiting rows, deletions and a sample is copied, damaged in one way
and repaired. What the index held is kept in lists; which rows a damaged chunk reaches is worked out
from docs/format.md.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexExists,
    IndexLocked,
    IndexNotFound,
    SimindexError,
    StorageFailed,
    UnsupportedStorage,
)
from simindex.repair import lineage, survey
from simindex.repair.catalog_records import CatalogRecords
from simindex.repair.inventory import Inventory
from simindex.repair.lineage import Kin
from simindex.storage import location, segmentfiles
from simindex.storage.catalog import pages
from simindex.storage.catalog.environment import Transaction
from simindex.storage.catalog.records import Head
from simindex.storage.catalog.values import seal
from simindex.storage.files import disk
from simindex.storage.files.names import KEPT_PREFIX, REPAIRED_CATALOG

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

STRUCTURES = ("psm", "bphs:G=2,g=1", "issl:w=8")
OPTIONS = IndexOptions(batch_rows=32, min_merge=0, reservoir_rows=4, structures=STRUCTURES)

Rows = Counter[tuple[int, Any]]
"""(fingerprint, id or key) -> how often."""


@dataclass(frozen=True)
class Held:
    """An index and what it holds."""

    path: Path
    live: Rows
    sealed: Rows
    """Rows in segments, deleted ones included."""
    generation: int


def batch(values: Any, *, keyed: bool) -> Batch:
    values = np.asarray(values, np.uint64)
    weights = np.ones((len(values), 64), np.float32)
    if keyed:
        return Batch(values, keys=[f"k{value}" for value in values], weights=weights)
    return Batch(values, ids=values + np.uint64(7), weights=weights)


def rows_of(index: simindex.Index) -> Rows:
    found: Rows = Counter()
    for part in index.rows():
        names = part.keys if part.keys is not None else part.ids.tolist()
        found.update(zip(part.fingerprints.tolist(), names, strict=True))
    return found


def named(values: Any, *, keyed: bool) -> Rows:
    return Counter((value, f"k{value}" if keyed else value + 7) for value in values)


def write(path: Path, *, keyed: bool) -> Held:
    """Three segments, a pending run, and deletions of rows in both."""
    options = IndexOptions(
        batch_rows=32, min_merge=0, reservoir_rows=4, structures=STRUCTURES, keys=keyed,
        recipe=simindex.Recipe(),
    )
    sealed: list[int] = []
    with simindex.open(path, "c", options=options) as index:
        for first in (0, 1000, 2000):
            index.append(batch(range(first, first + 20), keyed=keyed))
            index.commit()
            sealed += range(first, first + 20)
        for gone in ([1, 1001], [2, 2002]):
            if keyed:
                index.delete(keys=[f"k{value}" for value in gone])
            else:
                index.delete(ids=[value + 7 for value in gone])
            index.commit()
        index.append(batch([3000], keyed=keyed))
        index.commit()
        index.commit()
        generation = index.generation
        live = rows_of(index)
        pending = index.stats().pending_rows
    assert live == named({*sealed, 3000} - {1, 2, 1001, 2002}, keyed=keyed)
    assert pending == 1
    return Held(path, live, named(sealed, keyed=keyed), generation)


@pytest.fixture(scope="module", params=[False, True], ids=["ids", "keys"])
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Held:
    return write(tmp_path_factory.mktemp("held") / "index", keyed=request.param)


@pytest.fixture(scope="module")
def unkeyed(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return write(tmp_path_factory.mktemp("unkeyed") / "index", keyed=False)


def fresh(held: Held, path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(held.path, path, ignore=shutil.ignore_patterns("lock.mdb"))
    return path


def segments(path: Path, suffix: str = ".rows") -> list[Path]:
    return sorted((path / "segments").glob(f"*{suffix}"))


def examine(path: Path) -> Rows:
    """The repaired index is whole, answers as brute force does, and a writer goes on with it."""
    with simindex.open(path) as index:
        found = rows_of(index)
        assert [f for f in index.check() if f.severity == "error"] == []
        generation, keyed = index.generation, index.options.keys is not False
        stored = np.array([value for value, _ in found], np.uint64)
        queries = np.array([0, 1001, 2003, 3000, 9999], np.uint64)
        for recall in (1.0,):
            matches = index.query(queries, h=2, recall=recall)
            expected = {
                (q, d, name) for q, row, d in oracle.matches(stored, queries, 2).tolist()
                for name in [[name for value, name in found][row]]
            }
            assert {(m.query, m.distance, m.key if keyed else m.id) for m in matches} == expected
    names = {p.name for p in segments(path)}
    assert all(int(name[:16], 16) <= generation for name in names)
    with simindex.open(path, "w") as index:
        index.append(batch(range(5000, 5050), keyed=keyed))
        index.commit()
        assert index.generation > generation
        index.append(batch([6000], keyed=keyed))
        name = {"keys": ["k6000"]} if keyed else {"ids": [6007]}
        index.commit()
        index.delete(**name)
        index.compact(full=True)
        assert rows_of(index) == found + named(range(5000, 5050), keyed=keyed)
        assert [f for f in index.check() if f.severity == "error"] == []
    return found


# -- nothing to do ---------------------------------------------------------------------------------


def test_a_whole_index_is_left_as_it_is(
    held: Held, tmp_path: Path, tree: Callable[[Path], Any]
) -> None:
    path = fresh(held, tmp_path / "index")
    simindex.open(path).close()
    before = tree(path)
    for apply in (False, True):
        report = simindex.repair(path, apply=apply)
        assert (report.needed, report.applied, report.steps, report.losses) == (
            False, False, (), ()
        )
        assert report.rows == held.live.total()
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}


def test_without_apply_nothing_changes(
    held: Held, tmp_path: Path, tree: Callable[[Path], Any]
) -> None:
    path = fresh(held, tmp_path / "index")
    (path / "catalog" / "data.mdb").unlink()
    segments(path, ".bphs")[0].write_bytes(b"x")
    before = tree(path)
    told = simindex.repair(path)
    assert told.needed
    assert told.kept is None
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}
    done = simindex.repair(path, apply=True)
    assert (done.findings, done.steps, done.losses, done.rows) == (
        told.findings, told.steps, told.losses, told.rows
    )
    with simindex.open(path) as index:
        assert len(index) == done.rows


def test_deleted_rows_are_not_counted(held: Held, tmp_path: Path) -> None:
    """Nor where they stand in a segment that is damaged elsewhere."""
    path = fresh(held, tmp_path / "index")
    segments(path, ".bphs")[0].unlink()
    file = segments(path)[0]
    file.write_bytes(file.read_bytes()[:-9])
    for apply in (False, True):
        assert simindex.repair(path, apply=apply).rows == held.live.total()
    with simindex.open(path) as index:
        assert len(index) == held.live.total()


# -- the catalog -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["directory", "file", "empty", "one page", "garbage"])
def test_rows_of_segments_survive_the_loss_of_the_catalog(
    held: Held, tmp_path: Path, how: str
) -> None:
    """Deleted rows are back, and waiting ones gone: the report says so."""
    path = fresh(held, tmp_path / "index")
    data = path / "catalog" / "data.mdb"
    if how == "directory":
        shutil.rmtree(path / "catalog")
    elif how == "file":
        data.unlink()
    else:
        content = {"empty": b"", "one page": bytes(4096), "garbage": os.urandom(40_000)}[how]
        data.write_bytes(content)
    report = simindex.repair(path, apply=True)
    assert any("deletions" in loss for loss in report.losses)
    assert any("recipe" in loss for loss in report.losses)
    assert report.rows == len(held.sealed)
    if how not in ("directory", "file"):
        assert report.kept is not None
        assert (Path(report.kept) / "catalog" / "data.mdb").exists()
    assert examine(path) == held.sealed
    with simindex.open(path) as index:
        assert index.generation > held.generation - 2


def damaged(data: bytes, kind: str, place: int, length: int) -> bytes:
    """A copy of a file, damaged in one way."""
    place %= max(1, len(data))
    changed = bytearray(data)
    if kind == "cut":
        return bytes(changed[:place])
    if kind == "page":
        place = place // 4096 * 4096
        changed[place : place + 4096] = bytes(len(changed[place : place + 4096]))
    elif kind == "swap":
        a, b = place // 4096 * 4096, length * 4096 % max(4096, len(data) // 4096 * 4096)
        changed[a : a + 4096], changed[b : b + 4096] = (
            changed[b : b + 4096], changed[a : a + 4096]
        )
    else:
        for at in range(place, min(len(changed), place + length)):
            changed[at] ^= 0x5A
    return bytes(changed)


KINDS = st.sampled_from(["cut", "page", "bytes", "swap"])


@pytest.mark.slow
@settings(max_examples=40)
@given(kind=KINDS, place=st.integers(0, 1 << 20), length=st.integers(1, 40))
def test_whatever_befalls_the_catalog_rows_of_segments_come_back(
    unkeyed: Held, tmp_path_factory: pytest.TempPathFactory, kind: str, place: int, length: int
) -> None:
    """Without a loss told, the index is what it was to the row; waiting rows are lost or back."""
    path = fresh(unkeyed, tmp_path_factory.mktemp("befallen") / "index")
    data = path / "catalog" / "data.mdb"
    data.write_bytes(damaged(data.read_bytes(), kind, place, length))
    report = simindex.repair(path, apply=True)
    with simindex.open(path) as index:
        found = rows_of(index)
        assert [f for f in index.check() if f.severity == "error"] == []
        assert index.generation >= unkeyed.generation or report.losses
    everything = unkeyed.sealed | unkeyed.live
    assert found <= everything
    assert unkeyed.live & unkeyed.sealed <= found
    if not report.losses:
        assert found == unkeyed.live
    assert report.lost_rows <= 1
    shutil.rmtree(path)


def test_pages_without_a_tree_still_give_waiting_rows_and_deletions(
    held: Held, tmp_path: Path
) -> None:
    """Both meta pages are gone, so nothing says where the tree begins."""
    path = fresh(held, tmp_path / "index")
    data = path / "catalog" / "data.mdb"
    data.write_bytes(bytes(8192) + data.read_bytes()[8192:])
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == held.live
    with simindex.open(path) as index:
        assert index.recipe == simindex.Recipe()
        assert index.stats().sample_rows == 4


def test_an_older_catalog_in_place_of_the_newer(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    keyed = next(iter(held.live))[1].__class__ is str
    older = (path / "catalog" / "data.mdb").read_bytes()
    with simindex.open(path, "w") as index:
        for first in (7000, 8000):
            index.append(batch(range(first, first + 20), keyed=keyed))
            index.commit()
    shutil.rmtree(path / "catalog")
    (path / "catalog").mkdir()
    (path / "catalog" / "data.mdb").write_bytes(older)
    with pytest.raises(CorruptFile, match="newer than the catalog"):
        simindex.open(path, "w")
    report = simindex.repair(path, apply=True)
    assert any("older" in finding.what for finding in report.findings)
    added = named([*range(7000, 7020), *range(8000, 8020)], keyed=keyed)
    assert examine(path) == held.live + added, "the waiting row, in both, is taken once"


@pytest.mark.parametrize("metas", ["whole", "gone"])
def test_holes_of_a_long_file_are_not_read(held: Held, tmp_path: Path, metas: str) -> None:
    path = fresh(held, tmp_path / "index")
    data = path / "catalog" / "data.mdb"
    with data.open("r+b") as file:
        if metas == "gone":
            file.write(bytes(8192))
        try:
            file.truncate(1 << 40)
        except OSError:
            pytest.skip("no file may be that long here")
    segments(path, ".bphs")[0].unlink()
    report = simindex.repair(path)
    assert report.needed
    assert report.lost_rows == 0
    assert report.rows == held.live.total()


META_BYTES = range(10, 152)
"""A meta page from its flags to the number of its commit, the last 8 bytes."""

LAST_PAGE = (136, 4096 + 136)
"""Where the meta pages name the last page in use."""


@pytest.fixture(scope="module", params=["segment", "run"])
def ending(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Held:
    """The last two commits seal rows, let rows wait, and delete some; this comes last."""
    path = tmp_path_factory.mktemp("ending") / "index"
    options = IndexOptions(batch_rows=16, min_merge=0, structures=("psm",), recipe=None)
    with simindex.open(path, "c", options=options) as index:
        index.append(batch(range(20), keyed=False))
        index.commit()
        parts = [range(1000, 1020), range(3000, 3003)]
        for gone, part in enumerate(parts if request.param == "run" else reversed(parts)):
            index.append(batch(part, keyed=False))
            index.delete(ids=[gone + 7])
            index.commit()
        return Held(path, rows_of(index), Counter(), index.generation)


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


@pytest.mark.slow
def test_no_bit_of_a_meta_page_costs_a_row_silently(
    ending: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a loss told, what the survey takes is what the last commit held; and none is told
    where a commit's number is damaged, since its free pages tell it, too."""
    def held(found: Inventory) -> object:
        assert found.tombstones is not None
        return (
            [file.name for file in found.segments], found.tombstones.encode(),
            [table.ids.tolist() for table, _ in found.runs], found.values,
        )

    read = cache(survey.SegmentRemains)
    monkeypatch.setattr(survey, "SegmentRemains", lambda path, progress: read(path))
    monkeypatch.setattr(pages, "sleep", lambda _: None)
    path = fresh(ending, tmp_path / "index")
    data = (path / "catalog" / "data.mdb").read_bytes()
    data = data[: 4096 * (1 + max(int.from_bytes(data[at : at + 8], "little") for at in LAST_PAGE))]
    whole = held(survey.survey(path))
    for at in [4096 * page + byte for page in (0, 1) for byte in META_BYTES]:
        for bit in range(8):
            (path / "catalog" / "data.mdb").write_bytes(flipped(data, at, bit))
            found = survey.survey(path)
            numbers = at % 4096 >= 144
            if not found.losses or numbers:
                assert (held(found), found.losses) == (whole, []), (at, bit)
            assert found.findings or not numbers


def test_a_damaged_commit_number_costs_no_row(ending: Held, tmp_path: Path) -> None:
    """Opening sees it, but where the last commit passes for the one before the last, and made the
    file no longer: so does a meta page that could not be written."""
    data = (ending.path / "catalog" / "data.mdb").read_bytes()
    numbers = [int.from_bytes(data[at : at + 8], "little") for at in (144, 4096 + 144)]
    longest = [int.from_bytes(data[at : at + 8], "little") for at in LAST_PAGE]
    newest = numbers.index(max(numbers))
    for at, bit in [(4096 * page + 144, bit) for page in (0, 1) for bit in range(8)]:
        path = fresh(ending, tmp_path / "index")
        (path / "catalog" / "data.mdb").write_bytes(flipped(data, at, bit))
        passes = at // 4096 == newest and bit == 1 and numbers[newest] & 2
        if not passes or longest[newest] > longest[1 - newest]:
            for mode in ("r", "w"):
                with pytest.raises(CorruptFile), simindex.open(path, mode):
                    pytest.fail(f"opened with bit {bit} of byte {at} flipped")
        report = simindex.repair(path, apply=True)
        assert (report.applied, report.losses, report.lost_rows) == (True, (), 0)
        with simindex.open(path) as index:
            assert rows_of(index) == ending.live, (at, bit)


def test_what_only_a_check_finds_is_repaired(unkeyed: Held, tmp_path: Path) -> None:
    """A page that is neither in use nor free. No finding says to run what is being run."""
    path = fresh(unkeyed, tmp_path / "index")
    data = path / "catalog" / "data.mdb"
    content = bytearray(data.read_bytes())
    for at in LAST_PAGE:
        content[at : at + 8] = (len(content) // 4096 - 1).to_bytes(8, "little")
    data.write_bytes(content)
    report = simindex.repair(path, apply=True)
    assert [f.what.count("simindex repair") for f in report.findings] == [0]
    assert "neither in use nor free" in report.findings[0].what
    assert report.losses == ()
    assert examine(path) == unkeyed.live


def test_a_file_of_the_next_commit_is_no_stray_where_the_newest_is_in_doubt(
    unkeyed: Held, tmp_path: Path
) -> None:
    """Both of the newest commit's numbers are damaged: that of its meta page, and that of its free
    pages."""
    path = fresh(unkeyed, tmp_path / "index")
    with simindex.open(path, "w") as index:
        index.append(batch(range(7000, 7040), keyed=False))
        index.commit()
    file = path / "catalog" / "data.mdb"
    data = file.read_bytes()
    numbers = [int.from_bytes(data[at : at + 8], "little") for at in (144, 4096 + 144)]
    newest = numbers.index(max(numbers))
    data = flipped(data, 4096 * newest + 144 + 5, 0)
    file.write_bytes(data.replace(
        max(numbers).to_bytes(8, "little"), (max(numbers) + 99).to_bytes(8, "little")
    ))
    report = simindex.repair(path, apply=True)
    assert report.losses
    with simindex.open(path) as index:
        assert named(range(7000, 7040), keyed=False) <= rows_of(index)


@pytest.mark.parametrize("what", ["FORMAT", "catalog/data.mdb", "segments"])
def test_opening_what_is_damaged_names_the_repair(
    held: Held, tmp_path: Path, what: str
) -> None:
    path = fresh(held, tmp_path / "index")
    for file in segments(path) if what == "segments" else [path / what]:
        file.write_bytes(file.read_bytes()[:5] * 3)
    with pytest.raises(CorruptFile, match="`simindex repair"):
        simindex.open(path)


@pytest.mark.parametrize("part", ["catalog", "segments"])
@pytest.mark.parametrize("kind", ["file", "fifo", "link"])
def test_what_stands_where_a_directory_should_is_told(
    held: Held, tmp_path: Path, part: str, kind: str
) -> None:
    place = fresh(held, tmp_path / "index") / part
    place.rename(tmp_path / part)
    if kind == "file":
        place.touch()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(tmp_path / part)
    with pytest.raises(CorruptFile, match=f"{part} is no directory. `simindex repair"):
        simindex.open(tmp_path / "index")


@pytest.mark.parametrize("what", ["FORMAT", "catalog"])
def test_a_part_of_another_index_is_found_out(held: Held, tmp_path: Path, what: str) -> None:
    path = fresh(held, tmp_path / "index")
    simindex.open(tmp_path / "other", "n", options=OPTIONS).close()
    if what == "FORMAT":
        shutil.copy(tmp_path / "other" / "FORMAT", path)
    else:
        shutil.copy(tmp_path / "other" / "catalog" / "data.mdb", path / "catalog")
    with pytest.raises(CorruptFile, match="another index"):
        simindex.open(path)
    report = simindex.repair(path, apply=True)
    assert any("another index" in finding.what for finding in report.findings)
    assert examine(path) == (held.live if what == "FORMAT" else held.sealed)


# -- segments --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["ids", "keys", "wide"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One segment of several chunks."""
    bits = 192 if request.param == "wide" else 64
    path = tmp_path_factory.mktemp("large") / "index"
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**64, (20_000, bits // 64), dtype=np.uint64)
    names = [f"page {i} {'x' * (i % 9)}" for i in range(len(words))]
    keyed = request.param == "keys"
    options = IndexOptions(
        bits=bits, keys=keyed, batch_rows=1 << 16, structures=("psm",), recipe=None
    )
    with simindex.open(path, "c", options=options) as index:
        index.append(Batch(words, keys=names) if keyed else Batch(words))
    return path


SECTIONS = np.dtype(
    [("kind", "<u4"), ("item", "<u4"), ("offset", "<u8"), ("count", "<u8"), ("chunks", "<u8")]
)


def reached(file: bytes, at: int) -> set[int]:
    """Numbers of the rows whose chunks the byte at a place of a `.rows` file stands in."""
    table = np.frombuffer(file, SECTIONS, int.from_bytes(file[28:32], "little"), 104)
    rows = int.from_bytes(file[72:80], "little")
    sections = {int(entry["kind"]): entry for entry in table}
    ends = None
    if 3 in sections:
        ends = np.frombuffer(file, "<i8", rows + 1, int(sections[3]["offset"]))
    for kind, entry in sections.items():
        start, size = int(entry["offset"]), int(entry["item"]) * int(entry["count"])
        if not start <= at < start + size or kind == 5:
            continue
        low = (at - start) // 65536 * 65536
        high = min(size, low + 65536)
        found = set()
        for row in range(rows):
            if kind == 4:
                assert ends is not None
                first, last = int(ends[row]), int(ends[row + 1])
            elif kind == 3:
                first, last = 8 * row, 8 * row + 16
            else:
                first, last = int(entry["item"]) * row, int(entry["item"]) * (row + 1)
            if first < high and last > low and first < last:
                found.add(row)
        return found
    return set()


@pytest.mark.slow
@settings(max_examples=8)
@given(share=st.floats(0.0045, 1), count=st.integers(1, 3), data=st.data())
def test_rows_that_no_damage_reaches_come_back(
    large: Path, tmp_path_factory: pytest.TempPathFactory, share: float, count: int, data: Any
) -> None:
    path = tmp_path_factory.mktemp("rows") / "index"
    shutil.copytree(large, path, ignore=shutil.ignore_patterns("lock.mdb"))
    with simindex.open(path) as index:
        before = [row for part in index.rows() for row in zip(
            map(tuple, part.rows.tolist()), part.keys or part.ids.tolist(), strict=True
        )]
    (file,) = segments(path)
    content = bytearray(file.read_bytes())
    lost: set[int] = set()
    for _ in range(count):
        at = 4096 + int(share * (len(content) - 4097))
        lost |= reached(bytes(content), at)
        content[at] ^= 1 << data.draw(st.integers(0, 7))
        share = share * 0.6 + 0.002
    file.write_bytes(content)
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == len(lost)
    assert (report.losses != ()) == bool(lost)
    with simindex.open(path) as index:
        after = [row for part in index.rows() for row in zip(
            map(tuple, part.rows.tolist()), part.keys or part.ids.tolist(), strict=True
        )]
        assert [f for f in index.check() if f.severity == "error"] == []
    assert after == [row for number, row in enumerate(before) if number not in lost]
    if report.needed:
        assert report.kept is not None
        assert (Path(report.kept) / "segments" / file.name).read_bytes() == content
    shutil.rmtree(path)


@pytest.mark.parametrize("catalog", [True, False], ids=["", "and no catalog"])
def test_a_header_that_is_damaged_costs_no_row(
    held: Held, tmp_path: Path, catalog: bool
) -> None:
    """The catalog, or a file beside the segment, tells what stood in it."""
    path = fresh(held, tmp_path / "index")
    file = segments(path)[0]
    file.write_bytes(os.urandom(4096) + file.read_bytes()[4096:])
    if not catalog:
        shutil.rmtree(path / "catalog")
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == (held.live if catalog else held.sealed)


@pytest.mark.parametrize("how", ["missing", "cut", "swapped"])
def test_a_lost_segment_is_told_with_its_rows(held: Held, tmp_path: Path, how: str) -> None:
    path = fresh(held, tmp_path / "index")
    file = segments(path)[1]
    if how == "missing":
        file.unlink()
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    else:
        file.write_bytes(segments(path)[0].read_bytes())
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 20
    keyed = next(iter(held.live))[1].__class__ is str
    assert examine(path) == held.live - named(range(1000, 1020), keyed=keyed)


def test_what_stands_beside_a_lost_segment_tells_of_its_rows(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    segments(path)[1].unlink()
    shutil.rmtree(path / "catalog")
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 20
    assert report.rows == 40


@pytest.mark.parametrize("suffix", [".bphs", ".issl"])
@pytest.mark.parametrize("how", ["missing", "damaged", "cut", "swapped"])
def test_what_follows_from_the_rows_is_built_anew(
    held: Held, tmp_path: Path, suffix: str, how: str
) -> None:
    path = fresh(held, tmp_path / "index")
    file, other = segments(path, suffix)[:2]
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    elif how == "swapped":
        file.write_bytes(other.read_bytes())
    else:
        file.write_bytes(content[:4097] + b"?" + content[4098:] if how == "damaged" else b"")
    report = simindex.repair(path, apply=True)
    assert (report.losses, report.lost_rows) == ((), 0)
    assert examine(path) == held.live


# -- FORMAT ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["missing", "empty", "bit", "version"])
def test_format_is_written_again(held: Held, tmp_path: Path, how: str) -> None:
    path = fresh(held, tmp_path / "index")
    file = path / "FORMAT"
    content = file.read_bytes()
    place = 12 if how == "version" else 40
    file.write_bytes(content[:place] + b"\x07" + content[place + 1 :] if how != "empty" else b"")
    if how == "missing":
        file.unlink()
        with pytest.raises(IndexExists, match="simindex repair"):
            simindex.open(path, "c")
        with pytest.raises(IndexNotFound, match="simindex repair"):
            simindex.open(path)
    report = simindex.repair(path, apply=True)
    assert (report.losses, report.lost_rows) == ((), 0)
    assert file.read_bytes() == content
    assert examine(path) == held.live


def with_field(content: bytes, at: int, value: bytes, size: int) -> bytes:
    """A header with another field, and the checksum of it."""
    content = content[:at] + value + content[at + len(value) :]
    crc = disk._native.crc32c(np.frombuffer(content[: size - 4], np.uint8))
    return content[: size - 4] + crc.to_bytes(4, "little") + content[size:]


@pytest.mark.parametrize(("major", "error"), [(2, FormatTooNew), (0, FormatTooOld)])
@pytest.mark.parametrize("apply", [False, True])
def test_a_format_of_another_version_is_refused(
    held: Held, tmp_path: Path, tree: Callable[[Path], Any], apply: bool, major: int,
    error: type[SimindexError],
) -> None:
    path = fresh(held, tmp_path / "index")
    file = path / "FORMAT"
    file.write_bytes(with_field(file.read_bytes(), 12, bytes([major, 0]), 64))
    shutil.rmtree(path / "catalog")
    before = tree(path)
    with pytest.raises(error):
        simindex.repair(path, apply=apply)
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}


@pytest.mark.parametrize("what", ["FORMAT", "segment"])
def test_what_another_version_may_not_write_is_told_but_not_repaired(
    held: Held, tmp_path: Path, tree: Callable[[Path], Any], what: str
) -> None:
    """A read-compatible feature that is not known forbids writing."""
    path = fresh(held, tmp_path / "index")
    file, size = (path / "FORMAT", 64) if what == "FORMAT" else (segments(path)[0], 4096)
    file.write_bytes(with_field(file.read_bytes(), 20, b"\x08", size))
    segments(path, ".bphs")[1].unlink()
    before = tree(path)
    assert simindex.repair(path).needed
    with pytest.raises(FormatTooNew, match="can read but not write"):
        simindex.repair(path, apply=True)
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}


def test_a_newer_segment_is_refused(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    file = segments(path)[0]
    file.write_bytes(with_field(file.read_bytes(), 12, b"\x02\0", 4096))
    with pytest.raises(FormatTooNew):
        simindex.repair(path, apply=True)


def test_golden_index_is_repaired(tmp_path: Path) -> None:
    """Its segment was written before segments told what they were merged from."""
    golden = Path(__file__).parents[1] / "golden" / "index-1.0"
    path = Path(shutil.copytree(golden, tmp_path / "index"))
    assert not simindex.repair(path).needed
    shutil.rmtree(path / "catalog")
    (path / "FORMAT").unlink()
    assert simindex.repair(path, apply=True).rows == 9
    assert (path / "FORMAT").read_bytes() == (golden / "FORMAT").read_bytes()
    with simindex.open(path) as index:
        assert index.options.keys == "str"
        assert {name for _, name in rows_of(index)} == {f"k{n}" for n in range(9)}


# -- something else in the place of a file ---------------------------------------------------------


def put_aside(path: Path) -> Path:
    """Moves what is at a path next to it, and returns the new place."""
    aside = path.with_name(f"{path.name}-aside")
    if path.exists():
        path.rename(aside)
    return aside


def a_link(path: Path) -> None:
    path.symlink_to(put_aside(path).name)


def a_directory(path: Path) -> None:
    put_aside(path)
    path.mkdir()


def a_file(path: Path) -> None:
    put_aside(path)
    path.write_bytes(b"x")


def a_fifo(path: Path) -> None:
    put_aside(path)
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    put_aside(path)
    os.mknod(path, stat.S_IFSOCK | 0o600)


REFUSED = [
    *(("catalog/data.mdb", a_link), ("catalog", a_link), ("segments", a_link)),
    *(("LOCK", how) for how in (a_link, a_directory, a_fifo, a_socket)),
]


@pytest.mark.parametrize(("what", "how"), REFUSED)
@pytest.mark.parametrize("apply", [False, True])
def test_what_is_in_the_way_is_named_with_its_remedy(
    unkeyed: Held, tmp_path: Path, apply: bool, what: str, how: Callable[[Path], None]
) -> None:
    """What a link leads to may be whole, so it is not put aside."""
    path = fresh(unkeyed, tmp_path / "index")
    how(path / what)
    with pytest.raises(CorruptFile, match=rf"{what} is .*remove it") as caught:
        simindex.repair(path, apply=apply)
    assert caught.value.data["path"] == str(path / what)
    (path / what).rmdir() if how is a_directory else (path / what).unlink()
    aside = put_aside(path / what)
    if aside.exists():
        aside.rename(path / what)
    assert not simindex.repair(path, apply=apply).needed


REPLACED = [
    *(("catalog/data.mdb", how) for how in (a_directory, a_fifo, a_socket)),
    *(("catalog", how) for how in (a_file, a_fifo, a_socket)),
    *(("segments", how) for how in (a_file, a_fifo, a_socket)),
    *(("FORMAT", how) for how in (a_link, a_directory, a_fifo, a_socket)),
]


@pytest.mark.parametrize(("what", "how"), REPLACED)
def test_what_has_the_name_of_a_file_is_put_aside(
    unkeyed: Held, tmp_path: Path, what: str, how: Callable[[Path], None]
) -> None:
    """The file counts as lost."""
    path = fresh(unkeyed, tmp_path / "index")
    how(path / what)
    kind = stat.S_IFMT((path / what).lstat().st_mode)
    told = simindex.repair(path)
    done = simindex.repair(path, apply=True)
    assert (done.findings, done.losses, done.rows) == (told.findings, told.losses, told.rows)
    kept = Path(str(done.kept)) / what
    assert stat.S_IFMT(kept.lstat().st_mode) == kind
    with simindex.open(path, "w") as index:
        assert len(index) == done.rows
        assert rows_of(index) == (
            unkeyed.live if what == "FORMAT" else
            named([3000], keyed=False) if what == "segments" else unkeyed.sealed
        )
        assert [f for f in index.check() if f.severity == "error"] == []


@pytest.mark.parametrize("how", [a_link, a_directory, a_fifo, a_socket])
@pytest.mark.parametrize("more", [False, True], ids=["", "and more damage"])
def test_a_lock_file_that_is_none_costs_no_catalog(
    unkeyed: Held, tmp_path: Path, how: Callable[[Path], None], more: bool
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    how(path / "catalog" / "lock.mdb")
    if more:
        segments(path, ".bphs")[1].unlink()
    catalog = (path / "catalog" / "data.mdb").stat().st_ino
    told = simindex.repair(path)
    done = simindex.repair(path, apply=True)
    assert (done.findings, done.steps, done.losses) == (told.findings, told.steps, ())
    kept = Path(str(done.kept)) / ("catalog/lock.mdb" if more else "lock.mdb")
    assert not stat.S_ISREG(kept.lstat().st_mode)
    assert ((path / "catalog" / "data.mdb").stat().st_ino == catalog) is not more
    assert examine(path) == unkeyed.live
    assert not simindex.repair(path).needed


@pytest.mark.parametrize("what", ["catalog/data.mdb", "segments"])
def test_what_may_not_be_read_is_not_lost(
    unkeyed: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str,
    tree: Callable[[Path], Any],
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    file = segments(path)[0] if what == "segments" else path / what
    segments(path, ".bphs")[1].unlink()
    real = os.open

    def refused(name: Any, *arguments: Any, **more: Any) -> int:
        if str(name) == str(file):
            raise PermissionError(errno.EACCES, "Permission denied", str(name))
        return real(name, *arguments, **more)

    before = tree(path)
    monkeypatch.setattr(os, "open", refused)
    for apply in (False, True):
        with pytest.raises(StorageFailed, match=r"Permission denied.*make it readable"):
            simindex.repair(path, apply=apply)
    monkeypatch.undo()
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}


# -- what stands side by side after a crash --------------------------------------------------------


@pytest.mark.parametrize("named_inputs", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("catalog", ["kept", "lost", "before"])
def test_a_merged_segment_and_its_inputs_are_not_both_taken(
    unkeyed: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_inputs: bool,
    catalog: str,
) -> None:
    """Also where the merged one was written by a version that did not name its inputs."""
    path = fresh(unkeyed, tmp_path / "index")
    if not named_inputs:
        pack = segmentfiles.describe
        monkeypatch.setattr(
            segmentfiles, "describe", lambda options, inputs, **more: pack(options, (), **more)
        )
    inputs = {p: p.read_bytes() for p in (path / "segments").iterdir()}
    before = (path / "catalog" / "data.mdb").read_bytes()
    with simindex.open(path, "w") as index:
        index.compact(full=True)
        assert rows_of(index) == unkeyed.live
    for file, content in inputs.items():
        file.write_bytes(content)
    if catalog != "kept":
        shutil.rmtree(path / "catalog")
        (path / "catalog").mkdir()
    if catalog == "before":
        (path / "catalog" / "data.mdb").write_bytes(before)
    simindex.repair(path, apply=True)
    assert examine(path) == unkeyed.live


def test_a_merge_stands_in_for_an_input_that_is_damaged(unkeyed: Held, tmp_path: Path) -> None:
    """It was written, not installed, when the process ended."""
    path = fresh(unkeyed, tmp_path / "index")
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != "LOCK"}
    with simindex.open(path, "w") as index:
        index.compact(full=True)
    merged = {p: p.read_bytes() for p in (path / "segments").iterdir() if p not in before}
    fresh(unkeyed, path)
    for file, content in merged.items():
        file.write_bytes(content)
    file = segments(unkeyed.path)[0]
    (path / "segments" / file.name).write_bytes(file.read_bytes()[:-200])
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == unkeyed.live


def test_which_files_are_the_index() -> None:
    a, b = Kin("a", 2, 2, True), Kin("b", 3, 3, True)
    m = Kin("m", 4, 3, True, ("a", "b"))
    n = Kin("n", 6, 5, True, ("m", "c"))
    files = {kin.name: kin for kin in (a, b, m)}
    assert lineage.as_found(files) == {"m"}
    assert lineage.as_committed({"a", "b"}, files) == {"a", "b"}
    assert lineage.as_found({**files, "n": n}) == {"n"}, "also what its inputs were made of"
    assert lineage.as_found({"a": a, "m": m}) == {"m"}
    hurt = Kin("m", 4, 3, False, ("a", "b"))
    assert lineage.as_found({**files, "m": hurt}) == {"a", "b"}
    assert lineage.as_found({"a": a, "m": hurt}) == {"m"}
    assert lineage.as_committed({"m"}, {**files, "m": hurt}) == {"a", "b"}
    assert lineage.as_committed({"a", "b"}, {**files, "b": Kin("b", 3, 3, False)}) == {"m"}
    assert lineage.as_found(files, {"b"}, 3) == {"m"}
    assert lineage.as_found({"a": a, "b": b}, {"b"}, 3) == {"b"}, "a was gone by then"
    again = Kin("s", 2, 2, True, ("a",), salvaged=True)
    assert lineage.as_found({"a": Kin("a", 2, 2, False), "s": again}) == {"a"}
    assert lineage.as_found({"s": again}) == {"s"}
    circle = {"x": Kin("x", 2, 1, True, ("y",)), "y": Kin("y", 2, 1, True, ("x", "y"))}
    assert len(lineage.as_found(circle)) <= 1


# -- interruption ----------------------------------------------------------------------------------


@contextmanager
def counted(act: Callable[[int], None]) -> Iterator[None]:
    """Calls `act` with a running number ahead of each step that changes the disk."""
    number = 0

    def wrapped(real: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal number
            number += 1
            act(number)
            return real(*arguments, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "link"):
            patch.setattr(disk.os, name, wrapped(getattr(os, name)))
        for name in ("rename", "unlink", "mkdir", "rmdir"):
            patch.setattr(Path, name, wrapped(getattr(Path, name)))
        patch.setattr(Transaction, "commit", wrapped(Transaction.commit))
        yield


def hurt(path: Path) -> None:
    """Damages FORMAT, the catalog's tree, a segment and tables beside another."""
    (path / "FORMAT").unlink()
    data = path / "catalog" / "data.mdb"
    content = data.read_bytes()
    data.write_bytes(content[:100] + b"\xff" * 40 + content[140:])
    file = segments(path)[0]
    file.write_bytes(file.read_bytes()[:-10] + b"0123456789")
    segments(path, ".bphs")[2].write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("opened", [False, True], ids=["", "and a writer comes by"])
def test_a_repair_that_dies_at_any_step_can_be_run_again(
    unkeyed: Held, tmp_path: Path, opened: bool
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    hurt(path)
    steps: list[int] = []
    with counted(steps.append):
        report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == unkeyed.live
    assert len(steps) > 20
    for stop in steps[:: 3 if opened else 1]:
        path = fresh(unkeyed, tmp_path / "index")
        hurt(path)
        damaged_bytes = segments(path)[0].read_bytes()
        pid = os.fork()
        if pid == 0:
            def die(number: int, stop: int = stop) -> None:
                if number == stop:
                    os._exit(9)

            with counted(die):
                simindex.repair(path, apply=True)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, stop
        if opened:
            with suppress(SimindexError):
                simindex.open(path, "w").close()
        simindex.repair(path, apply=True)
        assert not list(path.glob(f"{REPAIRED_CATALOG}*"))
        with simindex.open(path) as index:
            assert rows_of(index) == unkeyed.live, stop
            assert [f for f in index.check() if f.severity == "error"] == [], stop
        kept = [p.read_bytes() for p in path.glob(f"{KEPT_PREFIX}*/segments/*.rows")]
        assert damaged_bytes in kept, (stop, "what was damaged is kept")


def test_a_full_disk_leaves_the_index_as_it_was(
    unkeyed: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Callable[[Path], Any]
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    hurt(path)
    before = tree(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.os, "posix_fallocate", full)
    with pytest.raises(simindex.StorageFull):
        simindex.repair(path, apply=True)
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}
    monkeypatch.undo()
    simindex.repair(path, apply=True)
    assert examine(path) == unkeyed.live


# -- what is refused, and what is left alone -------------------------------------------------------


def test_a_writer_keeps_a_repair_out(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    with simindex.open(path, "w"):
        for apply in (False, True):
            with pytest.raises(IndexLocked):
                simindex.repair(path, apply=apply)


def test_a_file_system_without_links_keeps_what_was_damaged(
    unkeyed: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    hurt(path)
    content = segments(path)[0].read_bytes()

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(disk.os, "link", refused)
    report = simindex.repair(path, apply=True)
    assert content in [p.read_bytes() for p in segments(Path(str(report.kept)))]
    assert examine(path) == unkeyed.live


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound):
        simindex.repair(tmp_path / "none")
    with pytest.raises(IndexNotFound):
        simindex.repair(tmp_path)
    (tmp_path / "catalog").mkdir()
    with pytest.raises(IndexNotFound):
        simindex.repair(tmp_path)
    (tmp_path / "catalog" / "data.mdb").touch()
    with pytest.raises(CorruptFile, match="build the index anew"):
        simindex.repair(tmp_path, apply=True)


def test_what_was_kept_is_left_by_everyone(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    (path / "catalog" / "data.mdb").write_bytes(b"")
    first = simindex.repair(path, apply=True)
    segments(path)[0].write_bytes(b"")
    second = simindex.repair(path, apply=True)
    assert [Path(str(r.kept)).name for r in (first, second)] == ["damaged-1", "damaged-2"]
    with simindex.open(path, "w") as index:
        assert [(f.severity, Path(f.path).name) for f in index.check()] == [
            ("note", "damaged-1"), ("note", "damaged-2")
        ]
    simindex.open(path, "n", overwrite=True, options=OPTIONS).close()
    assert (path / "damaged-1" / "catalog" / "data.mdb").exists()
    assert simindex.repair(path).needed is False


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.01, 0.2, 0.9]))
def test_files_of_anything_give_typed_errors(
    unkeyed: Held, tmp_path_factory: pytest.TempPathFactory, seed: int, share: float
) -> None:
    """All files are overwritten in many places at once, meta pages and headers, too."""
    path = fresh(unkeyed, tmp_path_factory.mktemp("anything") / "index")
    rng = np.random.default_rng(seed)
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.name != "LOCK":
            content = np.frombuffer(file.read_bytes(), np.uint8).copy()
            places = rng.integers(0, len(content), 1 + int(share * len(content) / 64))
            content[places] = rng.integers(0, 256, len(places))
            file.write_bytes(content.tobytes())
    try:
        simindex.repair(path, apply=True)
        with simindex.open(path) as index:
            assert rows_of(index) <= unkeyed.sealed | unkeyed.live
            assert [f for f in index.check() if f.severity == "error"] == []
    except SimindexError:
        pass
    shutil.rmtree(path)


def test_repair_refuses_a_network_file_system(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes as a writer does, so not where locks and maps cannot be trusted."""
    simindex.open(index_path, "c").close()
    (index_path / "FORMAT").unlink()
    monkeypatch.setattr(location, "file_system_kind", lambda path: "nfs4")
    with pytest.raises(UnsupportedStorage, match="nfs4"):
        simindex.repair(index_path, apply=True)
    assert not (index_path / "FORMAT").exists()


def test_repair_whose_commit_fails_removes_what_it_had_written(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Callable[[Path], Any]
) -> None:
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=32, min_merge=0)) as index:
        index.append(np.arange(20, dtype=np.uint64))
        index.commit()
    for file in segments(index_path, ".bphs"):
        file.write_bytes(b"")
    (index_path / "FORMAT").unlink()
    before = tree(index_path)

    def full(self: Transaction) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Transaction, "commit", full)
    with pytest.raises(SimindexError):
        simindex.repair(index_path, apply=True)
    assert {name for name in tree(index_path) if name != "LOCK"} == before.keys() - {"LOCK"}


def test_segment_of_another_index_is_none_though_its_header_is_gone(tmp_path: Path) -> None:
    """All that stands beside it tells what its header held."""
    mine, other = (write(tmp_path / name, keyed=False) for name in ("mine", "other"))
    file = segments(other.path)[0]
    for path in (file, *segments(other.path, ".bphs"), *segments(other.path, ".issl")):
        if path.name.startswith(file.name[:25]):
            (mine.path / "segments" / path.name).write_bytes(path.read_bytes())
    foreign = mine.path / "segments" / file.name
    foreign.write_bytes(bytes(4096) + foreign.read_bytes()[4096:])
    (mine.path / "catalog" / "data.mdb").unlink()
    simindex.repair(mine.path, apply=True)
    assert examine(mine.path) == mine.sealed


def test_copy_of_a_segment_under_another_name_is_no_second_one(tmp_path: Path) -> None:
    held = write(tmp_path / "index", keyed=False)
    file = segments(held.path)[0]
    (file.parent / f"{file.name[:17]}00000000.rows").write_bytes(file.read_bytes())
    (held.path / "catalog" / "data.mdb").unlink()
    simindex.repair(held.path, apply=True)
    assert examine(held.path) == held.sealed


def test_key_that_looks_like_a_page_is_no_page(tmp_path: Path) -> None:
    """A document's key that holds a page with a head, for the very place where it is stored."""

    def data_with(name: str, key: bytes) -> Path:
        options = IndexOptions(keys="bytes", batch_rows=1 << 10)
        with simindex.open(tmp_path / name, "c", options=options) as index:
            index.append(Batch(np.zeros(1, np.uint64), keys=[key]))
        return tmp_path / name / "catalog" / "data.mdb"

    marker = bytes(range(1, 251)) * 80
    at = data_with("first", marker).read_bytes().index(marker)
    number = -(-at // 4096)
    value = seal("head", b"head", Head(999, 0, 0).encode())
    node = struct.pack("<HHHH", len(value), 0, 0, 4) + b"head" + value
    node += bytes(len(node) % 2)
    page = bytearray(4096)
    struct.pack_into("<QHHHHH", page, 0, number, 0, 2, 18, 4096 - len(node), 4096 - len(node))
    page[-len(node) :] = node
    key = bytes(number * 4096 - at) + bytes(page)
    data = data_with("second", key.ljust(len(marker), b"\0"))
    content = data.read_bytes()
    assert content[number * 4096 :][:4096] == page
    data.write_bytes(bytes(8192) + content[8192:])  # without meta pages, every page is looked at
    records = CatalogRecords.read(data)
    assert records is not None
    with closing(records):
        assert [head.generation for head, _ in records.heads()] == [2, 1]
