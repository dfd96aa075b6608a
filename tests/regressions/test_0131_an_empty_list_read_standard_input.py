"""`build x.sim @list` with an empty list read standard input, and waited for it where that was a
pipe that nobody wrote to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simindex.errors import InvalidInput
from simindex.inputs.paths import expanded


@pytest.mark.parametrize("content", ["", "\n\r\n", "\ufeff\n"])
def test_a_list_without_a_path_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "list").write_text(content)
    with pytest.raises(InvalidInput, match="list: lists no path"):
        expanded([f"@{tmp_path / 'list'}", "a.txt"])


@pytest.mark.slow
def test_a_command_with_an_empty_list_does_not_wait(tmp_path: Path) -> None:
    (tmp_path / "list").touch()
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "simindex", "build", "x.sim", "@list"], cwd=tmp_path,
            stdin=reading, capture_output=True, text=True, timeout=60,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 4
    assert done.stderr.startswith("simindex: @list: lists no path: ")
