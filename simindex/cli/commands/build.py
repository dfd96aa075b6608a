"""`simindex build`: documents or fingerprints into an index, all or nothing unless commits in
between are asked."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from os.path import samestat
from pathlib import Path
from typing import Any

import click

import simindex
from simindex.cli.app import Interrupted, nothing_to_do, program, uninterrupted
from simindex.cli.choices import (
    NamedPath,
    Reading,
    distance,
    index_argument,
    input_options,
    inputs_argument,
    key_secret_option,
    output_options,
    piped_input,
    structures_option,
)
from simindex.cli.chunks import read_ahead
from simindex.cli.console import count, duration, emit, megabytes, say
from simindex.cli.contents import Contents, Rows, Texts, require_no_recipe
from simindex.cli.existing import CHOICES, Choice, Existing
from simindex.cli.merging import merge_behind_a_bar
from simindex.cli.new_index import NewIndex, clear_up, replacing
from simindex.cli.numbers import Count
from simindex.cli.progress import Progress
from simindex.cli.pruning import Pruning
from simindex.cli.recipes import (
    Learning,
    first_given,
    idf_options,
    prepare,
    prepared_with,
    recipe_of_documents,
    recipe_options,
    stored_recipe,
    told_in_full,
)
from simindex.errors import IndexExists, IndexNotFound, SimindexError
from simindex.index.first_texts import awaits_recipe
from simindex.index.origin import keep_origin
from simindex.inputs import require_inputs
from simindex.storage.location import checked_call
from simindex.writing.creation import require_place
from simindex.writing.ownership import exists, require_nothing_else

EXISTING = {
    "replaced": "replaced {0} that {1} had",
    "skipped": "skipped {0} that {1} had",
}
"""What is said of documents that an index had before."""

NO_TEXTS = (
    "texts cannot be added to it",
    "add fingerprints, such as rows.npy, or build another index of the texts",
)

OWN_OPTIONS = (
    "{} is an index already, and --append uses its own recipe and options: drop the others"
)

NO_RECIPE = "no other index can use it", "name an index with a recipe, or leave out --recipe"


@program.command()
@index_argument
@inputs_argument
@click.option(
    "--append", is_flag=True,
    help="Add to the index, with its own recipe. Create it if there is none.",
)
@click.option(
    "--on-existing", type=click.Choice(CHOICES),
    help="With --append, what to do with a document whose key the index has: replace the stored "
    "one (default), skip the new one, or end with an error.",
)
@click.option(
    "--prune", is_flag=True,
    help="With --append and folders as INPUTs, delete the documents of INDEX that these folders no "
    "longer have.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing index.")
@click.option(
    "--commit-every", type=Count(), default=0, metavar="N",
    help="Commit after every N documents, so that an interrupted run keeps them. Default: one "
    "commit for the whole run, all or nothing.",
)
@click.option(
    "--batch-rows", type=Count(),
    help="How many documents to collect in memory before a file of the index is written. "
    "Default: 1,048,576.",
)
@structures_option
@distance("the recipe", "The radius that INDEX stores")
@key_secret_option
@click.option(
    "--recipe", "recipe_of", type=NamedPath(), metavar="INDEX",
    help="Use the recipe of another index, with its idf and radius, so that `query INDEX --index "
    "OTHER` can compare both.",
)
@recipe_options
@idf_options
@input_options
@output_options
def build(
    index_path: str, inputs: tuple[str, ...], append: bool,
    on_existing: Choice | None, prune: bool, overwrite: bool, commit_every: int,
    batch_rows: int | None, structures: tuple[str, ...] | None, h: int | None,
    key_secret: bytes | None, recipe_of: str | None, recipe_given: dict[str, Any],
    learning: Learning, reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Create INDEX from documents, or add to it with --append.

    An INPUT is a text file, .jsonl, .csv or .tsv (also compressed), a folder of such files, or -
    for JSON lines on standard input. Or all INPUTs contain fingerprints: .npy, .hex, or the output
    of `simindex export` or `simindex fingerprint`.
    """
    started = time.perf_counter()
    if not inputs:
        inputs = piped_input("nothing to build from: give an INPUT after INDEX")
    if append and overwrite:
        raise click.UsageError("--append and --overwrite exclude each other")
    if on_existing is not None and not append:
        raise click.UsageError("--on-existing goes with --append")
    if prune and not append:
        raise click.UsageError("--prune goes with --append")
    if recipe_of is not None and (recipe_given or learning.asked):
        raise click.UsageError(
            "--recipe uses the recipe of another index: drop the other options of the recipe"
        )
    if h is not None:
        recipe_given = {**recipe_given, "h": h}
    options: dict[str, Any] = {} if batch_rows is None else {"batch_rows": batch_rows}
    if structures is not None:
        options["structures"] = structures
    if key_secret is not None:
        options["key_secret"] = key_secret
    path = Path(index_path)
    clear_up(path)
    if append:
        checked_call(path, "c", None)
        append = exists(path)
    of_recipe = recipe_given or learning.asked or recipe_of is not None
    first = False
    if append:
        with simindex.open(path, "r") as index:
            first = awaits_recipe(index)
    if append and (options or (of_recipe and not first)):
        raise click.UsageError(OWN_OPTIONS.format(path))
    if not append:
        _require_free(path, overwrite)
    require_inputs(inputs)
    reading = reading.lasting()
    if prune:
        Pruning.of(inputs, reading)
    without = Path(os.path.realpath(path))
    if not append:
        _require_free(path, overwrite)
    contents: Contents[Any]
    pruning: Pruning | None = None
    if reading.holds_fingerprints(inputs):
        bits = recipe_given.pop("bits", None)
        named = [] if recipe_of is None else ["recipe"]
        require_no_recipe([*named, *recipe_given, *learning.given])
        if append and bits is not None:
            raise click.UsageError(OWN_OPTIONS.format(path))
        if prune:
            raise click.UsageError("--prune goes with texts, and the inputs hold fingerprints")
        contents = Rows.of(inputs, reading, without, bits=bits, append=append)
    elif append and not first:
        with simindex.open(path, "r") as index:
            recipe = recipe_of_documents(index, path, *NO_TEXTS)
            reading = reading.named_for(index)
        pruning = Pruning.of(inputs, reading) if prune else None
        if not (quiet or as_json):
            reading.say_names(inputs, path)
        contents = Texts(prepared_with(recipe, inputs, reading, without))
    else:
        if first:
            with simindex.open(path, "r") as index:
                recipe_given = first_given(index, path, recipe_given)
                reading = reading.named_for(index)
            pruning = Pruning.of(inputs, reading) if prune else None
        if not (quiet or as_json):
            reading.say_names(inputs, path)
        left = f"{path} {'is as it was' if exists(path) else 'was not created'}"
        with told_in_full(left):
            if recipe_of is None:
                prepared = prepare(recipe_given, learning, inputs, reading, without, quiet=quiet)
            else:
                recipe = stored_recipe(recipe_of, *NO_RECIPE)
                recipe = recipe if h is None else replace(recipe, h=h)
                prepared = prepared_with(recipe, inputs, reading, without)
        contents = Texts(prepared)
    run = _Run(
        path, contents, append, overwrite, commit_every, started, on_existing or "replace",
        quiet or as_json, pruning,
    )
    place = replacing(run.path) if overwrite else nullcontext(run.path)
    try:
        shown = Progress("indexing", quiet=quiet, extent=contents.extent)
        with shown as run.progress, place as run.place:
            run.fill(options)
    except _NothingRead:
        contents.say()
        if as_json:
            emit({f"{contents.noun}s": 0, "bad_records": contents.intake.bad_records})
        kept = "was not created" if run.place == path and not append else "is as it was"
        nothing_to_do(f"the inputs hold no {contents.noun}: {index_path} {kept}", quiet=quiet)
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted: {run.abandon()}") from error
    except SimindexError as error:
        if run.made is None and not append:
            raise
        remark = run.abandon()
        raise type(error)(
            f"{error.what}; {remark}", remedy=error.remedy, **error.data
        ) from error
    run.report(as_json, quiet)


class _NothingRead(Exception):
    """The inputs hold no document."""


@dataclass
class _Run:
    path: Path
    contents: Contents[Any]
    append: bool
    overwrite: bool
    commit_every: int
    started: float
    on_existing: Choice
    quiet: bool
    pruning: Pruning | None
    progress: Progress = field(init=False)
    """Of what was added to the index."""
    place: Path = field(init=False)
    """Where rows go: `path`, or next to it while an old index is there."""
    made: NewIndex | None = None
    inode: os.stat_result = field(init=False)
    """Of the directory, once made."""
    committed: int = 0
    rows: int = 0
    h: int = field(init=False)
    """The radius that the index stores."""
    bits: int = field(init=False)
    existing: Existing | None = None
    """What of the index was there before; None of one that this run makes."""

    def __post_init__(self) -> None:
        self.place = self.path

    def fill(self, options: dict[str, Any]) -> None:
        contents = self.contents
        most = min(contents.most, self.commit_every or contents.most)
        with closing(read_ahead(contents.groups(most))) as read:
            batches = ((group, contents.batch(group)) for group in read)
            # Read before the index is created: if the first document cannot be, nothing is made.
            first = next(batches, None)
            if first is None:
                raise _NothingRead
            self._add(chain([first], batches), {**contents.options(first[0]), **options})

    def _add(self, batches: Iterable[tuple[Any, Any]], options: dict[str, Any]) -> None:
        with self._open(options) as index, self._looking() as before:
            if self.contents.noun == "document":
                keep_origin(index)
            for group, batch in batches:
                if before is not None:
                    batch = self.contents.admitted(before, index, group, batch)
                    if self.pruning is not None:
                        self.pruning.note(before.names)
                index.append(batch)
                self.progress.advance(*self.contents.size(group))
                fresh = self.progress.documents - self.committed
                if self.commit_every and fresh >= self.commit_every:
                    self._commit(index)
            whole = not self.contents.intake.bad_records
            if self.pruning is not None and before is not None and whole:
                self.pruning.prune(index, before.before)
            self.progress.then("writing the index")
            self._commit(index)
            self.rows, self.h, self.bits = len(index), index.h, index.options.bits
            merge_behind_a_bar(index, self.path, self.progress, quiet=self.quiet)

    def _open(self, options: dict[str, Any]) -> Any:
        if self.append:
            return simindex.open(self.place, "w")
        stored = simindex.IndexOptions(**options)
        self.made = NewIndex.at(self.place, stored, overwrite=self.overwrite)
        self.inode = self.place.stat()
        return self.made.index

    @contextmanager
    def _looking(self) -> Iterator[Existing | None]:
        """What the index had before this run."""
        if not self.append:
            yield None
            return
        self.existing = Existing(self.place, self.on_existing)
        try:
            yield self.existing
        finally:
            self.existing.close()

    def _commit(self, index: Any) -> None:
        with uninterrupted():
            index.commit()
            self.committed = self.progress.documents

    def abandon(self) -> str:
        """Remove an index that this run made and committed nothing to; says what is left."""
        made = self.made if self.place == self.path and not self.committed else None
        if made is not None and made.removed():
            return f"{self.path} was not created"
        if self.place != self.path and not self._took_the_place():
            return f"{self.path} is as it was"
        if self.committed:
            added = count(self.committed, self.contents.noun)
            return f"{added} of this run are committed in {self.path}"
        if self.made is not None:
            return f"nothing of this run is committed, {self.path} is empty"
        return f"nothing of this run is committed, {self.path} is as it was"

    def _took_the_place(self) -> bool:
        """Whether what was built next to an old index is in its place."""
        return (
            self.made is not None and self.path.exists()
            and samestat(self.inode, self.path.stat())
        )

    def _existing_counts(self) -> dict[str, int]:
        found = self.existing
        if found is None:
            return {}
        pruned = {} if self.pruning is None else {"pruned": self.pruning.pruned}
        return {"replaced": found.replaced, "skipped": found.skipped, **pruned}

    def report(self, as_json: bool, quiet: bool) -> None:
        seconds = time.perf_counter() - self.started
        done, contents = self.progress, self.contents
        if as_json:
            emit(
                {
                    f"{contents.noun}s": done.documents,
                    "without_fingerprint": contents.without.number,
                    "bad_records": contents.intake.bad_records,
                    **({} if contents.short is None else {"short_texts": contents.short.number}),
                    **self._existing_counts(),
                    "characters" if contents.noun == "document" else "bytes": done.characters,
                    "rows": self.rows,
                    "h": self.h,
                    "seconds": round(seconds, 3),
                    **({} if contents.lesson is None else {"idf": contents.lesson.record()}),
                }
            )
        contents.without.close()
        if quiet or as_json:
            return
        contents.say()
        if contents.short is not None:
            contents.short.say(done.documents)
        for what, number in self._existing_counts().items():
            if number and what in EXISTING:
                say(EXISTING[what].format(count(number, "document"), self.path))
        if self.pruning is not None:
            say(self.pruning.told(self.path, contents.intake.bad_records))
        say(
            f"{count(done.documents, contents.noun)} ({megabytes(done.characters)}) in "
            f"{duration(seconds)}, {done.documents / seconds:,.0f} a second; {self.path} holds "
            f"{count(self.rows, 'row')}; near-duplicates: within {self.h} of {self.bits} bits"
        )


def _require_free(path: Path, overwrite: bool) -> None:
    # Before any reading: learning tf-idf weights from the inputs can take long.
    checked_call(path, "c", None)
    if not require_place(path):
        return
    if not exists(path):
        require_nothing_else(path)
    if overwrite:
        return
    with suppress(IndexNotFound):
        simindex.open(path, "r").close()
        raise IndexExists(
            f"{path} is an index already",
            remedy="add to it with --append, or replace it with --overwrite", path=str(path),
        )
