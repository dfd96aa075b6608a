"""The process ended by SIGABRT or SIGSEGV if nobody took what a thread read, and the thread was
within pyarrow as Python exited: `simindex fingerprint texts.parquet | head`."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import time
from contextlib import closing
import pyarrow
from simindex.cli.slots import read_ahead

def source():
    yield 0
    yield 1
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        pyarrow.PythonFile(open(__file__, "rb"), mode="r")  # closed by its destructor

with closing(read_ahead(source())) as read:
    assert next(read) == 0
    assert next(read) == 1
time.sleep(0.05)
"""


@pytest.mark.slow
def test_python_ends_in_order() -> None:
    pytest.importorskip("pyarrow")
    program = PROGRAM.replace("__file__", repr(__file__))
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
