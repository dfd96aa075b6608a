"""What `simindex calibrate` recommended: in words, and as what `--calibrated` asks by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.shared_options import Option, collected, distance_option
from simindex.cli.similarity import measure_option, require_one, share_option, similarity_option
from simindex.errors import InvalidOption
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.records.advice import Advice

calibrated_option: Option = click.option(
    "--calibrated", is_flag=True,
    help="Use the threshold that `simindex calibrate` recommended and stored in INDEX, in place "
    "of --distance.",
)


def threshold_of(advice: Advice) -> str:
    """The threshold in a few words."""
    if advice.ask_similarity is None:
        return f"within {advice.h} bits"
    return (
        f"similarity {advice.ask_similarity:g}, candidates within {advice.h} bits, kept by "
        f"{advice.sketch_bits} bits of sketch"
    )


def advised(advice: Advice) -> str:
    """A recommendation, and what it is expected to do."""
    not_reached = "" if advice.reached else (
        f"; recall {advice.recall:g} and precision {advice.precision:g} cannot be reached together"
    )
    return (
        f"{threshold_of(advice)}: misses {percent(advice.misses)} ({percent(advice.misses_low)} to "
        f"{percent(advice.misses_high)}) of the pairs at cosine {advice.similarity:g} or more, and "
        f"{percent(advice.strangers)} ({percent(advice.strangers_low)} to "
        f"{percent(advice.strangers_high)}) of its matches are below this cosine; measured on "
        f"{advice.documents:,} documents{not_reached}"
    )


def percent(share: float | None) -> str:
    """A share, with one digit after the point."""
    return "-" if share is None else f"{100 * share:.1f} %"


@dataclass(frozen=True, slots=True)
class Threshold:
    """What counts as a match: the arguments of a query, and the radius that is told."""

    arguments: dict[str, Any]
    h: int | None
    """None with a similarity that the caller gave."""

    @property
    def similarity(self) -> float | None:
        """The similarity that is asked for, if one is."""
        found: float | None = self.arguments.get("similarity")
        return found


def asked_threshold(
    index: simindex.Index, path: str, h: int | None, similarity: float | None, measure: str,
    recall: float, *, calibrated: bool,
) -> Threshold:
    """By a radius or a similarity, or as the index's recommendation says."""
    if not calibrated:
        if similarity is None:
            h = index.h if h is None else h
        asked = {"h": h, "similarity": similarity, "measure": measure, "recall": recall}
        return Threshold(asked, h)
    if h is not None or similarity is not None or recall != 1.0:
        raise click.UsageError(
            "--calibrated decides these: leave out --distance, --similarity and --recall"
        )
    if measure != "cosine":
        raise click.UsageError("--calibrated asks by the cosine: leave out --measure")
    advice = index.advice
    if advice is None:
        raise no_advice(path)
    return Threshold(advice.arguments, advice.h)


@dataclass(frozen=True, slots=True)
class GivenThreshold:
    """What near-duplicates are, as a command was told."""

    h: int | None
    similarity: float | None
    measure: str
    recall: float
    calibrated: bool

    def __post_init__(self) -> None:
        require_one(self.h, self.similarity)

    def asked_of(self, index: simindex.Index, path: str) -> Threshold:
        """What it is in an index; see `asked_threshold`."""
        return asked_threshold(
            index, path, self.h, self.similarity, self.measure, self.recall,
            calibrated=self.calibrated,
        )


threshold_options: Option = collected(
    "given", GivenThreshold,
    distance_option, similarity_option, measure_option, share_option, calibrated_option,
)
"""Of a command that finds all pairs of an index, which gets them as `given`."""


def no_advice(path: str) -> InvalidOption:
    """Says that an index has no recommendation, or that there is no index."""
    return InvalidOption(
        f"{path} has no recommendation",
        remedy=f"make one with `simindex calibrate {path} INPUT`, or leave out --calibrated",
        option="calibrated", path=path,
    )
