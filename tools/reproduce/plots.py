"""Plots of recipes-compared.md and of slice lists: SVG, the same for the same numbers.

Colours mean the same in all plots: precision is blue, recall is red.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reproduce import kernel, mixes, slices
from reproduce.agreement import THRESHOLDS, WIDTHS, Curves, precision_recall
from reproduce.intervals import interval
from reproduce.revisions import Distances, shares

COLOURS = ("#0b62a4", "#d1495b", "#3a7d44", "#b8860b", "#6a4c93", "#555555")
PRECISION, RECALL = COLOURS[:2]
PANELS_H = range(17)
RADIUS = "largest distance h, of 64 bits"
TRUTH = "cosine of 0.9 or more"

COLLECTIONS = {
    "gesetze": "German law", "laravel-docs": "Laravel manual", "peps": "Python's PEPs",
    "rust-book": "Rust book",
}
"""Source -> its name in titles; other sources keep their own."""


def in_words(label: str) -> str:
    """A label of a recipe, such as "word 3, tfidf", as people say it: "3 words, tf-idf"."""
    label = label.replace("word 1,", "single words,").replace("tfidf", "tf-idf")
    label = label.replace("sublinear-", "sublinear ").replace("1+2+3", "1 to 3")
    label = re.sub(r"^word (.+?),", r"\1 words,", label)
    label = re.sub(r"^char (.+?),", r"\1 characters,", label)
    return re.sub(r"(gaussian|ternary)$", r"\1 vectors", label)


def _collection(source: str) -> str:
    return COLLECTIONS.get(source, source)


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
    """Recipes that are drawn: sub-linear ones are close to others, and only in the tables."""
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
            axis.plot(PANELS_H, drawn[0], color=colour, label=in_words(one.label), linewidth=1.4)
            if one.label == labels[0]:
                low, high = np.percentile(drawn[1:], [2.5, 97.5], axis=0)
                axis.fill_between(PANELS_H, low, high, color=colour, alpha=0.2, linewidth=0)
            pairs = one.pairs
        axis.set_title(f"{_collection(source)}: {pairs:,} edits", fontsize=9)
        axis.set_xlabel(RADIUS)
        axis.set_xlim(0, 16)
    axes[0][0].set_ylabel("share of edits within h")
    axes[0][0].set_ylim(0.2, 1)
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    _save(figure, path)


def unrelated(found: list[Distances], path: Path) -> None:
    """How far apart are unrelated pages?"""
    sources = list(dict.fromkeys(one.source for one in found))
    figure, axes = _figure(1, len(sources), 10, 2.9, sharey=True)
    labels = [label for label in _drawn_labels(found) if label.startswith("word 1")]
    labels.append("word 3, tf")
    for axis, source in zip(axes[0], sources, strict=True):
        for one in found:
            if one.source == source and one.kind == "unrelated" and one.label in labels:
                axis.plot(
                    one.drawn[0] / one.drawn[0].sum(), linewidth=1.3, label=in_words(one.label),
                    color=COLOURS[labels.index(one.label) % len(COLOURS)],
                )
        axis.set_title(_collection(source), fontsize=9)
        axis.set_xlabel("distance, of 64 bits")
        axis.set_xlim(0, 48)
        axis.axvline(10, color="#999999", linewidth=0.8, linestyle=":")
    axes[0][0].set_ylabel("share of unrelated pairs")
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    _save(figure, path)


def _curves(axis: Any, one: Curves, threshold: float) -> None:
    """Draws precision and recall by h, with their intervals, and marks where they cross."""
    for values, style, colour, name in (
        (one.precision(64, threshold), "-", PRECISION, "precision"),
        (one.recall(64, threshold), "--", RECALL, "recall"),
    ):
        drawn = values[:, : len(PANELS_H)]
        axis.plot(PANELS_H, drawn[0], style, color=colour, linewidth=1.4, label=name)
        low, high = np.nanpercentile(drawn[1:], [2.5, 97.5], axis=0)
        axis.fill_between(PANELS_H, low, high, color=colour, alpha=0.15, linewidth=0)
    h, value = (values[0] for values in one.crossing(64, threshold))
    if np.isfinite(h):
        axis.plot([h], [value], "o", color="black", markersize=4, label="where they are equal")
        axis.text(0.4, 0.03, f"{value:.2f} at h = {h:.1f}", fontsize=8)
    axis.set_xlabel(RADIUS)
    axis.set_xlim(0, 16)
    axis.set_ylim(0, 1.05)


def _legend(figure: Any, axis: Any) -> None:
    figure.supylabel("share of pairs", fontsize=8.5)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=6)


def weightings(found: list[Curves], path: Path) -> None:
    """Which weighting of single words is a fingerprint true to, and up to which h?"""
    words = [one for one in found if one.candidate.single_words]
    rows = -(-len(words) // 3)
    figure, axes = _figure(rows, 3, 8, 2.4 * rows + 0.4, sharex=True, sharey=True)
    for axis, one in zip(axes.flat, words, strict=False):
        _curves(axis, one, 0.9)
        axis.set_title(in_words(one.candidate.label), fontsize=9)
    for axis in axes.flat[len(words) :]:
        axis.set_axis_off()
    for axis in axes[:-1].flat:
        axis.set_xlabel("")
    _legend(figure, axes[0][0])
    _save(figure, path)


def thresholds(one: Curves, path: Path) -> None:
    """Which h goes with which cosine?"""
    figure, axes = _figure(1, len(THRESHOLDS), 8, 3, sharey=True)
    for axis, threshold in zip(axes[0], THRESHOLDS, strict=True):
        _curves(axis, one, threshold)
        axis.set_title(f"cosine of {threshold} or more", fontsize=9)
    _legend(figure, axes[0][0])
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
    labels = [in_words(one.candidate.label) for one in reversed(found)]
    axes[0][0].set_yticks(range(len(found)), labels)
    axes[0][0].set_xlabel("precision and recall where they are equal")
    axes[0][1].set_xlabel("the h where they are equal, of 64 bits")
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
                      label=f"{width} bits (equal at {value:.2f})")
        axis.plot([0.5, 1], [0.5, 1], color="#999999", linewidth=0.8, linestyle=":")
        axis.set_title(in_words(one.candidate.label), fontsize=9)
        axis.set_xlabel(f"recall, {TRUTH}")
        axis.set_xlim(0.5, 1.005)
        axis.set_ylim(0.5, 1.005)
        axis.legend(loc="lower left", fontsize=8)
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
                          linewidth=0, label="nine of ten pairs")
        axis.plot(middles, drawn[:, 0], ".", color=COLOURS[0], label="mean of the pairs")
        line = np.linspace(0, 1, 101)
        axis.plot(line, 64 * np.arccos(line) / np.pi, color=COLOURS[1], linewidth=1.1,
                  label="expected: 64 arccos(cosine) / pi")
        axis.set_title(in_words(one.candidate.label), fontsize=9)
        axis.set_xlabel("exact cosine")
        axis.set_xlim(0, 1)
    axes[0][0].set_ylabel("distance, of 64 bits")
    axes[0][0].legend(loc="lower left", fontsize=8)
    _save(figure, path)


def by_source(one: Curves, sources: list[str], path: Path) -> None:
    """Does the same h suit every source?"""
    figure, axes = _figure(1, len(sources), 10, 3.1, sharey=True)
    for place, (axis, source) in enumerate(zip(axes[0], sources, strict=True)):
        _curves(axis, replace(one, histograms={64: one.by_source[place]}), 0.9)
        axis.set_title(_collection(source), fontsize=9)
    _legend(figure, axes[0][0])
    _save(figure, path)


def other_mixes(
    found: list[Curves], sources: list[str], again: list[Curves], source: str, path: Path
) -> None:
    """How do the curves change with more documents of one source?"""
    figure, axes = _figure(2, len(again), 8, 5, sharex=True, sharey="row")
    even = kernel.mix([1.0] * len(sources))
    more = f"{mixes.TIMES} times as many documents of {_collection(source)}"
    for column, one, other in zip(axes.T, mixes.compared(found), again, strict=True):
        for measured, weights, colour, name in (
            (one, even, COLOURS[0], "even sample"),
            (other, mixes.weights_of(source, sources), COLOURS[3], more),
        ):
            there = precision_recall(measured.histograms[64][:1], 0.9)
            line = precision_recall(kernel.predicted(one.angles, weights), 0.9)
            for axis, values, cosines in zip(column, there, line, strict=True):
                axis.plot(PANELS_H, values[0, :17], color=colour, linewidth=1.6,
                          label=f"{name}, measured")
                axis.plot(PANELS_H, cosines[0, :17], ":", color=colour, linewidth=1.6,
                          label=f"{name}, computed from cosines")
        column[0].set_title(in_words(one.candidate.label), fontsize=9)
        column[1].set_xlabel(RADIUS)
        column[1].set_xlim(0, 12)
    for axis, name in zip(axes[:, 0], ("precision", "recall"), strict=True):
        axis.set_ylabel(name)
        axis.set_ylim(0, 1.05)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    _save(figure, path)


def slice_lists(found: list[slices.Curves], path: Path) -> None:
    """What share do the lists cover, and find, by the errors that a slice may have?"""
    figure, axes = _figure(1, 3, 10, 3.3)
    covered, *figures = axes[0]
    covered.plot(slices.ERRORS, slices.PAPER_COVERED, "o", color="black", markersize=4,
                 fillstyle="none", label="the paper, Table 1")
    for one, colour in zip(found, COLOURS, strict=False):
        covered.plot(slices.ERRORS, one.covered, color=colour, label=one.name)
        covered.plot(slices.ERRORS, one.read, ":", color=colour, label=f"{one.name}, entries read")
        for axis, at in zip(figures, range(len(slices.AMONG)), strict=True):
            for most, values, style in zip(
                slices.RERANKED, one.found[:, :, at].T, ("-", "--", ":"), strict=True
            ):
                axis.plot(slices.ERRORS, values, style, color=colour,
                          label=f"{one.name}, {most:,} rows compared")
    even = slices.covered_if_even(64)
    covered.plot(slices.ERRORS, even, color="#999999", label="even bits")
    covered.set_ylabel("share of the collection")
    covered.set_title("Table 1: share covered by the lists", fontsize=9)
    covered.legend(fontsize=7, loc="lower right")
    for axis, number, among in zip(figures, (1, 2), slices.AMONG, strict=True):
        axis.set_title(f"Figure {number}: among the true {among} nearest", fontsize=9)
        axis.set_ylabel(f"found, of {slices.RESULTS} results")
        axis.set_ylim(0, slices.RESULTS * 1.02)
    figures[0].legend(fontsize=7, loc="lower right")
    for axis in axes[0]:
        axis.set_xlabel("errors allowed in a slice, of 16 bits")
        axis.set_xlim(0, slices.WIDTH)
        axis.set_xticks(slices.ERRORS[::4])
    _save(figure, path)
