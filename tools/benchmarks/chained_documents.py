"""Documents in shapes that chain: what `simindex dedup --similarity` drops of them, and for what.

    alone    a document without a near-duplicate
    path     a - b - c - d - ...     each an edit of the one before
    tree     each an edit of the one above it; two under each
    grid     an edit of the upper half in each row, of the lower half in each column
    star     a centre, and edits of it

An edit replaces EDITED of the words, drawn at random. Documents have 40 to 100 words of a Zipf
vocabulary, and are written in a random order. A fifth of the rows is in each shape.

True cosines are counted here, from the words and the document frequencies, without the package.
"""

from __future__ import annotations

import subprocess
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import machine, shell
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.texts import ZIPF_SHIFT

U16 = npt.NDArray[np.uint16]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

SIMILARITY, RECALL = 0.9, 0.95
ROUNDING = 1e-5
"""Of cosines: the command has idf in steps of 2^-12, which moved none of half a million by more
than 3.2e-6."""

LENGTH = 16
SHORTEST, LONGEST = 40, 100
EDITED = 0.06
VOCABULARY = 50_000
LEARNED = 100_000
"""Documents that the recipe learns its idf from, at most."""
SHAPES = ("alone", "path", "tree", "grid", "star")
SLICE = 20_000
"""Documents, or pairs, that are held as text or as words side by side at once."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents as numbers of words, with 0 where a shorter document has none."""

    words: U16
    """(n, LONGEST)."""
    order: I64
    """The documents as they are written."""

    @classmethod
    def of(cls, rows: int, rng: np.random.Generator) -> Corpus:
        """A fifth of the rows in each shape, family by family."""
        families = max(1, rows // (len(SHAPES) * LENGTH))
        drawn = _Words(rng)
        words = np.empty((len(SHAPES), families, LENGTH, LONGEST), np.uint16)
        for member in range(LENGTH):
            words[0, :, member] = drawn.documents(families)
        for shape in range(1, len(SHAPES)):
            words[shape, :, 0] = drawn.documents(families)
        for member in range(1, LENGTH):
            words[1, :, member] = drawn.edited(words[1, :, member - 1], EDITED)
            words[2, :, member] = drawn.edited(words[2, :, (member - 1) // 2], EDITED)
            words[4, :, member] = drawn.edited(words[4, :, 0], EDITED)
        half, side = SHORTEST // 2, 4
        for step in range(1, side):
            down, across = words[3, :, side * (step - 1)], words[3, :, step - 1]
            words[3, :, side * step] = drawn.edited(down, 2 * EDITED, slice(half))
            words[3, :, step] = drawn.edited(across, 2 * EDITED, slice(half, None))
        for row in range(1, side):
            for column in range(1, side):
                words[3, :, side * row + column, :half] = words[3, :, side * row, :half]
                words[3, :, side * row + column, half:] = words[3, :, column, half:]
        flat = words.reshape(-1, LONGEST)
        return cls(flat, rng.permutation(len(flat)))

    def shape_of(self, documents: I64) -> I64:
        """The place in SHAPES of each document."""
        return documents // (len(self.words) // len(SHAPES))

    def write(self, path: Path) -> None:
        """JSON lines; the id is the document's row."""
        named = [""] + [_name(number) for number in range(1, VOCABULARY + 1)]
        with path.open("w", encoding="ascii") as file:
            for first in range(0, len(self.order), SLICE):
                some = self.order[first : first + SLICE]
                for number, row in zip(some.tolist(), self.words[some].tolist(), strict=True):
                    text = " ".join(map(named.__getitem__, row)).rstrip()
                    file.write(f'{{"id": "{number}", "text": "{text}"}}\n')

    def idf(self) -> F64:
        """Of each word, from the documents that are written first."""
        learned = self.order[:LEARNED]
        held = np.zeros(VOCABULARY + 1, np.int64)
        for some in _slices(learned):
            words = np.sort(self.words[some], axis=1)
            new = np.ones(words.shape, np.bool_)
            new[:, 1:] = words[:, 1:] != words[:, :-1]
            held += np.bincount(words[new], minlength=len(held))
        idf: F64 = np.log((1 + len(learned)) / (1 + held)) + 1
        idf[0] = 0
        return idf

    def cosines(self, a: I64, b: I64, squares: F64) -> F32:
        """The cosine of the vectors tf idf of pairs; `squares` are those of the idf of words."""
        found = np.empty(len(a), np.float32)
        for at in range(0, len(a), SLICE):
            some = slice(at, at + SLICE)
            found[some] = _cosines(self.words[a[some]], self.words[b[some]], squares)
        return found


class _Words:
    """Words by Zipf's law."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        share = np.cumsum(1 / (np.arange(VOCABULARY) + ZIPF_SHIFT))
        places = (np.arange(1 << 20) + 0.5) / (1 << 20)
        self._table = (np.searchsorted(share / share[-1], places) + 1).astype(np.uint16)

    def drawn(self, count: int) -> U16:
        return self._table[self._rng.integers(0, len(self._table), count)]

    def documents(self, count: int) -> U16:
        made = self.drawn(count * LONGEST).reshape(count, LONGEST)
        length = self._rng.integers(SHORTEST, LONGEST + 1, count)
        made[np.arange(LONGEST) >= length[:, None]] = 0
        return made

    def edited(self, before: U16, share: float, places: slice = slice(None)) -> U16:
        made = before.copy()
        part = made[:, places]
        chosen = (self._rng.random(part.shape, np.float32) < share) & (part != 0)
        part[chosen] = self.drawn(int(np.count_nonzero(chosen)))
        return made


def _name(number: int) -> str:
    """A word of consonants and vowels, another one for each number."""
    letters = ""
    while number:
        number, consonant = divmod(number, 20)
        number, vowel = divmod(number, 5)
        letters += "bcdfghjklmnpqrstvwxz"[consonant] + "aeiou"[vowel]
    return letters


def _slices(documents: I64) -> Iterator[I64]:
    for first in range(0, len(documents), SLICE):
        yield documents[first : first + SLICE]


def _cosines(one: U16, other: U16, squares: F64) -> F64:
    rows = len(one)
    (a, a_tf), (b, b_tf) = _counted(one), _counted(other)
    place = np.minimum(np.searchsorted(b, a), len(b) - 1)
    same = b[place] == a
    both = a[same]
    across = np.bincount(
        both >> 16, a_tf[same] * b_tf[place[same]] * squares[both & 0xFFFF], rows
    )
    norms = [
        np.bincount(keys >> 16, tf * tf * squares[keys & 0xFFFF], rows)
        for keys, tf in ((a, a_tf), (b, b_tf))
    ]
    cosines: F64 = across / np.sqrt(norms[0] * norms[1])
    return cosines


def _counted(words: U16) -> tuple[I64, I64]:
    """(row, word) in one number, ascending, and how often the row has the word."""
    keys = (np.arange(len(words))[:, None] << 16 | np.sort(words, axis=1)).reshape(-1)
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return keys[starts], np.diff(starts, append=len(keys))


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command, and its certificates."""

    seconds: float
    cpu_s: float
    peak_bytes: int
    dropped: I64
    kept: I64
    """Of each dropped document, the one that it lost to."""
    similarity: F32
    error: F32


def chains_documents(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """`dedup` of --rows documents on all cores, by estimates.

    `--keep` leaves the documents, which the next run then reads.
    """
    return _measured("chains-documents", options, directory, watch)


def chains_texts(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """The same with doubtful pairs compared by their texts."""
    return _measured("chains-texts", options, directory, watch, "--verify-text")


def _measured(
    name: str, options: Namespace, directory: Path, watch: Stopwatch, *more: str
) -> list[Measurement]:
    corpus = Corpus.of(options.rows, np.random.default_rng(options.seed))
    rows = len(corpus.words)
    path = directory / f"documents-{rows}-{options.seed}.jsonl"
    if not path.exists():
        corpus.write(path)
    say(f"  {rows:,} documents, {path.stat().st_size / 1e6:,.0f} MB of JSON lines")
    runs = []
    for repetition in range(watch.repeat):
        runs.append(_run(path, directory, more))
        say(f"  {repetition + 1}: {runs[-1].seconds:.0f} s")
    last = runs[-1]
    peak = max(one.peak_bytes for one in runs) / 2**20
    return [Measurement(
        name, f"simindex dedup, {len(machine.CORES)} cores", rows,
        tuple(one.seconds for one in runs), "s",
        notes=f"{last.cpu_s:.0f} s of processor time; peak memory {peak:,.0f} MiB; "
        + _told(corpus, last, corpus.idf() ** 2),
    )]


def _run(path: Path, directory: Path, more: tuple[str, ...]) -> Run:
    certificates = directory / "certificates.parquet"
    ended = shell.simindex([
        "dedup", str(path), "--similarity", str(SIMILARITY), "--recall", str(RECALL),
        "--weighting", "tfidf", "--ngram", "1", "--idf-first", str(LEARNED),
        "--certificates", str(certificates), "--temp-dir", str(directory), "--quiet", *more,
    ], stdout=subprocess.DEVNULL)
    from pyarrow import parquet

    names = ("dropped", "lost_to", "similarity", "similarity_error")
    table: Any = parquet.read_table(certificates, columns=list(names))
    columns = [table.column(name).to_numpy() for name in names]
    return Run(
        ended.seconds, ended.cpu_s, ended.peak_bytes,
        columns[0].astype(np.int64), columns[1].astype(np.int64),
        columns[2].astype(np.float32), columns[3].astype(np.float32),
    )


def _told(corpus: Corpus, run: Run, squares: F64) -> str:
    """How near dropped documents are to what they lost to, and how many distinct ones were kept.

    A dropped document is distinct if it is two standard errors below the similarity, or below the
    similarity itself, of every kept document of its family.
    """
    rows = len(corpus.words)
    true = corpus.cosines(run.dropped, run.kept, squares)
    lost = np.zeros(rows, np.bool_)
    lost[run.dropped] = True
    kept = rows - int(np.count_nonzero(lost))
    bound = SIMILARITY - 2 * run.error
    stated = int(np.count_nonzero(run.similarity < bound))
    below, truly = true < SIMILARITY - ROUNDING, true < bound - ROUNDING
    nearest = true.copy()
    doubt = np.flatnonzero(below)
    for member in range(LENGTH):
        other = run.dropped[doubt] // LENGTH * LENGTH + member
        there = np.flatnonzero(~lost[other])
        some = doubt[there]
        found = corpus.cosines(run.dropped[some], other[there], squares)
        nearest[some] = np.maximum(nearest[some], found)
    shares = [
        100 * kept / (kept + int(np.count_nonzero(nearest < least - ROUNDING)))
        for least in (SIMILARITY, bound)
    ]
    members = len(run.dropped)
    return (
        f"{members:,} dropped; stated similarity {run.similarity.min():.3f} or more, {stated:,} of "
        f"them two standard errors below {SIMILARITY}; true cosine {true.min():.3f} or more, "
        f"{int(np.count_nonzero(below)):,} ({100 * below.mean():.3f} %) below {SIMILARITY}, "
        f"{int(np.count_nonzero(truly)):,} ({100 * truly.mean():.3f} %) two standard errors below; "
        f"kept {kept:,}, {shares[0]:.3f} % of the documents below {SIMILARITY} of all kept ones, "
        f"{shares[1]:.3f} % of those two standard errors below"
    )
