"""A repair leaves nothing open behind it, whatever it met and whatever the system refused."""

from __future__ import annotations

import errno
import gc
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from reliability.examination import open_descriptors
from reliability.specimens import make
from reliability.wreck import wreck

import simindex
from simindex.errors import SimindexError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A copy of an index with every kind of file."""
    specimen = make(tmp_path, "tiny")
    for stray in specimen.strays:
        (specimen.path / stray).unlink()
    copy = tmp_path / "copy" / "index"
    shutil.copytree(specimen.path, copy)
    return copy


@pytest.mark.parametrize("what", ["nothing", "pages", "catalog", "format", "segment"])
def test_a_repair_holds_no_file_before_garbage_is_collected(path: Path, what: str) -> None:
    """Else the space of what it replaced comes back when it pleases the collector."""
    data = path / "catalog" / "data.mdb"
    if what == "pages":
        with data.open("r+b") as file:
            file.seek(4096)
            file.write(bytes(64))
    elif what == "catalog":
        data.unlink()
    elif what == "format":
        wreck(path)
    elif what == "segment":
        os.truncate(sorted((path / "segments").glob("*.rows"))[0], 6000)
    gc.collect()
    gc.disable()
    try:
        for apply in (False, True):
            report = simindex.repair(path, apply=apply)
            assert report.needed is (what != "nothing")
            assert open_descriptors(path) == []
    finally:
        gc.enable()


def test_catalogs_of_repairs_that_did_not_end_are_let_go(path: Path) -> None:
    """Two of them, and none that is the index's own: one is read, the other only looked at."""
    with simindex.open(path) as index:
        rows = len(index)
    shutil.copytree(path / "catalog", path / "catalog.repair-1")
    (path / "catalog").rename(path / "catalog.repair-2")
    report = simindex.repair(path, apply=True)
    assert open_descriptors(path) == []
    assert (report.rows, report.losses) == (rows, ())
    with simindex.open(path) as index:
        assert len(index) == rows
        assert [finding for finding in index.check() if finding.severity == "error"] == []


@pytest.mark.parametrize(("call", "number"), [("fstat", errno.EIO), ("stat", errno.ENOMEM)])
def test_a_repair_that_the_system_refuses_leaves_nothing_open(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """At every fifth use of a call; the error is typed, and the next repair has nothing to mend."""
    real, use, due = getattr(os, call), 0, 1

    def refused(*arguments: Any, **named: Any) -> Any:
        nonlocal use
        use += 1
        if use == due:
            raise OSError(number, os.strerror(number), str(path))
        return real(*arguments, **named)

    while due < 200:
        use = 0
        monkeypatch.setattr(os, call, refused)
        with suppress(SimindexError, MemoryError):
            simindex.repair(path)
        monkeypatch.setattr(os, call, real)
        gc.collect()
        assert open_descriptors(path) == []
        if use < due:
            break
        due += 5
    assert 3 < due < 200
    assert not simindex.repair(path).needed
