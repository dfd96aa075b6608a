"""In how many documents each feature occurs: counted in one pass, in bounded memory, mergeable.

    hashes      uint64 (f,)   feature hashes, strictly ascending
    counts      uint32 (f,)   documents that have each feature, too small by at most `forgotten`
    forgotten   F             0 while no feature was forgotten
    documents   N             documents counted, also those without features

Counts are exact up to `max_features` distinct features. When there are more, the (max_features
+ 1)-th largest count c is subtracted from every count, features that reach zero are forgotten, and
F grows by c
(Misra and Gries, "Finding repeated elements", 1982, in batches; mergeable by Agarwal et al.,
"Mergeable summaries", 2012).

Invariants, for a feature that t documents have in truth
    1. in the table with count l:   l <= t <= l + F
    2. not in the table:            t <= F
    3. l + F <= N
    4. F (max_features + 1) <= M, M the sum of t over all features
Why they hold
    Adding: n more documents have the feature. In the table, l and t grow by n. Not in it, t <= F
    before gives n <= t <= n + F after, with l = n, and n + F <= N as F <= N before. Merging adds
    l, t, F, N and M of both sides, with l = 0 for a side that does not have the feature: a sum of
    each invariant. Forgetting by c: with l > c, l - c <= t and t <= l + F = (l - c) + (F + c); with
    l <= c, t <= l + F <= F + c; and l + F is what it was, or at most F + c <= N for the c of a
    feature with l = c. At least max_features + 1 counts are c or more, so the sum of all l falls by
    at least c (max_features + 1), and it never was more than M: the falls together stay below M.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simindex.arrays import U32, U64
from simindex.bits.distinct_rows import distinct_values
from simindex.checks import is_int
from simindex.errors import InvalidBatch, InvalidOption, RecipeMismatch
from simindex.simhash import recipe_bytes
from simindex.simhash.weighting import IdfTable, idf_step

MAX_FEATURES = 1 << 23
"""Distinct features up to which counting is exact by default: a table of 100 MB."""

_PENDING_FEATURES = 1 << 20  # features that collect at least before they are merged into the table
_PIECE_FEATURES = 64  # what a piece costs in addition to its features: two arrays, about 300 bytes
_RANGE_FEATURES = 1 << 18  # features merged at once

_Counted = tuple[U64, U32]


class DocumentFrequencies:
    """In how many documents each feature occurs. A recipe with idf is fitted to these counts.

    Parameters
    ----------
    source : str
        Digest of the options that determine the hashes, set by the recipe that counts. Frequencies
        of different sources cannot be merged.
    max_features : int
        Up to how many distinct features counts are exact. `forgotten` says what happens beyond.

    Raises
    ------
    InvalidOption
        If `max_features` is not from 1 to 2**32 - 1.

    Notes
    -----
    A feature takes 12 bytes of memory at rest, up to 32 while counts are added, and up to 64 while
    two full tables are merged (both included). Up to 64 MB come in addition. If features were
    forgotten, counts depend within their bounds on the order and grouping of the documents. One
    thread at a time may use an object.
    """

    def __init__(self, source: str = "", *, max_features: int = MAX_FEATURES) -> None:
        if not (is_int(max_features) and 1 <= max_features < 1 << 32):
            raise InvalidOption(
                f"option max_features={max_features!r} is not valid",
                remedy="give from 1 to 2**32 - 1", option="max_features", found=max_features,
                expected="from 1 to 2**32 - 1",
            )
        self.source = source
        self.max_features = max_features
        self.documents: int = 0
        """Number of counted documents."""
        self._forgotten = 0
        self._hashes = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.uint32)
        self._pending: list[_Counted] = []
        self._pending_features = 0

    @property
    def hashes(self) -> U64:
        """Hashes of the features in the table, strictly ascending."""
        self._settle()
        return self._hashes

    @property
    def counts(self) -> U32:
        """How many documents have each feature. Each count is too small by at most `forgotten`."""
        self._settle()
        return self._counts

    @property
    def forgotten(self) -> int:
        """By how many documents a count may be too small. 0 if all counts are exact.

        A feature that is not in the table occurred in at most as many documents. The value is at
        most the number of all (document, feature) pairs divided by `max_features` + 1.
        """
        self._settle()
        return self._forgotten

    def __len__(self) -> int:
        return len(self.hashes)

    def __repr__(self) -> str:
        kept = "exact" if not self.forgotten else f"short by at most {self.forgotten}"
        return f"<DocumentFrequencies {len(self)} features, {self.documents} documents, {kept}>"

    def add(self, hashes: U64, counts: U32, documents: int) -> None:
        """Adds the counts of more documents.

        Parameters
        ----------
        hashes : uint64 (f,)
            Distinct features of these documents, ascending.
        counts : unsigned integers (f,)
            In how many of these documents each feature occurs, from 1 to `documents`.
        documents : int
            Number of these documents, including those without features.

        Raises
        ------
        InvalidBatch
            If the arrays are not valid. Then nothing was counted.
        InvalidOption
            If more than 2**32 - 1 documents would be counted.

        Notes
        -----
        Takes amortised O(log) time a feature: the table is rewritten when a quarter of it is new.
        """
        piece = _checked(hashes, counts, documents)
        _require_countable(self.documents + documents)
        self.documents += documents
        if not len(piece[0]):
            return
        self._pending.append(piece)
        self._pending_features += len(piece[0]) + _PIECE_FEATURES
        if self._pending_features > max(_PENDING_FEATURES, len(self._hashes) // 4):
            self._settle()

    def merge(self, other: DocumentFrequencies) -> DocumentFrequencies:
        """The counts of both, as if one had counted the documents of both.

        Neither is changed. Their order makes no difference. The two values of `forgotten` are
        added, and the smaller `max_features` applies.

        Raises
        ------
        RecipeMismatch
            If the two belong to recipes that make other features.
        InvalidOption
            If both together have more than 2**32 - 1 documents.
        """
        if not isinstance(other, DocumentFrequencies):
            raise InvalidBatch(
                f"a {type(other).__name__} cannot be merged",
                remedy="give DocumentFrequencies", found=type(other).__name__,
                expected="DocumentFrequencies",
            )
        require_source(other, self.source)
        _require_countable(self.documents + other.documents)
        both = DocumentFrequencies(
            self.source, max_features=min(self.max_features, other.max_features)
        )
        both.documents = self.documents + other.documents
        both._forgotten = self.forgotten + other.forgotten
        both._hashes, both._counts = _union(
            (self.hashes, self.counts), (other.hashes, other.counts)
        )
        both._forget()
        return both

    def __add__(self, other: object) -> DocumentFrequencies:
        return self.merge(other) if isinstance(other, DocumentFrequencies) else NotImplemented

    def table(self) -> IdfTable:
        """The idf of every feature.

        Exact counts give the exact idf. Otherwise a feature with count l occurred in l to
        l + forgotten documents, and a feature that is not in the table in 0 to forgotten. Each gets
        the middle of the idf at both ends. So no idf is wrong by more than half of ln(1 +
        forgotten) and the rounding, and that of a frequent feature is hardly wrong. No feature of
        the table weighs more than one that is not in it.

        Raises
        ------
        InvalidOption
            If no document was counted.
        """
        if self.documents == 0:
            raise InvalidOption(
                "idf is learned from documents, but there were none", remedy="give some to fit"
            )
        # One logarithm for each count that occurs, by the C library: numpy's differs between
        # processors.
        occurring = distinct_values(self.counts)
        step_of = np.array([self._step(count) for count in occurring.tolist()], dtype=np.uint32)
        steps = np.empty(len(self), dtype=np.uint32)
        for start in range(0, len(self), _RANGE_FEATURES):
            part = slice(start, start + _RANGE_FEATURES)
            steps[part] = step_of[np.searchsorted(occurring, self.counts[part])]
        return IdfTable(self.documents, self.hashes, steps, self._step(0), self.source)

    def _step(self, count: int) -> int:
        return idf_step(self.documents, count, count + self._forgotten)

    def to_bytes(self) -> bytes:
        """All counts, for `from_bytes`."""
        values = {
            "source": self.source,
            "max_features": self.max_features,
            "documents": self.documents,
            "features": len(self),
            "forgotten": self.forgotten,
        }
        return recipe_bytes.packed_frequencies(values, self.hashes, self.counts)

    @classmethod
    def from_bytes(cls, content: bytes) -> DocumentFrequencies:
        """The counts that `to_bytes` wrote.

        Raises
        ------
        CorruptFile
            If the bytes are not what was written.
        FormatTooNew
            If a newer version wrote them.
        """
        values, hashes, counts = recipe_bytes.unpacked_frequencies(content)
        try:
            read = cls(values["source"], max_features=values["max_features"])
        except InvalidOption as error:
            raise recipe_bytes.invalid_frequencies(error) from error
        read.documents, read._forgotten = values["documents"], values["forgotten"]
        read._hashes, read._counts = hashes, counts
        return read

    def __reduce__(self) -> tuple[Callable[[bytes], DocumentFrequencies], tuple[bytes]]:
        return DocumentFrequencies.from_bytes, (self.to_bytes(),)

    def _settle(self) -> None:
        """Merge what is pending into the table."""
        if not self._pending:
            return
        pieces, self._pending, self._pending_features = self._pending, [], 0
        new = _folded(pieces)
        self._hashes, self._counts = _union((self._hashes, self._counts), new)
        del new
        self._forget()

    def _forget(self) -> None:
        more = len(self._counts) - self.max_features
        if more <= 0:
            return
        # The (max_features + 1)-th largest: c of the module's text.
        c = int(np.partition(self._counts, more - 1)[more - 1])
        kept = self._counts > c
        self._hashes = self._hashes[kept]
        self._counts = self._counts[kept]
        self._counts -= np.uint32(c)
        self._forgotten += c


def _folded(pieces: list[_Counted]) -> _Counted:
    """The sum of some pieces, which are taken out of the list."""
    if len(pieces) == 1:
        return pieces.pop()
    hashes = np.concatenate([piece[0] for piece in pieces])
    counts = np.concatenate([piece[1] for piece in pieces])
    pieces.clear()
    order = np.argsort(hashes, kind="stable")  # which merges ascending runs as it finds them
    hashes, counts = hashes[order], counts[order]
    del order
    first = np.ones(len(hashes), dtype=np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    return hashes[starts], np.add.reduceat(counts, starts, dtype=np.uint32)


def _union(one: _Counted, other: _Counted) -> _Counted:
    """Counts of both, added where both have a feature; new arrays unless one is empty.

    Range by range, so that what it needs is both and the result.
    """
    many, few = (one, other) if len(one[0]) >= len(other[0]) else (other, one)
    if not len(few[0]):
        return many
    hashes = np.empty(len(many[0]) + len(few[0]), dtype=np.uint64)
    counts = np.empty(len(hashes), dtype=np.uint32)
    cuts = np.arange(_RANGE_FEATURES, len(many[0]), _RANGE_FEATURES)
    cuts_many = [0, *cuts.tolist(), len(many[0])]
    cuts_few = [0, *np.searchsorted(few[0], many[0][cuts]).tolist(), len(few[0])]
    end = 0
    for place in range(len(cuts_many) - 1):
        in_many = slice(cuts_many[place], cuts_many[place + 1])
        in_few = slice(cuts_few[place], cuts_few[place + 1])
        end = _put_union(
            (many[0][in_many], many[1][in_many]), (few[0][in_few], few[1][in_few]),
            hashes, counts, end,
        )  # fmt: skip
    hashes.resize(end, refcheck=False)
    counts.resize(end, refcheck=False)
    return hashes, counts


def _put_union(many: _Counted, few: _Counted, hashes: U64, counts: U32, at: int) -> int:
    """Write the union of two parts from row `at` of the result; the row after it."""
    places = np.searchsorted(many[0], few[0])
    known = many[0][np.minimum(places, len(many[0]) - 1)] == few[0]
    fresh = np.flatnonzero(~known)
    end = at + len(many[0]) + len(fresh)
    # Row of a fresh feature: those of `many` before it, and the fresh ones before it.
    rows = places[fresh] + np.arange(len(fresh))
    old = np.ones(end - at, dtype=np.bool_)
    old[rows] = False
    hashes[at:end][old] = many[0]
    hashes[at:end][rows] = few[0][fresh]
    summed = many[1].copy()
    summed[places[known]] += few[1][known]
    counts[at:end][old] = summed
    counts[at:end][rows] = few[1][fresh]
    return end


def require_source(counted: DocumentFrequencies, source: str) -> None:
    """Raises RecipeMismatch unless the hashes counted are those of `source`."""
    if counted.source != source:
        raise RecipeMismatch(
            "these document frequencies belong to a recipe that makes other features of a text",
            remedy="count with the same unit, ngram, seed, tokenizer, stop_words and stemmer",
            found=counted.source, expected=source,
        )


def _checked(hashes: Any, counts: Any, documents: Any) -> _Counted:
    if not (is_int(documents) and documents >= 0):
        raise InvalidBatch(
            f"documents={documents!r} is not valid",
            remedy="give how many documents were counted", found=documents,
            expected="a whole number, 0 or more",
        )
    hashes, counts = np.asarray(hashes), np.asarray(counts)
    if hashes.dtype != np.uint64 or hashes.ndim != 1:
        raise InvalidBatch(
            f"hashes are {hashes.dtype} of shape {hashes.shape}",
            remedy="give uint64 (f,)", found=str(hashes.dtype), expected="uint64",
        )
    if counts.shape != hashes.shape or (len(counts) and counts.dtype.kind not in "iu"):
        raise InvalidBatch(
            f"counts are {counts.dtype} of shape {counts.shape}",
            remedy=f"give one whole number for each of the {len(hashes)} hashes",
            found=str(counts.dtype), expected="uint32",
        )
    bad = np.flatnonzero(hashes[1:] <= hashes[:-1])
    if len(bad):
        raise InvalidBatch(
            f"hash {bad[0] + 1} is not larger than the one before it",
            remedy="give distinct hashes in ascending order", row=int(bad[0]) + 1,
        )
    bad = np.flatnonzero((counts < 1) | (counts > documents))
    if len(bad):
        raise InvalidBatch(
            f"count {bad[0]} is {counts[bad[0]]}, of {documents} documents",
            remedy="give the number of documents that have the feature, without features that "
            "none has",
            row=int(bad[0]), found=int(counts[bad[0]]), expected=f"from 1 to {documents}",
        )
    return hashes.copy(), counts.astype(np.uint32)


def _require_countable(documents: int) -> None:
    if documents > recipe_bytes.MOST_DOCUMENTS:
        raise InvalidOption(
            f"{documents} documents are more than the limit of 2**32 - 1",
            remedy="learn idf from a sample", option="documents", found=documents,
            expected=recipe_bytes.MOST_DOCUMENTS,
        )
