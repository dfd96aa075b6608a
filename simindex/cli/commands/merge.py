"""`simindex merge`: the documents of several indexes in a new one.

A document that several indexes have comes from one of them, as a whole. Which one is known before
the first row is written: for `replace` the last index that has it, else the first. So the new index
is written in one pass and one commit, and nothing is deleted in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.agreement import require_alike
from simindex.cli.app import Interrupted, nothing_to_do, program, uninterrupted
from simindex.cli.console import count, duration, emit, say
from simindex.cli.final_merge import merge_behind_a_bar
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.shared_options import NamedPath, output_options, structured, times_option
from simindex.cli.stored_documents import CHOICES, Choice, kind_of_names
from simindex.cli.wording import with_remark
from simindex.errors import (
    IndexExists,
    InvalidInput,
    InvalidOption,
    RecipeMismatch,
    SimindexError,
)
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import U32
    from simindex.cli.new_index import NewIndex

CHUNK_ROWS = 1 << 16

KINDS: dict[Any, str] = {
    None: "no rows yet", False: "ids", "str": "text keys", "bytes": "keys of bytes",
}
"""What rows are named by, by the option of the index."""


@program.command()
@click.argument("index_paths", metavar="INDEX...", nargs=-1, required=True, type=NamedPath())
@click.option(
    "-o", "--out", "output", required=True, type=NamedPath(), metavar="NEW",
    help="The index to create.",
)
@click.option(
    "--on-existing", type=click.Choice(CHOICES),
    help="What to do with a document that several INDEXes have: replace takes that of the last "
    "one, skip takes that of the first one, and error ends the command. Default: replace for keys, "
    "error for ids.",
)
@click.option(
    "--renumber", is_flag=True,
    help="Give all rows new ids, in the order of the INDEXes. For indexes without keys.",
)
@times_option
@structured("as in the first INDEX")
@output_options
def merge(
    index_paths: tuple[str, ...], output: str, on_existing: Choice | None, renumber: bool,
    times: bool, structures: tuple[str, ...] | None, as_json: bool, quiet: bool,
) -> None:
    """Create an index with the documents of several indexes.

    The INDEXes stay as they are. They must have the same recipe and width, and name their documents
    in the same way, by keys or by ids. The new index has the recipe, the radius and the options of
    the first one. Documents keep the time when they came. Documents of an INDEX without times get
    the time of the merge.
    """
    from simindex.cli.new_index import NewIndex
    from simindex.index.aged_rows import append_aged
    from simindex.index.origin import keep_origin, origin_of
    from simindex.writing.creation import require_place
    from simindex.writing.ownership import exists

    started = time.perf_counter()
    path = Path(output)
    if require_place(path) and exists(path):
        raise IndexExists(
            f"{path} is an index already", remedy="name another one with -o", path=str(path)
        )
    with ExitStack() as opened:
        indexes = [
            opened.enter_context(open_index(one, "r", refresh=False)) for one in index_paths
        ]
        _require_alike(index_paths, indexes)
        keyed = bool(indexes[0].options.keyed)
        if renumber and keyed:
            raise click.UsageError("--renumber is for indexes without keys: leave it out")
        union = _Union(
            index_paths, indexes, on_existing or ("replace" if keyed else "error"), renumber
        )
        rows = sum(map(len, indexes))
        if not rows:
            nothing_to_do(f"the indexes hold no rows: {path} was not created", quiet=quiet)
        options = indexes[0].options
        if structures is not None:
            options = replace(options, structures=structures)
        options = replace(options, times=options.times or times)
        made = NewIndex.at(path, replace(options, recipe=indexes[0].recipe))
        try:
            with made.index as index, Progress(
                "copying", "row", quiet=quiet or as_json
            ) as progress:
                keep_origin(index, origin_of(indexes[0]))
                done = 0
                for batch, came, read in union.batches():
                    append_aged(index, batch, came)
                    done += read
                    progress.tell(done, rows)
                with uninterrupted():
                    index.commit()
                written = len(index)
                merge_behind_a_bar(index, path, progress, quiet=quiet or as_json)
        except KeyboardInterrupt as error:
            raise Interrupted(f"interrupted: {_left(made)}") from error
        except SimindexError as error:
            raise with_remark(error, _left(made)) from error
        origins = {origin_of(index) for index in indexes} - {None}
    if as_json:
        emit({
            "indexes": len(indexes), "rows": written, "left_out": union.left_out,
            "seconds": round(time.perf_counter() - started, 3),
        })
    elif not quiet:
        _say(path, index_paths, union, written, time.perf_counter() - started)
        if union.left_out and keyed and len(origins) > 1:
            say(
                "these indexes name files from different folders, so one name may stand for two "
                "files: see --on-existing"
            )


@dataclass(slots=True)
class _Union:
    """Which rows of the indexes go into the new one."""

    paths: Sequence[str]
    indexes: Sequence[simindex.Index]
    on_existing: Choice
    renumber: bool
    left_out: int = 0
    """Rows of documents that another index has, too."""

    def batches(self) -> Iterator[tuple[simindex.Batch, U32 | None, int]]:
        """Batches to append, each with when its rows came, if that is known, and with the number
        of rows that were read for it."""
        from simindex.index.aged_rows import aged_rows

        for place, index in enumerate(self.indexes):
            for batch, came in aged_rows(index, CHUNK_ROWS):
                if self.renumber:
                    unnamed = simindex.Batch(batch.rows, recipe=batch.recipe, sketch=batch.sketches)
                    yield unnamed, came, len(batch)
                    continue
                kept = self._kept(place, batch)
                self.left_out += len(batch) - len(kept)
                if len(kept):
                    yield batch.take(kept), None if came is None else came[kept], len(batch)

    def _kept(self, place: int, batch: simindex.Batch) -> Any:
        """int64: rows of a batch of one of the indexes that no other one has in their place."""
        import numpy as np

        first = self.on_existing != "replace"
        others = range(place) if first else range(place + 1, len(self.indexes))
        names: Any = batch.ids if batch.keys is None else batch.keys
        named = "ids" if batch.keys is None else "keys"
        there = np.zeros(len(batch), np.bool_)
        for other in others:
            held = self.indexes[other].contains(**{named: names})
            if self.on_existing == "error" and held.any():
                name = names[int(np.argmax(held))]
                raise _both(
                    name if batch.keys is not None else int(name), self.paths[other],
                    self.paths[place], by_id=batch.keys is None,
                )
            there |= held
        return np.flatnonzero(~there)


def _both(name: object, one: str, other: str, *, by_id: bool) -> InvalidInput:
    instead = "give all rows new ids with --renumber, or " if by_id else ""
    return InvalidInput(
        f"{one} and {other} both have a document {name!r}",
        remedy=f"{instead}take the last one with --on-existing replace, or the first one with "
        "--on-existing skip", path=other,
    )


def _require_alike(paths: Sequence[str], indexes: Sequence[simindex.Index]) -> None:
    """Refuses indexes whose rows cannot be in one."""
    first = indexes[0]
    seen: set[Path] = set()
    for path, index in zip(paths, indexes, strict=True):
        real = Path(path).resolve()
        if real in seen:
            raise InvalidInput(f"{path} is named twice", remedy="name it once", path=path)
        seen.add(real)
        require_alike(first, paths[0], index, path)
        if (first.recipe is None) is not (index.recipe is None):
            raise RecipeMismatch(
                f"the fingerprints of {paths[0]} and {path} cannot be compared: one of them stores "
                "no recipe",
                remedy="build one of them again", path=path,
            )
        widths = [one.options.sketch_bits for one in (first, index)]
        if widths[0] != widths[1]:
            raise InvalidOption(
                f"{paths[0]} has sketches of {widths[0]} bits, and {path} of {widths[1]}",
                remedy="build one of them again, with the --sketch-bits of the other", path=path,
                found=widths[1], expected=widths[0],
            )
        kinds = [kind_of_names(one) for one in (first, index)]
        if kinds[0] != kinds[1]:
            raise InvalidOption(
                f"{paths[0]} names its rows by {KINDS[kinds[0]]}, and {path} by {KINDS[kinds[1]]}",
                remedy="build one of them again", path=path,
            )


def _left(made: NewIndex) -> str:
    return (
        f"{made.path} was not created" if made.removed() else f"{made.path} is complete"
    )


def _say(
    path: Path, paths: Sequence[str], union: _Union, rows: int, seconds: float
) -> None:
    left = ""
    if union.left_out:
        which = "a later" if union.on_existing == "replace" else "an earlier"
        left = (
            f"; left out {count(union.left_out, 'row')} of documents that {which} index has, too"
        )
    say(
        f"copied {count(len(paths), 'index', 'indexes')} in {duration(seconds)}; {path} holds "
        f"{count(rows, 'row')}{left}"
    )
