"""`simindex stats`: what an index holds.

By default in the words of the shell: rows, bytes, recall. --verbose adds those of the engine.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.app import program
from simindex.cli.console import audited, compacted, count, emit, megabytes, shown
from simindex.cli.description import KEYS, features_of, moment
from simindex.cli.opening import open_index
from simindex.cli.recommendation import advised
from simindex.cli.shared_options import index_argument, output_options, verbose_option
from simindex.outputs.columns import encodable

if TYPE_CHECKING:
    from simindex.records.reports import IndexStats, Skew


@program.command()
@index_argument
@click.option(
    "--skew", is_flag=True,
    help="Also print which fingerprints, and which first bits of fingerprints, most rows share. "
    "This reads all fingerprints.",
)
@click.option(
    "--metrics", is_flag=True,
    help="Print the figures of INDEX for monitoring instead, in the text format of OpenMetrics.",
)
@verbose_option
@output_options
def stats(
    index_path: str, skew: bool, metrics: bool, verbose: bool, as_json: bool, quiet: bool
) -> None:
    """Print how many rows INDEX has, its size and its recipe."""
    from simindex.index.first_texts import awaits_recipe

    if metrics and (skew or verbose or as_json):
        raise click.UsageError("--metrics has a format of its own: leave out other options")
    with open_index(index_path, "r") as index:
        if metrics:
            click.echo(index.metrics(calls=False), nl=False)
            return
        held, waits = index.stats(skew=skew), awaits_recipe(index)
        undecided = waits and index.options.keys is None
    if as_json:
        emit(asdict(held))
        return
    table = _of_the_engine(held) if verbose else _of_users(held)
    if waits:
        table |= _of_first_rows(held, "recipe" if verbose else "fingerprint", undecided=undecided)
    for name, value in table.items():
        click.echo(f"{name:<11} {value}")
    if held.skew is not None:
        _print_skew(held.skew)


def _of_users(held: IndexStats) -> dict[str, str]:
    told = ", one for each document with a fingerprint; a key that was added twice has two"
    table = {
        "path": shown(encodable(held.path)),
        "rows": f"{held.rows:,}{told * bool(held.keys)}",
        "on disk": megabytes(held.bytes_segments + held.bytes_catalog),
        "keys": KEYS[held.keys],
        "distance": f"near-duplicates are within {held.h} bits, unless you give --distance",
        "fingerprint": f"{held.bits} bits, of {features_of(held.recipe)}",
    }
    if held.sketch_bits:
        table["sketch"] = f"{held.sketch_bits} bits, which decide with --similarity"
    if held.oldest is not None:
        table["oldest"] = moment(held.oldest)
    if held.dead_rows:
        table["deleted"] = (
            f"{held.dead_rows:,}, whose space `simindex compact --full` frees"
        )
    if (gain := compacted(held.compaction)) is not None:
        table["files"] = gain
    if held.audit is not None:
        table["recall"] = audited(held.audit)
    if held.advice is not None:
        table["advice"] = advised(held.advice)
    return table


def _of_first_rows(held: IndexStats, name: str, *, undecided: bool) -> dict[str, str]:
    """What the first rows of an index are yet to decide; `name` is the row of the recipe."""
    table = {
        "rows": "none yet",
        "distance": "not decided yet, unless you give --distance",
        name: f"{held.bits} bits; no recipe yet: the first documents bring it",
    }
    return {**table, "keys": "not decided yet"} if undecided else table


def _of_the_engine(held: IndexStats) -> dict[str, str]:
    table = {
        "path": shown(encodable(held.path)),
        "rows": f"{held.rows:,}, and {held.dead_rows:,} deleted but not compacted away",
        "pending": f"{held.pending_rows:,} of these rows are in no segment yet",
        "segments": f"{held.segments:,}, {megabytes(held.bytes_segments)}",
        "structures": ", ".join(
            f"{name} {megabytes(size)}" if size else name for name, size in held.structures.items()
        ),
        "catalog": megabytes(held.bytes_catalog),
        "disk": f"{held.bytes_per_row:.1f} bytes a row",
        "bits": str(held.bits),
        "sketch": f"{held.sketch_bits} bits" if held.sketch_bits else "none",
        "distance": f"near-duplicates are within {held.h} bits, unless you give --distance",
        "keys": str(held.keys) if held.keys else "no, ids only",
        "tombstones": f"{held.tombstones:,}",
        "commit": str(held.generation),
        "recipe": _inline(held.recipe),
        "sample": f"{held.sample_rows:,} rows of weights, to learn from which bits flip",
    }
    if held.oldest is not None:
        table["oldest"] = moment(held.oldest)
    if (gain := compacted(held.compaction)) is not None:
        table["compaction"] = gain
    if held.audit is not None:
        table["audit"] = audited(held.audit, verbose=True)
    if held.advice is not None:
        table["advice"] = advised(held.advice)
    return table


def _print_skew(skew: Skew) -> None:
    unsure = "" if skew.certain else ", and perhaps others"
    click.echo(
        f"{'headers':<11} of {skew.header_bits} bits, {skew.rows_per_header:.2f} rows each on "
        f"average; those of most rows{unsure}:"
    )
    for hot in skew.headers:
        click.echo(f"{'':<11} {hot.value}  {count(hot.rows, 'row')}")
    click.echo(f"{'equal rows':<11} fingerprints of most rows{unsure}:" if skew.fingerprints
               else f"{'equal rows':<11} none{'' if skew.certain else ' within a segment'}")
    for hot in skew.fingerprints:
        click.echo(f"{'':<11} {hot.value}  {count(hot.rows, 'row')}")


def _inline(values: dict[str, Any] | None) -> str:
    if values is None:
        return "none"
    told = {name: value for name, value in values.items() if value not in (None, [], "")}
    return ", ".join(f"{name} {_brief(value)}" for name, value in told.items())


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"({len(value):,})" if len(value) > 5 else ",".join(map(str, value))
    return str(value)
