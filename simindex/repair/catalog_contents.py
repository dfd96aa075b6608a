"""What the records of a damaged catalog still give: values, deletions, rows waiting for a segment.

Long runs of deletions are in files, which `deletion_files` reads.

Each function returns what there is, and what is lost in words, with a number of rows.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from simindex.arrays import Bools
from simindex.errors import CorruptFile
from simindex.options import IndexOptions
from simindex.repair import deletion_files
from simindex.repair.catalog_records import CatalogRecords
from simindex.repair.check import require_usable
from simindex.storage.catalog.records import LAST_GENERATION, Head, decode_pending
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.table import Table, sort_table
from simindex.storage.tables.tombstones import Tombstones

Loss = tuple[str, int]
"""What is lost, and how many rows of it for certain."""

Waiting = tuple[Table, Reservoir]
"""A pending run with its part of the sample of weights."""

VALUES = {
    "recipe": "the recipe, by which texts become fingerprints: texts can no longer be added or "
    "asked for, fingerprints can",
    "reservoir": "the sample of weights, from which it is learned how bits flip; appends make a "
    "new one",
    "machine": "what `simindex tune` measured: run it again",
    "origin": "the folder that names of files start from: the next `simindex build --append` "
    "stores the one that it is started in",
    "audit": "the last measured recall: `simindex tune --audit` measures it again",
    "advice": "what `simindex calibrate` recommends: run it again",
}


def values(
    records: CatalogRecords | None, head: Head | None, options: IndexOptions
) -> tuple[dict[str, bytes], list[Loss]]:
    """Values of `meta` in addition to the options."""
    found: dict[str, bytes] = {}
    losses: list[Loss] = []
    known = dict.fromkeys(("recipe", "reservoir")) if head is None else head.values
    for name in [name for name in VALUES if name in known]:
        payload = None
        if records is not None:
            payload = records.whole("meta", name.encode(), known[name])
            if payload is None and name != "audit":  # an earlier one serves, too
                payload = records.whole("meta", name.encode())
        with suppress(CorruptFile):
            if payload is not None:
                require_usable(name, payload, options)
                found[name] = payload
        if name not in found:
            losses.append((("if there was one, " if head is None else "") + VALUES[name], 0))
    return found, losses


def deletions(
    records: CatalogRecords | None, head: Head | None, directory: Path,
    files: dict[str, int], newest_file: int, *, certain: bool, options: IndexOptions,
) -> tuple[Tombstones, list[Loss], dict[str, str]]:
    """Those of the head; if it is not certain, of every run that is left.

    `files` are those of tombstones in `directory`, with their generations, and `newest_file` is the
    generation of the newest file of all. Returns also what is wrong with each damaged file.

    A deletion only reaches rows of earlier commits, so one that was already applied does no harm.
    A run with a deletion of a commit that never was is lost: it would reach rows yet to come. So is
    one with a key under another id than it makes.
    """
    parts: list[Tombstones] = []
    losses: list[Loss] = []
    wrong: dict[str, str] = {}
    numbers, taken = set(), set()
    keyed, secret = options.keyed, options.key_secret
    newest = head.generation if certain and head is not None else LAST_GENERATION - 1

    def take(part: Tombstones) -> bool:
        if part.newest > newest or (secret and part.misplaced(secret)):
            return False
        parts.append(part)
        return True

    def add(number: int, payload: bytes | None) -> bool:
        with suppress(CorruptFile):
            if payload is not None:
                return take(Tombstones.decode(f"run {number}", payload, keyed=keyed))
        return False

    def add_file(name: str) -> bool:
        taken.add(name)
        try:
            if not take(deletion_files.read(directory / name, options)):
                raise CorruptFile("holds deletions of another index, or of no commit")
        except CorruptFile as error:
            wrong[name] = error.what
            return False
        return True

    for run in () if head is None else head.tombstones:
        payload = None if records is None or run.file else records.run("tombstones", run)
        if add_file(run.file) if run.file else add(run.number, payload):
            numbers.add(run.number)
        else:
            losses.append((f"{run.rows:,} deletions: rows they deleted are back", 0))
    if not certain:
        if records is not None:
            for number in records.run_numbers("tombstones"):
                if number not in numbers:
                    add(number, records.whole("tombstones", number.to_bytes(8, "big")))
        heads = [] if records is None else records.heads()
        named = {run.file for other, _ in heads for run in other.tombstones}
        for name in deletion_files.committed(files, named, newest_file):
            if name not in taken and not add_file(name):
                losses.append((f"the deletions in {name}: rows they deleted are back", 0))
    return Tombstones.merged(parts, keyed=keyed), losses, wrong


def waiting(
    records: CatalogRecords | None, head: Head | None, options: IndexOptions
) -> tuple[list[Waiting], list[Loss]]:
    """The head's pending runs."""
    found: list[Waiting] = []
    losses: list[Loss] = []
    for run in () if head is None else head.pending:
        name = f"pending run {run.number}"
        payload = None if records is None else records.run("pending", run)
        try:
            if payload is None:
                raise CorruptFile(name)
            table, sample = decode_pending(
                name, payload, rows=run.rows, words=options.words,
                keyed=options.keyed, horizon=run.horizon, timed=options.times,
                sketch_words=options.sketch_words,
            )
        except CorruptFile:
            losses.append((f"{run.rows:,} rows that waited for a segment", run.rows))
            continue
        try:
            sample.check()
        except CorruptFile:
            losses.append((f"weights of {len(sample):,} rows that waited for a segment", 0))
            sample = Reservoir.empty(options.words)
        whole = _sound(table, options)
        if len(whole) < len(table):
            lost = len(table) - len(whole)
            losses.append((f"{lost:,} rows that waited for a segment, by their keys", lost))
        found.append((whole, sample))
    return found, losses


def _sound(table: Table, options: IndexOptions) -> Table:
    """The rows of a table that have sound keys, in order."""
    words, keys = table.fingerprints[:, 0], table.keys
    if keys is not None:
        faulty = keys.faulty(table.ids, options.key_kind, options.stored_secret)
        if faulty.any():
            return without(table, faulty)
    if (words[1:] < words[:-1]).any():
        return sort_table(
            table.name, table.fingerprints, table.ids, keys, horizon=table.horizon,
            times=table.times, sketches=table.sketches,
        )
    return table


def without(table: Table, dead: Bools) -> Table:
    """A table without some of its rows."""
    if not dead.any():
        return table
    rows = np.flatnonzero(~dead).astype(np.int64)
    keys = None if table.keys is None else table.keys.take(rows)
    return sort_table(
        table.name, table.fingerprints[rows], table.ids[rows], keys, horizon=table.horizon,
        times=None if table.times is None else table.times[rows],
        sketches=None if table.sketches is None else table.sketches[rows],
    )
