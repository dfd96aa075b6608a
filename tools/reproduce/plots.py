"""Plots of recipes-compared.md and of slice lists: SVG, the same for the same numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reproduce import kernel, mixes, reference, slices
from reproduce.agreement import THRESHOLDS, WIDTHS, Curves, precision_recall
from reproduce.intervals import interval
from reproduce.revisions import Distances, shares

COLOURS = ("#0b62a4", "#d1495b", "#3a7d44", "#b8860b", "#6a4c93", "#555555")
PANELS_H = range(17)


def _figure(rows: int, columns: int, width: float, height: float, **more: Any) -> Any:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"svg.hashsalt": "simindex", "svg.fonttype": "none", "font.size": 8.5, "font.family":
         "sans-serif", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
         "grid.color": "#dddddd", "grid.linewidth": 0.6, "legend.frameon": False}
    )
    return plt.subplots(
        rows, columns, figsize=(width, height), squeeze=False, layout="constrained", **more
    )


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def _drawn_labels(found: list[Distances]) -> list[str]:
    """Recipes that are drawn: sub-linear ones stand in the tables only, close to others."""
    return [one for one in dict.fromkeys(one.label for one in found) if "sublinear" not in one]


def revisions(found: list[Distances], path: Path) -> None:
    """What share of page edits stays within h?"""
    sources = list(dict.fromkeys(one.source for one in found))
    figure, axes = _figure(1, len(sources), 10, 3.1, sharey=True)
    labels = [label for label in _drawn_labels(found) if "own" not in label]
    for axis, source in zip(axes[0], sources, strict=True):
        for one in found:
            if one.source != source or one.kind != "consecutive" or one.label not in labels:
                continue
            colour = COLOURS[labels.index(one.label) % len(COLOURS)]
            drawn = shares(one.drawn)[:, :17]
            axis.plot(PANELS_H, drawn[0], color=colour, label=one.label, linewidth=1.4)
            if one.label == labels[0]:
                low, high = np.percentile(drawn[1:], [2.5, 97.5], axis=0)
                axis.fill_between(PANELS_H, low, high, color=colour, alpha=0.2, linewidth=0)
            pairs = one.pairs
        axis.set_title(f"{source}: {pairs:,} edits", fontsize=9)
        axis.set_xlabel("h (of 64 bits)")
        axis.set_xlim(0, 16)
    axes[0][0].set_ylabel("share of edits within h")
    axes[0][0].set_ylim(0.2, 1)
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    _save(figure, path)


def unrelated(found: list[Distances], path: Path) -> None:
    """How far apart do unrelated pages stand?"""
    sources = list(dict.fromkeys(one.source for one in found))
    figure, axes = _figure(1, len(sources), 10, 2.9, sharey=True)
    labels = [label for label in _drawn_labels(found) if label.startswith("word 1")]
    labels.append("word 3, tf")
    for axis, source in zip(axes[0], sources, strict=True):
        for one in found:
            if one.source == source and one.kind == "unrelated" and one.label in labels:
                axis.plot(
                    one.drawn[0] / one.drawn[0].sum(), linewidth=1.3, label=one.label,
                    color=COLOURS[labels.index(one.label) % len(COLOURS)],
                )
        axis.set_title(source, fontsize=9)
        axis.set_xlabel("distance (of 64 bits)")
        axis.set_xlim(0, 48)
        axis.axvline(10, color="#999999", linewidth=0.8, linestyle=":")
    axes[0][0].set_ylabel("share of unrelated pairs")
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    _save(figure, path)


def _curves(axis: Any, one: Curves, width: int, threshold: float, colour: str, most: int) -> None:
    for values, style in ((one.precision(width, threshold), "-"),
                          (one.recall(width, threshold), "--")):
        values = values[:, : most + 1]
        axis.plot(range(most + 1), values[0], style, color=colour, linewidth=1.4)
        low, high = np.nanpercentile(values[1:], [2.5, 97.5], axis=0)
        axis.fill_between(range(most + 1), low, high, color=colour, alpha=0.18, linewidth=0)


def weightings(found: list[Curves], path: Path) -> None:
    """Which weighting of single words is a fingerprint true to, and up to which h?"""
    words = [one for one in found if one.candidate.single_words]
    figure, axes = _figure(1, len(words), max(7.5, 2.4 * len(words)), 3, sharey=True)
    for axis, one in zip(axes[0], words, strict=True):
        _curves(axis, one, 64, 0.9, COLOURS[0], 16)
        h, value = (values[0] for values in one.crossing(64, 0.9))
        if np.isfinite(h):
            axis.plot([h], [value], "o", color=COLOURS[1], markersize=4)
            axis.text(0.4, 0.03, f"curves cross at {h:.1f}", fontsize=8)
        axis.set_title(one.candidate.label, fontsize=9)
        axis.set_xlabel("h (of 64 bits)")
        axis.set_xlim(0, 16)
        axis.set_ylim(0, 1.05)
    axes[0][0].set_ylabel("precision (solid), recall (dashed)\nagainst cosine >= 0.9")
    _save(figure, path)


def thresholds(one: Curves, path: Path) -> None:
    """Which h goes with which cosine?"""
    figure, axes = _figure(1, len(THRESHOLDS), 8, 3, sharey=True)
    for place, (axis, threshold) in enumerate(zip(axes[0], THRESHOLDS, strict=True)):
        _curves(axis, one, 64, threshold, COLOURS[place], 16)
        h = one.crossing(64, threshold)[0][0]
        if np.isfinite(h):
            axis.text(0.4, 0.03, f"curves cross at {h:.1f}", fontsize=8)
        axis.set_title(f"cosine >= {threshold}: {one.candidate.label}", fontsize=9)
        axis.set_xlabel("h (of 64 bits)")
        axis.set_xlim(0, 16)
        axis.set_ylim(0, 1.05)
    axes[0][0].set_ylabel("precision (solid), recall (dashed)")
    _save(figure, path)


def features(found: list[Curves], path: Path) -> None:
    """How well does each recipe do at its best h, and which h is that?"""
    figure, axes = _figure(1, 2, 8.5, 0.6 + 0.22 * len(found), sharey=True)
    for row, one in enumerate(reversed(found)):
        for axis, values in zip(axes[0], reversed(one.crossing(64, 0.9)), strict=True):
            value, low, high = values
            if np.isfinite(value):
                axis.plot([low, high], [row, row], color=COLOURS[0], linewidth=1.2)
                axis.plot([value], [row], "o", color=COLOURS[0], markersize=4)
    axes[0][0].set_yticks(range(len(found)), [one.candidate.label for one in reversed(found)])
    axes[0][0].set_xlabel("precision = recall, cosine >= 0.9")
    axes[0][1].set_xlabel("at this h (of 64 bits)")
    _save(figure, path)


def widths(found: list[Curves], path: Path) -> None:
    """What do 128 or 256 bits buy?"""
    figure, axes = _figure(1, len(found), 3.1 * len(found) + 0.6, 3.1, sharey=True)
    for axis, one in zip(axes[0], found, strict=True):
        for place, width in enumerate(WIDTHS):
            most = width // 4
            precision = one.precision(width, 0.9)[0, : most + 1]
            recall = one.recall(width, 0.9)[0, : most + 1]
            value = interval(one.crossing(width, 0.9)[1][:1])[0]
            axis.plot(recall, precision, color=COLOURS[place], linewidth=1.4,
                      label=f"{width} bits: {value:.2f}")
        axis.plot([0.5, 1], [0.5, 1], color="#999999", linewidth=0.8, linestyle=":")
        axis.set_title(one.candidate.label, fontsize=9)
        axis.set_xlabel("recall, cosine >= 0.9")
        axis.set_xlim(0.5, 1.005)
        axis.set_ylim(0.5, 1.005)
        axis.legend(loc="lower left", fontsize=8, title="width: precision = recall")
    axes[0][0].set_ylabel("precision")
    _save(figure, path)


def expected(found: list[Curves], path: Path) -> None:
    """Is the distance of two texts what their cosine says?"""
    figure, axes = _figure(1, len(found), 3.1 * len(found) + 0.6, 3, sharey=True)
    for axis, one in zip(axes[0], found, strict=True):
        bins = len(one.by_cosine)
        middles, points = [], []
        for place, histogram in enumerate(one.by_cosine):
            if histogram.sum() >= 100:
                middles.append((place + 0.5) / bins)
                running = np.cumsum(histogram) / histogram.sum()
                mean = histogram @ np.arange(65) / histogram.sum()
                points.append([mean, *np.searchsorted(running, [0.05, 0.95])])
        drawn = np.array(points)
        axis.fill_between(middles, drawn[:, 1], drawn[:, 2], color=COLOURS[0], alpha=0.2,
                          linewidth=0, label="5 % to 95 % of pairs")
        axis.plot(middles, drawn[:, 0], ".", color=COLOURS[0], label="mean")
        line = np.linspace(0, 1, 101)
        axis.plot(line, 64 * np.arccos(line) / np.pi, color=COLOURS[1], linewidth=1.1,
                  label="64 arccos(cosine) / pi")
        axis.set_title(one.candidate.label, fontsize=9)
        axis.set_xlabel("exact cosine")
        axis.set_xlim(0, 1)
    axes[0][0].set_ylabel("distance (of 64 bits)")
    axes[0][0].legend(loc="lower left", fontsize=8)
    _save(figure, path)


def by_source(one: Curves, sources: list[str], path: Path) -> None:
    """Does the same h suit every source?"""
    figure, axes = _figure(1, len(sources), 10, 2.9, sharey=True)
    for place, (axis, source) in enumerate(zip(axes[0], sources, strict=True)):
        inside = replace(one, histograms={64: one.by_source[place]})
        _curves(axis, inside, 64, 0.9, COLOURS[place], 16)
        h = inside.crossing(64, 0.9)[0][0]
        if np.isfinite(h):
            axis.text(0.4, 0.03, f"curves cross at {h:.1f}", fontsize=8)
        axis.set_title(f"{source}: {one.candidate.label}", fontsize=9)
        axis.set_xlabel("h (of 64 bits)")
        axis.set_xlim(0, 16)
        axis.set_ylim(0, 1.05)
    axes[0][0].set_ylabel("precision (solid), recall (dashed)\nagainst cosine >= 0.9")
    _save(figure, path)


def other_mixes(
    found: list[Curves], sources: list[str], again: list[Curves], source: str, path: Path
) -> None:
    """Does the mix of pairs explain the earlier curves?"""
    figure, axes = _figure(1, len(again), 3.1 * len(again) + 0.6, 3.6, sharey=True)
    even = kernel.mix([1.0] * len(sources))
    for axis, one, other in zip(axes[0], mixes.compared(found), again, strict=True):
        for measured, weights, colour, name in (
            (one, even, COLOURS[0], "as sampled"),
            (other, mixes.weights_of(source, sources), COLOURS[1], mixes.heavy(source)),
        ):
            there = precision_recall(measured.histograms[64][:1], 0.9)
            line = precision_recall(kernel.predicted(one.angles, weights), 0.9)
            for values, cosines, style in zip(there, line, ("o", "^"), strict=True):
                label = f"{name}, measured" if style == "o" else None
                axis.plot(PANELS_H, values[0, :17], style, color=colour, markersize=3, label=label)
                label = f"{name}, expected from cosines" if style == "o" else None
                axis.plot(PANELS_H, cosines[0, :17], color=colour, linewidth=1, label=label)
        earlier = reference.AGREEMENT[one.candidate.weighting][1:]
        for shares_there, style in zip(earlier, ("o", "^"), strict=True):
            axis.plot(reference.AGREEMENT_H, shares_there, style, color="black", markersize=5,
                      fillstyle="none", label="earlier" if style == "o" else None)
        axis.set_title(one.candidate.label, fontsize=9)
        axis.set_xlabel("h (of 64 bits)")
        axis.set_xlim(0, 12.3)
        axis.set_ylim(0, 1.05)
    axes[0][0].set_ylabel("precision (circles), recall (triangles)\nagainst cosine >= 0.9")
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    _save(figure, path)


def slice_lists(found: list[slices.Curves], path: Path) -> None:
    """What do lists within so many errors of a query's slices cover, and find?"""
    figure, axes = _figure(1, 3, 10, 3.3)
    covered, *figures = axes[0]
    covered.plot(slices.ERRORS, slices.PAPER_COVERED, "o", color="black", markersize=4,
                 fillstyle="none", label="[ISSL] Table 1")
    for one, colour in zip(found, COLOURS, strict=False):
        covered.plot(slices.ERRORS, one.covered, color=colour, label=one.name)
        covered.plot(slices.ERRORS, one.read, ":", color=colour, label=f"{one.name}, entries read")
        for axis, at in zip(figures, range(len(slices.AMONG)), strict=True):
            for most, values, style in zip(
                slices.RERANKED, one.found[:, :, at].T, ("-", "--", ":"), strict=True
            ):
                axis.plot(slices.ERRORS, values, style, color=colour,
                          label=f"{one.name}, R = {most:,}")
    even = slices.covered_if_even(64)
    covered.plot(slices.ERRORS, even, color="#999999", label="even bits")
    covered.set_ylabel("share of the collection")
    covered.set_title("Table 1: covered", fontsize=9)
    covered.legend(fontsize=7, loc="lower right")
    for axis, number, among in zip(figures, (1, 2), slices.AMONG, strict=True):
        axis.set_title(f"Figure {number}: among the true top {among}", fontsize=9)
        axis.set_ylabel(f"of {slices.RESULTS} results")
        axis.set_ylim(0, slices.RESULTS * 1.02)
    figures[0].legend(fontsize=7, loc="lower right")
    for axis in axes[0]:
        axis.set_xlabel("max error (of 16 bits)")
        axis.set_xlim(0, slices.WIDTH)
        axis.set_xticks(slices.ERRORS[::4])
    _save(figure, path)
