"""The walk over LMDB's pages, against a second one in Python and LMDB's own verifier.

The second one is told in sets: all nodes of a page as intervals, all keys of a tree as a list.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import lmdb
import numpy as np
import pytest

from simindex._kernels import _native

PAGE = 4096
NONE = (1 << 64) - 1


class Damaged(Exception):
    """The page or list where the second walk stopped."""


def u2(raw: bytes, at: int) -> int:
    return struct.unpack_from("<H", raw, at)[0]  # type: ignore[no-any-return]


def u8(raw: bytes, at: int) -> int:
    return struct.unpack_from("<Q", raw, at)[0]  # type: ignore[no-any-return]


def record(raw: bytes, at: int) -> dict[str, int]:
    names = ("pad", "flags", "depth", "branches", "leaves", "overflows", "entries", "root")
    return dict(zip(names, struct.unpack_from("<IHHQQQQQ", raw, at), strict=True))


def meta_in_use(raw: bytes) -> int:
    return PAGE * (u8(raw, PAGE + 144) > u8(raw, 144))


class Oracle:
    """All pages of the commit in use: raises Damaged, or gives which are used and which free."""

    def __init__(self, raw: bytes) -> None:
        meta = meta_in_use(raw)
        self.raw, self.last, self.commit = raw, u8(raw, meta + 136), u8(raw, meta + 144)
        free, main = record(raw, meta + 40), record(raw, meta + 88)
        if free["pad"] != PAGE or free["flags"] != 8 or main["flags"] or main["pad"]:
            raise Damaged
        if not 1 <= self.last < len(raw) // PAGE:
            raise Damaged
        self.used: list[int] = [0, 1]
        self.free: list[int] = []
        self.exact = True
        newest = 0
        for key, value, _ in self.tree(free, "free"):
            newest = int.from_bytes(key, "little")
            self.free += self.listed(value)
        if newest != (self.commit if self.commit > 1 else 0):
            raise Damaged
        named = []
        for _, value, flags in self.tree(main, "main"):
            if flags == 2:
                if len(value) != 48:
                    raise Damaged
                named.append(record(value, 0))
        for own in named:
            if own["flags"] or own["pad"]:
                raise Damaged
            list(self.tree(own, "named"))
        everything = self.used + self.free
        if len(set(everything)) < len(everything):
            raise Damaged
        self.exact &= set(everything) == set(range(self.last + 1))

    def listed(self, value: bytes) -> list[int]:
        if len(value) % 8 or len(value) < 8:
            raise Damaged
        numbers = [u8(value, at) for at in range(0, len(value), 8)]
        count, numbers = numbers[0], numbers[1:]
        if count > len(numbers):
            raise Damaged
        numbers = numbers[:count]
        if sorted(set(numbers), reverse=True) != numbers:
            raise Damaged
        if numbers and (numbers[-1] < 2 or numbers[0] > self.last):
            raise Damaged
        return numbers

    def page(self, number: int, kind: int) -> bytes:
        if not 2 <= number <= self.last or len(self.used) > self.last:
            raise Damaged
        self.used.append(number)
        raw = self.raw[number * PAGE : number * PAGE + PAGE]
        if u8(raw, 0) != number or u2(raw, 10) != kind:
            raise Damaged
        return raw

    def nodes(self, raw: bytes, tree: str, leaf: bool) -> list[tuple[int, bytes, int, bytes]]:
        lower, upper = u2(raw, 12), u2(raw, 14)
        if lower < 16 or lower % 2 or upper % 2 or not lower <= upper <= PAGE:
            raise Damaged
        found, spans = [], []
        for place in range(16, lower, 2):
            at = u2(raw, place)
            if at < upper or at % 2 or at + 8 > PAGE:
                raise Damaged
            low, high, flags, key_bytes = struct.unpack_from("<HHHH", raw, at)
            size = low | high << 16
            first = place == 16
            if key_bytes > 511 or (not key_bytes and (leaf or not first)):
                raise Damaged
            if tree == "free" and key_bytes != 8 and (leaf or not first):
                raise Damaged
            long = 8 + key_bytes
            if leaf:
                if flags not in (0, 1, 2) or (tree != "main" and flags == 2):
                    raise Damaged
                long += 8 if flags == 1 else size
                if long > 2038:
                    raise Damaged
            long += long % 2
            if at + long > PAGE:
                raise Damaged
            spans.append((at, at + long))
            key = raw[at + 8 : at + 8 + key_bytes]
            found.append((size, key, flags, raw[at + 8 + key_bytes : at + long]))
        spans.sort()
        if (spans[0][0] if spans else PAGE) != upper or (spans and spans[-1][1] != PAGE):
            raise Damaged
        if any(one[1] != two[0] for one, two in pairwise(spans)):
            raise Damaged
        if len(found) < (1 if leaf else 2) and not (tree == "free" and (leaf or found)):
            raise Damaged
        return found

    def tree(self, own: dict[str, int], kind: str) -> Iterator[tuple[bytes, bytes, int]]:
        if own["root"] == NONE:
            if own["depth"]:
                raise Damaged
            self.exact &= not any(
                own[name] for name in ("branches", "leaves", "overflows", "entries")
            )
            return
        if not 1 <= own["depth"] <= 32:
            raise Damaged
        counts = {"branches": 0, "leaves": 0, "overflows": 0, "entries": 0}
        entries: list[tuple[bytes, bytes, int]] = []
        order = (lambda key: int.from_bytes(key, "little")) if kind == "free" else bytes

        def below(number: int, depth: int) -> list[bytes]:
            if depth == own["depth"]:
                raw = self.page(number, 2)
                counts["leaves"] += 1
                keys = []
                for size, key, flags, rest in self.nodes(raw, kind, leaf=True):
                    value = rest[:size]
                    if flags == 1:
                        value = self.run(u8(rest, 0), size, counts)
                    counts["entries"] += 1
                    keys.append(key)
                    entries.append((key, value, flags))
                return keys
            raw = self.page(number, 1)
            counts["branches"] += 1
            every: list[bytes] = []
            children = self.nodes(raw, kind, leaf=False)
            for place, (low, separator, high, _) in enumerate(children):
                keys = below(low | high << 32, depth + 1)
                if place and every and order(every[-1]) >= order(separator):
                    raise Damaged
                if place and keys and order(keys[0]) < order(separator):
                    raise Damaged
                every += keys
            return every

        keys = below(own["root"], 1)
        if any(order(one) >= order(two) for one, two in pairwise(keys)):
            raise Damaged
        self.exact &= all(own[name] == count for name, count in counts.items())
        yield from entries

    def run(self, number: int, size: int, counts: dict[str, int]) -> bytes:
        raw = self.page(number, 4)
        pages = struct.unpack_from("<I", raw, 12)[0]
        if pages < -(-(16 + size) // PAGE) or number + pages > self.last + 1:
            raise Damaged
        self.used += range(number + 1, number + pages)
        counts["overflows"] += pages
        return self.raw[number * PAGE + 16 : number * PAGE + 16 + size]


def oracle(raw: bytes, *, exact: bool) -> bool:
    """Whether the second walk finds nothing."""
    try:
        found = Oracle(raw)
    except (Damaged, struct.error):
        return False
    return found.exact or not exact


def kernel(raw: bytes, *, exact: bool) -> tuple[int, int, int]:
    file = np.frombuffer(raw, np.uint8)
    meta = meta_in_use(raw)
    return _native.check_pages(file, file[meta : meta + 152].copy(), exact)


def files(path: Path, rng: random.Random, commits: int) -> Iterator[bytes]:
    """What LMDB leaves behind each commit of random puts and deletes, with readers beside them."""
    path.mkdir()
    env = lmdb.open(str(path), map_size=1 << 30, max_dbs=3, lib_version=0, sync=False)
    databases = [env.open_db(name) for name in (b"a", b"b", b"c")]
    keys: list[set[bytes]] = [set(), set(), set()]
    readers: list[lmdb.Transaction] = []
    for _ in range(commits):
        if rng.random() < 0.2 and len(readers) < 2:
            readers.append(env.begin())
        elif readers and rng.random() < 0.2:
            readers.pop().abort()
        with env.begin(write=True) as txn:
            for _ in range(rng.choice([1, 10, 200])):
                place = rng.randrange(3)
                if keys[place] and rng.random() < 0.45:
                    key = rng.choice(sorted(keys[place]))
                    keys[place].remove(key)
                    txn.delete(key, db=databases[place])
                else:
                    key = rng.randbytes(rng.choice([1, 8, 40, 500]))
                    keys[place].add(key)
                    size = rng.choice([0, 4, 50, 1500, 2030, 5000, 40_000])
                    txn.put(key, rng.randbytes(size), db=databases[place])
        needed = (env.info()["last_pgno"] + 1) * PAGE
        raw = (path / "data.mdb").read_bytes()
        yield raw.ljust(needed, b"\0")
    for reader in readers:
        reader.abort()
    env.close()


@pytest.mark.slow
def test_what_lmdb_writes_is_sound(tmp_path: Path) -> None:
    """Counts, order, free pages and the commit they are of, at every commit of random ones."""
    deep = 0
    for number in range(3):
        for raw in files(tmp_path / str(number), random.Random(number), 60):
            for exact in (False, True):
                assert kernel(raw, exact=exact)[:2] == (0, 0)
            deep = max(deep, len(raw) // PAGE)
        assert oracle(raw, exact=True)
    assert deep > 500, "trees of three levels, and free lists in overflow runs"


def test_verifier_of_lmdb_agrees_on_what_lmdb_writes(tmp_path: Path) -> None:
    verify = pytest.importorskip("lmdb.verify")
    for raw in files(tmp_path / "env", random.Random(5), 25):
        data = tmp_path / "data.mdb"
        data.write_bytes(raw)
        with data.open("rb") as file:
            assert verify._Verifier(file, len(raw)).verify() == []


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with branches, overflow runs, and a list of free pages."""
    *_, raw = files(tmp_path_factory.mktemp("grown") / "env", random.Random(11), 25)
    return raw


def damages(raw: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    """Copies with damage where it matters: in headers, places and nodes of used pages."""
    meta = meta_in_use(raw)
    used = [page for page in Oracle(raw).used if page > 1]
    trees = [page for page in used if u2(raw, page * PAGE + 10) in (1, 2)
             and u8(raw, page * PAGE) == page]
    for _ in range(count):
        copy = bytearray(raw)
        page = rng.choice(trees)
        at = page * PAGE + rng.choice([rng.randrange(16), rng.randrange(64), rng.randrange(PAGE)])
        kind = rng.randrange(6)
        if kind == 0:
            at = meta + rng.randrange(40, 152)
        if kind <= 2:
            copy[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            copy[at : at + 2] = struct.pack("<H", rng.choice([0, 1, 2, 15, 16, 4095, 65535]))
        elif kind == 4:
            other = rng.choice(used)
            copy[at : at + 8] = struct.pack("<Q", other)
        else:
            other = rng.choice(trees)
            copy[page * PAGE : page * PAGE + PAGE] = raw[other * PAGE : other * PAGE + PAGE]
        yield bytes(copy)


@pytest.mark.slow
def test_damaged_pages_are_found_as_a_second_walk_finds_them(grown: bytes) -> None:
    found = 0
    for copy in damages(grown, random.Random(1), 400):
        for exact in (False, True):
            fault = kernel(copy, exact=exact)[0]
            assert (fault == 0) == oracle(copy, exact=exact), fault
            found += fault != 0
    assert 250 < found < 800, "some damage is in what nobody reads"


@pytest.mark.slow
def test_what_the_verifier_of_lmdb_finds_is_found(grown: bytes, tmp_path: Path) -> None:
    """It does not mind separators that are not between the keys, nor nodes that overlap."""
    verify = pytest.importorskip("lmdb.verify")
    data = tmp_path / "data.mdb"
    agreed = 0
    for copy in damages(grown, random.Random(2), 120):
        data.write_bytes(copy)
        with data.open("rb") as file:
            try:
                errors = verify._Verifier(file, len(copy)).verify()
            except verify.VerifyError as error:
                errors = [str(error)]
        if errors:
            assert kernel(copy, exact=True)[0] != 0, errors
            agreed += 1
    assert agreed > 40


def test_lists_of_free_pages_are_bounded(grown: bytes) -> None:
    """Every word of every list set to what it must not be, and to a page in use."""
    own = Oracle(grown)
    refused = 0
    for pair in [pair for pair in pairwise(own.free) if pair[0] > pair[1]][:30]:
        at = grown.index(struct.pack("<QQ", *pair))
        for value in (0, 1, own.last + 1, NONE, own.used[5], own.free[-1]):
            copy = bytearray(grown)
            copy[at : at + 8] = struct.pack("<Q", value)
            if not oracle(bytes(copy), exact=False):
                assert kernel(bytes(copy), exact=False)[0] != 0
                refused += 1
    assert refused > 100


def test_huge_sizes_take_no_memory(grown: bytes) -> None:
    """Of last page, depth and root: what the file does not have is refused before it is used."""
    meta = meta_in_use(grown)
    for at, value in ((136, 1 << 60), (136, NONE), (80, 1 << 63), (128, 1 << 40), (40, 1 << 31)):
        copy = bytearray(grown)
        copy[meta + at : meta + at + 8] = struct.pack("<Q", value)
        assert kernel(bytes(copy), exact=False)[0] in (1, 2)
    file = np.frombuffer(grown, np.uint8)
    assert _native.check_pages(file, file[:151].copy())[0] == 1
    assert _native.check_pages(file[:0], file[:152].copy())[0] == 1


def test_kernel_reads_no_byte_beyond_what_it_is_given(grown: bytes) -> None:
    """Cut anywhere behind the meta pages, in memory that ends there."""
    whole = np.frombuffer(grown, np.uint8)
    meta = whole[meta_in_use(grown) :][:152].copy()
    for size in range(2 * PAGE, len(whole), 7 * PAGE + 123):
        assert _native.check_pages(whole[:size].copy(), meta)[0] == 1
