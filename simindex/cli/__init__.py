"""The command line: `simindex COMMAND`, or `python -m simindex COMMAND`.

Results go to standard output; progress and messages go to standard error. Exit codes:

      0  done
      1  nothing to do: no document in the inputs, no row of the given key; or gate did not pass
      2  the call is wrong: an option, an argument, a missing extra
      3  the index is the problem: missing, already there, locked, too new; or check found damage
      4  more bad input records than --max-errors
    130  interrupted by Ctrl-C; the index is at its last commit
    141  the reader of standard output went away
    143  ended by SIGTERM, which does all that Ctrl-C does
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module
from pathlib import Path

from simindex.cli.app import WRONG_CALL, program

COMMANDS = (
    "backup",
    "build",
    "calibrate",
    "check",
    "clusters",
    "compact",
    "completion",
    "dedup",
    "delete",
    "demo",
    "diff",
    "expire",
    "explain",
    "export",
    "fingerprint",
    "gate",
    "merge",
    "pairs",
    "plan",
    "query",
    "ray",
    "repair",
    "report",
    "stats",
    "tune",
)
"""Each a module of `simindex.cli.commands` that adds the command of its name to the program."""

__all__ = ["main", "program"]


def _load(name: str) -> None:
    import_module(f"simindex.cli.commands.{name}")


program.load_later(COMMANDS, _load)


YOUNG_OBJECTS = 100_000
"""So many are made before the young ones are looked through: what is imported stays, and with
Python's 700 a start looks through it for 16 ms."""


def main() -> None:
    """Run the command line of this process and exit."""
    gc.set_threshold(YOUNG_OBJECTS)
    # Else numpy starts threads for products of matrices, which take 8 ms, and 100 of another core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.stderr is None:  # else the next file to be opened is what messages are written to
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdin is None:  # closed by the caller
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        print("simindex: standard output is closed: open it, or give /dev/null", file=sys.stderr)
        sys.exit(WRONG_CALL)
    atexit.register(gc.freeze)  # else the exit looks through all that was imported, for 30 ms
    program(prog_name="simindex")
