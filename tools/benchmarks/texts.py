"""English documents of exactly 300 words: cut from real pages, or made up.

    real   of every page one revision, cut from word to word:   [300 words][300 words] … rest
    made   words drawn by Zipf's law from 50,000 letter strings, of lengths as English words have
           them, with commas, full stops and line ends between

A word here is a match of `\\w+`, and a document begins and ends with one. Made-up documents have
the sizes of English ones but no grammar: their n-grams repeat less.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stopwatch import say

WORDS = 300
ENGLISH = ("peps", "rust-book", "laravel-docs")
"""Sources of English text; a directory with none of them is read whole."""

VOCABULARY = 50_000
ZIPF_SHIFT = 2.7
SEPARATORS = (" ", ", ", ". ", "\n")
SEPARATOR_SHARES = (0.86, 0.07, 0.06, 0.01)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Documents:
    """What is fingerprinted, and where it comes from."""

    texts: list[str]
    origin: str

    @property
    def utf8_bytes(self) -> int:
        """Their size in UTF-8."""
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in self.texts)


def documents(data: Path | None, rows: int, seed: int) -> Documents:
    """`rows` documents, of a directory of `*.jsonl.zst` or made from a seed."""
    if data is None:
        return Documents(made(rows, seed), "made-up words by Zipf's law")
    files = sources(data)
    english = [file for file in files if file.name.removesuffix(".jsonl.zst") in ENGLISH] or files
    texts: list[str] = []
    # The smallest first: what it lacks, the others give.
    english.sort(key=lambda file: file.stat().st_size)
    for left, file in zip(range(len(english), 0, -1), english, strict=True):
        share = -(-(rows - len(texts)) // left)
        texts += islice(cut(first_revisions(file)), share)
    if len(texts) < rows:
        say(f"  only {len(texts):,} documents in {data}")
    names = ", ".join(file.name.removesuffix(".jsonl.zst") for file in english)
    return Documents(texts, f"cut from {names}")


def sources(data: Path | None) -> list[Path]:
    """The `*.jsonl.zst` of a directory; SystemExit if there is none."""
    if data is None:
        raise SystemExit("this workload needs --data DIR with *.jsonl.zst: path, seq and text")
    files = sorted(data.glob("*.jsonl.zst"))
    if not files:
        raise SystemExit(f"no *.jsonl.zst in {data}")
    return files


def records(file: Path) -> Iterator[dict[str, Any]]:
    """The records of a file, in its order."""
    import zstandard

    with file.open("rb") as raw:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw)
        for line in io.TextIOWrapper(reader, encoding="utf-8"):
            yield json.loads(line)


def first_revisions(file: Path) -> Iterator[str]:
    """One text of each page: records of a page follow each other."""
    last: Any = None
    for record in records(file):
        if record["path"] != last:
            last = record["path"]
            yield record["text"]


def cut(pages: Iterator[str]) -> Iterator[str]:
    """Documents of exactly WORDS words; what is left of a page is dropped."""
    for page in pages:
        spans = [match.span() for match in _WORD.finditer(page)]
        for first in range(0, len(spans) - WORDS + 1, WORDS):
            yield page[spans[first][0] : spans[first + WORDS - 1][1]]


def made(rows: int, seed: int) -> list[str]:
    """Documents of made-up words, the same for the same seed."""
    return Making(seed).documents(rows)


class Making:
    """Makes documents of one vocabulary, some at a time."""

    def __init__(self, seed: int) -> None:
        self._rng = rng = np.random.default_rng(seed)
        rank = np.arange(1, VOCABULARY + 1)
        # Frequent words are short: about 2 letters for the first, 5 for the 100th, 9 for the last.
        mean = 1.6 + 0.5 * np.log2(rank + 1)
        lengths = np.clip(np.rint(rng.normal(mean, 0.3 * mean)), 1, 20).astype(int)
        letters = rng.integers(
            ord("a"), ord("z") + 1, int(lengths.sum()), dtype=np.uint8
        ).tobytes()
        ends = np.cumsum(lengths).tolist()
        self.vocabulary = [
            letters[end - length : end].decode("ascii")
            for end, length in zip(ends, lengths.tolist(), strict=True)
        ]
        """The most frequent word first."""
        self._chance = np.cumsum(1 / (rank + ZIPF_SHIFT))
        # A word, small or with a capital, with what follows it: looked up, not put together.
        self._pieces = np.array([
            form + separator for word in self.vocabulary for form in (word, word.capitalize())
            for separator in SEPARATORS
        ], dtype=object)

    def words(self, count: int) -> list[str]:
        """So many words, drawn as those of documents are."""
        return [self.vocabulary[word] for word in self._drawn(self._rng.random(count)).tolist()]

    def _drawn(self, random: Any) -> Any:
        return np.searchsorted(self._chance, random * self._chance[-1])

    def documents(self, rows: int) -> list[str]:
        """The next documents."""
        shares = np.cumsum(SEPARATOR_SHARES)
        random = self._rng.random((rows, 2, WORDS))
        between = np.searchsorted(shares, random[:, 1] * shares[-1])
        capital = np.ones((rows, WORDS), np.bool_)
        capital[:, 1:] = between[:, :-1] >= 2
        pieces = (2 * self._drawn(random[:, 0]) + capital) * len(SEPARATORS) + between
        texts = map("".join, self._pieces[pieces].tolist())
        return [
            text.removesuffix(SEPARATORS[last])
            for text, last in zip(texts, between[:, -1].tolist(), strict=True)
        ]


def saved(texts: list[str], path: Path) -> Path:
    """The texts in a file, one JSON string a line, for other processes."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(json.dumps(text) + "\n" for text in texts)
    return path


def loaded(path: Path) -> list[str]:
    """What `saved` wrote."""
    with path.open(encoding="ascii") as file:
        return [json.loads(line) for line in file]
