"""`simindex delete`, `compact`, `stats` and `check`: what an index needs now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import click
import numpy as np

import simindex
from simindex.cli.choices import index_argument, output_options, structures_option
from simindex.cli.console import cell, count, duration, emit, encodable, megabytes, say, shown
from simindex.cli.interrupt import uninterrupted
from simindex.cli.recall import audited
from simindex.errors import InvalidInput
from simindex.inputs.streams import Unreadable, lines, unmarked
from simindex.records.batch import MAX_KEY_BYTES
from simindex.records.reports import Skew

DELETED_AT_ONCE, DELETED_LENGTH = 1 << 16, 1 << 23
"""Keys of a list that are held together, and their characters."""

LINE_END_BYTES = 5
"""A byte order mark before a key, CR and LF behind it."""

DAMAGED = 3


@click.command()
@index_argument
@click.option("--id", "ids", multiple=True, type=click.IntRange(0, 2**64 - 1), help="An id.")
@click.option("--key", "keys", multiple=True, help="A key.")
@click.option(
    "--keys-from", type=click.Path(), metavar="FILE", help="Keys, one a line; - is standard input."
)
@output_options
def delete(
    index_path: str, ids: tuple[int, ...], keys: tuple[str, ...], keys_from: str | None,
    as_json: bool, quiet: bool,
) -> None:
    """Delete rows of INDEX by id or key.

    All rows that carry one of them, in one commit.
    """
    if not (ids or keys or keys_from):
        raise click.UsageError("nothing to delete: give --id, --key or --keys-from")
    with simindex.open(index_path, "w") as index:
        as_stored = _as_stored(index.options.keys)
        before = len(index)
        if ids:
            index.delete(ids=np.array(ids, dtype=np.uint64))
        if keys:
            index.delete(keys=[as_stored(key) for key in keys])
        if keys_from:
            for group in _groups(_listed_keys(keys_from)):
                index.delete(keys=[as_stored(key) for key in group])
        with uninterrupted():
            index.commit()
        rows = len(index)
    deleted = before - rows
    if as_json:
        emit({"deleted": deleted, "rows": rows})
    elif not quiet:
        say(f"deleted {count(deleted, 'row')}; {index_path} holds {rows:,}")


def _as_stored(kind: object) -> Callable[[str], Any]:
    # What is no UTF-8 on the command line comes as lone surrogates, and is bytes again here.
    return (lambda key: key.encode("utf-8", "surrogateescape")) if kind == "bytes" else str


def _groups(keys: Iterator[str]) -> Iterator[list[str]]:
    group: list[str] = []
    length = 0
    for key in keys:
        group.append(key)
        length += len(key)
        if len(group) == DELETED_AT_ONCE or length >= DELETED_LENGTH:
            yield group
            group, length = [], 0
    if group:
        yield group


def _listed_keys(path: str) -> Iterator[str]:
    if path == "-":
        yield from _decoded(path, sys.stdin.buffer)
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be opened: {error.strerror}", path=path) from error
    with file:
        yield from _decoded(path, file)


def _lines(path: str, file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    try:
        yield from lines(file, MAX_KEY_BYTES + LINE_END_BYTES)
    except Unreadable as error:
        raise InvalidInput(
            f"{path}:{error.line}: {error}; nothing was deleted", path=path, line=error.line
        ) from error


def _decoded(path: str, file: BinaryIO) -> Iterator[str]:
    for number, line in _lines(path, file):
        if line is not None:
            line = (unmarked(line) if number == 1 else line).rstrip(b"\r\n")
        if line is None or len(line) > MAX_KEY_BYTES:
            raise InvalidInput(
                f"{path}:{number}: longer than the {MAX_KEY_BYTES:,} bytes of a key; nothing was "
                "deleted", path=path, line=number,
            )
        try:
            key = line.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{path}:{number}: not UTF-8; nothing was deleted", path=path, line=number
            ) from error
        if key:
            yield key


@click.command()
@index_argument
@click.option("--full", is_flag=True, help="Into one segment, whatever the sizes.")
@structures_option
@output_options
def compact(
    index_path: str, full: bool, structures: tuple[str, ...] | None, as_json: bool, quiet: bool
) -> None:
    """Merge segments, drop deleted rows.

    With --structures, also build or drop permuted tables and slice lists.
    """
    started = time.perf_counter()
    with simindex.open(index_path, "w") as index:
        before = index.stats()
        index.compact(full=full, structures=structures)
        with uninterrupted():
            index.commit()
        after = index.stats()
    seconds = time.perf_counter() - started
    if as_json:
        emit(
            {
                "segments": after.segments, "segments_before": before.segments,
                "rows": after.rows, "dead_rows": after.dead_rows,
                "bytes_segments": after.bytes_segments,
                "bytes_segments_before": before.bytes_segments,
                "structures": after.structures,
                "seconds": round(seconds, 3),
            }
        )
    elif not quiet:
        say(
            f"{count(before.segments, 'segment')} became {after.segments:,}, "
            f"{megabytes(before.bytes_segments)} became {megabytes(after.bytes_segments)}, in "
            f"{duration(seconds)}"
        )


@click.command()
@index_argument
@click.option(
    "--skew", is_flag=True, help="Also the hottest headers and fingerprints; reads all rows."
)
@output_options
def stats(index_path: str, skew: bool, as_json: bool, quiet: bool) -> None:
    """Print what INDEX holds."""
    with simindex.open(index_path, "r") as index:
        held = index.stats(skew=skew)
    if as_json:
        emit(asdict(held))
        return
    keys = held.keys if held.keys else "no, ids only"
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
        "bits": held.bits,
        "keys": keys,
        "tombstones": f"{held.tombstones:,}",
        "commit": held.generation,
        "recipe": _inline(held.recipe),
        "sample": f"{held.sample_rows:,} rows of weights, to learn from which bits flip",
    }
    if held.audit is not None:
        table["audit"] = audited(held.audit)
    for name, value in table.items():
        click.echo(f"{name:<11} {value}")
    if held.skew is not None:
        _print_skew(held.skew)


def _print_skew(skew: Skew) -> None:
    unsure = "" if skew.certain else ", and perhaps others"
    click.echo(
        f"{'headers':<11} of {skew.header_bits} bits, {skew.rows_per_header:.2f} rows each on "
        f"average; those of most rows{unsure}:"
    )
    for hot in skew.headers:
        click.echo(f"{'':<11} {hot.value}  {count(hot.rows, 'row')}")
    click.echo(f"{'equal rows':<11} fingerprints of most rows{unsure}:" if skew.fingerprints
               else f"{'equal rows':<11} none")
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


@click.command()
@index_argument
@output_options
def check(index_path: str, as_json: bool, quiet: bool) -> None:
    """Verify every byte of INDEX.

    Prints what is wrong, and exits with 3 when something is damaged.
    """
    started = time.perf_counter()
    with simindex.open(index_path, "r") as index:
        findings = index.check()
        rows = len(index)
    for finding in findings:
        if as_json:
            emit({"severity": finding.severity, "path": finding.path, "what": finding.what})
        else:
            click.echo("\t".join(map(cell, (finding.severity, finding.path, finding.what))))
    damaged = sum(finding.severity == "error" for finding in findings)
    if not quiet:
        verdict = f"{count(damaged, 'error')}" if damaged else "no damage"
        remedy = f"; `simindex repair {index_path}` says what can be had again" if damaged else ""
        seconds = duration(time.perf_counter() - started)
        say(f"{verdict} in {count(rows, 'row')}, in {seconds}{remedy}")
    if damaged:
        click.get_current_context().exit(DAMAGED)
