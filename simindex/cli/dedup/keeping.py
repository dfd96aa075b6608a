"""Which document of each cluster is kept: `clusters --keep`.

    representative    the representative of the cluster; nothing else is needed
    first             the first of the inputs; of an index without keys, that of the smallest id
    longest, newest, highest:FIELD    by the inputs, since an index stores no texts and no dates

Documents that are in no input come after all others. Of equals the one of the smallest id is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.dedup.ranks import Keep, keep_option

if TYPE_CHECKING:
    from simindex.arrays import I64
    from simindex.inputs import Document
    from simindex.records.clusters import Clusters

REPRESENTATIVE = "representative"


def kept_option(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Keep | None:
    """What --keep of clusters says; None where it is not given."""
    if value is None:
        return None
    if value == REPRESENTATIVE:
        return Keep(REPRESENTATIVE)
    keep = keep_option(ctx, parameter, value)
    if keep.policy == "none":
        raise click.BadParameter(
            "none is a policy of `simindex dedup`; of each cluster one document is kept: give "
            "representative, first, longest, newest or highest:FIELD"
        )
    return keep


def representatives(found: Clusters) -> I64:
    """int64 (n,): of each listed document the row of its representative."""
    import numpy as np

    rows = np.argsort(found.id, kind="stable")
    place = np.searchsorted(found.id[rows], found.representative)
    return rows[place].astype(np.int64)


def by_rank(found: Clusters, ranks: Iterable[Any]) -> I64:
    """int64 (n,): of each listed document the row of the best rank in its cluster.

    None is the worst rank.
    """
    import numpy as np

    bounds = np.flatnonzero(np.r_[True, found.cluster[1:] != found.cluster[:-1], True]).tolist()
    listed = list(ranks)
    best = np.empty(len(found), np.int64)
    for start, stop in pairwise(bounds) if len(found) else ():
        row, rank = start, listed[start]
        for other in range(start + 1, stop):
            if listed[other] is not None and (rank is None or listed[other] > rank):
                row, rank = other, listed[other]
        best[start:stop] = row
    return best


def ranks_of(
    found: Clusters, documents: Iterable[Document], keep: Keep
) -> tuple[list[Any], int]:
    """Rank of each listed document by the inputs, and how many of clusters are in no input."""
    keys = found.keys() or []
    together = (found.size > 1).tolist()
    rows = {key: row for row, (key, of_many) in enumerate(zip(keys, together, strict=True))
            if of_many}
    as_bytes = bool(keys) and isinstance(keys[0], bytes)
    ranks: list[Any] = [None] * len(found)
    for number, document in enumerate(keep.dated(documents)):
        key: Any = document.key.encode() if as_bytes else document.key
        row = rows.get(key)
        if row is None:
            continue
        rank = -number if keep.policy == "first" else keep.rank_of(document)
        if ranks[row] is None or rank > ranks[row]:
            ranks[row] = rank
    return ranks, sum(ranks[row] is None for row in rows.values())
