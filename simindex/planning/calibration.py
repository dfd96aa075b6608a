"""How many flips reach a recall: counted on pairs that a search of the index has found.

The pairs of sampled rows and their near-duplicates show which bits really flip. They give, for any
header width t, the place of each pair's flip set in VOSH order. Recall at k flips is the share of
pairs whose place is at most k, and k is the least for which recall is above the asked one with 95%
confidence.

Before there are enough pairs, recall is assumed: k reaches it in two kinds of near-duplicates, and
so in any mixture of them.

    by weight      bits flip as the paper's model says, the likelier the smaller |W|: tried mass
                   over total mass within h ([PSM] (6))
    independent    every flip set of h bits is as likely as any other

The second needs many more flips than the first, about two hundred instead of a dozen, and exact
tables are often cheaper. With the first alone, a review found 72% of near-duplicates of the second
kind where 95% were asked for, and 86% where weights had rare large changes.

Where a similarity is asked for, nothing has to be learned: at a cosine the law of the sums says how
likely each bit is to flip (`volatility.of_cosine`). Pairs at that cosine are drawn for sampled rows
(`by_cosine`), as many as the count takes, and counted in the same way. In several tables of a block
design, the place of a pair is the least of those in its tables.
"""

from __future__ import annotations

from dataclasses import field
from math import comb

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F16, F32, F64, I64, U64, Bools
from simindex.bits import vosh
from simindex.bits.design import BlockDesign
from simindex.bits.volatility import STEP, Volatility, of_cosine, symmetric_sums
from simindex.methods.psm_tables import permuted_weights
from simindex.values import dataclass

ENOUGH_TEXTS = 64
"""Texts with near-duplicates from which flips are learned, instead of expected by the model."""

MODEL_ROWS = 256
"""Sampled rows over which an expectation is averaged."""

INDEPENDENT_ROWS = 64
"""Of these, where only the sizes of flip sets count, which hardly differ from row to row."""

MOST_FLIPS = 4096
"""Beyond this many flips, trying them in order no longer pays: the search becomes exhaustive."""

MASKS_AT_ONCE = 1 << 21
"""Flip sets that are held in memory together: 16 MB."""

NORMAL_95 = 1.645

DRAWN_PAIRS = 4096
"""Pairs that are drawn at a cosine: their recall is known to 0.006 at 0.95, by 95%."""

MOST_DRAWN_FLIPS = 1024
"""Flips of one header from which drawn pairs are not counted on."""

UNLIKELY = 0.002
"""Of drawn pairs, those whose flips together cost more than a search of several tables takes. Of
20,000 simulated strangers that share a header with a query, none cost so little."""

MOST_EACH = 128
"""And of the header of each of several tables: beyond it, networks are large."""


@dataclass(frozen=True, slots=True, eq=False)
class NearPairs:
    """Pairs at distance 1 to h: `text` numbers the sampled row, `differing` (p, W) is the XOR.

    `weights` (s, b) are the sampled rows'; texts without a pair are left out.
    """

    h: int
    text: I64
    differing: U64
    weights: F16

    @property
    def texts(self) -> int:
        """How many sampled rows have a near-duplicate."""
        return len(self.weights)


@dataclass(slots=True, eq=False)
class Calibration:
    """What was learned about how bits flip. `Index.tune` returns it.

    It has the number of flips for each header width, h and recall.
    """

    volatility: Volatility
    pairs: NearPairs
    sample: F16
    stored_rows: int
    provisional: bool = False
    """Whether there were no weights to learn from. Such a calibration is not kept."""
    by_weight: Volatility | None = None
    """The model of near-duplicates that flip by weight, where none were learned from: `volatility`
    then hedges it, and the recall must be reached in independent ones, too."""
    most_flips: int | None = None
    """The most that are counted in one header, if fewer than MOST_FLIPS."""
    basis: str = "learned from"
    """How a recall follows from the source."""
    _flips: dict[tuple[int, int, float], int] = field(default_factory=dict)
    _flips_each: dict[tuple[str, int, int, float], int | None] = field(default_factory=dict)

    @property
    def learned(self) -> bool:
        """Whether there were enough near-duplicates."""
        return self.pairs.texts >= ENOUGH_TEXTS

    @property
    def source(self) -> str:
        """The basis of the number of flips, in words."""
        return self.volatility.source

    def promise(self, h: int, recall: float) -> str:
        """The guarantee of a search by flips, in words: what was counted, or else assumed."""
        if self._counts(h, recall):
            return f"expected recall >= {recall:g}, {self.basis} {self.source}"
        if self.by_weight is None:
            return (
                f"assumed: recall >= {recall:g} where bits flip independently of each other, as "
                f"often as in {self.source}, which are too few to count this recall"
            )
        return (
            f"assumed: recall >= {recall:g} where bits flip by chance, all of them alike or the "
            f"likelier the smaller their weight; judged by {self.source}"
        )

    def flips(self, header_bits: int, h: int, recall: float) -> int:
        """The smallest k whose expected recall is `recall`, or all flip sets if none reaches it."""
        key = (header_bits, h, recall)
        if key not in self._flips:
            every = vosh.set_count(header_bits, h)
            found = 0
            if every:
                most = min(every, self.most_flips or MOST_FLIPS)
                found = (
                    self._counted(header_bits, h, recall, most)
                    if self._counts(h, recall)
                    else self._assumed(header_bits, h, recall, most)
                ) or every
            self._flips[key] = found
        return self._flips[key]

    def flips_each(
        self, design: BlockDesign, header_bits: int, h: int, recall: float
    ) -> int | None:
        """The smallest k that reaches the recall if k flips are tried in each table of a design,
        under headers of so many bits; None if MOST_EACH do not, or all sets that there are, or the
        recall cannot be counted.
        """
        key = (design.structure, header_bits, h, recall)
        if key not in self._flips_each:
            headers = [(number, header_bits) for number in range(design.tables)]
            most = min(vosh.set_count(header_bits, h), MOST_EACH)
            self._flips_each[key] = (
                self._counted_in(headers, design, h, recall, most)
                if most and self._counts(h, recall) else None
            )
        return self._flips_each[key]

    def _within(self, h: int) -> I64:
        """Pairs at distance h at most."""
        distance = np.bitwise_count(self.pairs.differing).sum(axis=1)
        return np.flatnonzero(distance <= h)

    def _counts(self, h: int, recall: float) -> bool:
        """Whether there are pairs enough to count a recall on."""
        if not self.learned or h > self.pairs.h:
            return False
        texts = len(np.unique(self.pairs.text[self._within(h)]))
        return _with_confidence(recall, texts) is not None

    def _counted(self, header_bits: int, h: int, recall: float, most: int) -> int | None:
        return self._counted_in([(0, header_bits)], None, h, recall, most)

    def _counted_in(
        self, headers: list[tuple[int, int]], design: BlockDesign | None, h: int, recall: float,
        most: int,
    ) -> int | None:
        """Least k that reaches the recall by k flips in each header, (table, width)."""
        pairs = self.pairs
        within = self._within(h)
        texts = pairs.text[within]
        distinct, place = np.unique(texts, return_inverse=True)
        share = 1.0 / np.bincount(place)[place] / len(distinct)
        target = _with_confidence(recall, len(distinct))
        assert target is not None
        for limit in _growing(most):
            rank = np.full(len(within), most + 1)
            for number, header_bits in headers:
                found = self._ranks(within, design, number, header_bits, h, limit)
                np.minimum(rank, found, out=rank)
            if design is not None:
                rank[self._unlikely(within)] = most + 1
            order = np.argsort(rank, kind="stable")
            reached = np.cumsum(share[order])
            at = int(np.searchsorted(reached, target - 1e-12))
            if at < len(order) and rank[order[at]] <= limit:
                return max(1, int(rank[order[at]]))
        return None

    def _unlikely(self, within: I64) -> Bools:
        """Which of some pairs a search of several tables does not take."""
        most = self.volatility.most
        if most is None:
            return np.zeros(len(within), np.bool_)
        return self.pair_costs()[within] > most

    def pair_costs(self) -> F64:
        """What the flips of each pair cost together."""
        pairs, bits = self.pairs, self.sample.shape[1]
        costs = self.volatility.of(pairs.weights)[pairs.text]
        flipped = np.unpackbits(pairs.differing.astype(">u8").view(np.uint8), axis=1)
        found: F64 = np.einsum("ij,ij->i", costs, flipped[:, :bits], dtype=np.float64)
        return found

    def _ranks(
        self, within: I64, design: BlockDesign | None, number: int, header_bits: int, h: int,
        limit: int,
    ) -> I64:
        """Of some pairs the place of what they flip in a header, in VOSH order; 0 for nothing, and
        a large number for what is not among the first `limit`."""
        pairs = self.pairs
        texts, differing = pairs.text[within], pairs.differing[within]
        weights = pairs.weights.astype(np.float32)
        if design is not None and number:
            differing, weights = (
                design.permute(differing, number), permuted_weights(design, weights, number)
            )
        wanted = differing[:, 0] & _header_mask(header_bits)
        rank = np.full(len(within), np.iinfo(np.int64).max)
        step = max(1, MASKS_AT_ONCE // limit)
        for start in range(0, len(within), step):
            part = slice(start, start + step)
            masks = self._masks(weights[texts[part]], header_bits, h, limit)
            hits = masks == wanted[part, None]
            rank[part] = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, rank[part])
        rank[wanted == 0] = 0
        return rank

    def _assumed(self, header_bits: int, h: int, recall: float, most: int) -> int | None:
        if self.by_weight is None:
            return self._expected(self.volatility, header_bits, h, recall, most)
        independent = self._independent(header_bits, h, recall, most)
        if independent is None:
            return None
        expected = self._expected(self.by_weight, header_bits, h, recall, most)
        return None if expected is None else max(independent, expected)

    def _independent(self, header_bits: int, h: int, recall: float, most: int) -> int | None:
        """Least k that holds `recall` of all flip sets of h bits; of smaller ones it holds more."""
        bits = self.sample.shape[1]
        # The share of them that has a given set of so many bits in the header.
        held_by = np.array(
            [comb(bits - header_bits, h - size) / comb(bits, h) for size in range(h + 1)]
        )
        for limit in _growing(most):
            masks = self._masks(self.sample[:INDEPENDENT_ROWS], header_bits, h, limit)
            held = held_by[np.bitwise_count(masks)].mean(axis=0)
            reached = held_by[0] + np.cumsum(held)
            at = int(np.searchsorted(reached, recall))
            if at < limit:
                return at + 1
        return None

    def _expected(
        self, model: Volatility, header_bits: int, h: int, recall: float, most: int
    ) -> int | None:
        """Least k whose flip sets, in the order of `volatility`, have the mass under a model."""
        costs = model.of(self.sample[:MODEL_ROWS]).astype(np.float64)
        odds = np.exp(-costs)
        every, scale = symmetric_sums(odds, h)
        beyond, beyond_scale = symmetric_sums(odds[:, header_bits:], h)
        total = every[:, 1:].sum(axis=1) * np.exp(scale - beyond_scale)
        tail = np.cumsum(beyond, axis=1)
        untouched = tail[:, h] - beyond[:, 0]
        for limit in _growing(most):
            masks = self._masks(self.sample[:MODEL_ROWS], header_bits, h, limit)
            reached = np.zeros(limit)
            for row, flips in enumerate(masks):
                bits = _unpacked(flips, header_bits)
                mass = np.exp(-(bits @ costs[row, :header_bits]))
                mass *= tail[row, h - bits.sum(axis=1).astype(np.int64)]
                reached += (untouched[row] + np.cumsum(mass)) / total[row]
            at = int(np.searchsorted(reached / len(masks), recall))
            if at < limit:
                return at + 1
        return None

    def _masks(self, weights: F16 | F32, header_bits: int, h: int, flips: int) -> U64:
        order = vosh.plan(header_bits, h, flips)
        return _native.vosh(
            weights.astype(np.float32), self.volatility.costs, STEP, header_bits, h, flips,
            order.candidates, order.sort_network, order.select_network,
        )


def by_cosine(sample: F16, cosine: float, *, stored_rows: int, seed: int = 0) -> Calibration:
    """How bits flip in pairs at a cosine, by the law of their sums.

    Parameters
    ----------
    sample : float16 (n, b)
        Weights of rows, in units of their root mean square. Of fewer than `ENOUGH_TEXTS` rows,
        normal weights are taken instead.
    """
    rng = np.random.default_rng(seed)
    bits = sample.shape[1]
    source = f"{DRAWN_PAIRS} pairs drawn at cosine {cosine:g}, of the weights of"
    if len(sample) < ENOUGH_TEXTS:
        sample = rng.normal(size=(DRAWN_PAIRS, bits)).astype(np.float16)
        source = f"{source} a normal distribution"
    else:
        sample = sample[:DRAWN_PAIRS]
        source = f"{source} {len(sample)} rows of the index"
    law = of_cosine(cosine)
    text = np.arange(DRAWN_PAIRS) % len(sample)
    chance = 1 / (1 + np.exp(law.of(sample).astype(np.float64)))
    flipped = rng.random((DRAWN_PAIRS, bits)) < chance[text]
    differing = np.packbits(flipped, axis=1).view(">u8").astype(np.uint64)
    pairs = NearPairs(bits, text, differing, sample)
    drawn = Calibration(
        law, pairs, sample, stored_rows, most_flips=MOST_DRAWN_FLIPS, basis="counted on"
    )
    most = float(np.quantile(drawn.pair_costs(), 1 - UNLIKELY))
    drawn.volatility = Volatility(law.costs, source, most)
    return drawn


def _header_mask(header_bits: int) -> np.uint64:
    return np.uint64(((1 << header_bits) - 1) << (64 - header_bits))


def _unpacked(masks: U64, header_bits: int) -> F64:
    shifts = np.uint64(63) - np.arange(header_bits, dtype=np.uint64)
    return ((masks[:, None] >> shifts) & np.uint64(1)).astype(np.float64)


def _growing(most: int) -> list[int]:
    return [*(k for k in (32, 256, 1024) if k < most), most]


def _with_confidence(recall: float, texts: int) -> float | None:
    """Share of the sampled pairs that must be found for `recall` to hold with 95% confidence."""
    if texts == 0:
        return None
    share = recall + NORMAL_95 * float(np.sqrt(recall * (1 - recall) / texts))
    return share if share < 1.0 else None
