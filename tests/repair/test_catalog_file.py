"""Damage to the catalog's file costs no row silently: to its meta pages, its tree, its length."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repairable import LAST_PAGE, Held, batch, flipped, fresh, rows_of, segments

import simindex
from simindex import IndexOptions
from simindex.errors import (
    CorruptFile,
)
from simindex.repair import survey
from simindex.repair.inventory import Inventory
from simindex.storage.catalog import pages


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
        for bit in range(at % 4, 8, 4):
            (path / "catalog" / "data.mdb").write_bytes(flipped(data, at, bit))
            found = survey.survey(path)
            numbers = at % 4096 >= 144
            if not found.losses or numbers:
                assert (held(found), found.losses) == (whole, []), (at, bit)
            assert found.findings or not numbers


@pytest.mark.slow
def test_a_damaged_commit_number_costs_no_row(ending: Held, tmp_path: Path) -> None:
    """Opening sees it, but where the last commit looks older than the one before it, and made the
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
