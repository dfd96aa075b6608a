"""A recipe as bytes: how indexes store it.

    | magic | version | header length | header (msgpack) | hashes | idf steps | digest |
      8 B     u32       u32             plain values       u64 f    u32 f       16 B

Numbers are little-endian; hashes and idf steps are those of `idf.IdfTable`, absent when nothing was
learned; the digest is BLAKE2b-128 of everything before it. The layout is frozen: see VERSION.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Any

import msgpack
import numpy as np

from simindex.checks import is_int
from simindex.errors import CorruptFile, FormatTooNew, InvalidBatch
from simindex.simhash.features import TOKENIZER
from simindex.simhash.idf import IdfTable
from simindex.simhash.weighting import STEPS_PER_UNIT

MAGIC = b"SIMRECIP"
VERSION = 1
MOST_HEADER_BYTES = 1 << 20
_PREFIX = Struct("<8sII")
_DIGEST_BYTES = 16
_MOST_DOCUMENTS = 1 << 48


def packed(values: dict[str, Any], idf: IdfTable | None) -> bytes:
    """Header values and the learned table as bytes."""
    header = packed_header(values, idf)
    content = _PREFIX.pack(MAGIC, VERSION, len(header)) + header
    if idf is not None:
        content += idf.hashes.astype("<u8").tobytes()
        content += idf.steps.astype("<u4").tobytes()
    return content + digest(content)


def packed_header(values: dict[str, Any], idf: IdfTable | None) -> bytes:
    """The header alone; it must not pass MOST_HEADER_BYTES."""
    header: bytes = msgpack.packb({**values, "unseen": idf and idf.unseen})
    return header


def unpacked(content: bytes) -> tuple[dict[str, Any], IdfTable | None]:
    """Header values as written and learned table; whether the values fit is not checked.

    Raises
    ------
    CorruptFile
        If the bytes are not what was written.
    FormatTooNew
        If a newer version wrote them, or the recipe splits texts in a newer way.
    """
    if len(content) < _PREFIX.size + _DIGEST_BYTES:
        raise CorruptFile(f"a recipe of {len(content)} bytes is cut off", found=len(content))
    magic, version, header_bytes = _PREFIX.unpack_from(content)
    if magic != MAGIC:
        raise CorruptFile("these bytes are no recipe", found=magic, expected=MAGIC)
    if version > VERSION:
        raise FormatTooNew(
            f"the recipe has format {version}, this version reads {VERSION}: install a newer one",
            found=version, expected=VERSION,
        )
    if digest(content[:-_DIGEST_BYTES]) != content[-_DIGEST_BYTES:]:
        raise CorruptFile("the recipe's checksum does not match its bytes")
    body = _PREFIX.size + header_bytes
    if version < 1 or header_bytes > MOST_HEADER_BYTES or body > len(content) - _DIGEST_BYTES:
        raise CorruptFile("the recipe's header does not fit", found=header_bytes)
    values = _header(content[_PREFIX.size : body])
    tokenizer = values.get("tokenizer")
    if isinstance(tokenizer, int) and tokenizer > TOKENIZER:
        raise FormatTooNew(
            f"the recipe splits texts by tokenizer {tokenizer}, this version knows {TOKENIZER}: "
            "install a newer one",
            found=tokenizer, expected=TOKENIZER,
        )
    try:
        return values, _table(values, content[body:-_DIGEST_BYTES])
    except (KeyError, TypeError) as error:
        raise CorruptFile(f"the recipe's header is not valid: {error}") from error


def _header(header: bytes) -> dict[str, Any]:
    try:
        values = msgpack.unpackb(header)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptFile("the recipe's header cannot be decoded") from error
    if not isinstance(values, dict):
        raise CorruptFile("the recipe's header is no map", found=type(values).__name__)
    return values


def _table(values: dict[str, Any], arrays: bytes) -> IdfTable | None:
    documents, features, unseen = (values[name] for name in ("documents", "features", "unseen"))
    if documents is None and features is None and unseen is None and not arrays:
        return None
    if not (
        is_int(documents) and 1 <= documents <= _MOST_DOCUMENTS
        and is_int(features) and features >= 0 and len(arrays) == 12 * features
        and is_int(unseen) and STEPS_PER_UNIT <= unseen < 1 << 18
    ):  # fmt: skip
        raise CorruptFile("the recipe's idf table does not fit its header", found=len(arrays))
    hashes = np.frombuffer(arrays, dtype="<u8", count=features).astype(np.uint64)
    steps = np.frombuffer(arrays, dtype="<u4", offset=8 * features).astype(np.uint32)
    ascending = bool((hashes[1:] > hashes[:-1]).all())
    if not ascending or bool(((steps < STEPS_PER_UNIT) | (steps > unseen)).any()):
        raise CorruptFile("the recipe's idf table is out of order or out of range")
    return IdfTable(documents, hashes, steps, unseen)


def options(values: dict[str, Any]) -> dict[str, Any]:
    """What a recipe is made of again but its table; KeyError or TypeError if they do not fit."""
    names = ("bits", "unit", "ngram", "weighting", "seed", "min_features", "projection",
             "tokenizer", "stop_words", "stemmer")  # fmt: skip
    given = {name: values[name] for name in names}
    if isinstance(given["ngram"], list):
        given["ngram"] = tuple(given["ngram"])
    if not isinstance(given["stop_words"], list):
        raise TypeError("stop words are a list")
    given["stop_words"] = tuple(given["stop_words"])
    return given


def as_content(content: object) -> bytes:
    """What is to be read, as bytes; InvalidBatch if it is anything else."""
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise InvalidBatch(
            f"a {type(content).__name__} is not what to_bytes gave: give bytes",
            found=type(content).__name__, expected="bytes",
        )
    return bytes(content)


def digest(content: bytes) -> bytes:
    """BLAKE2b-128."""
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()
