"""The states that a power cut may leave on the disk, out of the trace of a workload.

What is durable is what the calls promise, and no more:

    bytes of a file           after the next Sync of that file
    bytes of a SyncedWrite    at once
    names in a directory      after the next SyncNames of that directory
    everything else           is pending: any part of it may be on the disk, in any order

So no help of a particular file system is counted on: a name may last without its bytes, bytes
without their name, a later write without an earlier one. What a write leaves may be torn: a prefix
of it, or the length it gave the file without a byte. A rename is one change, a `SyncedWrite` of
LMDB's meta page, which lies within a sector of 512 bytes, another.

After every operation of a trace these states are possible, among others, and given out:

    all that is pending, none of it, names only, bytes only
    all but one, one alone                                          each pending operation
    one torn, with and without the others                           five lengths, and zeros
    some                                                            drawn by the seed

A write that is dropped while a later one stays is what reordering comes to.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from reliability.recorder import (
    OPAQUE,
    Begin,
    Content,
    Exchange,
    Name,
    Operation,
    Rename,
    Resize,
    Sync,
    SyncedWrite,
    SyncNames,
    Tree,
    Write,
    page_of,
)

WHOLE = -1
ZEROS = -2
"""A write of which only the length is there."""

Parts = tuple[tuple[int, int], ...]
"""Places in the trace of operations applied, each with how many bytes of it: `WHOLE`, or torn."""

Choice = dict[int, int]
"""The same of everything pending."""


@dataclass(frozen=True, slots=True)
class Version:
    """A file's bytes: those durable at one of its syncs, and what was applied since."""

    file: int
    synced: int
    parts: Parts


Layout = tuple[tuple[str, Version | None], ...]
"""Paths with their bytes, sorted; None for a directory."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a crash must have left: states and commits from the one promised to the one begun."""

    acknowledged: int
    begun: int
    generation: int


@dataclass(slots=True)
class CrashState:
    """One directory that a power cut may leave, and all that was promised when it may be."""

    digest: bytes
    layout: Layout
    why: str
    rank: int
    """How plain: 0 for none, 1 for all, names or bytes, 2 for one operation, 3 torn, 4 drawn."""
    promises: list[Promise] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    synced: int = 0
    applied: dict[int, bool] = field(default_factory=dict)
    """Operations since the last sync, in order; whether they are durable all the same."""


class Replay:
    """A trace, and what may be left of it. `states` gives each content once."""

    def __init__(
        self, start: Tree, trace: Sequence[Operation], promise: Promise = Promise(0, 0, 0)
    ) -> None:
        self._start, self._trace, self._promise = start, trace, promise
        self._bases: dict[tuple[int, int], Content] = {
            (file, 0): content for file, content in start.files.items()
        }
        self._digests: dict[Version, bytes] = {}
        self._names = {node: dict(names) for node, names in start.directories.items()}
        self._pending_names: dict[int, None] = {}
        self._files: dict[int, _File] = {}
        self._known: dict[bytes, CrashState] = {}
        made = (op.node for op in trace if isinstance(op, Name) and op.is_directory)
        self._directories = {*start.directories, *made}

    # -- contents ----------------------------------------------------------------------------------

    def content(self, version: Version) -> Content:
        """A file's bytes."""
        base = self._bases.get((version.file, version.synced), Content())
        if not version.parts:
            return base
        data, size = bytearray(base.data), base.size
        for place, part in version.parts:
            operation = self._trace[place]
            if isinstance(operation, Resize):
                if operation.cuts or operation.size > size:
                    size = operation.size
                    del data[size:]
                continue
            assert isinstance(operation, Write | SyncedWrite)
            end = operation.offset + len(operation.data)
            piece = operation.data if part == WHOLE else operation.data[: max(0, part)]
            size = max(size, end if part == ZEROS else operation.offset + len(piece))
            if piece:
                if len(data) < operation.offset:
                    data += bytes(operation.offset - len(data))
                data[operation.offset : operation.offset + len(piece)] = piece
        return Content(bytes(data).rstrip(b"\0"), size)

    def _digest(self, version: Version) -> bytes:
        known = self._digests.get(version)
        if known is None:
            content = self.content(version)
            digest = blake2b(content.data, digest_size=16)
            digest.update(content.size.to_bytes(8, "little"))
            known = self._digests[version] = digest.digest()
        return known

    def build(self, layout: Layout, root: Path) -> None:
        """Makes the directory of a state below `root`, which is empty."""
        for name, version in layout:
            if version is None:
                (root / name).mkdir()
            else:
                self.content(version).write(root / name)

    # -- the walk ----------------------------------------------------------------------------------

    def _file(self, number: int) -> _File:
        return self._files.setdefault(number, _File())

    def _is_durable(self, place: int, operation: Operation) -> bool:
        """Applies an operation; returns whether anything became durable by it."""
        if isinstance(operation, Write | Resize):
            self._file(operation.file).applied[place] = False
        elif isinstance(operation, SyncedWrite):
            self._file(operation.file).applied[place] = True
            return True
        elif isinstance(operation, Sync):
            file = self._file(operation.file)
            if file.applied:
                parts = tuple((place, WHOLE) for place in file.applied)
                content = self.content(Version(operation.file, file.synced, parts))
                file.synced += 1
                self._bases[operation.file, file.synced] = content
                file.applied = {}
                return True
        elif isinstance(operation, Name | Rename):
            self._pending_names[place] = None
        elif isinstance(operation, SyncNames):
            synced = [
                place for place in self._pending_names
                if operation.directory in _directories_of(self._trace[place])
            ]
            for place in synced:
                _apply_name(self._names, self._trace[place])
                del self._pending_names[place]
            return bool(synced)
        elif isinstance(operation, Begin):
            self._promise = Promise(
                self._promise.acknowledged, operation.state, self._promise.generation
            )
            return True
        else:
            self._promise = Promise(operation.state, operation.state, operation.generation)
            return True
        return False

    def _layout(self, choice: Choice) -> Layout:
        names = self._names
        if any(place in choice for place in self._pending_names):
            names = {node: dict(inside) for node, inside in names.items()}
            for place in self._pending_names:
                if place in choice:
                    _apply_name(names, self._trace[place])
        found: list[tuple[str, Version | None]] = []

        def walk(directory: int, prefix: str) -> None:
            for name, node in sorted(names.get(directory, {}).items()):
                path = prefix + name
                if node in self._directories:
                    found.append((path, None))
                    walk(node, path + "/")
                else:
                    found.append((path, self._version(node, choice)))

        walk(0, "")
        return tuple(found)

    def _version(self, number: int, choice: Choice) -> Version:
        file = self._files.get(number)
        if file is None:
            return Version(number, 0, ())
        parts = tuple(
            (place, WHOLE if durable else choice[place])
            for place, durable in file.applied.items() if durable or place in choice
        )
        return Version(number, file.synced, parts)

    def final(self) -> Layout:
        """The whole trace with all that is pending; call after `states`."""
        pending = self._pending()
        return self._layout(dict.fromkeys(pending, WHOLE))

    def _pending(self) -> list[int]:
        places = list(self._pending_names)
        for file in self._files.values():
            places += [place for place, durable in file.applied.items() if not durable]
        return sorted(places)

    def states(self, *, draws: int, seed: int, share: float = 1.0) -> list[CrashState]:
        """All states of the trace, of each content one, in the order they become possible.

        Of a long trace those after a `share` of the operations, drawn by the seed.
        """
        chance = random.Random(seed)
        self._add("before", 0, {})
        durable = False
        for place, operation in enumerate(self._trace):
            durable |= self._is_durable(place, operation)
            if share < 1 and chance.random() > share:
                continue
            for why, rank, choice in self._choices(place, durable, draws, chance):
                self._add(f"{why} after {place}", rank, choice)
            durable = False
        return list(self._known.values())

    def _choices(
        self, place: int, durable: bool, draws: int, chance: random.Random
    ) -> Iterator[tuple[str, int, Choice]]:
        pending = self._pending()
        everything = dict.fromkeys(pending, WHOLE)
        yield "all", 1, everything
        yield "none", 0, {}
        names = {p: WHOLE for p in pending if p in self._pending_names}
        yield "names", 1, names
        yield "bytes", 1, {p: WHOLE for p in pending if p not in names}
        for one in pending:
            rest = dict(everything)
            del rest[one]
            yield f"all but {one}", 2, rest
            if durable or one == place:  # or it was given out before
                yield f"only {one}", 2, {one: WHOLE}
            for length in _torn(self._trace[one]):
                yield f"{one} torn at {length}", 3, {**everything, one: length}
                if durable or one == place:
                    yield f"only {one}, torn at {length}", 3, {one: length}
        for number in range(draws if len(pending) > 2 else 0):
            some = {p: WHOLE for p in pending if chance.random() < (number % 4 + 1) / 5}
            for one in list(some):
                lengths = _torn(self._trace[one])
                if lengths and chance.random() < 0.1:
                    some[one] = chance.choice(lengths)
            yield "some", 4, some

    def _add(self, why: str, rank: int, choice: Choice) -> None:
        layout = self._layout(choice)
        digest = blake2b(digest_size=16)
        for path, version in layout:
            digest.update(path.encode() + b"\0")
            if version is not None and path.rpartition("/")[2] not in OPAQUE:
                digest.update(self._digest(version))
        key = digest.digest()
        state = self._known.get(key)
        if state is None:
            state = self._known[key] = CrashState(key, layout, why, rank)
        elif rank < state.rank:
            state.why, state.rank = why, rank
        if self._promise not in state.promises:
            state.promises.append(self._promise)


def _directories_of(operation: Operation) -> tuple[int, ...]:
    if isinstance(operation, Rename):
        return operation.directory, operation.to_directory
    assert isinstance(operation, Name)
    return (operation.directory,)


def _apply_name(names: dict[int, dict[str, int]], operation: Operation) -> None:
    if isinstance(operation, Rename):
        names.setdefault(operation.directory, {}).pop(operation.name, None)
        if isinstance(operation, Exchange):
            names[operation.directory][operation.name] = operation.other
        names.setdefault(operation.to_directory, {})[operation.to_name] = operation.node
        return
    assert isinstance(operation, Name)
    inside = names.setdefault(operation.directory, {})
    if operation.node is None:
        inside.pop(operation.name, None)
    else:
        inside[operation.name] = operation.node


def _torn(operation: Operation) -> list[int]:
    """Lengths at which a write is torn."""
    if not isinstance(operation, Write):
        return []
    size = len(operation.data)
    lengths = {1, 512, 4096, size // 2, size - 1}
    return [ZEROS, *sorted(length for length in lengths if 0 < length < size)]


def differences(replay: Replay, layout: Layout, root: Path) -> list[str]:
    """What a directory and a state do not have in common, but for bytes that mean nothing."""
    expected = dict(layout)
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))
    wrong = [f"{path} is missing" for path in expected if path not in found]
    wrong += [f"{path} is not in the trace" for path in found if path not in expected]
    for path, version in expected.items():
        if version is None or path.rpartition("/")[2] in OPAQUE or path not in found:
            continue
        content, real = replay.content(version), Content.read(root / path)
        if content != real:
            pages = [
                page for page in range(-(-max(content.size, real.size) // 4096))
                if page_of(content, page) != page_of(real, page)
            ]
            sizes = f"{content.size} and {real.size} bytes"
            wrong.append(f"{path} differs in pages {pages}, of {sizes}")
    return wrong




def plainest(states: Sequence[CrashState], count: int) -> list[CrashState]:
    """At most `count` of some states: those of the least ranks, and of the last rank that fits some
    from all over the trace."""
    chosen: list[CrashState] = []
    for rank in sorted({state.rank for state in states}):
        of_rank = [state for state in states if state.rank == rank]
        left = min(count - len(chosen), len(of_rank))
        chosen += [of_rank[number * len(of_rank) // left] for number in range(left)]
    return chosen
