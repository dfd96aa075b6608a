"""`--similarity` in place of `--distance`: what is asked for, and how similarities are shown.

    lines      a.txt    b.txt    61    0.9306
    columns    "distance": 61, "similarity": 0.9306, "similarity_error": 0.0143

Four decimals are well within the standard error of a sketch. That of an estimate is at least one of
the last decimal: only an exact similarity has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isnan
from types import MappingProxyType
from typing import Any

import click

from simindex.cli.numbers import Share
from simindex.cli.shared_options import Option
from simindex.outputs.columns import Schema

DECIMALS = 4

LEAST_ERROR = 1e-4
"""The least that these decimals tell."""

similarity_option: Option = click.option(
    "--similarity", type=Share(), metavar="COSINE",
    help="The least cosine of near-duplicates, from 0.5 to 1, in place of --distance. simindex "
    "chooses the radius for it. If the index has sketches, they decide which documents within this "
    "radius are similar enough.",
)

measure_option: Option = click.option(
    "--measure", type=click.Choice(("cosine", "jaccard")), default="cosine", show_default=True,
    help="What --similarity measures: the cosine of weighted features, or the Jaccard resemblance "
    "of the sets of features, from 1/3 to 1. jaccard needs an index with --weighting binary.",
)

share_option: Option = click.option(
    "--recall", type=Share(), default=1.0, show_default=True,
    help="With --similarity: share of the pairs at exactly that similarity to find; 1 means 0.85 "
    "here. Without --similarity all pairs are found.",
)
"""`--recall` of a command that is exact within a radius."""


def require_one(h: int | None, similarity: float | None) -> None:
    """Refuses a radius and a similarity together."""
    if h is not None and similarity is not None:
        raise click.UsageError("--similarity chooses the radius: leave out --distance")


def within(h: int | None, similarity: float | None) -> str:
    """How near what was found is."""
    return f"within {h} bits" if similarity is None else f"of similarity {similarity:g} or more"


def schema_of_similarity(similarity: object, *, verified: bool = False) -> Schema:
    """The columns that come after the distance, if a similarity was asked for; with `verified`,
    whether it is exact, too."""
    if similarity is None:
        return {}
    exact: Schema = {"exact": "bool"} if verified else {}
    return {"similarity": "float64", "similarity_error": "float64", **exact}


def columns_of_similarity(
    distance: Any, bits: int, measure: str = "cosine", exact: Any = None
) -> dict[str, Any]:
    """These columns, of distances of so many bits.

    `exact` has exact similarities, NaN where there is none: these have no error.
    """
    import numpy as np

    from simindex.records.estimate import estimated, standard_error

    similarity = estimated(distance, bits, measure).astype(np.float64)
    error = np.maximum(standard_error(distance, bits, measure), LEAST_ERROR).astype(np.float64)
    columns: dict[str, Any] = {}
    if exact is not None:
        columns["exact"] = known = ~np.isnan(exact)
        similarity, error = np.where(known, exact, similarity), np.where(known, 0.0, error)
    rounded = {"similarity": similarity, "similarity_error": error}
    return {name: np.round(column, DECIMALS) for name, column in rounded.items()} | columns


def similarity_of(
    distance: int, bits: int, measure: str = "cosine", exact: float | None = None
) -> dict[str, Any]:
    """The same of one distance."""
    if exact is None:
        return {**_estimate_of(distance, bits, measure)}
    if isnan(exact):
        return {**_estimate_of(distance, bits, measure), "exact": False}
    return {"similarity": round(exact, DECIMALS), "similarity_error": 0.0, "exact": True}


@lru_cache(maxsize=1 << 12)  # a distance recurs: a line of the audit takes a microsecond, not 30
def _estimate_of(distance: int, bits: int, measure: str) -> Mapping[str, float]:
    import numpy as np

    columns = columns_of_similarity(np.array([distance], np.uint16), bits, measure)
    return MappingProxyType({name: column[0].item() for name, column in columns.items()})
