"""Trials in processes of their own: forked, watched, and what they say counted.

    forked     one child that runs a function, says things through a pipe and ends
    Tally      what became of many trials, added up
    shared     a share of the trials in each of some interpreters, side by side

An interpreter that forks must have one thread and no index open: LMDB does not cross a fork.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import simindex
from reliability.report import Outcome


class Fault(Exception):
    """What a trial found wrong; `kind` is one of lost, wrong, signals, hangs and leaked."""

    def __init__(self, kind: str, note: str) -> None:
        super().__init__(f"{kind}: {note}")
        self.kind, self.note = kind, note


Say = Callable[[Any], None]
"""Sends one value, of what JSON knows, to the parent."""

PATIENCE_S = 60.0
"""A trial takes a tenth of a second; one that takes so long hangs, on any machine."""


NOTE_CHARACTERS = 1500


@dataclass(slots=True)
class Ended:
    """A child that has ended."""

    code: int
    """0; 1 after a Fault, or another exception, that was said last; minus the signal."""
    said: list[Any]
    hung: bool = False


class Child:
    """A running child; `wait` for it, or `kill` it and then wait."""

    def __init__(self, work: Callable[[Say], None]) -> None:
        readable, writable = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(readable)
                work(lambda value: _say(writable, value))
                code = 0
            except Fault as fault:
                _say(writable, {"kind": fault.kind, "note": fault.note})
            except BaseException:
                _say(writable, {"trace": traceback.format_exc()})
            finally:
                os._exit(code)
        os.close(writable)
        self._readable = readable
        self._heard = b""

    def hear(self, values: int, patience_s: float = PATIENCE_S) -> None:
        """Waits until it has said so many values, or has ended."""
        deadline = time.monotonic() + patience_s
        while self._heard.count(b"\n") < values:
            left = max(0, deadline - time.monotonic())
            ready, _, _ = select.select([self._readable], [], [], left)
            more = os.read(self._readable, 1 << 16) if ready else b""
            if not more:
                return
            self._heard += more

    def wait(self, patience_s: float = PATIENCE_S) -> Ended:
        """Its end, and all it said; one that does not end is killed."""
        deadline, hung = time.monotonic() + patience_s, False
        while True:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._readable], [], [], max(0, left))
            if not ready:
                hung = True
                self.kill()
                deadline = time.monotonic() + patience_s
                continue
            more = os.read(self._readable, 1 << 16)
            if not more:
                break
            self._heard += more
        os.close(self._readable)
        _, status = os.waitpid(self.pid, 0)
        lines = self._heard.split(b"\n")[:-1]  # of a killed child the last may be cut short
        return Ended(os.waitstatus_to_exitcode(status), [json.loads(line) for line in lines], hung)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends it a signal; one that has ended is a zombie still, so its id is its own."""
        os.kill(self.pid, number)


def _say(fd: int, value: Any) -> None:
    os.write(fd, json.dumps(value).encode() + b"\n")


def forked(work: Callable[[Say], None], patience_s: float = PATIENCE_S) -> Ended:
    """Runs a function in a child, to its end."""
    return Child(work).wait(patience_s)


@dataclass(slots=True)
class Tally:
    """What became of some trials."""

    done: int = 0
    lost: int = 0
    wrong: int = 0
    signals: int = 0
    hangs: int = 0
    leaked: int = 0
    notes: list[str] = field(default_factory=list)
    """What happened, one sentence for each fault."""
    counts: dict[str, int] = field(default_factory=dict)
    """Beside the faults: how often what was tried."""

    def count(self, what: str, times: int = 1) -> None:
        """Adds to a count."""
        self.counts[what] = self.counts.get(what, 0) + times

    def fault(self, kind: str, note: str) -> None:
        """Counts one of lost, wrong, signals, hangs and leaked."""
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.notes) < 50:
            self.notes.append(f"{kind}: {note[:NOTE_CHARACTERS]}")

    def judge(self, ended: Ended, note: str, *, killed: bool = False) -> bool:
        """Counts a child's end as a fault unless it went well, or was killed as it should be."""
        if ended.hung:
            self.fault("hangs", note)
        elif ended.code < 0 and not (killed and ended.code == -signal.SIGKILL):
            self.fault("signals", f"{note}: signal {-ended.code}")
        elif ended.code > 0:
            last = ended.said[-1] if ended.said else {}
            if "kind" in last:
                self.fault(last["kind"], f"{note}: {last['note']}")
            else:  # an error that nobody typed ends a program as a signal does
                self.fault("signals", f"{note}: {last.get('trace', 'no trace')}")
        else:
            return True
        return False

    def add(self, other: Mapping[str, Any]) -> None:
        """Adds what another tally counted, as `asdict` gives it."""
        for name in ("done", "lost", "wrong", "signals", "hangs", "leaked"):
            setattr(self, name, getattr(self, name) + other[name])
        self.notes += other["notes"]
        for what, times in other["counts"].items():
            self.count(what, times)

    def outcome(
        self, what: str, goal: int, seconds: float, seed: int, skipped: str = ""
    ) -> Outcome:
        """The line of the report; the notes go to the standard error."""
        for note in self.notes:
            print(note, file=sys.stderr)
        counted = ", ".join(f"{times:,} {name}" for name, times in sorted(self.counts.items()))
        print(f"{what}: {counted}", file=sys.stderr, flush=True)
        return Outcome(
            what=what, goal=goal, done=self.done, seconds=seconds, seed=seed, lost=self.lost,
            wrong=self.wrong, signals=self.signals, hangs=self.hangs, leaked=self.leaked,
            skipped=skipped,
        )


SERVE = """
import importlib, json, logging, sys
from dataclasses import asdict
logging.getLogger("simindex").addHandler(logging.NullHandler())  # nothing on the standard error
module, arguments = sys.argv[1], json.loads(sys.argv[2])
tally = importlib.import_module(module).share(**arguments)
print(json.dumps(asdict(tally)))
"""


def searched() -> str:
    """PYTHONPATH of an interpreter that tries what this one has imported, installed or not."""
    tools = Path(__file__).resolve().parents[1]
    package = Path(simindex.__file__).resolve().parents[1]
    installed = package.name in ("site-packages", "dist-packages")
    return os.pathsep.join(map(str, [tools] if installed else [tools, package]))


def shared(
    module: str, jobs: int, environment: Mapping[str, str] | None = None, **arguments: Any
) -> Tally:
    """Runs `share(part=, parts=, ...)` of a module of this package, `jobs` parts at a time.

    Each in an interpreter of its own, whose environment may name a library to be loaded first.
    """
    variables = {
        **os.environ, "PYTHONPATH": searched(),
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **(environment or {}),
    }
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE, f"reliability.{module}",
             json.dumps({"part": part, "parts": jobs, **arguments})],
            stdout=subprocess.PIPE, env=variables, text=True,
        )
        for part in range(jobs)
    ]
    tally = Tally()
    for process in running:
        said, _ = process.communicate()
        if process.returncode:
            tally.fault("signals", f"the trials of {module} ended with {process.returncode}")
        else:
            tally.add(json.loads(said.splitlines()[-1]))
    return tally


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder in memory where there is one, removed at the end."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


def parts_of(total: Sequence[Any], part: int, parts: int) -> Sequence[Any]:
    """The share of one of some interpreters."""
    return total[part::parts]
