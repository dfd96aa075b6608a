"""Which rows of shards to drop, and what is kept instead: as lines, or as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.console import LINES_AT_ONCE, cell
from simindex.cli.similarity import columns_of_similarity, schema_of_similarity
from simindex.outputs.columns import Schema, Write, key_text, kind_of_keys

if TYPE_CHECKING:
    from simindex.distributed import Losers




def schema_of_losers(keys: Any, similarity: float | None = None) -> Schema:
    """The columns of rows to drop, with keys of a kind, or without."""
    ids: Schema = {"id": "uint64", "kept": "uint64"}
    kind = kind_of_keys(keys)
    named: Schema = {"key": kind, "kept_key": kind} if keys else {}
    return {**ids, **named, "distance": "uint16", **schema_of_similarity(similarity)}


def keys_of(parts: list[Any]) -> dict[int, Any]:
    """The keys of all rows of some pairs by their ids; none if rows have ids alone."""
    found: dict[int, Any] = {}
    for part in parts:
        pairs_of = [(part.a, part.b, part.keys())]
        if isinstance(part, simindex.CollapsedPairs):
            pairs_of.append((part.groups.first, part.groups.row, part.groups.keys()))
        for a, b, keys in pairs_of:
            if keys is not None:
                found.update(zip(a.tolist(), keys[0], strict=True))
                found.update(zip(b.tolist(), keys[1], strict=True))
    return found


def schema_of_proof(keys: Any, told: bool) -> Schema:
    """The columns of certificates: the first ones of `dedup --certificates`; with similarities if
    distances have `told` some."""
    kind = kind_of_keys(keys) if keys else "uint64"
    proof: Schema = {"dropped": kind, "lost_to": kind, "distance": "uint16"}
    return {**proof, **schema_of_similarity(told or None)}


def print_losers(
    lost: Losers, keys: dict[int, Any], write: Write | None, bits: int = 0,
    measure: str = "cosine", certify: Write | None = None, estimating: int = 0,
) -> None:
    """Prints rows to drop as lines, or hands them to `write`; with the similarities that distances
    of so many bits stand for, unless these are 0. `certify` is handed a certificate of each, with
    the similarity that a distance of `estimating` bits stands for where `bits` are 0."""
    for columns in _columns(lost, keys, bits, measure):
        if write is None:
            click.echo("\n".join(_lines(columns)))
        else:
            write(columns)
        if certify is not None:
            certify(_proof(columns, estimating))


def _columns(
    lost: Losers, keys: dict[int, Any], bits: int, measure: str
) -> Iterator[dict[str, Any]]:
    for start in range(0, len(lost.id), LINES_AT_ONCE):
        rows = slice(start, start + LINES_AT_ONCE)
        columns: dict[str, Any] = {"id": lost.id[rows], "kept": lost.winner[rows]}
        if keys:
            columns["key"] = [keys[one] for one in columns["id"].tolist()]
            columns["kept_key"] = [keys[one] for one in columns["kept"].tolist()]
        columns["distance"] = lost.distance[rows]
        if bits:
            columns |= columns_of_similarity(lost.distance[rows], bits, measure)
        yield columns


def _proof(columns: dict[str, Any], bits: int) -> dict[str, Any]:
    if bits and "similarity" not in columns:
        columns = columns | columns_of_similarity(columns["distance"], bits)
    own, kept = ("key", "kept_key") if "key" in columns else ("id", "kept")
    named = "id", "key", "kept", "kept_key"
    told = {name: column for name, column in columns.items() if name not in named}
    return {"dropped": columns[own], "lost_to": columns[kept], **told}


def _lines(columns: dict[str, Any]) -> Iterator[str]:
    own, kept = (
        [cell(key_text(one)) for one in columns[key]] if key in columns else columns[name].tolist()
        for key, name in (("key", "id"), ("kept_key", "kept"))
    )
    told = [columns["distance"].tolist()]
    if "similarity" in columns:
        told.append(columns["similarity"].tolist())
    for row in zip(own, kept, *told, strict=True):
        yield "\t".join(map(str, row))
