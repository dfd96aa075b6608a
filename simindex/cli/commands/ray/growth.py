"""`simindex ray append` and `ray split`: more rows in shards, and more shards of the same rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.app import nothing_to_do
from simindex.cli.commands.ray.group import connection_options, ray
from simindex.cli.console import count, duration, emit, say
from simindex.cli.input_options import Reading, input_options, inputs_argument, piped_input
from simindex.cli.numbers import Count
from simindex.cli.prepared_documents import prepared_with
from simindex.cli.progress import Progress
from simindex.cli.recipes import recipe_of_documents
from simindex.cli.shared_options import output_options
from simindex.inputs.reading import require_inputs

if TYPE_CHECKING:
    from simindex.cli.contents import Rows, Texts


@ray.command()
@connection_options
@inputs_argument
@input_options
@output_options
def append(
    root: str, connection: dict[str, Any], inputs: tuple[str, ...], reading: Reading,
    as_json: bool, quiet: bool,
) -> None:
    """Add documents or fingerprints to the shards in ROOT.

    Makes fingerprints by the recipe of the shards. Holds all rows of the INPUTs in memory, without
    their weights, and adds all of them at once, or none. A document whose key a shard has already
    ends the run with an error.
    """
    from simindex.distributed import ray as on_ray

    started = time.perf_counter()
    if not inputs:
        inputs = piped_input("nothing to append: give an INPUT after ROOT")
    require_inputs(inputs)
    with on_ray.connect(root, **connection) as shards:
        contents = _contents(root, shards.shard_map.shards[0].path, inputs, reading)
        batch = _all_rows(contents, quiet=quiet or as_json)
        if batch is not None:
            shards.append(batch)
        now = shards.shard_map
    contents.without.close()
    if batch is None:
        contents.say(0)
        nothing_to_do(f"the inputs hold no {contents.noun}: {root} is as it was", quiet=quiet)
    spent_s = time.perf_counter() - started
    if as_json:
        emit({"added": len(batch), "rows": now.rows, "shards": len(now), "seconds": spent_s})
    elif not quiet:
        contents.say(len(batch))
        say(
            f"added {count(len(batch), 'row')} to {root}, which has {now.rows:,} in "
            f"{count(len(now), 'shard')}, in {duration(spent_s)}"
        )


@ray.command()
@connection_options
@click.argument("number", type=Count(0))
@output_options
def split(
    root: str, connection: dict[str, Any], number: int, as_json: bool, quiet: bool
) -> None:
    """Divide a shard in two.

    NUMBER is the number of the shard. Its rows are divided by the leading bits of their
    fingerprints, or by the number of ones if the shards are divided so. The two new shards do not
    get its sample of weights.
    """
    from simindex.distributed import ray as on_ray

    started = time.perf_counter()
    with on_ray.connect(root, **connection) as shards:
        now = shards.split(number)
    new = now.shards[-1].number
    rows = {one.number: one.rows for one in now.shards}
    spent_s = time.perf_counter() - started
    if as_json:
        emit({
            "shards": len(now), "numbers": [number, new], "rows": [rows[number], rows[new]],
            "seconds": spent_s,
        })
    elif not quiet:
        say(
            f"split shard {number} of {root} into shards {number} and {new} of {rows[number]:,} "
            f"and {count(rows[new], 'row')}, in {duration(spent_s)}"
        )


def _contents(root: str, shard: str, inputs: tuple[str, ...], reading: Reading) -> Texts | Rows:
    """What the inputs hold, for shards of which one is told."""
    from simindex.cli.contents import Rows, Texts

    if reading.holds_fingerprints(inputs):
        return Rows.of(inputs, reading, Path(shard), bits=None, append=True)
    with simindex.open(shard, "r") as index:
        recipe = recipe_of_documents(
            index, root, "texts cannot be added to it",
            "give a .hex or .npy file of fingerprints",
        )
    return Texts(prepared_with(recipe, inputs, reading, Path(root).absolute()), added=True)


def _all_rows(contents: Texts | Rows, *, quiet: bool) -> simindex.Batch | None:
    """All rows in one batch; None if there is none."""
    import numpy as np

    from simindex.cli.chunks import joined

    batches: list[simindex.Batch] = []
    ids = []
    with Progress("reading", quiet=quiet, extent=contents.extent) as progress:
        groups: Any = contents.groups(contents.most)
        work: Any = contents.work()
        for group in groups:
            batch = contents.batch(group, work(group, None)).without_weights()
            progress.advance(*contents.size(group))
            if len(batch):
                batches.append(batch)
                ids += [] if batch.ids is None else [batch.ids]
    if not batches:
        return None
    made = joined(batches)
    if not ids:
        return made
    return simindex.Batch(made.rows, ids=np.concatenate(ids), sketch=made.sketches)
