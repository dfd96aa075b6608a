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
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

import simindex
from simindex.cli import corrections
from simindex.cli.console import shown
from simindex.cli.wording import OPTIONS, told, worded
from simindex.errors import CorruptFile, SimindexError
from simindex.outputs.columns import as_json_line
from simindex.storage.files.refusals import NO_SPACE

NOTHING_TO_DO = 1
"""The inputs hold no document, or the index none of what was named."""
WRONG_CALL = 2
DAMAGED = 3
"""What `check` and `repair` end with where an index is damaged."""
INTERRUPTED = 130
READER_GONE = 141
TERMINATED = 143
"""What a shell reports for a program ended by SIGPIPE, and by SIGTERM."""

SYSTEM_FAILURE = 3

AS_JSON = "simindex.cli.as_json"
"""Of the context: whether errors are objects, too."""

TYPED = "simindex.cli.typed"
"""Of the context: what was typed after the name of the program."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)

AGAIN_S = 0.001
"""After so long an interrupt comes again that Python has ignored."""


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
def insistent() -> Iterator[None]:
    """Have an interrupt come again within the block where Python ignores it.

    Python ignores what is raised in a finalizer or in a callback of a weak reference, and runs one
    of the latter with each import.
    """
    usual = sys.unraisablehook
    over = threading.Event()

    def send(number: int, begun: threading.Event) -> None:
        begun.wait()
        if not over.wait(AGAIN_S):
            os.kill(os.getpid(), number)

    def hook(ignored: sys.UnraisableHookArgs) -> None:
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            usual(ignored)
            return
        number = signal.SIGINT
        if isinstance(ignored.exc_value, Terminated):
            number = signal.SIGTERM
            signal.signal(number, _terminate)
        begun = threading.Event()
        threading.Thread(target=send, args=(number, begun), daemon=True).start()
        begun.set()  # last: what came while this runs would be ignored, too

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = usual
        over.set()  # the block has ended without it


@contextlib.contextmanager
def held_back() -> Iterator[list[int]]:
    """Hold both back until the block has ended; it gets a list of those that came."""
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    previous = {
        number: signal.signal(number, lambda number, frame: held.append(number))
        for number in SIGNALS
    }
    try:
        yield held
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold both back until the block has ended; the first that came takes effect then."""
    with held_back() as held:
        yield
    if held:
        signal.raise_signal(held[0])


class Interrupted(Exception):
    """Ctrl-C or SIGTERM, its cause, with a sentence on what remains."""


class Program(click.Group):
    """A group of commands that fail in one line, and are imported when they are needed."""

    def load_later(self, names: Iterable[str], load: Callable[[str], None]) -> None:
        """Have commands of these names that `load` adds to the program."""
        self._load, self._names = load, frozenset(names)

    def every_command(self) -> Mapping[str, click.Command]:
        """All commands by their names, imported."""
        for name in self._names - self.commands.keys():
            self._load(name)
        return self.commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._names | self.commands.keys())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._names and cmd_name not in self.commands:
            self._load(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = corrections.COMMANDS.get(args[0])
        if known is not None and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {known!r}?")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Before the command has read its options, for one may be wrong.
        ctx.meta[AS_JSON] = "--json" in args
        ctx.meta[TYPED] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            error = corrections.before_a_command(error, self.every_command().values())
            _fail_by_call(ctx, error)

    def invoke(self, ctx: click.Context) -> Any:
        with terminable(), insistent():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except click.ClickException as error:
            _fail_by_call(
                ctx, corrections.meant(error) if isinstance(error, click.NoSuchOption) else error
            )
        except SimindexError as error:
            _fail_by(ctx, error)
        except BrokenPipeError:
            _forget_stdout()
            ctx.exit(READER_GONE)
        except Interrupted as error:
            _forget_interrupt()
            _fail(ctx, str(error), _signalled(error.__cause__))
        except (KeyboardInterrupt, click.Abort) as error:
            _forget_interrupt()
            _fail(ctx, "interrupted", _signalled(error))
        except OSError as error:
            named = error.filename or ("the output" if error.errno in NO_SPACE else "")
            sentence = f"{named}{named and ': '}{error.strerror or error}"
            _fail(ctx, sentence, SYSTEM_FAILURE, error=type(error).__name__)
        except UnicodeEncodeError as error:
            if codecs.lookup(sys.stdout.encoding).name == "utf-8":
                raise
            _fail(ctx, _unwritable(error), WRONG_CALL)
        except MemoryError:
            _fail(ctx, "out of memory", SYSTEM_FAILURE)
        return result


def _forget_interrupt() -> None:
    """Have Python end with the exit code that it is told.

    If the interrupt came while text was executed, as when a dataclass is imported, it would end
    itself by the signal, until other text has been executed.
    """
    exec("")  # noqa: S102


def nothing_to_do(sentence: str, *, quiet: bool = False) -> NoReturn:
    """Ends the command, which has found nothing to do, and says so."""
    ctx = click.get_current_context()
    if quiet and not ctx.meta.get(AS_JSON):
        ctx.exit(NOTHING_TO_DO)
    _fail(ctx, sentence, NOTHING_TO_DO)


def _fail_by(ctx: click.Context, error: SimindexError) -> None:
    if isinstance(error, CorruptFile) and error.remedy is None:
        error.remedy = "`simindex repair` with the index shows what can be recovered"
    remedy = None if error.remedy is None else worded(error.remedy, error)
    data = {name: _plain(value) for name, value in error.data.items()}
    if "option" in data:
        data["option"] = OPTIONS.get(data["option"], data["option"])
    _fail(
        ctx, told(error), error.exit_code, error=type(error).__name__,
        what=worded(error.what, error), remedy=remedy, **data,
    )


def _fail_by_call(ctx: click.Context, error: click.ClickException) -> NoReturn:
    """Ends a wrong call with click's own lines, or with an object."""
    if not ctx.meta.get(AS_JSON):
        raise error from None
    _fail(ctx, error.format_message(), error.exit_code, error=type(error).__name__)


def _plain(value: Any) -> Any:
    """A value of an error that JSON can hold."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def _fail(ctx: click.Context, sentence: str, code: int, **data: Any) -> NoReturn:
    """Says what went wrong, or that nothing was to be done, and ends with a code; with --json as an
    object, with `data`.
    """
    sentence = " ".join(sentence.split())
    line = f"simindex: {shown(sentence)}"
    if ctx.meta.get(AS_JSON):
        line = as_json_line({"message": sentence, "exit_code": code, **data})
    with contextlib.suppress(OSError):
        click.echo(line, err=True)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    ctx.exit(code)


def _signalled(cause: BaseException | None) -> int:
    return TERMINATED if isinstance(cause, Terminated) else INTERRUPTED


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


def _show_version(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from simindex._kernels import _native
        from simindex.storage.files.format import MAJOR, MINOR

        used = _native.levels()[_native.default_level()]
        click.echo(
            f"simindex {simindex.__version__} ({used} instructions; index format {MAJOR}.{MINOR})"
        )
        ctx.exit()


@click.group(
    cls=Program,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
    help="Show the version, which instructions of the processor are used, and the version of the "
    "index format.",
)
def program() -> None:
    """Find near-duplicate texts: build an index of documents, then look up others in it.

    `simindex COMMAND -h` prints the options of a command. Results go to standard output; progress
    and messages go to standard error.
    """
