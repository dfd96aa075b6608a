"""Curves of a sample from its cosines alone, without a fingerprint.

A bit of two fingerprints differs with chance arccos(cosine) / pi, so the distance of a pair is
nearly binomial, whatever sample the pair belongs to:

    cells     (kind, cosine class, angle) -> pairs
    kernel    (angle, distance) -> chance
    weights of kinds @ cells @ kernel -> (cosine class, distance) -> precision, recall

Weighing the kinds of pairs gives the curves of another mix of the same pairs. Kinds are, for each
source, revisions of one path and pairs of two paths, and last the pairs of two sources. With k
times the documents, of as many revisions each, there are k times the first and k * k times the
others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reproduce.intervals import Floats

ANGLES = 640
"""Cells of angles from 0 to pi / 2: steps of 0.05 bits of expected distance at 64 bits."""


def kinds(
    first: NDArray[np.int64], second: NDArray[np.int64], one_path: NDArray[np.bool_], sources: int
) -> NDArray[np.int64]:
    """The kind of pairs of documents of two sources, of 2 `sources` + 1."""
    within = first * 2 + ~one_path
    return np.asarray(np.where(first == second, within, 2 * sources), dtype=np.int64)


def cells(
    kind: NDArray[np.int64], reached: NDArray[np.int64], cosines: NDArray[np.float32],
    shape: tuple[int, int],
) -> Floats:
    """Counts of pairs by kind, cosine class (as many as `shape` says) and angle."""
    turn = np.arccos(np.clip(cosines, 0, 1)) * (2 / np.pi)
    angle = np.minimum((turn * ANGLES).astype(np.int64), ANGLES - 1)
    place = (kind * shape[1] + reached) * ANGLES + angle
    counted = np.bincount(place, minlength=shape[0] * shape[1] * ANGLES)
    return counted.reshape(*shape, ANGLES).astype(np.float64)


def kernel(width: int = 64) -> Floats:
    """(ANGLES, width + 1): chance of each distance at the middle of each cell of angles."""
    from scipy.stats import binom

    chance = (np.arange(ANGLES) + 0.5) / (2 * ANGLES)
    return np.asarray(binom.pmf(np.arange(width + 1)[None, :], width, chance[:, None]))


def mix(times: list[float], revisions: float = 1.0) -> Floats:
    """Weight of each kind with so many times the documents of each source.

    `revisions` is how many times the pairs of revisions of a path there are for each document.
    """
    many = np.array(times)
    across = (many.sum() ** 2 - (many**2).sum()) / max(len(many) * (len(many) - 1), 1)
    weights = np.empty(2 * len(many) + 1)
    weights[:-1:2], weights[1::2], weights[-1] = many * revisions, many**2, across
    return weights


def predicted(angles: Floats, weights: Floats) -> Floats:
    """(1, classes, 65): the histogram at 64 bits that weighted cells of angles lead to expect."""
    return np.asarray(np.tensordot(weights, angles, axes=1) @ kernel())[None]
