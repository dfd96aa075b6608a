"""A recipe, and document frequencies, as bytes: how indexes, files and other processes get them.

    | magic | version | header length | header (msgpack) | hashes | numbers | digest |
      8 B     u32       u32             plain values       u64 f    u32 f     16 B

Integers are little-endian; the digest is BLAKE2b-128 of everything before it. Of a recipe, hashes
and numbers are the hashes and steps of its `weighting.IdfTable`, absent when nothing was learned;
of document frequencies, the hashes and counts. The layouts are frozen: see VERSION.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

import msgpack
import numpy as np

from simindex.arrays import U32, U64
from simindex.bits.digests import blake2b
from simindex.checks import is_int
from simindex.errors import CorruptFile, FormatTooNew, InvalidBatch, what_happened
from simindex.simhash.features import TOKENIZER
from simindex.simhash.weighting import STEPS_PER_UNIT, IdfTable

VERSION = 1
MOST_HEADER_BYTES = 1 << 20
MOST_DOCUMENTS = (1 << 32) - 1
"""Documents that frequencies may count: a count is a uint32."""

_PREFIX = Struct("<8sII")
_DIGEST_BYTES = 16
_MOST_LEARNED = 1 << 48


class _Kind(NamedTuple):
    """What bytes may hold, and how errors name it."""

    magic: bytes
    most_header_bytes: int
    name: str
    cut_off: str
    has: str
    damaged: str
    header: str


RECIPE = _Kind(
    b"SIMRECIP", MOST_HEADER_BYTES, "a recipe", "a recipe of {} bytes is cut off", "the recipe has",
    "the recipe's checksum does not match its bytes", "the recipe's header",
)
FREQUENCIES = _Kind(
    b"SIMDOCFR", 4096, "document frequencies", "document frequencies of {} bytes are cut off",
    "the document frequencies have",
    "the checksum of the document frequencies does not match their bytes",
    "the header of the document frequencies",
)


def packed(values: dict[str, Any], idf: IdfTable | None) -> bytes:
    """The bytes of a recipe: header values and the learned table."""
    header = packed_header(values, idf)
    return _sealed(RECIPE, header, *(() if idf is None else (idf.hashes, idf.steps)))


def packed_frequencies(values: dict[str, Any], hashes: U64, counts: U32) -> bytes:
    """The bytes of document frequencies: header values and the table."""
    return _sealed(FREQUENCIES, msgpack.packb(values), hashes, counts)


def packed_header(values: dict[str, Any], idf: IdfTable | None) -> bytes:
    """The header of a recipe alone; it must not pass MOST_HEADER_BYTES."""
    header: bytes = msgpack.packb({**values, "unseen": unseen(idf)})
    return header


def features_source(values: dict[str, Any]) -> str:
    """Digest of the header values that determine the features of a text and their hashes."""
    deciding = ("unit", "ngram", "seed", "tokenizer", "unicode", "stop_words", "stemmer")
    return digest_of([values.get(name) for name in deciding])


def unseen(idf: IdfTable | None) -> int | None:
    """The step of a feature that no document had; None where nothing was learned."""
    return None if idf is None else idf.unseen


def _sealed(kind: _Kind, header: bytes, *arrays: U64 | U32) -> bytes:
    little_endian = [array.astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays]
    parts = [_PREFIX.pack(kind.magic, VERSION, len(header)), header, *little_endian]
    made = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        made.update(part)
    return b"".join([*parts, made.digest()])


def _opened(kind: _Kind, content: object) -> tuple[bytes, memoryview]:
    """Header and arrays of bytes whose digest is right."""
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise InvalidBatch(
            f"a {type(content).__name__} is not the bytes that to_bytes returns",
            remedy="give bytes", found=type(content).__name__, expected="bytes",
        )
    content = bytes(content)
    end = len(content) - _DIGEST_BYTES
    if end < _PREFIX.size:
        raise CorruptFile(kind.cut_off.format(len(content)), found=len(content))
    magic, version, header_bytes = _PREFIX.unpack_from(content)
    if magic != kind.magic:
        raise CorruptFile(f"these bytes are not {kind.name}", found=magic, expected=kind.magic)
    if version > VERSION:
        raise FormatTooNew(
            f"{kind.has} format {version}, this version of simindex reads {VERSION}",
            remedy="install a newer simindex", found=version, expected=VERSION,
        )
    whole = memoryview(content)
    if blake2b(whole[:end], digest_size=_DIGEST_BYTES).digest() != content[end:]:
        raise CorruptFile(kind.damaged)
    start = _PREFIX.size + header_bytes
    if version < 1 or header_bytes > kind.most_header_bytes or start > end:
        raise CorruptFile(f"the size of {kind.header} is wrong", found=header_bytes)
    return content[_PREFIX.size : start], whole[start:end]


def _table(arrays: memoryview, features: int) -> tuple[U64, U32]:
    hashes = np.frombuffer(arrays, dtype="<u8", count=features).astype(np.uint64)
    numbers = np.frombuffer(arrays, dtype="<u4", count=features, offset=8 * features)
    return hashes, numbers.astype(np.uint32)


def unpacked(content: object) -> tuple[dict[str, Any], IdfTable | None]:
    """Header values of a recipe and its table; whether the values fit is not checked.

    Raises CorruptFile and FormatTooNew as `Recipe.from_bytes`, InvalidBatch for what is not bytes.
    """
    header, arrays = _opened(RECIPE, content)
    try:
        values = msgpack.unpackb(header)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptFile("the recipe's header cannot be decoded") from error
    if not isinstance(values, dict):
        raise CorruptFile("the recipe's header is not a map", found=type(values).__name__)
    tokenizer = values.get("tokenizer")
    if isinstance(tokenizer, int) and tokenizer > TOKENIZER:
        raise FormatTooNew(
            f"the recipe splits texts with tokenizer {tokenizer}, this version of simindex has "
            f"{TOKENIZER}",
            remedy="install a newer simindex", found=tokenizer, expected=TOKENIZER,
        )
    try:
        documents, features, unseen = (values[name] for name in ("documents", "features", "unseen"))
        source = features_source(values)
    except (KeyError, ValueError) as error:  # or nested too deep to be told apart
        raise CorruptFile(f"the recipe's header is not valid: {error}") from error
    if documents is None and features is None and unseen is None and not arrays:
        return values, None
    if not (
        is_int(documents) and 1 <= documents <= _MOST_LEARNED
        and is_int(features) and features >= 0 and len(arrays) == 12 * features
        and is_int(unseen) and STEPS_PER_UNIT <= unseen < 1 << 18
    ):  # fmt: skip
        raise CorruptFile("the recipe's idf table does not fit its header", found=len(arrays))
    hashes, steps = _table(arrays, features)
    ascending = bool((hashes[1:] > hashes[:-1]).all())
    if not ascending or bool(((steps < STEPS_PER_UNIT) | (steps > unseen)).any()):
        raise CorruptFile("the recipe's idf table is out of order or out of range")
    return values, IdfTable(documents, hashes, steps, unseen, source)


def unpacked_frequencies(content: object) -> tuple[dict[str, Any], U64, U32]:
    """Header values, hashes and counts, which fit each other; `max_features` is not checked.

    Raises CorruptFile and FormatTooNew as `DocumentFrequencies.from_bytes`, InvalidBatch for what
    is not bytes.
    """
    header, arrays = _opened(FREQUENCIES, content)
    try:
        values = msgpack.unpackb(header)
        source, most_features = values["source"], values["max_features"]
        numbers = (values["features"], values["documents"], values["forgotten"])
    except (KeyError, TypeError, ValueError, msgpack.UnpackException) as error:
        raise invalid_frequencies(error) from error
    if not (
        isinstance(source, str) and is_int(most_features)
        and all(is_int(number) and 0 <= number <= MOST_DOCUMENTS for number in numbers)
        and numbers[0] <= most_features and len(arrays) == 12 * numbers[0]
    ):  # fmt: skip
        raise CorruptFile(f"{FREQUENCIES.header} does not describe their content", found=values)
    features, documents, forgotten = numbers
    hashes, counts = _table(arrays, features)
    most = documents - forgotten
    if (
        most < 0 or bool((hashes[1:] <= hashes[:-1]).any())
        or bool(((counts < 1) | (counts > most)).any())
    ):  # fmt: skip
        raise CorruptFile("document frequencies are out of order or out of range")
    return values, hashes, counts


def invalid_frequencies(error: Exception) -> CorruptFile:
    """Of a header whose values are none of document frequencies."""
    return CorruptFile(f"{FREQUENCIES.header} is not valid: {what_happened(error)}")


def options(values: dict[str, Any]) -> dict[str, Any]:
    """What a recipe is made of again but its table; KeyError or TypeError if they do not fit."""
    names = ("bits", "unit", "ngram", "weighting", "seed", "min_features", "projection",
             "tokenizer", "stop_words", "stemmer", "h")  # fmt: skip
    given = {name: values[name] for name in names}
    given["sketch_bits"] = values.get("sketch_bits", 0)
    if isinstance(given["ngram"], list):
        given["ngram"] = tuple(given["ngram"])
    if not isinstance(given["stop_words"], list):
        raise TypeError("stop words are a list")
    given["stop_words"] = tuple(given["stop_words"])
    return given


def digest_of(values: list[Any]) -> str:
    """Hexadecimal BLAKE2b-128 of plain values."""
    return blake2b(msgpack.packb(values), digest_size=_DIGEST_BYTES).hexdigest()
