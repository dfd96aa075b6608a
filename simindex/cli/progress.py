"""How far a long command is: a live line with rich, a plain line now and then without it."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from simindex.cli.console import count, megabytes, say

PLAIN_INTERVAL_S = 5.0


class Progress:
    """Counts documents on standard error while it is a terminal, else does nothing.

    Parameters
    ----------
    label : str
        What is being done, such as ``"indexing"``.
    quiet : bool
        Show nothing in any case.
    """

    def __init__(self, label: str, *, quiet: bool) -> None:
        self._label = label
        self._shown = not quiet and sys.stderr.isatty()
        self._live: Any = _live_line() if self._shown else None
        self._started = self._last = time.monotonic()
        self.documents = 0
        self.characters = 0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def advance(self, documents: int, characters: int) -> None:
        """Note that so many more were done."""
        self.documents += documents
        self.characters += characters
        if not self._shown:
            return
        now = time.monotonic()
        if self._live is not None:
            self._live.update(self._line(now))
        elif now - self._last >= PLAIN_INTERVAL_S:
            self._last = now
            say(self._line(now))

    def _line(self, now: float) -> str:
        rate = self.documents / max(now - self._started, 1e-9)
        return (
            f"{self._label}: {count(self.documents, 'document')}, {megabytes(self.characters)}, "
            f"{rate:,.0f} a second"
        )


class ShareDone:
    """What share of known work is done, on standard error while it is a terminal; else nothing.

    Parameters
    ----------
    label, noun : str
        What is being done, and with what: ``"pairing"``, ``"row"``.
    """

    def __init__(self, label: str, noun: str, *, quiet: bool) -> None:
        self._label, self._noun = label, noun
        self._shown = not quiet and sys.stderr.isatty()
        self._live: Any = _live_line() if self._shown else None
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, done: int, total: int) -> None:
        """Note that so much of the total is done."""
        if not self._shown:
            return
        share = 100 * done / max(1, total)
        line = f"{self._label}: {share:.0f}% of {count(total, self._noun)}"
        now = time.monotonic()
        if self._live is not None:
            self._live.update(line)
        elif now - self._last >= PLAIN_INTERVAL_S:
            self._last = now
            say(line)


def _live_line() -> Any:
    try:
        from rich.console import Console
        from rich.status import Status
    except ImportError:
        return None
    # rich honours NO_COLOR and TERM=dumb itself, and lets other lines on standard error pass above.
    return Status("", console=Console(stderr=True, highlight=False))
