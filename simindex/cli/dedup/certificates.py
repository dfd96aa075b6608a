"""What shows, for each dropped document, why it may go: the kept one, and how near that is.

    {"dropped": "b.txt", "kept": "a.txt", "distance": 3, "similarity": 0.9856, ...}
    {..., "distance": 41, "similarity": 0.9686, "similarity_error": 0.0096}
    {..., "distance": 70, "similarity": 0.9113, "similarity_error": 0.0, "exact": true}

Without a recipe a distance tells no similarity: other programs may have made the fingerprints.

`dedup` writes more of each, see `audit_file.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simindex.cli.results import load
from simindex.cli.similarity import columns_of_similarity, schema_of_similarity
from simindex.outputs.columns import Schema, Write, kind_of_keys
from simindex.outputs.formats import FORMATS, JSONL, Format, by_suffix

if TYPE_CHECKING:
    from simindex.records.clusters import Clusters

AT_ONCE = 1 << 10
"""Documents of which keys are in memory."""


def certificate_format(path: str | None) -> Format:
    """The format that the name of the file tells: JSON lines unless it is another."""
    row = (path and by_suffix(path)) or FORMATS[JSONL]
    if path is not None:
        load(row)
    return row


def schema_of_certificates(keys: Any, told: bool, *, verified: bool = False) -> Schema:
    """The columns, of an index with keys of a kind, or without; with similarities if distances
    have `told` some, and with `verified` whether they are exact, too."""
    kind = kind_of_keys(keys) if keys else "uint64"
    columns: Schema = {"dropped": kind, "kept": kind, "distance": "uint16"}
    return {**columns, **schema_of_similarity(told or None, verified=verified)}


def estimating_bits(recipe: object, bits: int) -> int:
    """The bits of a fingerprint, of which a distance tells a similarity if they are of texts; 0
    where no recipe says so."""
    return 0 if recipe is None else bits


@contextmanager
def certificates(path: str | None, row: Format, schema: Schema) -> Iterator[Write | None]:
    """What takes certificates; None if nobody asked for them. FILE appears on a clean exit."""
    if path is None:
        yield None
        return
    with row.to_file(Path(path), "--certificates", schema) as write:
        yield write


def write_certificates(found: Clusters, write: Write, bits: int) -> None:
    """Those of all members of stars but the representatives.

    Distances are of so many bits unless a similarity was asked for; of 0 they tell none.
    """
    import numpy as np

    for some in found.slices(AT_ONCE):
        dropped = np.flatnonzero(some.id != some.representative)
        if not len(dropped):
            continue
        own, kept = some.keys(), some.representative_keys()
        if own is None or kept is None:
            own, kept = some.id.tolist(), some.representative.tolist()
        rows, distance = dropped.tolist(), some.distance[dropped]
        columns: dict[str, Any] = {
            "dropped": [own[at] for at in rows], "kept": [kept[at] for at in rows],
            "distance": distance,
        }
        if compared := some.similarity_bits or bits:
            exact = some.exact_similarity
            columns |= columns_of_similarity(
                distance, compared, some.measure, None if exact is None else exact[dropped]
            )
        write(columns)
