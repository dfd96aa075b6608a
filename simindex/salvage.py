"""What the records of a damaged catalog still give: values, deletions, rows waiting for a segment.

Each function returns what there is, and what is lost in words, with a number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from simindex.errors import CorruptFile, SimindexError
from simindex.options import IndexOptions
from simindex.records import U64
from simindex.simhash.fingerprint import Recipe
from simindex.storage import pending
from simindex.storage.catalog import Head, unpack
from simindex.storage.remains import Remains
from simindex.storage.remnant import Remnant
from simindex.storage.reservoir import Reservoir
from simindex.storage.table import Table, sort_table
from simindex.storage.tombstones import Tombstones

Loss = tuple[str, int]
"""What is lost, and how many rows of it for certain."""

Waiting = tuple[Table, Reservoir]
"""A pending run with its part of the sample of weights."""

Bools = NDArray[np.bool_]

WINDOW_ROWS = 1 << 20

VALUES = {
    "recipe": "the recipe, by which texts become fingerprints: texts can no longer be added or "
    "asked for, fingerprints can",
    "reservoir": "the sample of weights, from which it is learned how bits flip; appends make a "
    "new one",
    "machine": "what `simindex tune` measured: run it again",
    "audit": "the last measured recall: `simindex tune --audit` measures it again",
}


def values(
    remains: Remains | None, head: Head | None, options: IndexOptions
) -> tuple[dict[str, bytes], list[Loss]]:
    """Values of `meta` beside the options."""
    found: dict[str, bytes] = {}
    losses: list[Loss] = []
    known = dict.fromkeys(("recipe", "reservoir")) if head is None else head.values
    for name in [name for name in VALUES if name in known]:
        payload = None
        if remains is not None:
            payload = remains.whole("meta", name.encode(), known[name])
            if payload is None and name != "audit":  # an earlier one serves, too
                payload = remains.whole("meta", name.encode())
        if payload is not None and _usable(name, payload, options):
            found[name] = payload
        else:
            losses.append((("if there was one, " if head is None else "") + VALUES[name], 0))
    return found, losses


def _usable(name: str, payload: bytes, options: IndexOptions) -> bool:
    try:
        if name == "recipe":
            bits: int = Recipe.from_bytes(payload).bits
            return bits == options.bits
        if name == "reservoir":
            Reservoir.decode("the index", payload, options.words)
            return True
        return isinstance(unpack(name, payload), dict)
    except (SimindexError, ValueError):
        return False


def deletions(
    remains: Remains | None, head: Head | None, *, certain: bool, keyed: bool
) -> tuple[Tombstones, list[Loss]]:
    """Those of the head; if it is not certain, of every run that is left.

    A deletion only reaches rows of earlier commits, so one that was already applied does no harm.
    """
    parts: list[Tombstones] = []
    losses: list[Loss] = []
    numbers = set()
    for run in () if head is None else head.tombstones:
        payload = None if remains is None else remains.run("tombstones", run)
        name = f"run {run.number}"
        try:
            if payload is None:
                raise CorruptFile(name)
            parts.append(Tombstones.decode(name, payload, keyed=keyed))
            numbers.add(run.number)
        except CorruptFile:
            losses.append((f"{run.rows:,} deletions: rows they deleted are back", 0))
    if remains is not None and not certain:
        for number in remains.run_numbers("tombstones"):
            payload = remains.whole("tombstones", number.to_bytes(8, "big"))
            if payload is not None and number not in numbers:
                with suppress(CorruptFile):
                    parts.append(Tombstones.decode(f"run {number}", payload, keyed=keyed))
    return Tombstones.merged(parts, keyed=keyed), losses


def waiting(
    remains: Remains | None, head: Head | None, options: IndexOptions
) -> tuple[list[Waiting], list[Loss]]:
    """The head's pending runs."""
    found: list[Waiting] = []
    losses: list[Loss] = []
    for run in () if head is None else head.pending:
        name = f"pending run {run.number}"
        payload = None if remains is None else remains.run("pending", run)
        try:
            if payload is None:
                raise CorruptFile(name)
            found.append(pending.decode(
                name, payload, rows=run.rows, words=options.words,
                keyed=options.keyed, horizon=run.horizon,
            ))
        except CorruptFile:
            losses.append((f"{run.rows:,} rows that waited for a segment", run.rows))
    return found, losses


def living(file: Remnant, deleted: Tombstones | None) -> int:
    """How many rows of a segment neither damage nor a deletion reaches.

    Where there are deletions since it was written, its rows are read.
    """
    horizon = file.identity.horizon
    if deleted is None or not deleted.later_than(horizon):
        return file.count()[0]
    rows = 0
    for fingerprints, ids, keys in file.blocks():
        table = Table(file.name, fingerprints, ids, keys, horizon=horizon, header_bits=0)
        dead = deleted.dead(table, ids, np.arange(len(ids), dtype=np.int64))
        rows += len(ids) - int(np.count_nonzero(dead))
    return rows


def without(table: Table, dead: Bools) -> Table:
    """A table without some of its rows."""
    if not dead.any():
        return table
    rows = np.flatnonzero(~dead).astype(np.int64)
    keys = None if table.keys is None else table.keys.take(rows)
    return sort_table(
        table.name, table.fingerprints[rows], table.ids[rows], keys, horizon=table.horizon
    )


def stored(table: Table, files: Sequence[Remnant]) -> Bools:
    """Which rows of a table stand in some segments, too, by fingerprint and id."""
    found = np.zeros(len(table), np.bool_)
    for file in files:
        for words, ids in _columns(file):
            found |= _within(table.fingerprints[:, 0], table.ids, words, ids)
    return found


def share_stored(part: Remnant, whole: Remnant, sample_rows: int) -> float:
    """About what share of one segment's rows stands in another, too."""
    places = np.unique(np.linspace(0, max(0, part.rows - 1), sample_rows).astype(np.int64))
    words, ids = part.columns()
    if not len(words) or len(words) < part.rows:
        return 0.0
    taken = np.argsort(words[places], kind="stable")
    sample, names = words[places][taken], ids[places][taken]
    found = np.zeros(len(sample), np.bool_)
    for own_words, own_ids in _columns(whole):
        found |= _within(sample, names, own_words, own_ids)
    return float(found.mean()) if len(found) else 0.0


def _columns(file: Remnant) -> list[tuple[U64, U64]]:
    words, ids = file.columns()
    return [
        (words[start : start + WINDOW_ROWS], ids[start : start + WINDOW_ROWS])
        for start in range(0, min(len(words), len(ids)), WINDOW_ROWS)
    ]


def _within(words: U64, ids: U64, stored_words: U64, stored_ids: U64) -> Bools:
    """Which pairs (word, id) are among some stored ones. O(n log n), in the memory of both."""
    mine = np.empty(len(words), [("word", "<u8"), ("id", "<u8")])
    mine["word"], mine["id"] = words, ids
    near = np.flatnonzero(np.isin(stored_words, words))
    near = near[np.isin(stored_ids[near], ids)]  # a million rows may have one word
    theirs = np.empty(len(near), mine.dtype)
    theirs["word"], theirs["id"] = stored_words[near], stored_ids[near]
    found: Bools = np.isin(mine, theirs)
    return found
