"""`--wait SECONDS`: a command that writes waits while another process writes the index."""

from __future__ import annotations

from pathlib import Path

import click

import simindex
from simindex.cli.console import say
from simindex.cli.numbers import Seconds
from simindex.cli.opening import open_index
from simindex.cli.shared_options import Option, collected
from simindex.errors import IndexLocked
from simindex.values import dataclass

SILENT_S = 1.0
"""After so long it is said who is waited for."""


@dataclass(frozen=True, slots=True)
class LockWait:
    """How long to wait for the lock of an index."""

    seconds: float = 0.0
    quiet: bool = False

    def open(self, path: str | Path) -> simindex.Index:
        """The index, for writing; IndexLocked if another process still writes it at the end."""
        silent_s = min(SILENT_S, self.seconds)
        try:
            return open_index(path, "w", wait_s=silent_s)
        except IndexLocked as error:
            if silent_s == self.seconds:
                raise
            if not self.quiet:
                say(f"waiting for another process: {error.what}")
        return open_index(path, "w", wait_s=self.seconds - silent_s)


def _lock_wait(wait: float) -> LockWait:
    return LockWait(wait, click.get_current_context().params["quiet"])


wait_option: Option = collected(
    "wait", _lock_wait,
    click.option(
        "--wait", type=Seconds(), default=0.0, metavar="SECONDS",
        help="How long to wait if another process writes the index; inf waits without end. "
        "Default: 0, do not wait.",
    ),
)
"""The command gets a `LockWait` as `wait`."""
