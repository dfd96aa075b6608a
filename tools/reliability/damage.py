"""Damaged files: a typed error or the right answer, whatever was done to which file.

    template   a small index of every kind of file, with its truth: rows and names in plain arrays
    case       a copy of a template, one file of one kind damaged in one way
    child      a fork that reads it in every way, then writes to it: judged by the truth

A child has 20 s and 256 MB beyond its parent's. What it may do: give the right answer, or raise a
SimindexError (or PermissionError, where permissions are the damage). What it must not: end by a
signal, hang, answer wrong, or, as a reader, change a byte of the directory or of what lies outside.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import simindex
from reliability.report import Outcome
from simindex import Batch, IndexOptions
from simindex.errors import SimindexError

PAGE = 4096
LIMIT_BYTES = 256 << 20
LIMIT_S = 20.0

U64 = NDArray[np.uint64]


# -- templates ------------------------------------------------------------------------------------


@dataclass
class Rows:
    """What an index holds: fingerprints (n, W) and names, ids or keys, one a row."""

    words: U64
    names: list[Any]

    def plus(self, other: Rows) -> Rows:
        return Rows(np.concatenate([self.words, other.words]), self.names + other.names)

    def without(self, doomed: set[Any]) -> Rows:
        kept = [i for i, name in enumerate(self.names) if name not in doomed]
        return Rows(self.words[kept], [self.names[i] for i in kept])

    @property
    def counted(self) -> Counter[tuple[bytes, Any]]:
        return Counter((row.tobytes(), name) for row, name in zip(self.words, self.names,
                                                                  strict=True))


@dataclass
class Template:
    """An index on disk, an earlier state of it, another index of the same options, their truths."""

    name: str
    path: Path
    older: Path
    other: Path
    rows: Rows
    older_rows: Rows
    queries: U64
    weights: NDArray[np.float32]
    keyed: bool
    structures: tuple[str, ...]
    strays: list[str] = field(default_factory=list)

    def files(self, kind: str) -> list[str]:
        """Files of a kind, as names below the index."""
        if kind == "stray":
            return self.strays
        if kind in ("FORMAT", "LOCK"):
            return [kind]
        if kind.endswith(".mdb"):
            return [f"catalog/{kind}"]
        found = [f"segments/{p.name}" for p in (self.path / "segments").iterdir()]
        return sorted(f for f in found if f.endswith(kind) and f not in self.strays)


def _names(kind: Any, first: int, count: int) -> list[Any]:
    if kind is False:
        return list(range(first, first + count))
    texts = [f"page/{number}/é" * (1 + number % 3) for number in range(first, first + count)]
    return texts if kind == "str" else [text.encode() for text in texts]


def _batch(rng: np.random.Generator, rows: Rows, keyed: bool) -> Batch:
    weights = np.abs(rng.standard_normal((len(rows.words), rows.words.shape[1] * 64)))
    bits = np.unpackbits(rows.words.astype(">u8").view(np.uint8), axis=1).astype(np.float32)
    signed = (weights * (2 * bits - 1)).astype(np.float32)
    named = {"keys": rows.names} if keyed else {"ids": np.array(rows.names, np.uint64)}
    return Batch(rows.words, weights=signed, **named)


def _near(rng: np.random.Generator, words: U64, flips: int) -> U64:
    near = words.copy()
    for row in near:
        for bit in rng.integers(0, 64 * words.shape[1], flips):
            row[int(bit) // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    return near


SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"structures": ("psm", "bphs:G=2,g=1", "issl")},
    "keyed": {"keys": "str", "structures": ("psm", "bphs:G=3,g=1,r=1")},
    "wide": {"bits": 256, "structures": ("psm", "issl:w=8", "bphs:G=4,g=1")},
    "bytes": {"keys": "bytes", "bits": 128, "structures": ("psm",)},
    "many": {"structures": ("psm", "bphs:G=4,g=1", "issl")},
}


def make_template(directory: Path, name: str, seed: int = 0) -> Template:
    """An index of one shape: several segments, pending rows, deletions, a sample of weights."""
    shape = SHAPES[name]
    many = name == "many"
    options = IndexOptions(batch_rows=8 if many else 400, min_merge=0, reservoir_rows=8, **shape)
    keyed = options.keys is not False
    paths = [directory / name / part for part in ("index", "older", "other")]
    paths[0].parent.mkdir(parents=True)
    truths = []
    for path, number in ((paths[0], 0), (paths[2], 1)):
        rng = np.random.default_rng([seed, number, len(name)])
        rows = Rows(np.empty((0, options.words), np.uint64), [])
        older = rows
        with simindex.open(path, "n", options=options) as index:
            for step in range(24 if many else 4):
                count = 3 if many else 60
                if step == 0 and number == 1:
                    count = 2  # pending rows only, so that its catalog needs no other file
                words = rng.integers(0, 1 << 64, (count, options.words), dtype=np.uint64)
                if len(rows.words):  # near-duplicates and equal rows among others
                    words[:2] = _near(rng, rows.words[-2:], step % 3)
                added = Rows(words, _names(options.keys, 1000 * step, count))
                index.append(_batch(rng, added, keyed))
                index.commit()
                rows = rows.plus(added)
                if step == 1:
                    doomed = rows.names[1:3]
                    index.delete(**({"keys": doomed} if keyed else {"ids": doomed}))
                    index.commit()
                    rows = rows.without(set(doomed))
                    older = rows
                    if number == 0:
                        shutil.copytree(path, paths[1])
                if number == 1:
                    break
            if number == 0:
                tail = Rows(
                    rng.integers(0, 1 << 64, (5, options.words), dtype=np.uint64),
                    _names(options.keys, 10**6, 5),
                )
                if not many:
                    index.append(_batch(rng, tail, keyed))
                    index.commit()
                    rows = rows.plus(tail)
                doomed = rows.names[5:7]
                index.delete(**({"keys": doomed} if keyed else {"ids": doomed}))
                index.commit()
                rows = rows.without(set(doomed))
        truths.append((rows, older))
    rows, older = truths[0]
    rng = np.random.default_rng(seed + 7)
    queries = np.concatenate([
        rows.words[::40][:6], _near(rng, rows.words[3::50][:4], 2),
        rng.integers(0, 1 << 64, (2, options.words), dtype=np.uint64),
    ])
    weights = rng.standard_normal((len(queries), options.bits)).astype(np.float32)
    bits = np.unpackbits(queries.astype(">u8").view(np.uint8), axis=1)
    weights = (np.abs(weights) * (2.0 * bits - 1)).astype(np.float32)
    template = Template(name, paths[0], paths[1], paths[2], rows, older, queries, weights, keyed,
                        options.structures)
    # Two strays: of an interrupted write, and of a commit that never came.
    live = template.files(".rows")[0]
    template.strays = ["segments/.tmp-0123456789abcdef", "segments/0000000000000001-0badcafe.rows"]
    for stray in template.strays:
        shutil.copy(template.path / live, template.path / stray)
    return template


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
        file.write(rng.choice([bytes, rng.randbytes])(size))


def _replace(path: Path, source: Path) -> None:
    path.unlink()
    shutil.copy(source, path)


def _swap(rng: random.Random, case: Case) -> None:
    others = [f for f in case.template.files(case.kind) if f != case.file]
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


LIVE = ("FORMAT", "data.mdb", ".rows", ".bphs", ".issl")
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
    "pages swapped": (_on_file(_swap_pages), ("data.mdb", ".rows", ".bphs", ".issl"), 2),
    "cut": (_on_file(lambda rng, path: _cut(rng, path, 1)), KINDS, 2),
    "cut at page": (_on_file(lambda rng, path: _cut(rng, path, PAGE)), KINDS, 2),
    "extended": (_on_file(_extend), KINDS, 2),
    "older copy": (
        lambda rng, case: _replace(case.path / case.file, case.template.older / case.file),
        ("FORMAT", "data.mdb", "LOCK", "lock.mdb"), 1,
    ),
    "of another index": (
        lambda rng, case: _replace(
            case.path / case.file,
            case.template.other / case.file if "segments" not in case.file
            else rng.choice(sorted((case.template.older / "segments").iterdir())),
        ),
        ("FORMAT", "data.mdb", "LOCK", "lock.mdb", ".rows", ".bphs", ".issl"), 1,
    ),
    "swapped": (_swap, (".rows", ".bphs", ".issl"), 1),
    "deleted": (_on_file(lambda rng, path: path.unlink()), KINDS, 1),
    "directory": (_on_file(lambda rng, path: _special(path, os.mkdir)), KINDS, 1),
    "symlink": (lambda rng, case: _link(case), KINDS, 1),
    "fifo": (_on_file(lambda rng, path: _special(path, os.mkfifo)), KINDS, 1),
    "permissions": (_on_file(lambda rng, path: path.chmod(0)), KINDS, 1),
}


@dataclass
class Case:
    """One file of one index damaged in one way."""

    number: int
    template: Template
    kind: str
    file: str
    damage: str
    path: Path


def plan(templates: list[Template], goal: int, rng: random.Random) -> list[tuple[str, str, str]]:
    """(template, kind, damage) of each case: all combinations in turn, by their weights."""
    every = [
        (template.name, kind, damage)
        for damage, (_, kinds, weight) in DAMAGES.items()
        for kind in kinds
        for _ in range(weight * (2 if kind in LIVE else 1))
        for template in templates
        if template.files(kind)
        and (template.name != "many" or kind == "data.mdb")
        and not (damage == "swapped" and len(template.files(kind)) < 2)
    ]
    rng.shuffle(every)
    return [every[i % len(every)] for i in range(goal)]


# -- judging --------------------------------------------------------------------------------------


def apart(rows: Rows, queries: U64) -> NDArray[np.int64]:
    """Hamming distances (m, n), by brute force."""
    return np.bitwise_count(queries[:, None] ^ rows.words[None]).sum(axis=2, dtype=np.int64)


def expected(rows: Rows, queries: U64, h: int) -> set[tuple[int, int, Any]]:
    """(query, distance, name) of all within h."""
    near = apart(rows, queries)
    return {
        (int(query), int(near[query, row]), rows.names[row])
        for query, row in zip(*np.nonzero(near <= h), strict=True)
    }


def matched(found: simindex.Matches) -> list[tuple[int, int, Any]]:
    """The same of an answer."""
    keys = found.keys()
    names = found.id.tolist() if keys is None else keys
    return list(zip(found.query.tolist(), found.distance.tolist(), names, strict=True))


Judgement = tuple[str, Callable[[], bool]]


def judgements(
    index: simindex.Index, template: Template, rows: Rows, *, few: bool = False
) -> Iterator[Judgement]:
    """(name, call) of every way to read: a call returns whether its answer is right.

    With `few`, only of those by which all rows are read.
    """
    queries, weighted = template.queries, Batch(template.queries, weights=template.weights)
    asked = queries[:, 0] if queries.shape[1] == 1 else queries
    many = np.concatenate([asked] * 6)

    def exact(h: int, given: Any = asked, **options: Any) -> bool:
        shape = np.asarray(given).reshape(len(given), -1) if given is not weighted else queries
        answer = matched(index.query(given, h=h, **options))
        return sorted(answer) == sorted(expected(rows, shape.astype(np.uint64), h))

    def some() -> bool:
        return set(matched(index.query(weighted, h=3, recall=0.9, method="psm"))) <= expected(
            rows, queries, 3
        )

    def first() -> bool:
        answer = matched(index.query(asked, h=3, first=True, method="scan"))
        truth = expected(rows, queries, 3)
        return set(answer) <= truth and sorted(a[0] for a in answer) == sorted(
            {a[0] for a in truth}
        )

    def nearest(**options: Any) -> bool:
        found = index.top(asked, k=3, **options)
        best: dict[Any, NDArray[np.int64]] = {}
        near = apart(rows, queries)
        for row, name in enumerate(rows.names):
            best[name] = np.minimum(best.get(name, near[:, row]), near[:, row])
        right = np.sort(np.array(list(best.values())).T, axis=1)[:, :3]
        return np.array_equal(found.distances, right)

    def pairs() -> bool:
        got = Counter(
            (int(a), int(b), int(d))
            for part in index.pairs(h=2) for a, b, d in zip(part.a, part.b, part.distance,
                                                            strict=True)
        )
        near = np.triu(apart(rows, rows.words) <= 2, 1)
        return sum(got.values()) == sum(
            rows.names[a] != rows.names[b] for a, b in zip(*np.nonzero(near), strict=True)
        )

    def stored() -> bool:
        got: Counter[tuple[bytes, Any]] = Counter()
        for batch in index.rows(chunk_rows=64):
            names = batch.ids.tolist() if batch.keys is None else list(batch.keys)
            words = batch.fingerprints.reshape(len(batch), -1)
            got.update((row.tobytes(), name) for row, name in zip(words, names, strict=True))
        return got == rows.counted

    yield "rows", stored
    yield "scan", lambda: exact(3, method="scan")
    yield "check", lambda: index.check() is not None
    if few:
        return
    yield "len", lambda: len(index) == len(rows.names)
    yield "psm", lambda: exact(1, method="psm")
    if any(name.startswith("bphs") for name in template.structures):
        yield "bphs", lambda: exact(1 if "G=2" in str(template.structures) else 2, method="bphs")
    if any(name.startswith("issl") for name in template.structures):
        yield "issl", lambda: exact(3, method="issl")
        yield "top issl", lambda: index.top(asked, k=3, method="issl").ids.shape == (len(asked), 3)
    yield "auto", lambda: exact(3)
    yield "batch", lambda: exact(3, many, threads=2)
    yield "recall", some
    yield "first", first
    yield "top", lambda: nearest(method="scan")
    yield "pairs", pairs
    yield "limited", lambda: exact(1, many, method="bphs", memory_limit=64 << 20)
    yield "stats", lambda: index.stats(skew=True).rows == len(rows.names)


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
    template = case.template
    found: dict[str, Any] = {"errors": Counter(), "wrong": [], "untyped": []}
    states = [template.rows]
    if case.damage == "older copy" and case.kind == "data.mdb":
        # A whole catalog of an earlier commit, with all files it names, is that commit.
        states.append(template.older_rows)

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
        each = [list(judgements(index, template, rows, few=few)) for rows in states]
        for calls in zip(*each, strict=True):
            name = f"{session} {calls[0][0]}"
            if attempt(name, lambda calls=calls: any(call() for _, call in calls)) is False:
                found["wrong"].append(name)

    outside = case.path.parent
    before = digests(outside) if not drop else {}
    index = attempt("open r", lambda: simindex.open(case.path, "r"))
    if index is not None:
        read(index, states, "r")
        attempt("close r", index.close)
    if not drop and digests(outside) != before:
        found["wrong"].append("a reader has written")
    if drop:
        return found
    beyond = (outside / "outside").read_bytes() if (outside / "outside").is_file() else b""
    index = attempt("open w", lambda: simindex.open(case.path, "w"))
    if index is not None:
        write(case, index, states, attempt, read, found)
    if beyond and (outside / "outside").read_bytes() != beyond:
        found["wrong"].append("a writer has written outside")
    return found


def write(
    case: Case, index: simindex.Index, states: list[Rows], attempt: Any, read: Any,
    found: dict[str, Any],
) -> None:
    """Appends, deletes, commits and compacts, then reads what came of it with another handle."""
    template = case.template
    rng = np.random.default_rng(case.number)
    width = template.rows.words.shape[1]
    names = _names(index.options.keys, 2 * 10**6, 60)
    added = Rows(rng.integers(0, 1 << 64, (60, width), dtype=np.uint64), names)
    doomed = template.older_rows.names[10:12]

    def change() -> bool:
        index.append(_batch(rng, added, template.keyed))
        index.delete(**({"keys": doomed} if template.keyed else {"ids": doomed}))
        index.commit()
        return True

    changed = attempt("w change", change)
    after = [state.without(set(doomed)).plus(added) for state in states] if changed else states
    compacted = attempt("w compact", lambda: index.compact(full=True) or True)
    attempt("close w", index.close)
    if changed is None and compacted is None:
        after = [*after, *(state.without(set(doomed)).plus(added) for state in states)]
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
    found["hang"] = code == -signal.SIGALRM
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
    shutil.copytree(case.template.path, case.path)
    rng = random.Random(f"{seed} {case.number}")
    if case.damage == "none":
        return
    case.file = rng.choice(case.template.files(case.kind))
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
                f"case {case.number}: {case.template.name} {case.file} {case.damage}: "
                f"signal {found['signal']} hang {found['hang']} {found['kilobytes']} kB "
                f"wrong {found['wrong'][:4]} {' | '.join(found['untyped'])[:800]}"
            )


def work(
    templates: dict[str, Template], cases: list[tuple[int, tuple[str, str, str]]], place: Path,
    seed: int, *, say: bool = False,
) -> Tally:
    """Runs some cases one after the other."""
    tally = Tally()
    for name in templates:  # a healthy one gives no error at all; and what is loaded late is loaded
        case = Case(0, templates[name], "stray", "", "none", place / "case" / "index")
        prepare(case, seed)
        found = examine(case)
        assert not found["errors"] and not found["wrong"] and not found["untyped"], found
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, (name, kind, damage) in cases:
        case = Case(number, templates[name], kind, "", damage, place / "case" / "index")
        prepare(case, seed)
        faults = len(tally.faults)
        tally.add(case, run_child(case), grown)
        if say:
            for fault in tally.faults[faults:]:
                print(fault, file=sys.stderr, flush=True)
    shutil.rmtree(place / "case", ignore_errors=True)
    return tally


def trial(
    goal: int, seed: int, jobs: int, *, shapes: tuple[str, ...] = tuple(SHAPES),
    only: str = "", say: bool = True,
) -> Tally:
    """`goal` cases over `jobs` processes."""
    shared = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(prefix="damage-", dir=shared if shared.is_dir() else None))
    base.chmod(0o755)
    try:
        templates = {name: make_template(base / "templates", name, seed) for name in shapes}
        cases = list(enumerate(plan(list(templates.values()), goal, random.Random(seed))))
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
                    tally = work(templates, cases[job::jobs], place, seed, say=say)
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
