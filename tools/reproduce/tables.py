"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reproduce import kernel, mixes, reference
from reproduce.agreement import THRESHOLDS, WIDTHS, Curves, crossings, precision_recall
from reproduce.intervals import interval
from reproduce.revisions import Distances, pooled

SHOWN_H = (1, 2, 3, 4, 5, 6, 7, 8, 10)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others numbers."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def share(values: tuple[float, float, float], digits: int = 3) -> str:
    """A value with its interval, as `.501 [.48, .52]`."""
    value, low, high = values
    if np.isnan(value):
        return "-"
    return f"{plain(value, digits)} [{plain(low, digits)}, {plain(high, digits)}]"


def plain(value: float, digits: int = 3) -> str:
    """A number; below 1 without the zero in front."""
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def revisions(found: list[Distances]) -> str:
    """Share of consecutive revisions within h, by source and recipe."""
    h_shown = (0, 1, 2, 3, 4, 6, 8, 10)
    return table(
        ["source, recipe", "pairs", "pages", "mean", *map(str, h_shown)],
        [
            [
                f"{one.source}: {one.label}", f"{one.pairs:,}", f"{one.pages:,}",
                share(one.mean(), 2), *(share(one.within(h)) for h in h_shown),
            ]
            for one in consecutive(found)
        ],
    )


def consecutive(found: list[Distances]) -> list[Distances]:
    """Pairs of consecutive revisions by source, then all sources together for each recipe."""
    single = [one for one in found if one.kind == "consecutive"]
    labels = list(dict.fromkeys(one.label for one in single))
    return single + [pooled([one for one in single if one.label == it], it) for it in labels]


def with_reference(found: list[Distances]) -> tuple[str, str]:
    """This table with the earlier values, and a sentence that counts the cells that agree."""
    rows, agree, by_hash, cells = [], 0, 0, 0
    for one in found:
        if one.kind != "consecutive" or one.label != "word 1, tfidf":
            continue
        if one.source not in reference.TFIDF_WORDS:
            continue
        pairs, mean, earlier = reference.TFIDF_WORDS[one.source]
        measured = [(one.mean(), one.mean_by_hash(), mean, 2)]
        measured += [
            (one.within(h), one.within_by_hash(h), there, 3)
            for h, there in zip(reference.H, earlier, strict=True)
        ]
        row = [one.source, f"{one.pairs:,} ({pairs:,})"]
        for (value, low, high), (least, most), there, digits in measured:
            half = 0.5 * 10**-digits
            inside = low - half <= there <= high + half
            hashed = least - half <= there <= most + half
            cells, agree, by_hash = cells + 1, agree + inside, by_hash + hashed
            row.append(
                f"{plain(value, digits)} [{plain(low, digits)}, {plain(high, digits)}] "
                f"{{{plain(least, digits)}-{plain(most, digits)}}} "
                f"({plain(there, digits)}: {'yes' if inside else 'NO'})"
            )
        rows.append(row)
    text = table(["source", "pairs", "mean", *map(str, reference.H)], rows)
    line = (
        f"Of {cells} earlier values, {agree} lie within the interval over pages [ ], {by_hash} "
        "within the range of four sets of hash functions on the same pages { }.\n"
    )
    return text, line


def shingles(found: list[Distances]) -> str:
    """3-word shingles by source, and the earlier row, which names no source."""
    rows = []
    for weighting, earlier in reference.SHINGLES.items():
        rows.append(
            [f"{weighting}: earlier", "", *(plain(value) for value in earlier)]
        )
        rows += [
            [
                f"{weighting}: {one.source}", f"{one.pairs:,}",
                *(share(one.within(h)) for h in reference.SHINGLES_H),
            ]
            for one in consecutive(found) if one.label == f"word 3, {weighting}"
        ]
    return table(["3-word shingles", "pairs", *map(str, reference.SHINGLES_H)], rows)


def unrelated(found: list[Distances]) -> str:
    """Distances of unrelated pages."""
    rows = []
    for one in found:
        if one.kind != "unrelated":
            continue
        histogram = one.drawn[0]
        mean = float(histogram @ np.arange(65) / histogram.sum())
        deviation = float(np.sqrt(histogram @ (np.arange(65) - mean) ** 2 / histogram.sum()))
        rows.append(
            [
                f"{one.source}: {one.label}", share(one.mean(), 1), f"{deviation:.1f}",
                *(share(one.within(h), 4) for h in (3, 6, 10)),
            ]
        )
    return table(["source, recipe", "mean", "deviation", "within 3", "within 6", "within 10"], rows)


def agreement(found: list[Curves]) -> str:
    """Precision / recall by h at 64 bits against cosine >= 0.9, and where the curves cross."""
    rows = []
    for one in found:
        precision, recall = one.precision(64, 0.9)[0], one.recall(64, 0.9)[0]
        rows.append(
            [
                one.candidate.label,
                *(f"{plain(precision[h], 2)}/{plain(recall[h], 2)}" for h in SHOWN_H),
                share(one.crossing(64, 0.9)[0], 1), share(one.crossing(64, 0.9)[1], 2),
            ]
        )
        earlier = reference.AGREEMENT.get(one.candidate.weighting)
        if earlier and one.candidate.single_words:
            met, there_p, there_r = earlier
            pairs = zip(there_p, there_r, strict=True)
            rows.append(
                ["(earlier)", *(f"{plain(p, 2)}/{plain(r, 2)}" for p, r in pairs), f"{met}", ""]
            )
    return table(["recipe", *map(str, SHOWN_H), "cross at h", "value there"], rows)


def thresholds(found: list[Curves]) -> str:
    """h at which the curves cross, and the value there, by width and cosine."""
    head = ["recipe", *(f"{w} bits, cosine {c}" for w in WIDTHS for c in THRESHOLDS)]
    return table(
        head,
        [
            [
                one.candidate.label,
                *(
                    f"{share(one.crossing(w, c)[0], 1)}: {share(one.crossing(w, c)[1], 2)}"
                    for w in WIDTHS for c in THRESHOLDS
                ),
            ]
            for one in found
        ],
    )


def by_source(found: list[Curves], sources: list[str]) -> str:
    """The same within each source, for single words: crossing, and precision / recall at some h."""
    rows = []
    for one in found:
        if not one.candidate.single_words:
            continue
        for place, source in enumerate(sources):
            histograms = one.by_source[place]
            precision, recall = precision_recall(histograms, 0.9)
            h, value = crossings(histograms, 0.9)
            pairs = int(histograms[0, THRESHOLDS.index(0.9) + 1 :].sum())
            rows.append(
                [
                    f"{source}: {one.candidate.label}", f"{pairs:,}",
                    *(
                        f"{share(interval(precision[:, at]), 2)} / "
                        f"{share(interval(recall[:, at]), 2)}"
                        for at in (3, 6, 8)
                    ),
                    share(h, 1), share(value, 2),
                ]
            )
    head = ["source, recipe", "pairs >= 0.9", "h = 3", "h = 6", "h = 8", "cross at h", "value"]
    return table(head, rows)


def strangers(found: list[Curves]) -> str:
    """Pairs of different pages of one source within h, in a million such pairs."""
    rows = []
    for one in found:
        histogram = one.strangers.sum(axis=0)
        within = 1e6 * np.cumsum(histogram) / histogram.sum()
        rows.append([one.candidate.label, *(f"{within[h]:,.0f}" for h in (0, 3, 6, 8, 10))])
    return table(["recipe", "0", "3", "6", "8", "10"], rows)


def expected(one: Curves) -> str:
    """Mean distance by cosine, and the expected one, 64 arccos(cosine) / pi."""
    bins = len(one.by_cosine)
    rows = []
    for place in range(bins // 2, bins):
        histogram = one.by_cosine[place]
        if histogram.sum() < 100:
            continue
        mean = float(histogram @ np.arange(65) / histogram.sum())
        deviation = float(np.sqrt(histogram @ (np.arange(65) - mean) ** 2 / histogram.sum()))
        middle = (place + 0.5) / bins
        rows.append(
            [
                f"{place / bins:.2f} - {(place + 1) / bins:.2f}", f"{int(histogram.sum()):,}",
                f"{mean:.1f}", f"{64 * np.arccos(middle) / np.pi:.1f}", f"{deviation:.1f}",
            ]
        )
    return table(["cosine", "pairs", "mean distance", "expected", "deviation"], rows)


def from_cosines(found: list[Curves], sources: list[str]) -> str:
    """Curves with each of four sets of hash functions, and those computed from the cosines."""
    even = kernel.mix([1.0] * len(sources))
    rows = []
    for one in found:
        expected_pairs = kernel.predicted(one.angles, even)
        cells = []
        for digits, values in (
            (1, lambda it: np.array([crossings(draw[None], 0.9)[0][0] for draw in it])),
            (2, lambda it: precision_recall(it, 0.9)[0][:, 6]),
            (2, lambda it: precision_recall(it, 0.9)[1][:, 3]),
            (2, lambda it: precision_recall(it, 0.9)[1][:, 6]),
        ):
            measured = values(one.columns)
            cells += [
                f"{plain(measured[0], digits)} {{{plain(measured.min(), digits)}-"
                f"{plain(measured.max(), digits)}}}",
                plain(values(expected_pairs)[0], digits),
            ]
        rows.append([one.candidate.label, *cells])
    head = ["cross at h", "precision at 6", "recall at 3", "recall at 6"]
    return table(["recipe", *(name for one in head for name in (one, "expected"))], rows)


def other_mixes(found: list[Curves], sources: list[str], again: list[Curves], mix: str) -> str:
    """Other mixes expected from the cosines, one of them measured, and the earlier values."""
    shown_h = (3, 6, 8, 10)
    rows = []
    for one, measured in zip(mixes.compared(found), again, strict=True):
        expected_of = [
            (f"{name}, expected", kernel.predicted(one.angles, weights))
            for name, weights in mixes.named(sources).items()
        ]
        measured_of = [
            ("as sampled, measured", one.histograms[64]),
            (f"{mix}, measured", measured.histograms[64]),
        ]
        for name, histograms in expected_of + measured_of:
            precision, recall = precision_recall(histograms, 0.9)
            h, value = crossings(histograms[:1], 0.9)
            rows.append(
                [
                    f"{one.candidate.label}: {name}", plain(h[0], 1), plain(value[0], 2),
                    *(f"{plain(precision[0, h], 2)}/{plain(recall[0, h], 2)}" for h in shown_h),
                    plain(mixes.away(one, histograms), 3),
                ]
            )
        met, there_p, there_r = reference.AGREEMENT[one.candidate.weighting]
        places = [reference.AGREEMENT_H.index(h) for h in shown_h]
        rows.append(
            [
                f"{one.candidate.label}: earlier", plain(met, 1), "",
                *(f"{plain(there_p[at], 2)}/{plain(there_r[at], 2)}" for at in places), "",
            ]
        )
    head = ["recipe: mix", "cross at h", "value", *(f"h = {h}" for h in shown_h), "away"]
    return table(head, rows)
