"""Texts of HTML pages, taken by several processes at once.

The packages that find the text of a page keep the interpreter's lock, and one page in a million may
end the process that reads it. So pages go to other processes, in groups, and come back as texts;
the reader has the texts in the order of its pages, see `in_turn`. As long as there were few pages,
and where there is one core, they are read here: a process takes a third of a second to begin.

    reader -> _Group -> _Due -> a thread of each process -> pipe -> serve -> pipe -> Taken
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgpack

from simindex.inputs.document import Intake, Taken, Unusable
from simindex.inputs.document_columns import Later
from simindex.inputs.markup import Extractor, extractor
from simindex.resources.threads import begin, thread_count
from simindex.values import dataclass

if TYPE_CHECKING:
    import subprocess

    from simindex.inputs.document import Document
    from simindex.inputs.document_columns import Documents

WORTH_S = 0.5
"""So long pages are read in this process before others begin."""

GROUP_BYTES, GROUP_PAGES = 1 << 18, 64
"""Pages are handed over once there are so many."""

AHEAD_BYTES = 1 << 24
"""Of pages and documents that wait for the text of an earlier page."""

WAKE_S = 0.5
"""A signal that comes just before a thread waits is seen when it wakes."""

_COMMAND = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from simindex.inputs.extraction import serve; serve(sys.argv[1])"
)

_READY = b"ready"

_LENGTH_BYTES = 4

Page = tuple[bytes, str | None]
"""Its bytes, and the character set that was declared with them."""

Answer = list[str | None]
"""The text; or None, what is wrong and what to do about it; or nothing if it is to be read here."""


class Extraction:
    """Takes texts from pages, by one of `markup.EXTRACTORS`.

    Parameters
    ----------
    name : a name of `markup.EXTRACTORS`
    processes : int, optional
        By default as many as SIMINDEX_THREADS says, or one a processor. With one, pages are read in
        this process alone.
    """

    def __init__(self, name: str, processes: int | None = None) -> None:
        self._name = name
        self._number = processes or thread_count(None, sys.maxsize, worth=0)
        self._text_of: Extractor | None = None
        self._spent_s = 0.0
        self._due: SimpleQueue[_Group | None] = SimpleQueue()
        self._processes: list[_Process] = []
        self._open = _Group()
        self.in_groups: bool = True
        """Whether pages may wait for others in this process: not those of a stream, which may not
        come for a while."""

    def __call__(self, page: bytes, charset: str | None) -> Taken:
        """Begins to take the text of a page. MissingExtra says how to get the package."""
        if not self._processes and self._number > 1 and self._spent_s >= WORTH_S:
            self._begin()
        if not self._processes:
            return lambda: _text_in(self._read((page, charset)))
        group, place = self._open, len(self._open.pages)
        group.pages.append((page, charset))
        group.held_bytes += len(page)
        if group.held_bytes >= GROUP_BYTES or len(group.pages) >= GROUP_PAGES:
            self._hand_over()
        return partial(self._text, group, place)

    @property
    def ahead_bytes(self) -> int:
        """How much may wait for texts."""
        if self._processes:
            return AHEAD_BYTES
        return GROUP_BYTES if self.in_groups else 0

    @property
    def left_bytes(self) -> int:
        """How much goes on waiting once that is too much.

        Nothing in this process, which reads pages in groups, too: then what extraction needs is in
        the caches of the core for all but the first of them, and so is what reading files needs.
        """
        return AHEAD_BYTES if self._processes else 0

    def close(self) -> None:
        """Ends the processes, and waits for it; no text can be asked for any more."""
        for process in self._processes:
            process.close()
            self._due.put(None)
        for process in self._processes:
            process.thread.join()

    def _begin(self) -> None:
        for _ in range(self._number):
            process = _Process(self._name, self._due)
            try:
                begin(process.thread)
            except RuntimeError:  # the system gives no more threads
                break
            self._processes.append(process)
        self._number = len(self._processes) or 1

    def _hand_over(self) -> None:
        self._due.put(self._open)
        self._open = _Group()

    def _text(self, group: _Group, place: int) -> str:
        if group is self._open:
            self._hand_over()
        answer = group.answers()[place]
        if not answer:
            answer = self._read(group.pages[place])
        return _text_in(answer)

    def _read(self, page: Page) -> Answer:
        began = monotonic()
        if self._text_of is None:
            self._text_of = extractor(self._name)
        answer = _answer(self._text_of, page)
        self._spent_s += monotonic() - began
        return answer


@dataclass(slots=True)
class _Group:
    """Pages that one process reads, and their texts; one thread asks for these."""

    pages: list[Page] = field(default_factory=list)
    held_bytes: int = 0
    made: SimpleQueue[list[Answer]] = field(default_factory=SimpleQueue)
    _answers: list[Answer] | None = None

    def answers(self) -> list[Answer]:
        """Those of the pages, in their order, once they are there."""
        while self._answers is None:
            with suppress(Empty):
                self._answers = self.made.get(timeout=WAKE_S)
        return self._answers


class _Process:
    """A process that takes texts, and what its thread does.

    A page on which the process ends costs no other page of its group: they are read one by one.
    """

    def __init__(self, name: str, due: SimpleQueue[_Group | None]) -> None:
        self._name, self._due = name, due
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self.thread = Thread(target=self._run, name="simindex-extraction", daemon=True)

    def _run(self) -> None:
        """Answers group after group."""
        try:
            while (group := self._due.get()) is not None:
                answers: list[Answer] = [[] for _ in group.pages]
                try:
                    answers = self._answers(group.pages)
                finally:
                    group.made.put(answers)
        finally:
            self._stop()

    def close(self) -> None:
        """Ends the process. Its thread notices, and ends with the next None."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()

    def _answers(self, pages: list[Page]) -> list[Answer]:
        process = self._running()
        if process is None:
            return [[] for _ in pages]
        try:
            return _asked(process, pages)
        except (OSError, EOFError):
            code = self._stop()
        if len(pages) > 1:
            return [answer for page in pages for answer in self._answers([page])]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return [[None, f"the process that read it ended ({how})", None]]

    def _running(self) -> subprocess.Popen[bytes] | None:
        """The process; None if the system gives none, or it cannot begin."""
        if self._process is None and not self._closed and sys.executable:
            import subprocess  # documents that are not HTML need none

            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _COMMAND, self._name, *sys.path],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    process_group=0,  # an interrupt from the keyboard is for this process
                )
                begun = _received(self._process.stdout) == _READY
            except (OSError, EOFError):
                begun = False
            if not begun:
                self._stop()
        return None if self._closed else self._process

    def _stop(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        return process.wait()


def _asked(process: subprocess.Popen[bytes], pages: list[Page]) -> list[Answer]:
    """What a process answers; OSError or EOFError if it has ended."""
    _send(process.stdin, msgpack.packb(pages))
    answers: list[Answer] = msgpack.unpackb(
        _received(process.stdout), unicode_errors="surrogatepass"
    )
    if len(answers) != len(pages):
        raise EOFError
    return answers


def serve(name: str) -> None:
    """What the process does: answers what it reads from standard input, until that ends."""
    pipe, sys.stdout = sys.stdout.buffer, sys.stderr  # for what packages print
    text_of = extractor(name)
    try:
        _send(pipe, _READY)
        while True:
            pages = msgpack.unpackb(_received(sys.stdin.buffer))
            answers = [_answer_or_none(text_of, page) for page in pages]
            _send(pipe, msgpack.packb(answers, unicode_errors="surrogatepass"))
    except EOFError:
        pass
    except BrokenPipeError:  # the other process was killed; what is left in the pipe has no reader
        os._exit(1)


def _answer(text_of: Extractor, page: Page) -> Answer:
    try:
        return [text_of(*page)]
    except Unusable as reason:
        return [None, str(reason), reason.remedy]


def _answer_or_none(text_of: Extractor, page: Page) -> Answer:
    try:
        return _answer(text_of, page)
    except MemoryError:  # it may have been left anyhow
        raise SystemExit(1) from None
    except Exception:  # the other process reads the page itself, and raises it
        return []


def _text_in(answer: Answer) -> str:
    text, *reason = answer
    if text is None:
        raise Unusable(*reason)  # type: ignore[arg-type]
    return text


def _send(pipe: Any, data: bytes) -> None:
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(data)
    pipe.flush()


def _received(pipe: Any) -> bytes:
    head = pipe.read(_LENGTH_BYTES)
    data: bytes = pipe.read(int.from_bytes(head, "little"))
    if len(head) < _LENGTH_BYTES or len(data) < int.from_bytes(head, "little"):
        raise EOFError
    return data


def in_turn(
    items: Iterator[Document | Documents | Later], intake: Intake, extraction: Extraction
) -> Iterator[Document | Documents]:
    """Documents in the order of `items`, of which some wait for their texts.

    Bad records that are met meanwhile wait, too, and so does what `items` raises.
    """
    queue = _Queue()
    error: Exception | None = None
    intake.put_off = queue.put_off
    try:
        while True:
            try:
                item = next(items, None)
            except Exception as raised:
                error = raised
                break
            if item is None:
                break
            if queue.held_bytes == 0 and not isinstance(item, Later):
                # Nothing waits before it: notes of bad records need not wait either.
                yield item
                continue
            queue.put(item)
            if queue.held_bytes > extraction.ahead_bytes:
                yield from queue.drained(extraction.left_bytes)
        yield from queue.drained(0)
        if error is not None:
            raise error
    finally:
        intake.put_off, error = None, None


class _Queue:
    """What waits for texts, or behind something that does."""

    def __init__(self) -> None:
        self._waiting: deque[Later] = deque()
        self._is_at_first = False
        self.held_bytes = 0
        """Of what waits; 0 if nothing does."""

    def put(self, item: Document | Documents | Later) -> None:
        """Takes the last one."""
        if not isinstance(item, Later):
            document = item
            item = Later(lambda: document, document.held_bytes)
        self._waiting.append(item)
        self.held_bytes += item.held_bytes

    def drained(self, left: int) -> Iterator[Document | Documents]:
        """The documents of the first ones, until no more than `left` bytes wait."""
        while self.held_bytes > left:
            document = self.first()
            if document is not None:
                yield document

    def first(self) -> Document | Documents | None:
        """Waits for the first one, and gives its document if it has one."""
        first = self._waiting.popleft()
        self.held_bytes -= first.held_bytes
        self._is_at_first = True
        try:
            return first.document()
        finally:
            self._is_at_first = False

    def put_off(self, note: Callable[[], None]) -> bool:
        """Takes the note of a bad record, unless its turn has come."""
        if self._is_at_first or not self._waiting:
            return False
        self.put(Later(note, 1))
        return True
