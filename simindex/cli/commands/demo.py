"""`simindex demo`: near-duplicates in text that is on any machine, Python's standard library.

    modules -> functions -> functions.jsonl -> recipe, index -> pairs -> the most telling of them

Each function is a document. The index is built as `simindex build` builds one of functions.jsonl.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.chunks import batch_of, chunks
from simindex.cli.console import count, duration, emit, megabytes, shown
from simindex.cli.input_options import Reading
from simindex.cli.opening import open_index
from simindex.cli.prepared_documents import Learning, prepare
from simindex.cli.progress import Progress
from simindex.cli.python_functions import LEAST_WORDS, Function, functions_of, modules_below
from simindex.cli.shared_options import NamedPath, distance, json_option
from simindex.cli.word_diff import WordDiff
from simindex.errors import IndexExists, InvalidInput
from simindex.inputs.read_options import ReadOptions
from simindex.values import dataclass

SHOWN_PAIRS = 3
CHANGE_LINES = 2
WIDTH = 79
INDENT = "   "

LEAST_SIMILARITY = 0.8
"""A pair below is not an edited copy: short texts may be near by some rare words."""

MOST_COMPARED = 300
"""Pairs that are compared word by word, the longest first."""


@program.command()
@click.option(
    "--path", type=NamedPath(), metavar="DIR",
    help="Folder of Python modules to read. Default: Python's own standard library.",
)
@click.option(
    "--keep", type=NamedPath(), metavar="INDEX",
    help="Make the index at this path and keep it. Default: a temporary index.",
)
@distance("that of the usual recipe")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def demo(path: str | None, keep: str | None, h: int | None, as_json: bool, quiet: bool) -> None:
    """Show edited copies of functions in Python's own library.

    Needs no input. Builds an index of the functions, and prints near-duplicates in different
    modules, with the words that differ.
    """
    from simindex.writing.ownership import exists

    root = sysconfig.get_path("stdlib") if path is None else path
    with tempfile.TemporaryDirectory(prefix="simindex-demo-") as folder:
        place = Path(folder) / "demo.sim" if keep is None else Path(keep)
        if exists(place):
            raise IndexExists(
                f"{place} is an index already; not overwritten",
                remedy="name another place with --keep", path=str(place),
            )
        library = _Library.read(root, quiet)
        built = _Built.of(library, place, Path(folder), quiet)
        found = _Found.of(library, place, h)
    if as_json:
        for record in _as_json(library, built, found):
            emit(record)
        return
    what = root if path else f"the standard library of Python {platform.python_version()}"
    for line in [*_as_text(what, library, built, found), "", *_next(keep)]:
        click.echo(line)


@dataclass(frozen=True, slots=True)
class _Library:
    root: str
    modules: int
    functions: dict[str, Function]
    seconds: float

    @classmethod
    def read(cls, root: str, quiet: bool) -> _Library:
        """The functions of all modules below a folder, by their keys."""
        if not Path(root).is_dir():
            why = "is not a folder" if Path(root).exists() else "there is no such folder"
            raise InvalidInput(
                f"{root}: {why}", remedy="name another folder with --path", path=root
            )
        started = time.perf_counter()
        functions: dict[str, Function] = {}
        with Progress("reading", "module", quiet=quiet) as progress:
            for module in modules_below(root):
                inside = functions_of(module, root)
                functions.update((function.key, function) for function in inside)
                progress.advance(1, sum(len(function.text) for function in inside))
            modules = progress.documents
        if not functions:
            raise InvalidInput(
                f"{root}: holds no Python function of {LEAST_WORDS} words or more",
                remedy="name another folder with --path", path=root,
            )
        return cls(root, modules, functions, time.perf_counter() - started)

    @property
    def characters(self) -> int:
        return sum(len(function.text) for function in self.functions.values())


@dataclass(frozen=True, slots=True)
class _Built:
    rows: int
    size_bytes: int
    seconds: float

    @classmethod
    def of(cls, library: _Library, place: Path, folder: Path, quiet: bool) -> _Built:
        """Build the index of a library by the shell's usual recipe."""
        source = folder / "functions.jsonl"
        with source.open("w", encoding="ascii") as file:
            for function in library.functions.values():
                json.dump({"id": function.key, "text": function.text}, file)
                file.write("\n")
        started = time.perf_counter()
        reading = Reading(ReadOptions(), max_errors=0)
        prepared = prepare({}, Learning(), [str(source)], reading, quiet=quiet)
        with _made(place, prepared.recipe) as index:
            for chunk in chunks(prepared.documents):
                index.append(batch_of(prepared.recipe, chunk))
            index.commit()
            held = index.stats()
        size_bytes = held.bytes_segments + held.bytes_catalog
        return cls(held.rows, size_bytes, time.perf_counter() - started)


@contextmanager
def _made(place: Path, recipe: Any) -> Iterator[Any]:
    """A new index, which is removed again if the block ends without a commit."""
    from simindex.cli.new_index import NewIndex

    made = NewIndex.at(place, simindex.IndexOptions(keys="str", recipe=recipe))
    with ExitStack() as given_up:
        given_up.callback(made.removed)
        with made.index:
            yield made.index
        given_up.pop_all()


@dataclass(frozen=True, slots=True)
class _Pair:
    a: Function
    b: Function
    distance: int

    @property
    def longest(self) -> int:
        return max(len(self.a.text), len(self.b.text))


@dataclass(frozen=True, slots=True)
class _Found:
    """The pairs of functions in different modules, and the most telling of them."""

    h: int
    bits: int
    pairs: int
    equal: int
    """Those whose texts are the same."""
    seconds: float
    shown: list[tuple[_Pair, WordDiff]]

    @classmethod
    def of(cls, library: _Library, place: Path, h: int | None) -> _Found:
        pairs: list[_Pair] = []
        with open_index(place, "r") as index:
            h, bits = index.h if h is None else h, index.options.bits
            started = time.perf_counter()
            for some in index.pairs(h=h):
                a, b = some.keys() or ((), ())
                for *keys, apart in zip(a, b, some.distance.tolist(), strict=True):
                    first, second = sorted(map(str, keys))
                    pair = _Pair(library.functions[first], library.functions[second], apart)
                    if pair.a.module != pair.b.module:
                        pairs.append(pair)
            seconds = time.perf_counter() - started
        edited = [pair for pair in pairs if pair.a.text != pair.b.text]
        return cls(h, bits, len(pairs), len(pairs) - len(edited), seconds, _telling(edited))


def _telling(pairs: list[_Pair]) -> list[tuple[_Pair, WordDiff]]:
    """Pairs that differ, those first whose change fills its lines and still fits.

    No module is shown twice.
    """
    differing = [pair for pair in pairs if pair.distance > 0]
    differing.sort(key=lambda pair: (-pair.longest, pair.a.key, pair.b.key))
    compared = [(pair, WordDiff.of(pair.a.text, pair.b.text)) for pair in differing[:MOST_COMPARED]]
    room = CHANGE_LINES * (WIDTH - len(INDENT))
    likely = [
        (pair, diff) for pair, diff in compared if LEAST_SIMILARITY <= diff.similarity < 1
    ]
    likely.sort(key=lambda told: (len(told[1].changed) > room, abs(room - len(told[1].changed))))
    shown: list[tuple[_Pair, WordDiff]] = []
    seen: set[str] = set()
    for pair, diff in likely:
        modules = {pair.a.module, pair.b.module}
        if not modules & seen:
            seen |= modules
            shown.append((pair, diff))
    return shown[:SHOWN_PAIRS]


def _as_json(library: _Library, built: _Built, found: _Found) -> Iterator[dict[str, Any]]:
    yield {
        "step": "read", "root": library.root, "modules": library.modules,
        "functions": len(library.functions), "characters": library.characters,
        "seconds": library.seconds,
    }
    yield {
        "step": "build", "rows": built.rows, "bytes": built.size_bytes, "seconds": built.seconds,
    }
    yield {
        "step": "pairs", "h": found.h, "pairs": found.pairs, "equal": found.equal,
        "seconds": found.seconds,
    }
    for pair, diff in found.shown:
        yield {
            "a": pair.a.key, "b": pair.b.key, "distance": pair.distance,
            "similarity": diff.similarity, "changed": diff.changed,
        }


def _as_text(what: str, library: _Library, built: _Built, found: _Found) -> Iterator[str]:
    yield f"Edited copies among the functions of {shown(what)}"
    yield ""
    for pair, diff in found.shown:
        yield f"{INDENT}{shown(pair.a.key)}"
        yield f"{INDENT}{shown(pair.b.key)}"
        yield (
            f"{INDENT}{pair.distance} of {found.bits} bits differ; "
            f"{int(100 * diff.similarity)}% of the words are the same"
        )
        yield from (f"{INDENT}{line}" for line in diff.lines(WIDTH - len(INDENT), CHANGE_LINES))
        yield ""
    if not found.shown:
        yield f"{INDENT}none that differ by a few words"
        yield ""
    functions = count(len(library.functions), "function")
    yield (
        f"{count(found.pairs, 'pair')} in different modules, within {found.h} of {found.bits} "
        f"bits; {found.equal:,} of them equal"
    )
    yield (
        f"{functions} of {LEAST_WORDS} words or more, {megabytes(library.characters)}, in "
        f"{count(library.modules, 'module')}"
    )
    yield ""
    yield f"{INDENT}{'read and parse':<24}{duration(library.seconds):>9}"
    yield f"{INDENT}{'fingerprint and index':<24}{duration(built.seconds):>9}"
    yield f"{INDENT}{'find all pairs':<24}{duration(found.seconds):>9}"


def _next(keep: str | None) -> Iterator[str]:
    """What to type next."""
    program = _typed()
    if keep is None:
        yield "The index was temporary and is removed. Type next:"
        place = "demo.sim"
    else:
        yield f"The index is {shown(keep)}. Type next:"
        place = shlex.quote(shown(keep))
    yield ""
    if keep is None:
        yield f"{INDENT}{program} demo --keep {place}"
    yield f"{INDENT}{program} pairs {place}"
    if keep is not None:
        yield f"{INDENT}{program} stats {place}"
    yield f"{INDENT}{program} dedup FOLDER > kept.jsonl      # your own texts"


def _typed() -> str:
    """How this command is called from the shell: by its name only if the shell finds this one."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(Path(sys.executable).name)} -m simindex"
    if called.name != "simindex":
        return "simindex"
    known = shutil.which("simindex")
    if known is not None and os.path.realpath(known) == os.path.realpath(called):
        return "simindex"
    return shlex.quote(sys.argv[0])
