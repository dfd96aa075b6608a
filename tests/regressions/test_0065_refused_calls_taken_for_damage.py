"""What the system refused was taken for damage, hid what had happened, or ended the process.

A repair that could not open a whole file (EMFILE, EIO) built another in its place; an index whose
lock could not be closed while an error of its opening was on its way raised a bare OSError; and
where memory ran out, a query by permuted tables or slice lists ended in a signal.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reliability import errors

import simindex
from simindex.errors import StorageFailed

STRUCTURES = ("psm", "bphs:G=2,g=1,r=1", "issl:w=16")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "i.sim"
    options = simindex.IndexOptions(structures=STRUCTURES)
    with simindex.open(path, "n", options=options) as index:
        index.append(np.arange(500, dtype=np.uint64))
        index.compact(full=True)
    return path


@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize("name", ["*.bphs", "*.issl", "*.rows", "FORMAT", "data.mdb"])
def test_a_repair_takes_no_refusal_for_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, apply: bool
) -> None:
    before = sorted(path.rglob("*"))
    real, asked, opens = os.open, 0, 0

    def refusing(file: Any, *arguments: Any) -> int:
        nonlocal asked
        if Path(os.fsdecode(file)).match(name):
            asked += 1
            if asked == opens:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(file))
        return real(file, *arguments)

    monkeypatch.setattr(os, "open", refusing)
    refused = 0
    while opens == asked:
        asked, opens = 0, opens + 1
        try:
            report = simindex.repair(path, apply=apply)
        except simindex.SimindexError as error:
            assert "too many open files" in str(error)
            refused += 1
        else:
            assert not report.findings
    assert refused
    assert sorted(path.rglob("*")) == before


@pytest.mark.parametrize("name", ["FORMAT", "data.mdb"])
def test_a_check_takes_no_refusal_for_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    real = os.open

    def refusing(file: Any, *arguments: Any) -> int:
        if Path(os.fsdecode(file)).match(name):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))
        return real(file, *arguments)

    with simindex.open(path) as index:
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refusing)
            with pytest.raises(StorageFailed, match=name):
                index.check()
        assert index.check() == []


@pytest.mark.parametrize("mode", ["w", "c"])
def test_an_opening_that_cannot_close_its_lock_either_raises_an_error_of_ours(
    path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    real, left = os.close, 0

    def refusing(fd: int) -> None:
        nonlocal left
        left -= 1
        real(fd)
        if left < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    for first in range(30):
        left = first
        with monkeypatch.context() as patch:
            patch.setattr(os, "close", refusing)
            try:
                index = simindex.open(path, mode)
            except StorageFailed as error:
                assert str(path) in str(error)
            else:
                left = 1000  # what was opened meanwhile is closed by it, too
                index.close()
        simindex.open(path, mode).close()


def test_memory_that_runs_out_in_a_query_is_an_error_of_ours() -> None:
    """At every fifth allocation, once; `tools/torture.py errors` refuses all later ones, too."""
    outcome = errors.of_calls((
        "explain(batch=<4>, h=1, method='bphs') [reader]",
        "top(batch=<4>, k=2, max_error=4, rerank=8, method='issl') [reader]",
    ), ("memory",), 2, stride=5)
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.goal > 20
    outcome.require()
