"""From text to the features that a fingerprint is summed over.

    text   "Ein   Straßen-Fest, 漢字の"     str, or bytes in UTF-8
    folded "ein   strassen-fest, 漢字の"    str.casefold
    units
      word ein strassen fest 漢字 字の      matches of \\\\w+; scripts without spaces in pairs
      char e i n ␣ s t r ...               code points; white space made one space
    feature (word, n = 2)                  n units in a row: "ein strassen", "strassen fest", ...
    feature hash                           first 64 bits of MurmurHash3 x64-128 of its UTF-8

All of it happens in `_kernels`, document by document; this module says what is asked of it, and
hands over texts in portions.

Invariants
    1. What a word is and how letters are folded comes from the kernels' tables, never from the
       running Python; UNICODE names their versions.
    2. What the tables and the rule of pairs decide is numbered TOKENIZER; another decision needs
       another number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.errors import InvalidBatch
from simindex.records.dataframe_columns import is_null
from simindex.values import dataclass

Unit = Literal["word", "char"]
UNITS: tuple[Unit, ...] = ("word", "char")
"""Kinds of unit, by the number the kernels know them by."""

MOST_NGRAM: dict[str, int] = {"word": 5, "char": 16}
"""Largest n-gram by unit."""

TOKENIZER = 1
"""Version of how a text becomes units; stored with every recipe."""

UNICODE = "words 18.0.0, folding 15.1.0"
"""Its Unicode versions, as recipes store them."""

THREADED_TEXTS = 256
"""Fewer texts than these are not split over threads unless asked."""

PORTION_TEXTS = 1 << 14
"""Texts of an iterator that are taken at once, ..."""
PORTION_CHARACTERS = 1 << 25
"""... unless they have more characters, the last text not counted."""
COUNTED_CHARACTERS = 1 << 22
"""The same where all features of a portion are held: lists are taken in portions, too."""
SPLIT_CHARACTERS = 1 << 20
"""The same where all words of a portion are held."""


@dataclass(frozen=True, slots=True)
class Column:
    """Texts in UTF-8, one after the other: text i is data[offsets[i]:offsets[i + 1]]."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, start: int, stop: int) -> Column:
        """Texts start to stop."""
        return Column(self.data, self.offsets[start : stop + 1])

    def parts(self, most: int) -> Iterator[Column]:
        """The column in parts of `most` bytes, the last text of each not counted."""
        start = 0
        while start < len(self):
            past = int(np.searchsorted(self.offsets, self.offsets[start] + most))
            stop = min(len(self), max(start + 1, past))
            yield Column(self.data, self.offsets[start : stop + 1])
            start = stop

    def listed(self) -> list[bytes]:
        """The texts as objects."""
        first = int(self.offsets[0])
        data = self.data[first : int(self.offsets[-1])].tobytes()
        return [data[start:end] for start, end in pairwise((self.offsets - first).tolist())]

    def text(self, at: int) -> bytes:
        """One of them."""
        found: bytes = self.data[self.offsets[at] : self.offsets[at + 1]].tobytes()
        return found

    @property
    def nbytes(self) -> int:
        """What the texts take in memory, and where they are."""
        return int(self.offsets[-1] - self.offsets[0]) + self.offsets.nbytes

    @property
    def characters(self) -> int:
        """Of all texts together."""
        return int(_native.characters(self.data, self.offsets).sum())

    @property
    def ends(self) -> NDArray[np.uint64]:
        """Of each text a hash of its length and both of its ends, as `text_ends` of the kernel."""
        return _native.text_ends(self.data, self.offsets)

    def copied(self) -> Column:
        """The same texts alone: a part holds all of the column that it was taken from."""
        first, end = self.offsets[0], self.offsets[-1]
        return Column(self.data[first:end].copy(), self.offsets - first)


Portion = list[Any] | Column


@dataclass(frozen=True, slots=True)
class Parts:
    """Texts that come in parts, each of them a list or an Arrow column."""

    parts: Iterable[Any]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)


def portions(texts: Iterable[Any], most: int | None = None) -> Iterator[Portion]:
    """The texts in their order: a list or column as it is, one of Arrow by chunks, else lists.

    With `most`, all of them in portions of so many characters, the last text not counted.

    Raises
    ------
    InvalidBatch
        If `texts` is itself a text, a mapping or no iterable, or an Arrow column that holds no text
        or a null.
    """
    if isinstance(texts, Column):
        yield from (texts,) if most is None else texts.parts(most)
        return
    if isinstance(texts, Mapping):
        raise InvalidBatch(
            f"texts is a {type(texts).__name__}, whose keys would be taken for the texts",
            remedy="give its values, list(texts.values())", found=type(texts).__name__,
            expected="iterable of str or bytes",
        )
    flat = isinstance(texts, np.ndarray) and texts.ndim == 0
    if isinstance(texts, (str, bytes)) or flat or not isinstance(texts, Iterable):
        kind = type(texts).__name__
        raise InvalidBatch(
            f"texts is a single {kind}",
            remedy="give a list of texts, [text]", found=kind, expected="iterable of str or bytes",
        )
    if isinstance(texts, Parts):
        for part in texts:
            yield from portions(part, most)
        return
    columns = columns_of(texts)
    if columns is not None:
        for column in columns:
            yield from (column,) if most is None else column.parts(most)
    elif isinstance(texts, (list, tuple)) and most is None:
        yield list(texts)
    else:
        rest = iter(texts)
        while portion := _some(rest, most or PORTION_CHARACTERS):
            yield portion


def _some(texts: Iterator[Any], most: int) -> list[Any]:
    taken: list[Any] = []
    characters = 0
    for text in islice(texts, PORTION_TEXTS):
        taken.append(text)
        characters += len(text) if isinstance(text, (str, bytes)) else 0
        if characters >= most:
            break
    return taken


def columns_of(texts: Any) -> Iterator[Column] | None:
    """The chunks of an Arrow column, without copying its texts; None if it is none."""
    if not (hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")):
        return None
    try:
        import pyarrow
    except ImportError:
        return None  # it can be iterated over as well, only slower
    try:
        if isinstance(texts, pyarrow.ChunkedArray):
            chunks = texts.chunks
        elif hasattr(texts, "__arrow_c_stream__"):
            chunks = pyarrow.chunked_array(texts).chunks
        else:
            chunks = [pyarrow.array(texts)]
    except pyarrow.ArrowException:
        return None  # of objects that are not alike: the first that is no text is told
    return _columns(pyarrow, chunks)


def _columns(pyarrow: Any, chunks: list[Any]) -> Iterator[Column]:
    position = 0
    for chunk in chunks:
        stored_as = chunk.type
        chunk = _plain(pyarrow, chunk)
        kind = chunk.type
        if not len(chunk) and pyarrow.types.is_null(kind):  # of objects, of which there are none
            continue
        if kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
            stored = chunk.cast(pyarrow.large_string())
        elif kind in (pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()):
            stored = chunk.cast(pyarrow.large_binary())
        else:
            raise InvalidBatch(
                f"the Arrow column has type {stored_as}, not text",
                remedy="cast it to string", found=str(stored_as), expected="string",
            )
        if stored.null_count:
            null = position + int(np.argmax(stored.is_null().to_numpy(zero_copy_only=False)))
            raise _null(null)
        _, offsets, data = stored.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64) if offsets else np.zeros(1, dtype=np.int64)
        yield Column(
            np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8),
            np.ascontiguousarray(ends[stored.offset : stored.offset + len(stored) + 1]),
        )
        position += len(stored)


def _plain(pyarrow: Any, chunk: Any) -> Any:
    """A column with a text in each row, of one that stores repeated texts once."""
    types = pyarrow.types
    if types.is_run_end_encoded(chunk.type):
        from pyarrow import compute

        chunk = compute.run_end_decode(chunk)
    if types.is_dictionary(chunk.type):
        texts = chunk.dictionary
        if types.is_string_view(texts.type):  # of which no text can be taken by its place
            texts = texts.cast(pyarrow.large_string())
        chunk = pyarrow.DictionaryArray.from_arrays(chunk.indices, texts).dictionary_decode()
    return chunk


def _null(position: int) -> InvalidBatch:
    return InvalidBatch(
        f"text {position} is null", remedy='fill nulls with "", or remove these rows',
        position=position,
    )


def refuse_invalid(invalid: tuple[int, int], first: int) -> None:
    """Raises InvalidBatch if a kernel found bytes that are not UTF-8: (text, byte), or (-1, -1)."""
    position, offset = invalid
    if position >= 0:
        raise InvalidBatch(
            f"text {first + position} is not UTF-8 at byte {offset}",
            remedy='decode it first, for example with errors="replace"', position=first + position,
            offset=offset,
        )


def refuse_untext(portion: list[Any], first: int) -> None:
    """Raises InvalidBatch for the first item that is neither str nor bytes."""
    for position, text in enumerate(portion, first):
        if text is not None and is_null(text):
            raise _null(position)
        if not isinstance(text, (str, bytes)):
            raise InvalidBatch(
                f"text {position} is {type(text).__name__}, not str or bytes",
                position=position, found=type(text).__name__, expected="str or bytes",
            )
