"""Follows a public call through the package: each function where it is first entered.

    python tools/walks.py             modules, folders, functions and lines of every walk
    python tools/walks.py query       the functions of one walk, each below the one that calls it
    python tools/walks.py --modules   the modules of every walk, in the order of the walk
    python tools/walks.py --down      the way of every walk from the call to its deed

The deed is what a call is for: a commit of the catalog, a file that gets its name, a search of a
table, a comparison of rows. The way down are the functions that wait for it, with itself.

An index with permuted tables and slice lists is made for it. The rows of "append" are few and stay
in the catalog; those of "segment" fill a buffer, which becomes files. The first query or search for
the nearest is also planned; "query again" takes the plan that the first one made. Lines are those
of the modules that a walk enters, which a reader has before them, and of the functions alone.
`simindex` may be another version of the package: the calls are those of every version.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import numpy as np

import simindex

PACKAGE = Path(simindex.__file__).parent
ROWS, ASKED = 5_000, 50

LONGEST = 400
"""Lines of a module, by which the fewest modules are counted."""

DEEDS = {
    "append": "Transaction.commit", "segment": "NewFile.publish", "compact": "NewFile.publish",
    "query": "psm: search", "query again": "psm: search", "top": "scan: top",
    "pairs": "PairSearch._compared",
}
"""The deed of each walk, by the end of its name."""


@dataclass
class Walk:
    """The functions of the package that a call enters."""

    entered: dict[CodeType, int] = field(default_factory=dict)
    """In order, with their depth."""
    ways: dict[CodeType, list[CodeType]] = field(default_factory=dict)
    """The fewest functions that wait for each of them, the public call first; with itself."""
    calls: set[tuple[CodeType, CodeType]] = field(default_factory=set)
    """Which function called which; what the package passes through others, such as numpy, too."""

    def follow(self, call: Callable[[], Any]) -> None:
        """Makes the call."""
        def met(frame: FrameType, event: str, argument: Any) -> None:
            code = frame.f_code
            if event != "call" or not _is_named(code):
                return
            callers = _callers(frame)
            self.entered.setdefault(code, len(callers))
            if len(callers) < len(self.ways.get(code, ())) or code not in self.ways:
                self.ways[code] = [*callers[::-1], code]
            if callers:
                self.calls.add((callers[0], code))

        threading.setprofile(met)  # of threads that begin meanwhile, such as merges
        sys.setprofile(met)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def modules(self) -> list[Path]:
        """Their files, relative to the package, in order."""
        return list(dict.fromkeys(
            Path(code.co_filename).relative_to(PACKAGE) for code in self.entered
        ))

    def counted(self) -> tuple[int, int, int, int, int, int]:
        """Modules, as few as they could be, folders, functions, lines of the modules and of the
        functions."""
        folders: Counter[Path] = Counter()
        for module in self.modules():
            folders[module.parent] += len((PACKAGE / module).read_text().splitlines())
        return (
            len(self.modules()), sum(ceil(lines / LONGEST) for lines in folders.values()),
            len(folders), len(self.entered), folders.total(), sum(map(_lines, self.entered)),
        )

    def way_to(self, deed: str) -> list[CodeType]:
        """The functions from the call down to a deed."""
        return next(way for code, way in self.ways.items() if _told(code).endswith(deed))

    def told(self) -> str:
        """One line a function."""
        return "\n".join(
            f"{'  ' * depth}{_told(code)}" for code, depth in self.entered.items()
        )


def _told(code: CodeType) -> str:
    return f"{module_of(code)}: {code.co_qualname}"


def _is_named(code: CodeType) -> bool:
    """Whether it is a function of the package, and no comprehension or lambda."""
    return code.co_filename.startswith(f"{PACKAGE}/") and not code.co_name.startswith("<")


def _callers(frame: FrameType) -> list[CodeType]:
    """The functions of the package that are at work above one, the nearest first."""
    found, caller = [], frame.f_back
    while caller is not None:
        if _is_named(caller.f_code):
            found.append(caller.f_code)
        caller = caller.f_back
    return found


def _lines(code: CodeType) -> int:
    numbers = [line for _, _, line in code.co_lines() if line]
    return max(numbers) - min(numbers) + 1


def module_of(code: CodeType) -> str:
    """Its module, as `index/changes`."""
    return _module(Path(code.co_filename).relative_to(PACKAGE))


def _module(path: Path) -> str:
    return path.with_suffix("").as_posix()


def walks(path: Path) -> dict[str, Walk]:
    """Every walk, on an index that is made at `path`."""
    rng = np.random.default_rng(1)
    fingerprints = rng.integers(0, 1 << 64, 6 * ROWS, dtype=np.uint64)
    ids = np.arange(len(fingerprints), dtype=np.uint64)

    def part(number: int) -> simindex.Batch:
        rows = slice(number * ROWS, (number + 1) * ROWS)
        return simindex.Batch(fingerprints[rows], ids=ids[rows])

    def appended(index: simindex.Index, number: int) -> None:
        index.append(part(number))
        index.commit()

    options = simindex.IndexOptions(structures=("psm", "bphs:G=2,g=1", "issl"), min_merge=2)
    with simindex.open(path, "n", options=options) as index:
        for number in range(4):
            appended(index, number)
    names = ("append", "segment", "compact", "query", "query again", "top", "pairs")
    found = {name: Walk() for name in names}
    with simindex.open(path, "w") as index:
        found["append"].follow(lambda: appended(index, 4))
        found["compact"].follow(lambda: index.compact(full=True))
    asked = simindex.Batch(fingerprints[:ASKED])
    with simindex.open(path) as index:
        for name in ("query", "query again"):
            found[name].follow(lambda: index.query(asked, h=3))
        found["top"].follow(lambda: index.top(asked, k=5))
        found["pairs"].follow(lambda: list(index.pairs(h=3)))
    small = replace(options, batch_rows=ROWS // 2)
    with simindex.open(path.with_name(f"small-{path.name}"), "n", options=small) as index:
        found["segment"].follow(lambda: index.append(part(5)))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Follows the calls and prints where they lead."""
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "walk", nargs="?", help="append, segment, compact, query, 'query again', top, pairs"
    )
    parser.add_argument("--modules", action="store_true", help="list the modules of every walk")
    parser.add_argument("--down", action="store_true", help="list the way to the deed of each")
    asked = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        found = walks(Path(folder) / "walked.sim")
    if asked.walk is not None:
        if asked.walk not in found:
            parser.error(f"no walk is named {asked.walk!r}: {', '.join(found)}")
        print(found[asked.walk].told())
    elif asked.modules:
        for name, walk in found.items():
            print(f"- {name}: {', '.join(map(_module, walk.modules()))}")
    elif asked.down:
        for name, walk in found.items():
            print(f"- {name}: {', '.join(map(_told, walk.way_to(DEEDS[name])))}")
    else:
        print(
            "| call | down to the deed | modules | fewest | folders | functions "
            "| lines of the modules | of the functions |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for name, walk in found.items():
            counts = (len(walk.way_to(DEEDS[name])), *walk.counted())
            print(f"| {name} |", " | ".join(f"{count:,}" for count in counts), "|")


if __name__ == "__main__":
    main()
