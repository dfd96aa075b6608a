"""How far a command is: on a terminal only, and without rich now and then."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, redirect_stderr
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.cli import progress
from simindex.cli.progress import Extent, Progress
from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, size_bytes

Spawn = Callable[..., subprocess.Popen[bytes]]


def record(number: int) -> bytes:
    return json.dumps({"id": number, "text": f"text of number {number} alone"}).encode() + b"\n"


def test_progress_is_shown_on_a_terminal_only(
    on_terminal: Callable[..., tuple[int, bytes]], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"".join(map(record, range(50))))
    assert on_terminal("build", "i.sim", "a.jsonl", "-q") == (0, b"")
    code, shown = on_terminal("build", "j.sim", "a.jsonl")
    assert b"indexing" in shown
    assert b"50 documents" in shown
    assert code == 0


Shown = Callable[[], AbstractContextManager[Any]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Makes standard error a terminal without rich, to which every step is told."""
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0.0)
    monkeypatch.setattr(progress, "SETTLED_S", 0.0)
    return lambda: redirect_stderr(Terminal())


def test_progress_without_rich_is_a_line_now_and_then(terminal: Shown) -> None:
    with terminal() as shown, Progress("indexing", quiet=True) as silent:
        silent.advance(1, 1)
    assert shown.getvalue() == ""
    with terminal() as shown, Progress("indexing", quiet=False) as plain:
        plain.advance(1000, 2_000_000)
        plain.advance(1, 1)
    first, second = shown.getvalue().splitlines()
    assert re.fullmatch(r"simindex: indexing: 1,000 documents, [\d,]+ a second", first)
    assert second.startswith("simindex: indexing: 1,001 documents, ")


def test_a_known_total_gives_percent_and_time_left(terminal: Shown) -> None:
    with terminal() as shown, Progress("pairing", "row", quiet=False) as plain:
        for done in (50, 100, 20):
            plain.tell(done, 100)
    half, whole, anew = shown.getvalue().splitlines()
    assert re.fullmatch(
        r"simindex: pairing: 50%, 50 of 100 rows, [\d,]+ a second, 0 s left", half
    )
    assert "pairing: 100%, 100 of 100 rows" in whole
    assert "pairing: 20%, 20 of 100 rows" in anew


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.slow
def test_what_is_done_of_files_is_known_by_their_bytes(
    terminal: Shown, tmp_path: Path, name: str
) -> None:
    """Half of the documents read are half of what was read, and all of them are all there is."""
    drawn = random.Random(1)
    lines = b"".join(record(drawn.getrandbits(256)) for _ in range(40_000))
    (tmp_path / name).write_bytes(gzip.compress(lines) if name.endswith("gz") else lines)
    intake = Intake()
    extent = Extent(intake, [str(tmp_path / name)], ReadOptions())
    documents = read(extent.inputs, extent.options, intake)
    with terminal() as shown, Progress("indexing", quiet=False, extent=extent) as plain:
        for thread in threading.enumerate():
            if thread.name == "simindex-sizes":
                thread.join(30)
        taken = sum(1 for _ in islice(documents, 30_000))
        so_far = intake.read_bytes / (tmp_path / name).stat().st_size
        assert 0.5 < so_far < 0.95
        plain.advance(taken // 2, 1)
        plain.advance(taken // 2, 1)
        plain.advance(sum(1 for _ in documents), 1)
    told = [int(found) for found in re.findall(r"(\d+)%", shown.getvalue())]
    assert told == [round(50 * so_far), round(100 * so_far), 100]


def test_files_that_are_passed_over_count_as_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text of some words")
    (tmp_path / "b.bin").write_bytes(b"\0" * 10_000_000)
    intake = Intake()
    assert len(list(read([str(tmp_path)], None, intake))) == 1
    assert intake.read_bytes == size_bytes([str(tmp_path)]) == 10_000_020


@pytest.mark.parametrize("inputs", [["-"], ["a.jsonl", "-"]])
def test_the_size_of_a_stream_is_not_known(inputs: list[str]) -> None:
    assert size_bytes(inputs) is None


def test_rows_are_told_as_they_are_verified(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with simindex.open(tmp_path / "i.sim", "n") as index:
        index.append(np.arange(5000, dtype=np.uint64))
        index.compact(full=True, structures=("psm", "bphs:G=4,g=1"))
        index.append(np.arange(7, dtype=np.uint64))
        index.commit()
        assert index.check(progress=lambda *step: told.append(step)) == []
    assert told == [(5000, 10_000), (10_000, 10_000)]
