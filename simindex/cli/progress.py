"""How far a long command is: on a terminal only.

    indexing ━━━━━━━━━━━╺━━━━━━━ 61% 731,136 documents, 118,201 a second, 4 s left

With rich it is one live line, which goes when the command ends. Without it a plain line comes now
and then.

How much of the inputs is done is known by bytes: those read of the files, as they are on the disk.
The reader is ahead of the work, so its bytes count in the proportion of the documents worked on to
those read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Self

from simindex.cli.console import count, say
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.inputs.document import Intake
    from simindex.inputs.read_options import ReadOptions

PLAIN_INTERVAL_S = 5.0

LIVE_INTERVAL_S = 0.1

SETTLED_S = 1.0
"""No time left is told before: the first rates are those of a start."""


@dataclass
class Extent:
    """How much of some inputs was read."""

    intake: Intake
    inputs: Sequence[str]
    options: ReadOptions
    total_bytes: int | None = None
    """Of their files; None while it is not known, and of standard input."""

    def measure(self) -> None:
        """Finds the size, on a thread of its own: a folder of a million files takes seconds."""
        from simindex.inputs.reading import size_bytes

        def work() -> None:
            self.total_bytes = size_bytes(self.inputs, self.options)

        Thread(target=work, name="simindex-sizes", daemon=True).start()

    def file_bytes(self) -> int | None:
        """The size, where all inputs are files, so that it is known at once."""
        from simindex.inputs.reading import size_bytes

        if not all(Path(name).is_file() for name in self.inputs):
            return None
        return size_bytes(self.inputs, self.options)

    def share(self, documents: int) -> float | None:
        """The share of the inputs that is done with so many documents, where it is known."""
        if not self.total_bytes or not self.intake.documents:
            return None
        worked_on = min(1.0, documents / self.intake.documents)
        return min(1.0, worked_on * self.intake.read_bytes / self.total_bytes)


class Progress:
    """Says how far a long command is while standard error is a terminal, else does nothing.

    Parameters
    ----------
    label, noun : str
        What is being done, and with what, such as ``"indexing"`` documents.
    quiet : bool
        Show nothing in any case.
    extent : Extent, optional
        What the documents are read from.
    """

    def __init__(
        self, label: str, noun: str = "document", *, quiet: bool, extent: Extent | None = None
    ) -> None:
        self._label, self._noun = label, noun
        self._shown = not quiet and sys.stderr.isatty()
        self._live: Any = _Bar(label) if self._shown and _has_rich() else None
        self._interval_s = PLAIN_INTERVAL_S if self._live is None else LIVE_INTERVAL_S
        self._extent = extent if self._shown else None
        self._started = time.monotonic()
        self._last = self._started if self._live is None else -LIVE_INTERVAL_S
        self._share: float | None = None
        self._done = 0
        self.documents: int = 0
        self.characters: int = 0

    def __enter__(self) -> Self:
        if self._extent is not None:
            self._extent.measure()
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def advance(self, documents: int, characters: int = 0) -> None:
        """Note that so many more documents were done, with so many characters if these are told."""
        self.documents += documents
        self.characters += characters
        if self._is_due():
            share = None if self._extent is None else self._extent.share(self.documents)
            self._show(share, self.documents, count(self.documents, self._noun))

    def tell(self, done: int, total: int) -> None:
        """Note that so much of a known total is done; less than before begins again."""
        if done < self._done:
            self._started, self._share = time.monotonic(), None
        self._done = done
        if self._is_due() or (self._live is not None and done >= total):
            self._show(done / max(1, total), done, f"{done:,} of {count(total, self._noun)}")

    def then(self, label: str, noun: str | None = None) -> None:
        """What is being done from now on, and with what, if anything is told of it."""
        self._label, self._noun = label, noun or self._noun
        self._started, self._share, self._done = time.monotonic(), None, 0
        if self._live is not None:
            self._live.then(label)

    def _is_due(self) -> bool:
        return self._shown and time.monotonic() - self._last >= self._interval_s

    def _show(self, share: float | None, done: int, what: str) -> None:
        self._last = time.monotonic()
        spent_s = self._last - self._started
        if share is not None:  # it does not go back where long documents come after short ones
            self._share = max(share, self._share or 0.0)
        how_far = f"{what}, {done / max(spent_s, 1e-9):,.0f} a second"
        if self._share and spent_s >= SETTLED_S:
            how_far += f", {_brief(spent_s * (1 / self._share - 1))} left"
        if self._live is not None:
            self._live.show(self._share, how_far)
            return
        percent = "" if self._share is None else f"{100 * self._share:.0f}%, "
        say(f"{self._label}: {percent}{how_far}")


def _brief(seconds: float) -> str:
    """`4 s`, `3 min`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _has_rich() -> bool:
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


class _Bar:
    """A line of rich: a bar, and what is said of it.

    rich honours NO_COLOR and TERM=dumb itself, and lets other lines on standard error pass above.
    """

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(),
            TextColumn("{task.fields[how_far]}"),
            console=Console(stderr=True, highlight=False), transient=True,
        )
        self._task = self._bar.add_task(label, total=None, how_far="")

    def start(self) -> None:
        self._bar.start()

    def stop(self) -> None:
        self._bar.stop()

    def show(self, share: float | None, how_far: str) -> None:
        if share is None:
            self._bar.update(self._task, how_far=how_far)
        else:
            self._bar.update(self._task, total=1.0, completed=share, how_far=how_far)

    def then(self, label: str) -> None:
        self._bar.update(self._task, description=label, total=None, how_far="")
