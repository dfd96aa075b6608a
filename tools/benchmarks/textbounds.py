"""Where the time from text to fingerprint goes: splitting, hashing, sums, look-ups, memory.

    whole - the same of ready words      =  splitting
    ready words - ready hashes           =  hashing
    ready hashes                         =  sums of 64 bits
    sums of 1024 bits - sums of 64 bits  =  15 draws and 15 times 64 columns
    tf-idf words - tf words              =  looking idf up, and adding it instead of counting

Every time is of the same documents, taken in turn; a difference is of medians.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import texttruth
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch
from benchmarks.texts import WORDS, documents
from simindex import Recipe, _kernels

GRAMS = (1, 2, 3)
WIDE = 4096
MEMORY_WORDS = 1 << 25
SAMPLE = 200
IN_CACHE = 64
"""Documents whose hashes, 0.5 MB, are added again and again: features come from a cache, too."""


def text_bounds(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Microseconds a document of each part, and what that is for a feature."""
    found = documents(options.data, options.rows, options.seed)
    texts, n = found.texts, len(found.texts)
    recipes = {
        "words 1": Recipe(ngram=1), "words 1-2": Recipe(ngram=(1, 2)),
        "whole": Recipe(ngram=GRAMS), "1024": Recipe(ngram=GRAMS, bits=1024),
        "wide": Recipe(ngram=GRAMS, bits=WIDE),
        "tf-idf words": Recipe(ngram=1, weighting="tfidf").fit(texts),
    }
    kernels = {name: recipe._kernels.kernel for name, recipe in recipes.items()}
    hashes, offsets = every_feature(recipes["whole"], texts)
    units = kernels["whole"].split(texts)[:4]
    some = min(IN_CACHE, n)
    rounds = -(-n // some)
    less = -(-rounds // 10)
    few = offsets[: some + 1]
    cached = hashes[: few[-1]]
    memory = np.ones(MEMORY_WORDS, dtype=np.uint64)
    times = watch.in_turn({
        "batch": lambda: recipes["whole"].batch(texts, threads=1),
        "whole": lambda: kernels["whole"].texts(texts, 1),
        "units": lambda: kernels["whole"].units(*units, 1),
        "sums": lambda: [kernels["whole"].hashes(cached, few, 1) for _ in range(rounds)],
        "sums 1024": lambda: [kernels["1024"].hashes(cached, few, 1) for _ in range(rounds)],
        # Of fewer: it would take most of the time.
        "sums wide": lambda: [kernels["wide"].hashes(cached, few, 1) for _ in range(less)],
        "words 1": lambda: kernels["words 1"].texts(texts, 1),
        "words 1-2": lambda: kernels["words 1-2"].texts(texts, 1),
        "tf-idf words": lambda: kernels["tf-idf words"].texts(texts, 1),
        "memory": lambda: memory.sum(),
    })
    measured = {
        "sums": rounds * some, "sums 1024": rounds * some, "sums wide": less * some
    }
    each = {
        name: [1e6 * one / measured.get(name, n) for one in seconds]
        for name, seconds in times.items()
    }
    at = {name: median(values) for name, values in each.items()}
    features, hashed = len(hashes) / n, bytes_hashed(texts)
    summed = len(cached) / some
    size = found.utf8_bytes / n
    read = 8 * MEMORY_WORDS / median(times["memory"])
    splitting, hashing = at["whole"] - at["units"], at["units"] - at["sums"]
    by_size = [
        at["words 1-2"] - at["words 1"], at["whole"] - at["words 1-2"],
    ]
    columns = 1e3 * (at["sums wide"] - at["sums 1024"]) / summed / ((WIDE - 1024) / 64)

    def part(name: str, values: list[float], notes: str, unit: str = "µs") -> Measurement:
        return Measurement(f"text-bounds: {name}", "simindex", n, tuple(values), unit, notes=notes)

    look_up = at["tf-idf words"] - at["words 1"]
    known = len(recipes["tf-idf words"].idf or ())
    return [
        part("whole, words 1-3, 64 bits", each["whole"],
             f"{features:.0f} features and {size:.0f} bytes a document; Python around it "
             f"{at['batch'] - at['whole']:.2f} µs"),
        part("splitting", [splitting],
             f"{size / splitting / 1e3:.2f} GB/s; {1e3 * splitting / WORDS:.1f} ns a word"),
        part("hashing", [hashing],
             f"{1e3 * hashing / features:.2f} ns a feature, {hashed / hashing / 1e3:.2f} GB/s of "
             f"the {hashed:,.0f} bytes that n-grams have"),
        part("sums, 64 bits", each["sums"], f"{1e3 * at['sums'] / summed:.2f} ns a feature"),
        part("pairs, on top of words", [by_size[0]],
             f"{1e3 * by_size[0] / (WORDS - 1):.2f} ns a feature, hash and sums"),
        part("triples, on top of pairs", [by_size[1]],
             f"{1e3 * by_size[1] / (WORDS - 2):.2f} ns a feature, hash and sums"),
        part("sums, 1024 bits", each["sums 1024"],
             f"{1e3 * at['sums 1024'] / summed:.1f} ns a feature"),
        part("sums, 4096 bits", each["sums wide"],
             f"{columns:.2f} ns a feature and 64 columns beyond 1024 bits"),
        part("idf of words", [look_up],
             f"tf-idf words - tf words; {1e3 * look_up / WORDS:.1f} ns a feature; table of "
             f"{known:,} features"),
        part("memory, read once", [8 * MEMORY_WORDS / one / 1e9 for one in times["memory"]],
             f"{size / read * 1e6:.2f} µs for the bytes of a document", "GB/s"),
        *hash_of_one_by_one(texts, watch, n),
    ]


def every_feature(
    recipe: Recipe, texts: list[str]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Hashes of all features of the texts, repeated as often as they occur, and their offsets."""
    distinct, counts, offsets, _ = recipe._kernels.kernel.features(texts)
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return np.repeat(distinct, counts), ends[offsets]


def bytes_hashed(texts: list[str]) -> float:
    """Bytes of all n-grams of a document, on average of the first ones."""
    some = texts[:SAMPLE]
    counted = (texttruth.features(text, "word", GRAMS) for text in some)
    return sum(len(one) * count for each in counted for one, count in each.items()) / len(some)


def hash_of_one_by_one(texts: list[str], watch: Stopwatch, n: int) -> list[Measurement]:
    """MurmurHash3 of ready features one after the other, for scale."""
    listed = [
        feature
        for text in texts[:SAMPLE]
        for feature, count in texttruth.features(text, "word", GRAMS).items()
        for _ in range(count)
    ]
    data = np.frombuffer(b"".join(listed), dtype=np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(feature) for feature in listed])])
    # Many times over: one round of the sample takes a millisecond or two.
    seconds, _ = watch.seconds(
        lambda: [_kernels._native.murmur3(data, offsets) for _ in range(20)]
    )
    documents_ = 20 * min(SAMPLE, n)
    return [
        Measurement(
            "text-bounds: hashing one by one", "simindex", n,
            tuple(1e6 * one / documents_ for one in seconds), "µs",
            notes=f"{20 * len(data) / median(seconds) / 1e9:.2f} GB/s, "
            f"{1e9 * median(seconds) / 20 / len(listed):.2f} ns a feature; without a vector unit",
        )
    ]
