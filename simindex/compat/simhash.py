"""The classes of the package simhash 2.1 of PyPI, with the same fingerprints.

    from simindex.compat.simhash import Simhash, SimhashIndex

    Simhash         the fingerprint of a text or of features, of f bits
    SimhashIndex    fingerprints under names; which of them are within k bits of one
    batch           the fingerprints of many texts at once, for an index of simindex

`Simhash` has `value`, `f` and `distance`; `SimhashIndex` has `get_near_dups`, `add` and `delete`.
Its inner parts (`bucket`, `bucket_size`, `offsets`, `get_keys`) are those of dictionaries, which
are not here.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Number
from types import TracebackType
from typing import Any, ClassVar, NoReturn

import numpy as np

from simindex.arrays import U8, U64
from simindex.checks import require_whole, whole
from simindex.compat.majority import of_texts, windows
from simindex.compat.named_rows import NamedRows
from simindex.errors import InvalidBatch, InvalidOption
from simindex.index.opening import open
from simindex.options import IndexOptions
from simindex.records.batch import Batch

LETTERS = r"[\w\u4e00-\u9fcc]+"
WIDTH = 4
"""Letters of a feature of a text."""

REPEATED = 50
"""Up to this whole weight a feature is repeated, so that a negative one leaves its bits alone."""

AT_ONCE = 200
"""Features and sums that are summed together. Sums of fractions depend on their order, so rows of
bits are added in that of the package."""


def md5(data: bytes) -> bytes:
    """The hash of features unless another one is given."""
    return hashlib.md5(data, usedforsecurity=False).digest()


class Simhash:
    """A fingerprint of `f` bits.

    Parameters
    ----------
    value : str, iterable, mapping, int or Simhash
        A text; features, each a str or a pair (feature, weight); weights by feature; the number
        itself; or another fingerprint.
    f : int
        Bits: a multiple of 8.
    reg : str or compiled pattern
        What counts of a text, in lower case. Every 4 characters of it that follow each other are a
        feature.
    hashfunc : callable
        Makes a number, or at least f / 8 bytes, of a feature in UTF-8. Default: MD5.
    log : any
        Not used; it is here for callers that give it.

    Raises
    ------
    InvalidOption
        If f is not a multiple of 8, or hashfunc gives something else.
    InvalidBatch
        If the value is none of these; names the first feature that is not of these types.

    Notes
    -----
    As in the package, a feature without a weight has that of the one before it, and a bit is 1 if
    the weights of the features that have it are more than half of all. No features give 0.
    """

    def __init__(
        self, value: Any, f: int = 64, reg: Any = LETTERS,
        hashfunc: Callable[[bytes], Any] = md5, log: Any = None,
    ) -> None:
        width = whole(f)
        if width is None or width % 8 or width <= 0:
            raise InvalidOption(
                f"f={f!r} is not a multiple of 8", remedy="give 64, or another multiple of 8",
                option="f", found=f, expected="a multiple of 8",
            )
        self.f: int = width
        self.reg: Any = reg
        self.hashfunc: Callable[[bytes], Any] = hashfunc
        if isinstance(value, Simhash):
            self.value: int = value.value
        elif isinstance(value, str):
            self.value = self._of(Counter(_features(value, reg)))
        elif isinstance(value, Iterable) and not isinstance(value, bytes):
            self.value = self._of(value)
        elif isinstance(value, Integral):
            self.value = int(value)
        else:
            raise InvalidBatch(
                f"no fingerprint is made of {type(value).__name__}",
                remedy="give a text, features, a number or a Simhash", found=type(value).__name__,
            )

    def _of(self, features: Any) -> int:
        given = features.items() if isinstance(features, Mapping) else features
        rows: list[Any] = []
        repeated: list[bytes] = []
        total: Any = 0
        weight: Any = 1
        for place, feature in enumerate(given):
            name, weight = _pair(place, feature, weight)
            total += weight
            digest = self._digest(name)
            if isinstance(weight, int) and (weight <= REPEATED or isinstance(feature, str)):
                repeated.append(digest * weight)
                if len(repeated) == AT_ONCE:
                    rows.append(self._ones(repeated))
                    repeated = []
            else:
                rows.append(_times(_bits(digest), weight))
            if len(rows) == AT_ONCE:
                rows = [np.sum(rows, 0)]
        if repeated:
            rows.append(self._ones(repeated))
        if not rows:
            return 0
        more = np.sum(rows, 0) > total / 2
        return int.from_bytes(np.packbits(more).tobytes(), "big")

    def _ones(self, digests: list[bytes]) -> Any:
        """In how many digests each bit is 1."""
        return np.sum(_bits(b"".join(digests)).reshape(-1, self.f), 0)

    def _digest(self, name: str) -> bytes:
        digest = self.hashfunc(name.encode())
        size = self.f // 8
        if isinstance(digest, Integral):
            return (int(digest) & ((1 << self.f) - 1)).to_bytes(size, "big")
        try:
            made = bytes(memoryview(digest))[-size:]
        except TypeError as error:
            raise InvalidOption(
                f"hashfunc gives {type(digest).__name__}, not bytes or a whole number",
                remedy="give one that returns bytes, such as that of a digest", option="hashfunc",
                found=type(digest).__name__, expected="bytes or int",
            ) from error
        if len(made) < size:
            raise InvalidOption(
                f"hashfunc gives {len(made)} bytes, and f={self.f} takes {size}",
                remedy="give another hashfunc, such as that of SHA-512, or a smaller f",
                option="hashfunc", found=len(made), expected=size,
            )
        return made

    def __eq__(self, other: object) -> bool:
        """Whether both numbers are equal."""
        return isinstance(other, Simhash) and self.value == other.value

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as in the package

    def __repr__(self) -> str:
        return f"Simhash({self.value:#x}, f={self.f})"

    def distance(self, another: Simhash) -> int:
        """In how many bits both differ. Raises InvalidOption if their f differ."""
        _require_f(another, self.f)
        return ((self.value ^ another.value) & ((1 << self.f) - 1)).bit_count()


def _bits(data: bytes) -> U8:
    return np.unpackbits(np.frombuffer(bytearray(data), np.uint8))


def _pair(place: int, feature: Any, earlier: Any) -> tuple[str, Any]:
    """A feature and its weight, which is that of the one before it where it has none."""
    if isinstance(feature, str):
        return feature, earlier
    try:
        name, weight = feature
        if isinstance(name, str) and isinstance(weight, Number):
            if isinstance(weight, np.integer) and weight.dtype.itemsize < 8:
                return name, np.int64(weight)  # whose sums do not pass what it can hold
            return name, weight
    except (TypeError, ValueError):
        pass
    raise InvalidBatch(
        f"feature {place} is neither a str nor a pair of a str and a number",
        remedy="give texts, pairs (feature, weight), or a dict of weights by feature",
        row=place, found=type(feature).__name__,
    )


def _times(bits: U8, weight: Any) -> Any:
    """A whole weight may be larger than a byte; all others decide themselves what they give."""
    return bits * (float(weight) if isinstance(weight, int) and weight > 255 else weight)


def batch(texts: Iterable[str], reg: Any = LETTERS, **names: Any) -> Batch:
    """The fingerprints of many texts at once, for an index: those of `Simhash(text, reg=reg)`.

    Parameters
    ----------
    texts : iterable of str
    reg : str or compiled pattern
        What counts of a text, as for `Simhash`.
    names
        `ids` or `keys` of the texts, and `threads`, as `Recipe.batch` takes them.

    Returns
    -------
    Batch
        A row for each text. As in the package, all texts without letters have one fingerprint.

    Raises
    ------
    InvalidBatch
        If a text is not a str, or has half of a surrogate pair.
    """
    return of_texts(texts, lambda text: _features(text, reg), _hash, **names)


def _hash(feature: bytes) -> int:
    return int.from_bytes(md5(feature)[-8:], "big")


def _features(text: str, reg: Any) -> list[str]:
    return windows("".join(re.findall(reg, text.lower())), WIDTH)


class SimhashIndex:
    """Fingerprints under names, in an index on disk.

    Parameters
    ----------
    objs : iterable of (name, Simhash)
    f : int
        Bits of all fingerprints.
    k : int
        In how many bits near-duplicates may differ.
    log : any
        Not used; it is here for callers that give it.
    path : str or Path, optional
        Where the index is, which lasts then, and is opened again if it is there. Default: a
        temporary folder, removed when the object is closed or dropped.

    Raises
    ------
    InvalidOption
        If f or k cannot be, or a fingerprint has another f.
    InvalidBatch
        If one of `objs` is no pair of a name and a Simhash. The last 4,096 before it at most are
        not stored.

    Notes
    -----
    Up to 4,096 additions and as many deletions wait in memory for a commit together, and
    `get_near_dups` counts them in. `close`, or leaving `with`, commits them to a lasting index. It
    has no pickle and no copy: to use it in another process, give it a path, close it, and open the
    path there.
    """

    def __init__(
        self, objs: Iterable[tuple[Any, Simhash]], f: int = 64, k: int = 2, log: Any = None,
        *, path: Any = None,
    ) -> None:
        self.f: int = require_whole(f, "f", 8, 4096)
        self.k: int = require_whole(k, "k", 0, self.f)
        bits = -(-self.f // 64) * 64
        folder = None if path is not None else tempfile.TemporaryDirectory(prefix="simindex-")
        where = path if folder is None else f"{folder.name}/index"
        index = open(where, "c", options=IndexOptions(bits=bits, keys="str"))
        self._rows = NamedRows(index, bits // 64, folder)
        self._finished = weakref.finalize(self, self._rows.finish)
        try:
            for place, given in enumerate(objs):
                self.add(*_named(place, given))
        except BaseException:
            self._rows.forget()
            self.close()
            raise

    def get_near_dups(self, simhash: Simhash) -> list[str]:
        """The names of fingerprints within k bits, each once, the nearest first.

        Raises InvalidOption if it has another f.
        """
        row = self._row(simhash)
        near: dict[str, int] = {}
        for name, distance in self._rows.near(row, self.k):
            near[name] = min(distance, near.get(name, self.f))
        return sorted(near, key=lambda name: (near[name], name))

    def add(self, obj_id: Any, simhash: Simhash) -> None:
        """Adds a fingerprint under a name.

        Raises InvalidOption if it has another f, InvalidBatch if it is no fingerprint or the name
        cannot be a key, and ClosedIndex after `close`.
        """
        self._rows.add(str(obj_id), self._row(simhash))

    def delete(self, obj_id: Any, simhash: Simhash) -> None:
        """Deletes a fingerprint of a name, if it is there; others of the name stay."""
        self._rows.delete(str(obj_id), self._row(simhash))

    def close(self) -> None:
        """Commits what was added, and closes the index; a temporary one is removed.

        Raises StorageFull or StorageFailed if the system refused the commit. Nothing is lost then:
        the index stays open, so call again once there is space.
        """
        self._rows.finish()
        self._finished.detach()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SimhashIndex is on disk and cannot be pickled or copied: give it a path, close it, "
            "and open that path where you need it"
        )

    def __enter__(self) -> SimhashIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _row(self, simhash: Simhash) -> U64:
        _require_f(simhash, self.f)
        value = simhash.value & ((1 << self.f) - 1)
        data = value.to_bytes(8 * self._rows.words, "big")
        return np.frombuffer(data, ">u8").astype(np.uint64)[None, :]


def _named(place: int, given: Any) -> tuple[Any, Any]:
    """A name and its fingerprint, as they come in a list."""
    try:
        name, fingerprint = given
    except (TypeError, ValueError):
        raise InvalidBatch(
            f"entry {place} is no pair of a name and a Simhash", remedy="give (name, Simhash(...))",
            row=place, found=type(given).__name__,
        ) from None
    return name, fingerprint


def _require_f(simhash: Simhash, f: int) -> None:
    if not (hasattr(simhash, "f") and hasattr(simhash, "value")):
        raise InvalidBatch(
            f"{type(simhash).__name__} is no fingerprint", remedy="give a Simhash",
            found=type(simhash).__name__,
        )
    if simhash.f != f:
        raise InvalidOption(
            f"one fingerprint has f={simhash.f}, the other f={f}",
            remedy="make both with the same f", option="f", found=simhash.f, expected=f,
        )
