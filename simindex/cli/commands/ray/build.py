"""`simindex ray build`: documents or fingerprints into shards that a cluster builds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import simindex
from simindex.cli.app import nothing_to_do
from simindex.cli.commands.build import (
    NO_RECIPE,
    batch_rows_option,
    recipe_of_option,
    require_one_recipe,
)
from simindex.cli.commands.ray.group import address_option, cpus_option, ray, root_argument
from simindex.cli.console import count, duration, emit, say
from simindex.cli.input_options import Reading, input_options, inputs_argument, piped_input
from simindex.cli.numbers import Count
from simindex.cli.prepared_documents import Learning, idf_options, prepare, prepared_with
from simindex.cli.progress import Progress
from simindex.cli.recipes import recipe_options, stored_recipe
from simindex.cli.shared_options import (
    NamedPath,
    distance,
    key_secret_option,
    output_options,
    structures_option,
)
from simindex.inputs.reading import require_inputs

if TYPE_CHECKING:
    from simindex.cli.contents import Rows, Texts
    from simindex.distributed.shardmap import ShardMap
    from simindex.inputs.fingerprints import Fingerprints


@ray.command()
@root_argument
@inputs_argument
@click.option(
    "--shards", type=Count(1, example="16"), required=True, metavar="N", help="Number of shards."
)
@click.option(
    "--by", type=click.Choice(["rows", "prefix", "ones"]), default="rows", show_default=True,
    help="How to divide the documents: rows by their order, prefix by the leading bits of their "
    "fingerprints, ones by the number of ones. With prefix and ones, queries within a few bits ask "
    "fewer shards.",
)
@click.option(
    "--work", type=NamedPath(), metavar="DIR",
    help="Build in this folder on a local disk of each machine, then copy the finished shards. "
    "Default: build in ROOT.",
)
@address_option
@cpus_option
@structures_option
@batch_rows_option
@distance("that of the recipe", "The radius that the shards store")
@key_secret_option
@recipe_of_option
@recipe_options
@idf_options
@input_options
@output_options
def build(
    root: str, inputs: tuple[str, ...], shards: int, by: Literal["rows", "prefix", "ones"],
    work: str | None, address: str, cpus: float | None, structures: tuple[str, ...] | None,
    batch_rows: int | None, h: int | None, key_secret: bytes | None, recipe_of: str | None,
    recipe_given: dict[str, Any], learning: Learning, reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Create shards in ROOT from documents or fingerprints.

    INPUTs are those of `simindex build`. This machine reads them, a portion at a time, and tasks
    of the cluster make the fingerprints and build the shards.
    """
    from simindex.distributed.creation import require_new

    started = time.perf_counter()
    if not inputs:
        inputs = piped_input("nothing to build from: give an INPUT after ROOT")
    require_one_recipe(recipe_of, recipe_given, learning)
    require_new(root)
    require_inputs(inputs)
    if h is not None:
        recipe_given = {**recipe_given, "h": h}
    silent = quiet or as_json
    contents = _contents(
        root, inputs, recipe_of, recipe_given, learning, reading.lasting(), silent
    )
    given = {"structures": structures, "batch_rows": batch_rows, "key_secret": key_secret}
    made = _made(
        root, contents, shards, {name: value for name, value in given.items() if value is not None},
        silent=silent, by=by, work=work, address=address,
        **({} if cpus is None else {"cpus": cpus}),
    )
    contents.without.close()
    if made is None:
        contents.say(0)
        nothing_to_do(f"the inputs hold no {contents.noun}: {root} was not created", quiet=quiet)
    spent_s = time.perf_counter() - started
    if as_json:
        emit({"shards": len(made), "rows": made.rows, "h": made.h, "seconds": spent_s})
    elif not quiet:
        contents.say(made.rows)
        say(
            f"built {count(len(made), 'shard')} of {count(made.rows, 'row')} in {root}, in "
            f"{duration(spent_s)}"
        )


def _contents(
    root: str, inputs: tuple[str, ...], recipe_of: str | None, recipe_given: dict[str, Any],
    learning: Learning, reading: Reading, quiet: bool,
) -> Texts | Rows:
    from simindex.cli.contents import Rows, Texts, require_no_recipe

    without = Path(os.path.realpath(root))
    if reading.holds_fingerprints(inputs):
        bits = recipe_given.pop("bits", None)
        named = [] if recipe_of is None else ["recipe"]
        require_no_recipe([*named, *recipe_given, *learning.given])
        return Rows.of(inputs, reading, without, bits=bits, append=False)
    if recipe_of is None:
        return Texts(prepare(recipe_given, learning, inputs, reading, without, quiet=quiet))
    recipe = stored_recipe(recipe_of, *NO_RECIPE)
    recipe = replace(recipe, h=recipe_given.get("h", recipe.h))
    return Texts(prepared_with(recipe, inputs, reading, without))


def _made(
    root: str, contents: Texts | Rows, shards: int, given: dict[str, Any], *, silent: bool,
    by: Literal["rows", "prefix", "ones"], **cluster: Any,
) -> ShardMap | None:
    """The map of the shards; None if the inputs hold no row."""
    from simindex.cli.contents import Texts
    from simindex.distributed.ray.build_tasks import build_made

    options: dict[str, Any] = {}
    make: Callable[[Any], tuple[simindex.Batch, Any]] = _as_read
    noted: Callable[[Any, Any], None] = _no_note
    if isinstance(contents, Texts):
        assert contents.short is not None
        make, noted = contents.short.task(), contents.made_elsewhere
    with Progress("reading", quiet=silent, extent=contents.extent) as progress:

        def groups() -> Iterator[Any]:
            found: Iterator[Any] = contents.groups(contents.most)
            for group in found:
                size = contents.size(group)
                progress.advance(*size)
                if size[0] and not options:
                    options.update(contents.options(group))
                yield group

        return build_made(
            root, groups(), make, shards,
            options=lambda: simindex.IndexOptions(**options, **given), noted=noted,
            read=lambda: progress.then("building", "task"), by=by, progress=progress.tell,
            **cluster,
        )


def _as_read(group: Fingerprints) -> tuple[simindex.Batch, None]:
    return group.batch, None


def _no_note(group: Fingerprints, told: None) -> None:
    """Fingerprints that were read are all there is."""
