"""`simindex demo`: the main job on text that is on any machine, Python's standard library."""

from __future__ import annotations

import os
import platform
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import simindex
from simindex.cli.app import program
from simindex.cli.choices import distance, json_option
from simindex.cli.chunks import batch_of, characters_of, chunks
from simindex.cli.console import count, duration, emit, megabytes, say
from simindex.cli.new_index import NewIndex
from simindex.cli.progress import Progress
from simindex.errors import IndexExists, InvalidInput
from simindex.inputs import Document, Intake, ReadOptions, read
from simindex.pairs.clusters import connected
from simindex.writing.ownership import exists

INCLUDED = ("*.py", "*.txt", "*.rst", "*.md", "*.html", "*.cfg")
EXCLUDED = ("site-packages", "dist-packages", "__pycache__")
SHOWN_GROUPS = 8
WIDTH = 78
CALLS = 101
"""Calls the time of one query is the median of."""

FAVOURITE = "encodings/cp1252.py"
EDIT = "\n# This copy differs from the file in the library: these two lines\n# were added to it.\n"


@program.command()
@click.option(
    "--path", type=click.Path(),
    help="Use this folder of text files instead of the standard library.",
)
@click.option("--keep", type=click.Path(), metavar="INDEX", help="Keep the index at this path.")
@distance("the usual recipe")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def demo(path: str | None, keep: str | None, h: int | None, as_json: bool, quiet: bool) -> None:
    """Show near-duplicates in Python's standard library."""
    root = path or sysconfig.get_path("stdlib")
    if not quiet and path is None:
        say(f"near-duplicates in the standard library of Python {platform.python_version()}")
    with _place(keep) as place:
        library = _Library.build(root, place, quiet)
        with simindex.open(place, "r") as index:
            h = index.h if h is None else h
            started = time.perf_counter()
            groups = _groups(index, library, h)
            groups_s = time.perf_counter() - started
            answer = _Answer.of(index, library, h)
            held = index.stats()
    if as_json:
        for record in _as_json(root, library, held, groups, answer, groups_s, h):
            emit(record)
        return
    for line in _as_text(root, library, held, groups, answer, groups_s, h):
        click.echo(line)
    if keep is not None and not quiet:
        say(f"the index was kept: simindex query {keep} FILE -d {h}")


@contextmanager
def _place(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory(prefix="simindex-demo-") as folder:
        yield Path(folder) / "demo.sim"


@contextmanager
def _made(place: Path, recipe: Any) -> Iterator[Any]:
    """A new index, which is removed again if the block ends without a commit."""
    if exists(place):
        raise IndexExists(
            f"{place} is an index already, and was kept",
            remedy="name another path with --keep", path=str(place),
        )
    made = NewIndex.at(place, simindex.IndexOptions(keys="str", recipe=recipe))
    with ExitStack() as given_up:
        given_up.callback(made.removed)
        with made.index:
            yield made.index
        given_up.pop_all()


@dataclass
class _Library:
    """The documents that were indexed, and what each step took."""

    keys: list[str]
    characters: int
    files: int
    fingerprints: Any
    ids: Any
    sample: Document
    recipe: Any
    read_s: float
    fingerprint_s: float
    build_s: float

    @classmethod
    def build(cls, root: str, place: Path, quiet: bool) -> _Library:
        """Read the files below `root` into a new index."""
        recipe = simindex.Recipe()
        options = ReadOptions(include=INCLUDED, exclude=EXCLUDED, without=place.resolve())
        intake = Intake(max_errors=None)
        keys: list[str] = []
        fingerprints, ids = [], []
        sample: Document | None = None
        read_s = fingerprint_s = build_s = 0.0
        with _made(place, recipe) as index, Progress("indexing", quiet=quiet) as progress:
            # Its own files are named as if it were the working directory.
            documents = (
                replace(document, key=os.path.relpath(document.path, root))
                for document in read([root], options, intake)
            )
            groups = chunks(documents)
            while True:
                began = time.perf_counter()
                chunk = next(groups, None)
                was_read = time.perf_counter()
                read_s += was_read - began
                if chunk is None:
                    break
                batch = batch_of(recipe, chunk)
                was_fingerprinted = time.perf_counter()
                ids.append(index.append(batch))
                fingerprint_s += was_fingerprinted - was_read
                build_s += time.perf_counter() - was_fingerprinted
                keys += map(str, batch.keys or ())
                fingerprints.append(batch.rows)
                for document in chunk:
                    if sample is None or document.key == FAVOURITE:
                        sample = document
                progress.advance(len(chunk), characters_of(chunk))
            if sample is None or not keys:
                raise InvalidInput(
                    f"{root}: holds no {' '.join(INCLUDED)} files with text",
                    remedy="name another folder with --path", path=root,
                )
            began = time.perf_counter()
            index.commit()
            build_s += time.perf_counter() - began
        return cls(
            keys, progress.characters, intake.files - intake.bad_records,
            np.concatenate(fingerprints), np.concatenate(ids), sample, recipe, read_s,
            fingerprint_s, build_s,
        )


@dataclass
class _Group:
    """Documents that hang together by pairs within h."""

    keys: list[str]
    widest: int
    """Largest distance of any two of them; above h where they hang together by others."""


def _groups(index: Any, library: _Library, h: int) -> list[_Group]:
    rows = library.fingerprints
    matches = index.query(rows, h=h)
    order = np.argsort(library.ids)
    found = order[np.searchsorted(library.ids, matches.id, sorter=order)]
    label = connected(matches.query, found.astype(np.int64), len(rows))
    groups = []
    members_of = np.argsort(label, kind="stable")
    starts = np.flatnonzero(np.diff(label[members_of], prepend=-1))
    for members in np.split(members_of, starts[1:]):
        if len(members) > 1:
            widest = max(
                int(np.bitwise_count(rows[members] ^ rows[row]).sum(axis=1).max())
                for row in members
            )
            groups.append(_Group([library.keys[row] for row in members], widest))
    return sorted(groups, key=lambda group: (-len(group.keys), group.keys))


@dataclass
class _Answer:
    """What was found for an edited copy of one document."""

    key: str
    found: list[tuple[str, int]]
    call_s: float
    how: str

    @classmethod
    def of(cls, index: Any, library: _Library, h: int) -> _Answer:
        """Look up the library's sample with two lines added."""
        batch = library.recipe.batch([library.sample.text + EDIT])
        seconds = []
        for _ in range(CALLS):
            started = time.perf_counter()
            matches = index.query(batch, h=h)
            seconds.append(time.perf_counter() - started)
        found = [(str(match.key), match.distance) for match in matches]
        stats = matches.stats
        return cls(library.sample.key, found, statistics.median(seconds), stats.method)


def _as_json(
    root: str, library: _Library, held: Any, groups: list[_Group], answer: _Answer, groups_s: float,
    h: int,
) -> Iterator[dict[str, Any]]:
    yield {
        "step": "build", "root": root, "documents": library.files, "rows": held.rows,
        "characters": library.characters, "read_s": library.read_s,
        "fingerprint_s": library.fingerprint_s, "build_s": library.build_s,
        "bytes": held.bytes_segments + held.bytes_catalog,
    }
    yield {"step": "groups", "h": h, "groups": len(groups), "seconds": groups_s}
    for group in groups[:SHOWN_GROUPS]:
        yield {"group": group.keys, "size": len(group.keys), "widest": group.widest}
    yield {
        "step": "query", "h": h, "query": answer.key, "seconds": answer.call_s,
        "found": [{"key": key, "distance": distance} for key, distance in answer.found],
    }


def _as_text(
    root: str, library: _Library, held: Any, groups: list[_Group], answer: _Answer, groups_s: float,
    h: int,
) -> Iterator[str]:
    files, rows = library.files, held.rows
    yield f"{count(files, 'file')}, {megabytes(library.characters)} of text, below"
    yield root
    yield ""
    yield _step("read", library.read_s, f"{files / library.read_s:,.0f} files/s")
    yield _step(
        "fingerprint", library.fingerprint_s,
        f"{files / library.fingerprint_s:,.0f} files/s, "
        f"{library.characters / library.fingerprint_s / 1e6:,.0f} MB/s",
    )
    yield _step("index", library.build_s, f"{rows / library.build_s:,.0f} rows/s")
    yield _step("find all groups", groups_s, f"{rows / groups_s:,.0f} queries/s")
    yield ""
    yield (
        f"{count(rows, 'row')}, {megabytes(held.bytes_segments + held.bytes_catalog)} on disk; "
        f"{count(files - rows, 'file')} empty, without a fingerprint"
    )
    yield ""
    grouped = sum(len(group.keys) for group in groups)
    yield (
        f"{count(grouped, 'file')} in {count(len(groups), 'group')} of near-duplicates "
        f"(linked within {h} of {library.fingerprints.shape[1] * 64} bits)"
    )
    yield ""
    yield "  files  widest  largest groups"
    for group in groups[:SHOWN_GROUPS]:
        yield f"  {len(group.keys):>5}  {group.widest:>6}  {_names(group.keys, WIDTH - 17)}"
    yield ""
    yield f"One query: {answer.key} with two lines added"
    yield ""
    yield "   bits  found"
    for key, bits in answer.found[:SHOWN_GROUPS]:
        yield f"  {bits:>5}  {key}"
    if len(answer.found) > SHOWN_GROUPS:
        yield f"         and {count(len(answer.found) - SHOWN_GROUPS, 'other')}"
    yield ""
    yield f"  {duration(answer.call_s)} a call (median of {CALLS}, exact, by {answer.how})"


def _step(name: str, seconds: float, rate: str) -> str:
    return f"  {name:<16} {duration(seconds):>9}   {rate}"


def _names(keys: list[str], width: int) -> str:
    """As many names as fit; a folder is named where it changes, and the rest is counted."""
    shown = ""
    folder = None
    for place, key in enumerate(keys):
        here, _, name = key.rpartition("/")
        piece = name if here == folder else key
        folder = here
        longer = f"{shown} {piece}" if shown else piece
        left = len(keys) - place - 1
        if shown and len(longer) + (len(f" and {left} more") if left else 0) > width:
            return f"{shown} and {len(keys) - place} more"
        shown = longer
    return shown
