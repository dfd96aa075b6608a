"""What a search has found, as the shell prints it: matches, names of queries, and their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import click

import simindex
from simindex.cli.account import met
from simindex.cli.app import nothing_to_do
from simindex.cli.console import LINES_AT_ONCE, cell, count, say
from simindex.cli.similarity import columns_of_similarity, schema_of_similarity
from simindex.outputs.columns import (
    Columns,
    Schema,
    Write,
    as_json_line,
    key_text,
    kind_of_keys,
)

if TYPE_CHECKING:
    from simindex.cli.near_misses import Unmatched
    from simindex.cli.questions import Asking
    from simindex.distributed.collection import Shards

def end_without_question(asking: Asking, quiet: bool) -> NoReturn:
    """Ends a command whose inputs hold nothing to look up."""
    asking.without.close()
    if not quiet:
        for line in met(asking.intake):
            say(line)
    none = asking.inputs and not (asking.texts or asking.others or asking.intake.documents)
    why = "the inputs hold no document" if none else "no document has a fingerprint"
    nothing_to_do(f"nothing was looked up: {why}", quiet=quiet)


def told_of(asked: int, matched: int, found: int, near: str, k: int | None) -> str:
    """How many queries have matches, and how many those are; `k` if the nearest were asked for."""
    if not matched:
        of = "" if asked == 1 else f" for any of {asked:,} queries"
        return f"no match {near}{of}" if k is None else f"no neighbour{of}"
    have = "has" if matched == 1 else "have"
    if k is not None:
        told = f"neighbours: {count(found, 'document')}, at most {k:,} of each"
    else:
        told = f"near-duplicates: {count(found, 'match', 'matches')} {near}"
    return f"{matched:,} of {count(asked, 'query', 'queries')} {have} {told}"


def say_nearest(
    without: Unmatched, index: simindex.Index | Shards, as_json: bool, *, call: str = "--top 1"
) -> None:
    """Says which documents are nearest to the first queries without a match; `call` finds those of
    all."""
    for name, match in without.nearest(index):
        if as_json:  # not among the matches, one of which each line of the output is
            click.echo(_nearest_line(name, match), err=True)
        else:
            say(f"the nearest to {cell(name)} is {_named(match)}, at distance {match.distance}")
    if (remark := without.remark(index, call)) is not None:
        say(remark)


def print_listed(names: list[str], has: Any, listed: str, write: Write | None) -> None:
    """Prints the names of the queries that have a match, or of those that have none."""
    import numpy as np

    chosen = [names[at] for at in np.flatnonzero(has == (listed == "matched"))]
    if write is not None:
        write({"query": chosen})
    elif chosen:
        click.echo("\n".join(map(cell, chosen)))


def told_of_listing(asked: int, matched: int, listed: str, near: str) -> str:
    """How many queries are listed; `near` says how near their matches are."""
    number, a = (matched, "a") if listed == "matched" else (asked - matched, "no")
    have = "has" if number == 1 else "have"
    return f"{number:,} of {count(asked, 'query', 'queries')} {have} {a} match {near}"


def matched_queries(matches: simindex.Matches | simindex.TopMatches) -> Any:
    """The numbers of the queries that have a match; they may repeat."""
    import numpy as np

    if isinstance(matches, simindex.TopMatches):
        return np.flatnonzero(matches.found)
    return matches.query


def schema_of_matches(
    keys: Any, listed: str | None = None, similarity: float | None = None
) -> Schema:
    """The columns of matches in an index with keys of a kind, or without, or of listed queries."""
    if listed is not None:
        return {"query": "text"}
    return {
        "query": "text", "id": "uint64", "key": kind_of_keys(keys), "distance": "uint16",
        **schema_of_similarity(similarity),
    }


def print_matches(
    names: list[str], start: int, matches: simindex.Matches | simindex.TopMatches,
    write: Write | None,
) -> None:
    """Prints matches as lines, or hands them to `write`; query 0 has the name at `start`."""
    bits, measure = 0, "cosine"
    if not isinstance(matches, simindex.TopMatches):
        bits, measure = matches.stats.similarity_bits, matches.stats.measure
    for some in _blocks(matches):
        columns = _columns(names, start, some, bits, measure)
        if write is None:
            click.echo("\n".join(_lines(some, columns)))
        else:
            write(columns)


def _columns(
    names: list[str], start: int, some: list[simindex.Match], bits: int, measure: str
) -> Columns:
    """What is written of some matches of the queries from `start` on.

    If a similarity was asked for, the distance counts of so many bits.
    """
    import numpy as np

    distance = [match.distance for match in some]
    similarity = (
        columns_of_similarity(np.array(distance, np.uint16), bits, measure) if bits else {}
    )
    return {
        "query": [names[start + match.query] for match in some],
        "id": [match.id for match in some],
        "key": [match.key for match in some],
        "distance": distance, **similarity,
    }


def _lines(some: list[simindex.Match], columns: Columns) -> Iterator[str]:
    shown: list[list[Any]] = [list(columns["distance"])]
    if "similarity" in columns:
        shown.append(list(columns["similarity"]))
    for name, match, *values in zip(columns["query"], some, *shown, strict=True):
        yield "\t".join([cell(name), _named(match), *map(str, values)])


def _blocks(matches: simindex.Matches | simindex.TopMatches) -> Iterator[list[simindex.Match]]:
    """Some matches at a time. Of equal distance they are in the order of their keys: that of ids,
    which are drawn for keys, is another in each index.
    """
    if isinstance(matches, simindex.TopMatches):
        remaining = iter(matches)
        while some := list(islice(remaining, LINES_AT_ONCE)):
            yield sorted(some, key=_by_key)
        return
    for at in range(0, len(matches), LINES_AT_ONCE):  # keys are fetched of a block at a time
        yield sorted(matches[at : at + LINES_AT_ONCE], key=_by_key)


def _by_key(match: simindex.Match) -> tuple[int, int, str, int]:
    return match.query, match.distance, key_text(match.key) or "", match.id


def _named(match: simindex.Match) -> str:
    key = key_text(match.key)
    return cell(match.id if key is None else key)


def _nearest_line(name: str, match: simindex.Match) -> str:
    found = {"id": match.id, "key": key_text(match.key), "distance": match.distance}
    return as_json_line({"query": name, "nearest": found})
