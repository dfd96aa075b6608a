"""`--similarity` in place of `--distance`: what is asked for, and how similarities are shown.

    lines      a.txt    b.txt    61    0.9306
    columns    "distance": 61, "similarity": 0.9306, "similarity_error": 0.0143

Four decimals are well within the standard error of a sketch.
"""

from __future__ import annotations

from typing import Any

import click

from simindex.cli.choices import Option
from simindex.cli.numbers import Share
from simindex.outputs.columns import Schema

DECIMALS = 4

similarity_option: Option = click.option(
    "--similarity", type=Share(), metavar="COSINE",
    help="In place of --distance: the least cosine of near-duplicates, from 0.5 to 1. It chooses "
    "the radius, within which sketches, if INDEX has them, keep or reject each document.",
)

measure_option: Option = click.option(
    "--measure", type=click.Choice(("cosine", "jaccard")), default="cosine", show_default=True,
    help="What --similarity is: jaccard is the resemblance of the sets of features, for an INDEX "
    "whose recipe has --weighting binary.",
)

share_option: Option = click.option(
    "--recall", type=Share(), default=1.0, show_default=True,
    help="With --similarity: the share of the near-duplicates at that similarity to find. 1 stands "
    "for 0.85. Within a --distance all are found.",
)
"""`--recall` of a command that is exact within a radius."""


def require_one(h: int | None, similarity: float | None) -> None:
    """Refuses a radius and a similarity together."""
    if h is not None and similarity is not None:
        raise click.UsageError("--similarity chooses the radius: leave out --distance")


def within(h: int | None, similarity: float | None) -> str:
    """How near what was found is."""
    return f"within {h} bits" if similarity is None else f"of similarity {similarity:g} or more"


def schema_of_similarity(similarity: float | None) -> Schema:
    """The columns that come after the distance, if a similarity was asked for."""
    if similarity is None:
        return {}
    return {"similarity": "float64", "similarity_error": "float64"}


def columns_of_similarity(distance: Any, bits: int, measure: str) -> dict[str, Any]:
    """These columns, of distances of so many bits."""
    import numpy as np

    from simindex.records.similarity import estimated, standard_error

    values = {"similarity": estimated, "similarity_error": standard_error}
    return {
        name: np.round(of(distance, bits, measure).astype(np.float64), DECIMALS)
        for name, of in values.items()
    }
