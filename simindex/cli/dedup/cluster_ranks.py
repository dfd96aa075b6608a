"""Which document of each cluster is kept: `clusters --keep`.

    representative    the representative of the cluster; nothing else is needed
    first             the first of the inputs; of an index without keys, that of the smallest id
    longest, newest, highest:FIELD    by the inputs, since an index stores no texts and no dates

Documents that are in no input come after all others. Of equals the one of the smallest id is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.console import count, say
from simindex.cli.dedup.ranks import Keep, keep_option
from simindex.errors import InvalidOption

if TYPE_CHECKING:
    from simindex.arrays import I64, U64
    from simindex.inputs.document import Document
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


def require_ranks(keep: Keep, inputs: tuple[str, ...], keyed: bool) -> None:
    """Refuses a policy that the index, or the inputs, cannot tell the ranks of."""
    if keep.policy == REPRESENTATIVE or (keep.policy == "first" and not (keyed or inputs)):
        return
    if not keyed:
        raise InvalidOption(
            f"--keep {keep.policy} finds documents in the inputs by their keys, and the index has "
            "none", remedy="keep the first, by id, or the representative", option="keep",
        )
    if not inputs:
        what = "the order of documents" if keep.policy == "first" else "texts, dates or fields"
        raise InvalidOption(
            f"--keep {keep.policy} needs the inputs that the index was built of, since an index "
            f"does not store {what}",
            remedy="name them after the index, or use --keep representative", option="keep",
        )


def ranks_by(
    found: Clusters, keep: Keep, documents: Iterator[Document] | None, quiet: bool
) -> list[Any]:
    """The rank of each listed document, of which more is better; None is the worst."""
    if keep.policy == REPRESENTATIVE:
        return [*(found.id == found.representative).tolist()]
    if documents is None:
        return [-number for number in found.id.tolist()]
    ranks, missing = ranks_of(found, documents, keep)
    if missing and missing == int((found.size > 1).sum()):
        raise InvalidOption(
            "the INPUTs hold none of the documents of the clusters: the index names files by the "
            "paths that it was built with",
            remedy="name the inputs as `simindex build` did; `simindex clusters INDEX` shows names",
            option="keep",
        )
    if missing:  # also with --quiet: who drops documents must know
        say(f"{count(missing, 'document')} of clusters in no INPUT: they come after all others")
    for line in () if quiet else keep.dates.told(keep.field):
        say(line)
    return ranks


def best_first(choose: Callable[[Clusters], list[Any]], found: Clusters) -> U64:
    """Ids of the documents that have a rank, the best first, of equals the smallest id."""
    import numpy as np

    ids, ranks = found.id, choose(found)
    ranked = [row for row, rank in enumerate(ranks) if rank is not None]
    ranked.sort(key=lambda row: int(ids[row]))
    ranked.sort(key=lambda row: ranks[row], reverse=True)  # stable
    return ids[np.array(ranked, np.int64)]
