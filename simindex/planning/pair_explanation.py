"""Two texts beside each other, by a radius or by a similarity."""

from __future__ import annotations

from typing import Any

from simindex.checks import is_whole, require
from simindex.errors import InvalidBatch
from simindex.planning.similarity import Similar, require_measure, similar
from simindex.records.pair_explanation import PairExplanation
from simindex.simhash.comparison import compared, each_row
from simindex.simhash.recipe import Recipe

Text = str | bytes


def explain_pair(
    a: Text,
    b: Text,
    recipe: Recipe | None = None,
    *,
    h: int | None = None,
    similarity: float | None = None,
    measure: str = "cosine",
    names: tuple[str | int | None, str | int | None] = (None, None),
) -> PairExplanation:
    """Why two texts match or not.

    Parameters
    ----------
    recipe : Recipe, optional
        How texts become fingerprints. Default: ``Recipe()``.
    h : int, optional
        The radius. Default: that of the recipe.
    similarity : float, optional
        In place of h, a cosine, or a resemblance if `measure` is ``"jaccard"``: the texts match if
        their fingerprints are within the radius of candidates, as in `find_all`, and their sketches
        are near enough, if the recipe makes some.
    names : tuple
        What the two are called in the result.

    Returns
    -------
    PairExplanation
        Features with weights, exact cosine and Jaccard resemblance, distance, estimated similarity,
        the bits that flipped, and the words that differ. A text without features has no distance.

    Raises
    ------
    InvalidBatch
        If a text is neither str nor UTF-8.
    InvalidOption
        If h or the similarity is out of range, both are given, or the recipe cannot make
        fingerprints of texts.

    Notes
    -----
    Takes time in the features of both texts, in Python, and at worst the square of their words, of
    which the first 5,000 are aligned.
    """
    recipe = Recipe() if recipe is None else recipe
    require(isinstance(recipe, Recipe), "recipe", recipe, "a Recipe")
    near = nearness(h, similarity, measure, recipe.bits, recipe.sketch_bits, recipe)
    h = recipe.h if h is None else h
    batch = recipe.batch([a, b], threads=1)
    return compared(
        recipe, (_decoded(a, 0), _decoded(b, 1)), each_row(batch, 2),
        h=h, names=names, near=near,
    )


def nearness(
    h: Any, similarity: Any, measure: Any, bits: int, sketch_bits: int, recipe: Recipe | None
) -> Similar | None:
    """The similarity that two documents are compared by; None if a radius decides.

    Raises InvalidOption if either is out of range, or both are given.
    """
    if similarity is not None:
        return similar(
            similarity, h=h, recall=1.0, bits=bits, sketch_bits=sketch_bits, measure=measure,
            recipe=recipe,
        )
    require_measure(measure, None, None)
    require(h is None or (is_whole(h) and 0 <= h <= bits), "h", h, f"from 0 to {bits}")
    return None


def _decoded(text: Text, position: int) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidBatch(
            f"text {position} is not UTF-8 at byte {error.start}", row=position,
            offset=error.start,
        ) from error
