"""The live line: on a terminal only, and without rich now and then."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from simindex.cli import console
from simindex.cli.console import Progress

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


def test_progress_without_rich_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    monkeypatch.setattr(console, "PLAIN_INTERVAL_S", 0.0)
    with Progress("indexing", quiet=False) as silent:
        silent.advance(1, 1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress("indexing", quiet=False) as plain:
        plain.advance(1000, 2_000_000)
        plain.advance(1, 1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("simindex: indexing: 1,000 documents, 2.0 MB, ")
