"""Doubtful pairs, decided by the exact similarities of their texts.

    distance <= certain        near
    certain < distance <= most doubtful: near if the exact similarity reaches what was asked for;
                               where a text is missing, if the estimate does
    distance > most            not near

A document is compared with at most `MOST_COMPARED` kept ones by their texts, the nearest by the
estimate first. If none of these is near, it stands alone. Else a family of n documents that are all
just below the similarity would take n^2 / 2 comparisons of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from simindex.errors import InvalidOption
from simindex.planning.doubt import Doubt, doubt_of
from simindex.planning.similarity import Similar
from simindex.records.clusters import Clusters
from simindex.records.verification import Verification
from simindex.simhash.vectors import vectors_of
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.simhash.recipe import Recipe

MOST_COMPARED = 16

SLACK = 1e-9
"""Exact similarities are sums of floats: that of two equal texts may come out just below 1."""

Side = TypeVar("Side")
Texts = Sequence["str | bytes"]
"""Those of one document, of which rows may be several. None where none is known."""


def verifier_of(
    texts: Any, similar: Similar | None, recipe: Recipe | None, mode: str
) -> Verifier | None:
    """What decides doubtful pairs; None where no texts are given.

    Raises InvalidOption where the call leaves nothing to decide, or texts cannot be compared.
    """
    if texts is None:
        return None
    if similar is None:
        raise InvalidOption(
            "texts decide the pairs whose similarity is in doubt, and none is asked for",
            remedy="give similarity=0.9, or leave texts out", option="texts",
        )
    if mode != "star":
        raise InvalidOption(
            f'texts need mode="star": in {mode} documents may be far from each other',
            remedy="leave texts out", option="texts", found=mode, expected="star",
        )
    if recipe is None:
        raise InvalidOption(
            "the index has no recipe, by which texts could be compared",
            remedy="leave texts out", option="texts",
        )
    if not callable(texts) and not isinstance(texts, Mapping):
        raise InvalidOption(
            f"texts={texts!r:.80} is not valid",
            remedy="give a mapping of keys (without keys, ids) to texts, or a function that "
            "returns one", option="texts", found=type(texts).__name__,
        )
    return Verifier(doubt_of(similar), recipe)


def known_texts(texts: Any, asked: Clusters) -> Mapping[Any, Any]:
    """The texts, once the documents that may be asked for are known."""
    found = texts(asked) if callable(texts) else texts
    if not isinstance(found, Mapping):
        raise InvalidOption(
            f"texts returned {type(found).__name__}",
            remedy="return a mapping of keys (without keys, ids) to texts", option="texts",
            found=type(found).__name__,
        )
    return found


def texts_of(texts: Mapping[Any, Any], name: Any) -> Texts:
    """Those of a document; none where the mapping lacks it.

    Raises InvalidOption for what is neither a text nor several.
    """
    found = texts.get(name)
    if found is None:
        return ()
    several = (found,) if isinstance(found, (str, bytes)) else found
    if isinstance(several, Iterable):
        several = tuple(several)
        if all(isinstance(text, (str, bytes)) for text in several):
            return several
    raise InvalidOption(
        f"texts has {found!r:.80} for {name!r:.80}", remedy="give a text, or a list of texts",
        option="texts", found=type(found).__name__,
    )


@dataclass(slots=True)
class Verifier:
    """Decides doubtful pairs, and counts what it did."""

    doubt: Doubt
    recipe: Recipe
    verified: int = 0
    kept: int = 0
    overruled: int = 0
    unreadable: int = 0

    @property
    def told(self) -> Verification:
        """What was done so far."""
        return Verification(
            self.verified, self.kept, self.verified - self.kept, self.overruled, self.unreadable
        )

    def nearest(
        self, own: Callable[[], Texts], others: Iterable[tuple[int, Side]],
        texts: Callable[[Side], Texts], compared: Mapping[Side, float | None] | None = None,
    ) -> tuple[int, Side, float] | None:
        """The first of some doubtful documents that is near by its text: its distance, itself, and
        the exact similarity. Else the first without a text that is near by the estimate, with NaN.

        `others` have their distance, the nearest first. `compared` has what `exact` said of some.
        """
        compared = compared or {}
        mine: Texts | None = None
        estimated: tuple[int, Side, float] | None = None
        unreadable = 0
        for number, (distance, other) in enumerate(others):
            if number == MOST_COMPARED:
                break
            if other in compared:
                exact = compared[other]
            else:
                mine = own() if mine is None else mine
                (exact,) = self.exact([(mine, texts(other))])
            likely = distance <= self.doubt.similar.most
            if exact is None:
                unreadable += 1
                if likely and estimated is None:
                    estimated = distance, other, nan
                continue
            near = exact >= self._asked - SLACK
            self.verified += 1
            self.kept += near
            self.overruled += near is not likely
            if near:
                return distance, other, exact
        self.unreadable += unreadable
        return estimated

    @property
    def _asked(self) -> float:
        similar = self.doubt.similar
        return similar.similarity if similar.asked is None else similar.asked

    def exact(self, pairs: Sequence[tuple[Texts, Texts]]) -> list[float | None]:
        """The similarity of each pair of documents: that of the nearest texts of both, None where
        one of them has none. Many pairs take a quarter of the time of as many calls."""
        texts: list[str | bytes] = []
        a: list[int] = []
        b: list[int] = []
        readable: list[int] = []
        starts: list[int] = []
        for number, (some, others) in enumerate(pairs):
            if not some or not others:
                continue
            readable.append(number)
            starts.append(len(a))
            first, second = len(texts), len(texts) + len(some)
            texts += [*some, *others]
            a += [first + place for place in range(len(some)) for _ in others]
            b += [second + place for _ in some for place in range(len(others))]
        exact: list[float | None] = [None] * len(pairs)
        if readable:
            vectors = vectors_of(self.recipe, texts)
            jaccard = self.doubt.similar.measure == "jaccard"
            found = vectors.resemblances(a, b) if jaccard else vectors.cosines(a, b)
            for number, one in zip(readable, np.maximum.reduceat(found, starts), strict=True):
                exact[number] = float(one)
        return exact
