"""A survey says what is wrong, refuses what it must not judge, and goes by the newest head."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repairable import (
    OPTIONS,
    Held,
    a_directory,
    a_fifo,
    a_link,
    a_socket,
    batch,
    examine,
    flipped,
    fresh,
    named,
    put_aside,
    rows_of,
    segments,
    with_field,
)

import simindex
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexExists,
    IndexNotFound,
    SimindexError,
    StorageFailed,
)


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
    with pytest.raises(CorruptFile, match=f"{part} is not a folder. `simindex repair"):
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


def test_a_newer_segment_is_refused(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    file = segments(path)[0]
    file.write_bytes(with_field(file.read_bytes(), 12, b"\x02\0", 4096))
    with pytest.raises(FormatTooNew):
        simindex.repair(path, apply=True)


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


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound):
        simindex.repair(tmp_path / "none")
    with pytest.raises(IndexNotFound):
        simindex.repair(tmp_path)
    (tmp_path / "catalog").mkdir()
    with pytest.raises(IndexNotFound):
        simindex.repair(tmp_path)
    (tmp_path / "catalog" / "data.mdb").touch()
    with pytest.raises(CorruptFile, match="build the index again"):
        simindex.repair(tmp_path, apply=True)
