"""The command `simindex` in a process of its own: its seconds, processor time and peak of memory.

`ru_maxrss` has the memory of the process that started it, too, as long as that is more. So the
command runs within this script, which tells its own peak when it ends:

    python -P shell.py FILE ARGUMENTS...
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command took."""

    seconds: float
    """From its start to its end."""
    cpu_s: float
    peak_bytes: int


def simindex(
    arguments: Sequence[str], *, cores: int | None = None, stdout: Any = None, expected: int = 0
) -> Ended:
    """Runs it on so many cores, or all; SystemExit if it ends with another code than expected."""
    from benchmarks import machine

    with tempfile.NamedTemporaryFile() as told, machine.on_every_core():
        if cores is not None:
            os.sched_setaffinity(0, sorted(machine.CORES)[-cores:])
        # -P: the installed package, not the sources in the current folder.
        command = [sys.executable, "-P", __file__, told.name, *arguments]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=stdout)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != expected:
            raise SystemExit(f"simindex {' '.join(arguments)} ended with {process.returncode}")
        peak = int(Path(told.name).read_text(encoding="ascii"))
    return Ended(seconds, used.ru_utime + used.ru_stime, peak)


def _tell(file: str) -> None:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    Path(file).write_text(str(1024 * int(status.split("VmHWM:")[1].split()[0])), encoding="ascii")


if __name__ == "__main__":
    from simindex.cli import main

    atexit.register(_tell, sys.argv[1])
    sys.argv = ["simindex", *sys.argv[2:]]
    main()
