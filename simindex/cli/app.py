"""The program: turns every expected failure into one line and an exit code.

Ctrl-C and SIGTERM end a command by an exception, so that what must go is removed. Both wait for a
commit to end, so that what is committed is known.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import click

from simindex.cli.console import shown
from simindex.errors import CorruptFile, SimindexError
from simindex.storage.files.refusals import NO_SPACE

WRONG_CALL = 2
DAMAGED = 3
"""What `check` and `repair` end with where an index is damaged."""
INTERRUPTED = 130
READER_GONE = 141
TERMINATED = 143
"""What a shell reports for a program ended by SIGPIPE, and by SIGTERM."""

SYSTEM_FAILURE = 3

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM, which does all that Ctrl-C does."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM raise Terminated within the block, unless the process has its own way."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    # `timeout` sends it twice, and the second must not end what the first has begun.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold both back until the block has ended; the first that came takes effect then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, frame: held.append(number))
        for number in SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if held:
        signal.raise_signal(held[0])


class Interrupted(Exception):
    """Ctrl-C or SIGTERM, its cause, with a sentence on what is left behind."""


class Program(click.Group):
    """A group of commands that fail in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        with terminable():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except SimindexError as error:
            _fail(ctx, _with_remedy(error), error.exit_code)
        except BrokenPipeError:
            _forget_stdout()
            ctx.exit(READER_GONE)
        except Interrupted as error:
            _fail(ctx, str(error), _signalled(error.__cause__))
        except (KeyboardInterrupt, click.Abort) as error:
            _fail(ctx, "interrupted", _signalled(error))
        except OSError as error:
            named = error.filename or ("the output" if error.errno in NO_SPACE else "")
            _fail(ctx, f"{named}{named and ': '}{error.strerror or error}", SYSTEM_FAILURE)
        except UnicodeEncodeError as error:
            if codecs.lookup(sys.stdout.encoding).name == "utf-8":
                raise
            _fail(ctx, _unwritable(error), WRONG_CALL)
        except MemoryError:
            _fail(ctx, "out of memory", SYSTEM_FAILURE)
        return result


def _fail(ctx: click.Context, sentence: str, code: int) -> None:
    with contextlib.suppress(OSError):
        click.echo(f"simindex: {shown(' '.join(sentence.split()))}", err=True)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    ctx.exit(code)


def _signalled(cause: BaseException | None) -> int:
    return TERMINATED if isinstance(cause, Terminated) else INTERRUPTED


def _with_remedy(error: SimindexError) -> str:
    """What went wrong; of damage, also what to do about it, where the error does not say."""
    if isinstance(error, CorruptFile) and error.remedy is None:
        error.remedy = "`simindex repair` with the index says what can be had again"
    return str(error)


def _unwritable(error: UnicodeEncodeError) -> str:
    lost = ascii(error.object[error.start : error.end][:20])
    return (
        f"standard output is {sys.stdout.encoding}, which cannot hold {lost}: set PYTHONUTF8=1 in "
        "the environment, or a locale with UTF-8"
    )


def _forget_stdout() -> None:
    # What is still buffered would fail once more, with a message, when the interpreter exits.
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as devnull:
        os.dup2(devnull.fileno(), sys.stdout.fileno())


@click.group(cls=Program, context_settings={"max_content_width": 100})
@click.version_option(version("simindex"), prog_name="simindex", message="%(prog)s %(version)s")
def program() -> None:
    """Find near-duplicate texts: build an index of documents, then look up others in it.

    Data goes to standard output, everything for people to standard error.
    """
