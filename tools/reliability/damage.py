"""Damaged files: a typed error or the right answer, whatever was done to which file.

    specimen   a small index of every kind of file, with its truth: rows and names in plain arrays
    case       a copy of a specimen, one file of one kind damaged in one way
    child      a fork that reads it in every way, then writes to it: judged by the truth

A child has 10 s of the processor and 256 MB beyond its parent's. What it may do: give the right
answer, or raise a SimindexError (or PermissionError, where permissions are the damage). What it
must not: end by a signal, hang, answer wrong, or, as a reader, change a byte of the directory or of
what lies outside. After a repair the index must be whole, and need no other.

Some damage has checksums that hold: what was written is not what should have been. There no answer
is judged, since nothing tells which content is right; all else is.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from reliability.forgery import altered, altered_record, disordered
from reliability.report import Outcome, Pace
from reliability.specimens import Rows, Specimen, batch, judgements, make, named
from simindex.errors import SimindexError

PAGE = 4096
LIMIT_BYTES = 256 << 20
LIMIT_CPU_S, LIMIT_S = 10, 300.0
"""Of the processor, and by the clock: a machine may be busy with other things."""

DAMAGED_SHAPES = ("plain", "keyed", "aged", "sketched", "wide", "bytes", "many")

# -- damage ---------------------------------------------------------------------------------------


def _patch(path: Path, change: Callable[[bytearray], None]) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def _flip(rng: random.Random, path: Path, count: int) -> None:
    def change(data: bytearray) -> None:
        for _ in range(count):
            if data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)

    _patch(path, change)


def _burst(rng: random.Random, path: Path) -> None:
    def change(data: bytearray) -> None:
        at = rng.randrange(len(data))
        data[at : at + 4] = rng.randbytes(len(data[at : at + 4]))

    _patch(path, change)


def _set(rng: random.Random, path: Path) -> None:
    def change(data: bytearray) -> None:
        data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])

    _patch(path, change)


def _zero(rng: random.Random, path: Path, size: int) -> None:
    def change(data: bytearray) -> None:
        at = rng.randrange(-(-len(data) // size)) * size
        data[at : at + size] = bytes(len(data[at : at + size]))

    _patch(path, change)


def _random_page(rng: random.Random, path: Path) -> None:
    def change(data: bytearray) -> None:
        at = rng.randrange(-(-len(data) // PAGE)) * PAGE
        data[at : at + PAGE] = rng.randbytes(len(data[at : at + PAGE]))

    _patch(path, change)


def _swap_pages(rng: random.Random, path: Path) -> None:
    def change(data: bytearray) -> None:
        a, b = (rng.randrange(max(1, len(data) // PAGE)) * PAGE for _ in "ab")
        data[a : a + PAGE], data[b : b + PAGE] = data[b : b + PAGE], data[a : a + PAGE]

    _patch(path, change)


def _cut(rng: random.Random, path: Path, unit: int) -> None:
    size = path.stat().st_size
    os.truncate(path, rng.randrange(max(1, -(-size // unit))) * unit)


def _extend(rng: random.Random, path: Path) -> None:
    size = rng.choice([1, 64, PAGE, 65536, 1 << 20])
    with path.open("ab") as file:
        file.write(rng.randbytes(size) if rng.random() < 0.5 else bytes(size))


def _replace(path: Path, source: Path) -> None:
    path.unlink()
    shutil.copy(source, path)


def _swap(rng: random.Random, case: Case) -> None:
    others = [f for f in case.specimen.files(case.kind) if f != case.file]
    other = case.path / rng.choice(others)
    mine = case.path / case.file
    between = mine.with_name("between")
    mine.rename(between)
    other.rename(mine)
    between.rename(other)


def _special(path: Path, make: Callable[[Path], Any]) -> None:
    path.unlink()
    make(path)


def _link(case: Case) -> None:
    """To a copy outside, which nobody may touch."""
    outside = case.path.with_name("outside")
    (case.path / case.file).rename(outside)
    (case.path / case.file).symlink_to(outside)


LIVE = ("FORMAT", "data.mdb", ".rows", ".bphs", ".issl", ".dead")
KINDS = (*LIVE, "LOCK", "lock.mdb", "stray")

Damage = Callable[[random.Random, "Case"], None]


def _on_file(act: Callable[[random.Random, Path], None]) -> Damage:
    return lambda rng, case: act(rng, case.path / case.file)


DAMAGES: dict[str, tuple[Damage, tuple[str, ...], int]] = {
    # what: (act, kinds of file, weight)
    "bit": (_on_file(lambda rng, path: _flip(rng, path, 1)), KINDS, 3),
    "two bits": (_on_file(lambda rng, path: _flip(rng, path, 2)), KINDS, 2),
    "burst": (_on_file(_burst), KINDS, 2),
    "byte set": (_on_file(_set), KINDS, 2),
    "512 B zero": (_on_file(lambda rng, path: _zero(rng, path, 512)), KINDS, 2),
    "4 KiB zero": (_on_file(lambda rng, path: _zero(rng, path, PAGE)), KINDS, 2),
    "random page": (_on_file(_random_page), KINDS, 2),
    "pages swapped": (_on_file(_swap_pages), ("data.mdb", ".rows", ".bphs", ".issl", ".dead"), 2),
    "cut": (_on_file(lambda rng, path: _cut(rng, path, 1)), KINDS, 2),
    "cut at page": (_on_file(lambda rng, path: _cut(rng, path, PAGE)), KINDS, 2),
    "extended": (_on_file(_extend), KINDS, 2),
    "older copy": (
        lambda rng, case: _replace(case.path / case.file, case.specimen.older / case.file),
        ("FORMAT", "data.mdb", "LOCK", "lock.mdb"), 1,
    ),
    "of another index": (
        lambda rng, case: _replace(
            case.path / case.file,
            case.specimen.other / case.file if "segments" not in case.file
            else rng.choice(sorted((case.specimen.older / "segments").iterdir())),
        ),
        ("FORMAT", "data.mdb", "LOCK", "lock.mdb", ".rows", ".bphs", ".issl", ".dead"), 1,
    ),
    "swapped": (_swap, (".rows", ".bphs", ".issl", ".dead"), 1),
    "deleted": (_on_file(lambda rng, path: path.unlink()), KINDS, 1),
    "directory": (_on_file(lambda rng, path: _special(path, os.mkdir)), KINDS, 1),
    "symlink": (lambda rng, case: _link(case), KINDS, 1),
    "fifo": (_on_file(lambda rng, path: _special(path, os.mkfifo)), KINDS, 1),
    "permissions": (_on_file(lambda rng, path: path.chmod(0)), KINDS, 1),
    "forged order": (
        lambda rng, case: disordered(rng, case.path, case.path / case.file),
        (".rows", ".bphs", ".issl", ".dead"), 2,
    ),
    "forged values": (
        lambda rng, case: altered(rng, case.path, case.path / case.file),
        (".rows", ".bphs", ".issl", ".dead"), 2,
    ),
    "forged record": (lambda rng, case: altered_record(rng, case.path), ("data.mdb",), 4),
}
FORGED = frozenset({"forged order", "forged values", "forged record"})
"""Damage under checksums that hold."""


@dataclass
class Case:
    """One file of one index damaged in one way."""

    number: int
    specimen: Specimen
    kind: str
    file: str
    damage: str
    path: Path


def plan(specimens: list[Specimen], goal: int, rng: random.Random) -> list[tuple[str, str, str]]:
    """(specimen, kind, damage) of each case: all combinations in turn, by their weights."""
    every = [
        (specimen.name, kind, damage)
        for damage, (_, kinds, weight) in DAMAGES.items()
        for kind in kinds
        for _ in range(weight * (2 if kind in LIVE else 1))
        for specimen in specimens
        if specimen.files(kind)
        and (specimen.name != "many" or kind == "data.mdb")
        and not (damage == "swapped" and len(specimen.files(kind)) < 2)
    ]
    rng.shuffle(every)
    return [every[i % len(every)] for i in range(goal)]


# -- judging --------------------------------------------------------------------------------------


def digests(directory: Path) -> dict[str, str]:
    """Of all files below a directory, links not followed; of `lock.mdb` nothing."""
    found = {}
    for root, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(root) / name
            mode = path.lstat()
            what = f"{mode.st_mode:o} {mode.st_size if name in files else 0}"
            if name == "lock.mdb":
                continue
            if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK):
                what += f" {zlib.crc32(path.read_bytes()):x}"
            found[str(path.relative_to(directory))] = what
    return found


def examine(case: Case, *, drop: bool = False) -> dict[str, Any]:
    """What a reader and then a writer make of a case; runs in the child."""
    specimen = case.specimen
    found: dict[str, Any] = {"errors": Counter(), "wrong": [], "untyped": []}
    states = [specimen.rows]
    if case.damage == "older copy" and case.kind == "data.mdb":
        # A whole catalog of an earlier commit, with all files it names, is that commit.
        states.append(specimen.older_rows)

    def attempt(name: str, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except SimindexError as error:
            found["errors"][type(error).__name__] += 1
            found.setdefault("said", []).append(f"{name}: {error}")
        except PermissionError as error:
            if case.damage == "permissions":
                found["errors"]["PermissionError"] += 1
            else:
                found["untyped"].append(f"{name}: {error!r}")
        except BaseException:
            found["untyped"].append(f"{name}: {traceback.format_exc(limit=-3)}")
        return None

    def read(index: simindex.Index, states: list[Rows], session: str) -> None:
        few = session != "r"
        each = [list(judgements(index, specimen, rows, case.number, few=few)) for rows in states]
        for calls in zip(*each, strict=True):
            name = f"{session} {calls[0][0]}"
            right = attempt(name, partial(_any, [call for _, call in calls]))
            if right is False and case.damage not in FORGED:
                found["wrong"].append(name)

    outside = case.path.parent
    before = digests(outside) if not drop else {}
    index = attempt("open r", lambda: simindex.open(case.path, "r"))
    if index is not None:
        read(index, states, "r")
        attempt("close r", index.close)
    if not drop and digests(outside) != before:
        found["wrong"].append("a reader has written")
    attempt("repair", lambda: simindex.repair(case.path))
    if not drop:
        now = digests(outside)
        if any(now.get(name) != before.get(name) for name in {*now, *before} - {"index/LOCK"}):
            found["wrong"].append("a repair that was not to be applied has written")
    if drop:
        return found
    beyond = (outside / "outside").read_bytes() if (outside / "outside").is_file() else b""
    index = attempt("open w", lambda: simindex.open(case.path, "w"))
    if index is not None:
        write(case, index, states, attempt, read, found)
    repaired = attempt("repair w", lambda: simindex.repair(case.path, apply=True))
    if repaired is not None:
        attempt("repaired", lambda: found["wrong"].extend(left_by(repaired, case.path)))
    if beyond and (outside / "outside").read_bytes() != beyond:
        found["wrong"].append("a writer has written outside")
    return found


def left_by(report: simindex.RepairReport, path: Path) -> list[str]:
    """What is wrong after a repair: it must be nothing."""
    wrong = [f"repaired, and yet {finding}" for finding in report.remaining]
    try:
        with simindex.open(path) as index:
            rows = sum(len(batch.rows) for batch in index.rows())
            wrong += [f"repaired, and yet {f}" for f in index.check() if f.severity == "error"]
        if rows != report.rows:
            wrong.append(f"repaired, and yet {rows} rows, not {report.rows}")
        again = simindex.repair(path)
        if again.needed:
            wrong.append(f"repaired, and yet needed: {again.findings}")
    except SimindexError as error:
        wrong.append(f"repaired, and yet {error!r}")
    return wrong


def _any(calls: list[Callable[[], bool]]) -> bool:
    return any(call() for call in calls)


def write(
    case: Case, index: simindex.Index, states: list[Rows], attempt: Any, read: Any,
    found: dict[str, Any],
) -> None:
    """Appends, deletes, commits and compacts, then reads what came of it with another handle."""
    specimen = case.specimen
    rng = np.random.default_rng(case.number)
    width = specimen.rows.words.shape[1]
    names = named(index.options.keys, 2 * 10**6, 60)
    added = Rows(rng.integers(0, 1 << 64, (60, width), dtype=np.uint64), names)
    doomed = specimen.older_rows.names[10:12]

    def change() -> bool:
        index.append(batch(rng, added, specimen.keyed, index.options.sketch_bits))
        index.delete(**specimen.by_name(doomed))
        index.commit()
        return True

    changed = attempt("w change", change)
    after = [state.without(set(doomed)).plus(added) for state in states]
    if not changed:  # whether it was committed is for the next handle to see
        after = [*states, *after]
    attempt("w compact", lambda: index.compact(full=True))
    attempt("close w", index.close)
    again = attempt("open again", lambda: simindex.open(case.path, "r"))
    if again is not None:
        read(again, after, "again")
        attempt("close again", again.close)


# -- children -------------------------------------------------------------------------------------


def run_child(case: Case, *, drop: bool = False) -> dict[str, Any]:
    """Forks, examines and judges: what `examine` found, and how the child ended."""
    readable, writable = os.pipe()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(readable)
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 2)
            signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_CPU_S, LIMIT_CPU_S))
            data = _own_data() + LIMIT_BYTES
            resource.setrlimit(resource.RLIMIT_DATA, (data, data))
            if case.damage == "permissions" and os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            found = examine(case, drop=drop)
            with os.fdopen(writable, "w") as pipe:
                json.dump(found, pipe)
        except BaseException:
            with os.fdopen(writable, "w") as pipe:
                json.dump({"errors": {}, "wrong": [], "untyped": [traceback.format_exc()]}, pipe)
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    found = json.loads(text) if text else {"errors": {}, "wrong": [], "untyped": []}
    found["seconds"] = time.monotonic() - began
    found["hang"] = code in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL)
    found["signal"] = 0 if found["hang"] else code
    found["kilobytes"] = usage.ru_maxrss
    if not text and code == 0:
        found["untyped"].append("the child said nothing")
    return found


def _own_data() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return 1024 * int(line.split()[1])
    return 0


def prepare(case: Case, seed: int) -> None:
    """The damaged copy."""
    shutil.rmtree(case.path.parent, ignore_errors=True)
    case.path.parent.mkdir()
    shutil.copytree(case.specimen.path, case.path)
    rng = random.Random(f"{seed} {case.number}")
    if case.damage == "none":
        return
    case.file = rng.choice(case.specimen.files(case.kind))
    DAMAGES[case.damage][0](rng, case)
    if case.damage == "permissions":
        for path in (case.path.parent, *case.path.parent.rglob("*")):
            if path != case.path / case.file and os.geteuid() == 0:
                os.chown(path, 65534, 65534, follow_symlinks=False)
        if os.geteuid() == 0:
            os.chown(case.path / case.file, 65534, 65534)


@dataclass
class Tally:
    """Counts of some cases."""

    done: int = 0
    wrong: int = 0
    signals: int = 0
    hangs: int = 0
    refused: int = 0
    """Cases in which anything raised a typed error."""
    most_kilobytes: int = 0
    combinations: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, case: Case, found: dict[str, Any], grown: int) -> None:
        self.done += 1
        self.refused += bool(found["errors"])
        self.combinations[f"{case.kind} {case.damage}"] += 1
        self.most_kilobytes = max(self.most_kilobytes, found["kilobytes"])
        memory = found["kilobytes"] - grown > LIMIT_BYTES >> 10
        self.wrong += bool(found["wrong"])
        self.hangs += found["hang"]
        self.signals += bool(found["signal"] or found["untyped"] or memory)
        if found["wrong"] or found["hang"] or found["signal"] or found["untyped"] or memory:
            self.faults.append(
                f"case {case.number}: {case.specimen.name} {case.file} {case.damage}: "
                f"signal {found['signal']} hang {found['hang']} {found['kilobytes']} kB "
                f"wrong {found['wrong'][:4]} {' | '.join(found['untyped'])[:800]}"
            )


def work(
    specimens: dict[str, Specimen], cases: list[tuple[int, tuple[str, str, str]]], place: Path,
    seed: int, *, say: bool = False,
) -> Tally:
    """Runs some cases one after the other."""
    tally = Tally()
    for name in specimens:  # a healthy one gives no error at all; and what is loaded late is loaded
        case = Case(0, specimens[name], "stray", "", "none", place / "case" / "index")
        prepare(case, seed)
        found = examine(case)
        assert not found["errors"] and not found["wrong"] and not found["untyped"], found
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pace = Pace("damage, one job", len(cases))
    for number, (name, kind, damage) in cases:
        case = Case(number, specimens[name], kind, "", damage, place / "case" / "index")
        prepare(case, seed)
        faults = len(tally.faults)
        tally.add(case, run_child(case), grown)
        if say:
            pace.at(tally.done)
            for fault in tally.faults[faults:]:
                print(fault, file=sys.stderr, flush=True)
    shutil.rmtree(place / "case", ignore_errors=True)
    return tally


def trial(
    goal: int, seed: int, jobs: int, *, shapes: tuple[str, ...] = DAMAGED_SHAPES,
    only: str = "", say: bool = True,
) -> Tally:
    """`goal` cases over `jobs` processes."""
    shared = Path("/dev") / "shm"
    base = Path(tempfile.mkdtemp(prefix="damage-", dir=shared if shared.is_dir() else None))
    base.chmod(0o755)
    try:
        specimens = {name: make(base / "specimens", name, seed) for name in shapes}
        cases = list(enumerate(plan(list(specimens.values()), goal, random.Random(seed))))
        if only:
            cases = [case for case in cases if only in " ".join(case[1])]
        readers = []
        for job in range(jobs):
            readable, writable = os.pipe()
            if os.fork() == 0:
                code = 1
                try:
                    place = base / f"job{job}"
                    place.mkdir()
                    tally = work(specimens, cases[job::jobs], place, seed, say=say)
                    with os.fdopen(writable, "w") as pipe:
                        json.dump(vars(tally), pipe)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            os.close(writable)
            readers.append(readable)
        total = Tally()
        for readable in readers:
            with os.fdopen(readable) as pipe:
                text = pipe.read()
            part = Tally(**json.loads(text)) if text else Tally(signals=1)
            total.done += part.done
            total.wrong += part.wrong
            total.signals += part.signals
            total.hangs += part.hangs
            total.refused += part.refused
            total.most_kilobytes = max(total.most_kilobytes, part.most_kilobytes)
            total.combinations.update(part.combinations)
            total.faults += part.faults
        for _ in readers:
            os.wait()
        return total
    finally:
        shutil.rmtree(base, ignore_errors=True)


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """The whole trial: 200 and more of each kind of file and damage that can differ so often."""
    began = time.monotonic()
    tally = trial(goal, seed, jobs)
    least = min(tally.combinations.items(), key=lambda pair: pair[1])
    print(
        f"damage: {len(tally.combinations)} combinations, fewest {least[1]} ({least[0]}); "
        f"{tally.refused} of {tally.done} gave typed errors; at most "
        f"{tally.most_kilobytes >> 10} MB", file=sys.stderr,
    )
    return [
        Outcome(
            "damaged files", goal, tally.done, time.monotonic() - began, seed, wrong=tally.wrong,
            signals=tally.signals, hangs=tally.hangs,
        )
    ]
