"""An index that was open when Python ended, and was dropped after the names of its module, printed
`TypeError: 'NoneType' object is not callable`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import simindex

PROGRAM = """
import {module}
import simindex
index = simindex.open("a.sim", "c", options=simindex.IndexOptions(keys=True))
index.append(simindex.Batch([1], keys=["one"]))
index.commit()
{module}.kept = index
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["builtins", "contextlib", "logging", "threading"])
def test_nothing_is_printed_at_the_end_of_python(tmp_path: Path, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(module=module)], cwd=tmp_path,
        capture_output=True, text=True, timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with simindex.open(tmp_path / "a.sim", "w") as index:
        assert "one" in index
