"""`simindex build`: documents or fingerprints into an index, all or nothing unless commits in
between are asked."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.agreement import require_agreement
from simindex.cli.app import Interrupted, nothing_to_do, program
from simindex.cli.console import emit
from simindex.cli.input_options import Reading, input_options, inputs_argument, piped_input
from simindex.cli.lock_wait import LockWait, wait_option
from simindex.cli.numbers import Count
from simindex.cli.opening import open_index
from simindex.cli.prepared_documents import (
    Learning,
    idf_options,
    prepare,
    prepared_with,
    told_in_full,
)
from simindex.cli.progress import Progress
from simindex.cli.recipes import first_given, recipe_of_documents, recipe_options, stored_recipe
from simindex.cli.shared_options import (
    NamedPath,
    Option,
    distance,
    index_argument,
    key_secret_option,
    output_options,
    structures_option,
    times_option,
)
from simindex.cli.stored_documents import CHOICES, Choice
from simindex.cli.wording import with_remark
from simindex.errors import IndexExists, IndexNotFound, InvalidInput, SimindexError, StorageFailed
from simindex.inputs.reading import require_inputs
from simindex.storage.files.refusals import LAST_COMMIT

if TYPE_CHECKING:
    from simindex.cli.contents import Contents
    from simindex.cli.pruned_documents import Pruning

NO_TEXTS = (
    "texts cannot be added to it",
    "add fingerprints, such as rows.npy, or build another index of the texts",
)

NO_RECIPE = "no other index can use it", "name an index with a recipe, or leave out --recipe"


batch_rows_option: Option = click.option(
    "--batch-rows", type=Count(),
    help="How many documents to collect in memory before a file of the index is written. More "
    "take more memory, and make fewer files. Default: 1,048,576.",
)

recipe_of_option: Option = click.option(
    "--recipe", "recipe_of", type=NamedPath(), metavar="INDEX",
    help="Use the recipe of another index, with its word weights (idf) and its radius. `simindex "
    "query --index` can then compare both indexes.",
)


@program.command()
@index_argument
@inputs_argument
@click.option(
    "--append", is_flag=True,
    help="Add to INDEX, with the recipe that it stores. Create it if it does not exist.",
)
@click.option(
    "--on-existing", type=click.Choice(CHOICES),
    help="With --append, what to do with a document whose key INDEX has already: replace the "
    "stored one, skip the new one, or end with an error. Default: replace.",
)
@click.option(
    "--prune", is_flag=True,
    help="With --append, and folders as INPUTs: also delete the documents of INDEX whose files "
    "these folders no longer have.",
)
@click.option(
    "--overwrite", is_flag=True,
    help="Replace an existing INDEX once the new one is complete.",
)
@click.option(
    "--commit-every", type=Count(1), default=0, metavar="N",
    help="Commit after every N documents, so that an interrupted run keeps those. Default: commit "
    "once at the end, so that an interrupted run changes nothing.",
)
@batch_rows_option
@times_option
@structures_option
@distance("that of the recipe, 7 of 64 bits for the usual ones", "The radius that INDEX stores")
@key_secret_option
@recipe_of_option
@recipe_options
@idf_options
@input_options
@wait_option
@output_options
def build(
    index_path: str, inputs: tuple[str, ...], append: bool,
    on_existing: Choice | None, prune: bool, overwrite: bool, commit_every: int,
    batch_rows: int | None, times: bool, structures: tuple[str, ...] | None, h: int | None,
    key_secret: bytes | None, recipe_of: str | None, recipe_given: dict[str, Any],
    learning: Learning, reading: Reading, wait: LockWait, as_json: bool, quiet: bool,
) -> None:
    """Create INDEX from documents, or add to it with --append.

    An INPUT is a text file, a .jsonl, .csv or .tsv file (also compressed), a folder of such files,
    or - for JSON lines on standard input. Or all INPUTs contain fingerprints: .npy or .hex files,
    or the output of `simindex export` or `simindex fingerprint`.
    """
    from simindex.cli.build_run import NothingRead, Run, left_at
    from simindex.cli.contents import Rows, Texts, require_no_recipe
    from simindex.cli.new_index import replacing
    from simindex.cli.pruned_documents import Pruning
    from simindex.index.first_texts import awaits_recipe
    from simindex.storage.location import checked_call
    from simindex.writing.ownership import exists
    from simindex.writing.replacement import clear_up

    started = time.perf_counter()
    if not inputs:
        inputs = piped_input("nothing to build from: give an INPUT after INDEX")
    if append and overwrite:
        raise click.UsageError("--append and --overwrite exclude each other")
    if on_existing is not None and not append:
        raise click.UsageError("--on-existing needs --append")
    if wait.seconds and not (append or overwrite):
        raise click.UsageError("--wait needs --append or --overwrite")
    if prune and not append:
        raise click.UsageError("--prune needs --append")
    require_one_recipe(recipe_of, recipe_given, learning)
    if h is not None:
        recipe_given = {**recipe_given, "h": h}
    options: dict[str, Any] = {} if batch_rows is None else {"batch_rows": batch_rows}
    if times:
        options["times"] = True
    if structures is not None:
        options["structures"] = structures
    if key_secret is not None:
        options["key_secret"] = key_secret
    path = Path(index_path)
    clear_up(path)
    if append:
        checked_call(path, "c", None)
        append = exists(path)
    first = False
    if append:
        like = None if recipe_of is None else stored_recipe(recipe_of, *NO_RECIPE)
        with open_index(path, "r") as index:
            first = awaits_recipe(index)
            if first:
                require_agreement(index, path, {}, options)
            else:
                require_agreement(index, path, recipe_given, options, like=like)
                recipe_given = {}
        options = {}
    else:
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
            with open_index(path, "r") as index:
                require_agreement(index, path, {"bits": bits}, {})
        if prune:
            raise click.UsageError("--prune needs texts, and the inputs hold fingerprints")
        contents = Rows.of(inputs, reading, without, bits=bits, append=append)
    elif append and not first:
        with open_index(path, "r") as index:
            recipe = recipe_of_documents(index, path, *NO_TEXTS)
            reading = reading.named_for(index)
        pruning = Pruning.of(inputs, reading) if prune else None
        if not (quiet or as_json):
            reading.say_names(inputs, path)
        contents = Texts(prepared_with(recipe, inputs, reading, without), added=True)
    else:
        if first:
            with open_index(path, "r") as index:
                recipe_given = first_given(index, path, recipe_given)
                reading = reading.named_for(index)
            pruning = Pruning.of(inputs, reading) if prune else None
        if not (quiet or as_json):
            reading.say_names(inputs, path)
        with told_in_full(left_at(path)):
            if recipe_of is None:
                prepared = prepare(
                    recipe_given, learning, inputs, reading, without, quiet=quiet, kept=not append
                )
            else:
                recipe = stored_recipe(recipe_of, *NO_RECIPE)
                recipe = recipe if h is None else replace(recipe, h=h)
                prepared = prepared_with(recipe, inputs, reading, without)
        contents = Texts(prepared)
    run = Run(
        path, contents, append, overwrite, commit_every, started, on_existing or "replace",
        quiet or as_json, pruning, wait,
    )
    place = replacing(run.path, wait) if overwrite else nullcontext(run.path)
    try:
        shown = Progress("indexing", quiet=quiet, extent=contents.extent)
        with shown as run.progress, place as run.place:
            run.fill(options)
    except NothingRead as error:
        run.abandon()
        contents.without.close()
        contents.say(0)
        if as_json:
            emit({
                f"{contents.noun}s": contents.intake.documents,
                "without_fingerprint": contents.without.number,
                "bad_records": contents.intake.bad_records,
            })
        kept = "was not created" if run.place == path and not append else "is as it was"
        kind = " ".join([contents.noun, *error.args])
        nothing_to_do(f"the inputs hold no {kind}: {index_path} {kept}", quiet=quiet)
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted: {run.abandon()}") from error
    except SimindexError as error:
        if run.made is None and not append and not isinstance(error, (InvalidInput, StorageFailed)):
            raise
        remark = run.abandon()
        remedy = error.remedy and error.remedy.removesuffix(LAST_COMMIT)
        raise with_remark(error, remark, remedy=remedy) from error
    run.report(as_json, quiet)


def require_one_recipe(
    recipe_of: str | None, recipe_given: dict[str, Any], learning: Learning
) -> None:
    """Refuses --recipe together with options that would make another one."""
    if recipe_of is not None and (recipe_given or learning.asked):
        raise click.UsageError(
            "--recipe uses the recipe of another index: leave out the other options of a recipe"
        )


def _require_free(path: Path, overwrite: bool) -> None:
    # Before any reading: learning tf-idf weights from the inputs can take long.
    from simindex.storage.location import checked_call
    from simindex.writing.creation import require_place
    from simindex.writing.ownership import exists, require_nothing_else

    checked_call(path, "c", None)
    if not require_place(path):
        return
    if not exists(path):
        require_nothing_else(path)
    if overwrite:
        return
    with suppress(IndexNotFound):
        open_index(path, "r").close()
        raise IndexExists(
            f"{path} is an index already",
            remedy="add to it with --append, or replace it with --overwrite", path=str(path),
        )
