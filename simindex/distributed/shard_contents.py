"""What reading all of a shard shows: what is known of a new one, and whether it still is so.

    contents            its rows: how many, which ids, their digest           O(rows)
    describe            a `Shard`, of an index that becomes one
    require_untouched   its bytes are those that it was published with
    verify_shard        both, and what `Index.check` finds
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from simindex.distributed import digest, regions
from simindex.distributed.shard import Facts, Shard, named, named_rows, open_shard, said_name
from simindex.errors import CorruptFile, InvalidOption, SimindexError
from simindex.index.index import Index
from simindex.index.opening import open as open_index
from simindex.records.reports import Finding
from simindex.storage.files.format import read_format
from simindex.storage.files.published import RESTORE
from simindex.storage.files.refusals import translated


class Contents(NamedTuple):
    """What reading all rows of a shard shows."""

    rows: int
    least_id: int
    greatest_id: int
    digest: int
    """Of the rows and of the region."""
    again: int | None
    """An id that comes twice, if one does."""
    astray: int | None
    """An id of a row that is not in the region, if there is one."""


def contents(index: Index, region: str) -> Contents:
    """Reads all rows. Takes 8 bytes of memory a row, to see ids that come twice."""
    held = np.empty(len(index), np.uint64)
    digests = [digest.region_digest(region)]
    astray: int | None = None
    end = 0
    for ids, batch in named_rows(index):
        held[end : end + len(ids)] = ids
        end += len(ids)
        digests.append(digest.rows_digest(ids, batch.rows, batch.sketches))
        out = ~regions.inside(batch.rows, region)
        if astray is None and out.any():
            astray = int(ids[int(np.argmax(out))])
    held.sort()
    same = np.flatnonzero(held[1:] == held[:-1])
    least, greatest = (int(held[0]), int(held[-1])) if len(held) else (0, 0)
    again = int(held[same[0]]) if len(same) else None
    return Contents(len(held), least, greatest, digest.joined_digest(digests), again, astray)


def describe(path: Path, number: int, region: str) -> Shard:
    """What is known of an index that becomes a shard. Reads all of it.

    Raises InvalidOption if an id or key comes twice, or a row is not in the region.
    """
    with open_index(path, "r", refresh=False) as index:
        found = contents(index, region)
        facts, generation = Facts.of(index.options, index.recipe), index.generation
        again = None if found.again is None else said_name(index, found.again)
    if again is not None:
        raise InvalidOption(
            f"the {again} comes twice in shard {number}",
            remedy="an id names one row of all shards: give each row an id or key of its own",
            shard=number, found=found.again,
        )
    if found.astray is not None:
        raise InvalidOption(
            f"the row of id {found.astray} does not {regions.said(region)}, as rows of shard "
            f"{number} do",
            remedy="choose rows with ShardPlan.part", shard=number, found=found.astray,
        )
    files = digest.file_sizes(path)
    return Shard(
        number=number, path=str(path), facts=facts, region=region, rows=found.rows,
        least_id=found.least_id, greatest_id=found.greatest_id, uuid=read_format(path).hex(),
        generation=generation, files=tuple(files.items()),
        checksum=digest.files_digest(path, files), rows_digest=f"{found.digest:016x}",
    )


def require_untouched(shard: Shard) -> None:
    """Raises CorruptFile unless each byte of the files is as it was published. Reads all of them.
    """
    with named(shard), translated(Path(shard.path), False):
        checksum = digest.files_digest(Path(shard.path), dict(shard.files))
        if checksum != shard.checksum:
            raise CorruptFile(
                f"{shard.said} has other bytes than it was published with",
                remedy=f"copy it again, or {RESTORE}", path=shard.path, shard=shard.number,
                found=checksum, expected=shard.checksum,
            )


def verify_shard(shard: Shard) -> list[Finding]:
    """Reads and compares all of a shard. An empty list means that it is what is known of it.

    Compares sizes and checksums of the files, checks the index as `Index.check` does, and counts
    rows, ids and region. Never raises because of the shard. O(bytes), and 8 bytes of memory a row.
    """
    try:
        index = open_shard(shard)
    except SimindexError as error:
        return [Finding("error", shard.path, str(error))]
    with index:
        try:
            wrong = [one for one in index.check() if one.severity == "error"]
            if wrong:
                return [
                    Finding("error", one.path, f"{shard.said}: {one.what}") for one in wrong
                ]
            found = contents(index, shard.region)
            with translated(Path(shard.path), False):
                checksum = digest.files_digest(Path(shard.path), dict(shard.files))
        except SimindexError as error:
            return [Finding("error", shard.path, f"{shard.said}: {error}")]
    told = [
        ("rows", found.rows, shard.rows),
        ("ids", (found.least_id, found.greatest_id), (shard.least_id, shard.greatest_id)),
        ("digest of rows", f"{found.digest:016x}", shard.rows_digest),
        ("checksum of files", checksum, shard.checksum),
    ]
    texts = [
        f"{shard.said} has other {what} than it was published with: {has}, not {known}"
        for what, has, known in told if has != known
    ]
    if found.again is not None:
        texts.append(f"{shard.said} has the id {found.again} twice")
    if found.astray is not None:
        texts.append(
            f"{shard.said}: the row of id {found.astray} does not {regions.said(shard.region)}"
        )
    return [Finding("error", shard.path, text) for text in texts]
