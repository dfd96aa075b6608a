from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from simindex.cli import program

Run = Callable[..., Result]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts a process of its own is slow."""
    for item in items:
        if "spawn" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, in a temporary folder, and expect an exit code."""
    monkeypatch.chdir(tmp_path)

    def running(*args: object, code: int = 0, input: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(
            program, [str(arg) for arg in args], input=input, prog_name="simindex"
        )
        problem = f"{result.stderr}\n{result.exception!r}"
        assert result.exit_code == code, problem
        assert result.exception is None or isinstance(result.exception, SystemExit), problem
        assert "Traceback" not in result.stderr
        return result

    return running


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start a command in a process of its own, in the same folder."""

    def starting(*args: object, **options: Any) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "simindex", *map(str, args)],
            cwd=tmp_path, env={**os.environ, "PYTHONWARNINGS": "error"}, **{**pipes, **options},
        )

    return starting


@pytest.fixture
def on_terminal(
    spawn: Callable[..., subprocess.Popen[bytes]],
) -> Callable[..., tuple[int, bytes]]:
    """The exit code of a command in a process of its own, and what a terminal for people saw."""

    def shown(*args: object) -> tuple[int, bytes]:
        ours, theirs = pty.openpty()
        process = spawn(*args, stderr=theirs)
        process.communicate(timeout=60)
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # the other end is closed
            os.close(ours)
        return process.returncode, seen

    return shown


def jsonl(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def objects() -> Callable[[str], list[dict[str, Any]]]:
    return lambda text: [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Write records to a file of the temporary folder."""

    def writing(name: str, records: list[dict[str, Any]]) -> Path:
        (tmp_path / name).write_text(jsonl(records))
        return Path(name)

    return writing
