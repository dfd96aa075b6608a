"""From text to the features that a fingerprint is summed over.

    text   "Ein   Straßen-Fest!"      str, or bytes in UTF-8
    folded "ein   strassen-fest!"     str.casefold
    prepared
      word "ein strassen fest"        words (`\\\\w+`), separated by one space
      char "ein strassen-fest!"       whitespace runs become one space, none at the ends
    feature (word, n = 2)             a slice of the prepared bytes: "ein strassen", "strassen fest"
    feature hash                      first 64 bits of MurmurHash3 x64-128 of the slice

A prepared text is UTF-8; a lone surrogate in a `str` keeps the three bytes that "surrogatepass"
gives it. Preparing happens here, slicing, hashing and counting in `_kernels`.

Invariants
    1. Which code points make a word comes from `_word_ranges`, never from the running Python.
    2. Code points are prepared independently of their neighbours but for runs of separators, so a
       long text can be prepared in pieces.
    3. What 1 and `prepare` decide is numbered TOKENIZER; another decision needs another number.

`str.casefold` is the running Python's: it is stable for every code point once assigned, so only
letters that Unicode added after a Python's release can be folded by a newer one and not by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.errors import InvalidBatch
from simindex.simhash._word_ranges import WORD_RANGES

Unit = Literal["word", "char"]
UNITS: tuple[Unit, ...] = ("word", "char")
"""Kinds of unit, by the number the kernel knows them by."""

TOKENIZER = 1
"""Version of how a text becomes units; stored with every recipe."""

SLICE_BYTES = 4 << 20
"""Prepared text handed to one kernel call, unless a single text is longer."""
SLICE_TEXTS = 1 << 14
"""Most texts handed to one kernel call: 4 MB of weights at 64 bits."""

_PIECE = 1 << 20  # code points prepared at once: a long text costs 16 MB beside itself
_CODE_POINTS = 0x110000
_SPACE = 0x20

# What str.isspace holds for, in every Python this runs on; fixed here by invariant 1.
_WHITESPACE = (
    *range(0x9, 0xE), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
)  # fmt: skip

_ASCII_WORDS = bytes(
    code if chr(code).isalnum() or code == ord("_") else _SPACE for code in range(128)
).lower() + bytes(128)


@cache
def _kept(unit: Unit) -> NDArray[np.bool_]:
    """Whether each code point is kept (else it separates): bool (0x110000,), 1.1 MB."""
    if unit == "char":
        kept = np.ones(_CODE_POINTS, dtype=np.bool_)
        kept[list(_WHITESPACE)] = False
        return kept
    kept = np.zeros(_CODE_POINTS, dtype=np.bool_)
    for span in "".join(WORD_RANGES).split():
        first, last = span.split("-")
        kept[int(first, 16) : int(last, 16) + 1] = True
    return kept


def prepare(text: str, unit: Unit) -> bytes:
    """The text as the kernel reads it: folded, units separated by single spaces, in UTF-8.

    Empty when the text has no unit. O(len(text)); about 10 us per 2,000 letters.
    """
    if len(text) <= _PIECE and text.isascii():
        if unit == "word":
            return b" ".join(text.encode("ascii").translate(_ASCII_WORDS).split())
        return " ".join(text.lower().split()).encode("ascii")
    kept = _kept(unit)
    pieces: list[bytes] = []
    separate = False  # whether the code point before this piece was kept
    for start in range(0, len(text), _PIECE):
        folded = text[start : start + _PIECE].casefold().encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(folded, dtype="<u4")
        unit_part = kept[codes]
        # Of a run of separators only the first stays, and only after something kept.
        shown = unit_part.copy()
        shown[1:] |= unit_part[:-1]
        shown[0] |= separate
        shown_codes = np.where(unit_part, codes, np.uint32(_SPACE))[shown].astype("<u4")
        pieces.append(
            shown_codes.tobytes()
            .decode("utf-32-le", "surrogatepass")
            .encode("utf-8", "surrogatepass")
        )
        separate = bool(unit_part[-1])
    return b"".join(pieces).removesuffix(b" ")


@dataclass(frozen=True, slots=True)
class PreparedTexts:
    """Some prepared texts: text i is data[offsets[i]:offsets[i + 1]]."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def prepared_slices(texts: Iterable[Any], unit: Unit) -> Iterator[PreparedTexts]:
    """The texts prepared, in their order, in slices of bounded size.

    Raises
    ------
    InvalidBatch
        If `texts` is itself a text, or one of them is neither str nor bytes, or its bytes are not
        UTF-8; carries its position.
    """
    if isinstance(texts, (str, bytes)):
        raise InvalidBatch(
            f"texts is a single {type(texts).__name__}: give a list of texts, [text]",
            found=type(texts).__name__, expected="iterable of str or bytes",
        )
    if not isinstance(texts, Iterable):
        raise InvalidBatch(
            f"texts must be an iterable of str or bytes, not {type(texts).__name__}",
            found=type(texts).__name__, expected="iterable of str or bytes",
        )
    pending: list[bytes] = []
    size = 0
    for position, text in enumerate(texts):
        prepared = prepare(_decoded(text, position), unit)
        if pending and (size + len(prepared) > SLICE_BYTES or len(pending) == SLICE_TEXTS):
            yield _joined(pending)
            pending, size = [], 0
        pending.append(prepared)
        size += len(prepared)
    if pending:
        yield _joined(pending)


def _decoded(text: Any, position: int) -> str:
    if isinstance(text, str):
        return text
    if not isinstance(text, bytes):
        raise InvalidBatch(
            f"text {position} is {type(text).__name__}, not str or bytes",
            position=position, found=type(text).__name__, expected="str or bytes",
        )
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidBatch(
            f"text {position} is not UTF-8 at byte {error.start}: decode it before, for example "
            'with errors="replace"',
            position=position, offset=error.start,
        ) from error


def _joined(prepared: list[bytes]) -> PreparedTexts:
    offsets = np.zeros(len(prepared) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in prepared], out=offsets[1:])
    return PreparedTexts(np.frombuffer(b"".join(prepared), dtype=np.uint8), offsets)


def document_features(
    texts: PreparedTexts, unit: Unit, sizes: tuple[int, ...], seed: int
) -> NDArray[np.uint64]:
    """Hashes of the distinct features of each text, one text after the other."""
    hashes, _, _ = _native.features(
        texts.data, texts.offsets, UNITS.index(unit), np.array(sizes, dtype=np.uint8), seed
    )
    return hashes
