"""What an index is told when it is created, checked once and stored with it."""

from __future__ import annotations

import re
from dataclasses import field, fields
from typing import Any, Literal

from simindex.checks import is_int, plain_truth, require, whole
from simindex.errors import InvalidOption
from simindex.values import dataclass

MAX_BITS = 4096
"""Widest fingerprint, in bits."""

MAX_KEY_BYTES = 65_535
"""Longest key, in bytes of UTF-8."""

AUDITED_ROWS, AUDITED_RECALL = 1000, 0.95
"""Of an audit, unless the caller says otherwise: rows to look up, and recall of the queries."""

SORTED_TABLE, PERMUTED_TABLES, SLICE_LISTS = "psm", "bphs", "issl"
"""What structures are called, and the methods that search them; the last two also begin the names
of designs."""

_STRUCTURE = re.compile(
    r"psm|bphs:(?:G=[1-9]\d{0,3},g=[1-9]\d{0,3}|nested=[1-9]\d{0,3}x[1-9]\d{0,3})"
    r"(?:,r=[1-9]\d{0,3})?|issl(?::w=(?:8|16))?",
    re.ASCII,
)
_STRUCTURE_FORMS = (
    '"psm", block designs such as "bphs:G=5,g=2" or "bphs:nested=4x4,r=1", and one of "issl", '
    '"issl:w=8" and "issl:w=16"'
)

MAX_STRUCTURES = 16
"""Most structures of an index."""

DEFAULT_STRUCTURES = (SORTED_TABLE, f"{PERMUTED_TABLES}:G=4,g=1,r=2")
"""Of 64-bit fingerprints, if no others are given."""

WIDE_STRUCTURES = (SORTED_TABLE,)
"""Of wider ones."""

LEAST_SLICE_MEMORY = 1 << 24
"""Least bytes for building slice lists. They could be built in less, in the more parts."""

KeyKind = Literal["str", "bytes"]

SECRET_BYTES = 16
"""Of the secret that keys are hashed with."""

MAX_PENDING_ROWS = 1 << 16
"""More rows cost less as a segment than to write them into the catalog and to take them out again:
17 ms for 100,000 rows of 64 bits with three tables, instead of 12 and later 16."""

_NUMBERS = ("bits", "batch_rows", "min_merge", "reservoir_rows", "slice_memory", "sketch_bits")


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How an index stores its rows. All options except `structures` are fixed at creation.

    Parameters
    ----------
    bits : int
        Width b of a fingerprint: a multiple of 64, at most 4096.
    structures : tuple of str
        What each segment contains in addition to its rows. ``"psm"`` is the sorted table with its
        header directory, which every segment has. A block design such as ``"bphs:G=4,g=1"`` adds
        permuted tables, which make exact queries fast. The default of 64-bit fingerprints is
        ``"bphs:G=4,g=1,r=2"``: four tables, exact within 11 bits. They take 25 bytes a row, and
        exact queries are about 100 times as fast as without. Wider fingerprints have none by
        default. ``"issl"`` adds slice lists for `Index.top`, with slices of 16 bits, or of 8 if
        fingerprints have fewer than 128; ``"issl:w=8"`` and ``"issl:w=16"`` set the width. Slice
        lists take 4 (n s + 2^w s + s) bytes for a segment of n rows with s = bits / w slices.
    batch_rows : int
        How many rows are buffered in memory, at most, before a segment file is written. Commits of
        fewer rows than an eighth of it, and fewer than 65,536, collect in the catalog until they
        have that many rows together. Fewer rows make a segment if their keys take more than 256 MiB
        in memory, or 64 MiB in the catalog.
    keys : None, False, "str" or "bytes"
        Whether rows are named by keys instead of ids, and of which type. True means ``"str"``. With
        None, the default, a new index takes the kind that its first rows have.
    min_merge : int
        How many small segments a commit merges into one, at least. With 0 only `Index.compact`
        merges.
    reservoir_rows : int
        How many rows of weights are kept as a sample, from which simindex learns the probability
        that a bit flips.
    slice_memory : int
        How many bytes slice lists take while they are built, at most. If all lists need more, the
        rows are read several times.
    allow_remote : bool
        Accept a network file system, on which locks and memory maps are not reliable.
    recipe : Recipe, optional
        How texts become fingerprints. The index stores it and refuses batches of another recipe. An
        index without one takes the recipe of the first batch that has one. It sets `bits`.
    times : bool
        Whether the index stores the time at which each row was added, in 4 bytes, so that
        `Index.expire` can delete old rows.
    sketch_bits : int
        Width of the sketch that the index stores with each row: 0 for none, or a multiple of 64, at
        most 4096. The recipe sets it. Without a recipe a new index takes what its first batch has.
    key_secret : bytes, optional
        16 bytes that the ids of keys are computed with, only for an index with keys. By default a
        new index draws them at random. Indexes that share a secret give equal keys equal ids.
        Whoever knows the secret can construct keys with equal ids, so do not publish it. `repr`
        does not show it.
    """

    bits: int = 64
    structures: tuple[str, ...] = DEFAULT_STRUCTURES
    batch_rows: int = 1 << 20
    keys: bool | KeyKind | None = None
    min_merge: int = 8
    reservoir_rows: int = 1 << 14
    slice_memory: int = 1 << 28
    allow_remote: bool = False
    recipe: Any = None
    times: bool = False
    sketch_bits: int = 0
    key_secret: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            given = getattr(self, name)
            if type(given) is not int and (number := whole(given)) is not None:  # one of numpy
                object.__setattr__(self, name, number)
        require(
            is_int(self.bits) and 64 <= self.bits <= MAX_BITS and self.bits % 64 == 0,
            "bits", self.bits, f"a multiple of 64 from 64 to {MAX_BITS}",
        )
        for name in ("keys", "times", "allow_remote"):
            object.__setattr__(self, name, plain_truth(getattr(self, name)))
        if self.keys is True:
            object.__setattr__(self, "keys", "str")
        require(
            self.recipe is None
            or (hasattr(self.recipe, "identity") and hasattr(self.recipe, "bits")),
            "recipe", self.recipe, "a simindex.Recipe",
        )
        if self.recipe is not None and self.bits == 64:
            object.__setattr__(self, "bits", self.recipe.bits)
        if self.recipe is not None and self.sketch_bits == 0:
            object.__setattr__(self, "sketch_bits", getattr(self.recipe, "sketch_bits", 0))
        require(
            is_int(self.sketch_bits) and 0 <= self.sketch_bits <= MAX_BITS
            and self.sketch_bits % 64 == 0,
            "sketch_bits", self.sketch_bits, f"0, or a multiple of 64, at most {MAX_BITS}",
        )
        if self.has_usual_structures:
            usual = DEFAULT_STRUCTURES if self.bits == 64 else WIDE_STRUCTURES
            object.__setattr__(self, "structures", usual)
        else:
            object.__setattr__(self, "structures", checked_structures(self.structures))
        require(
            is_int(self.batch_rows) and 1 <= self.batch_rows <= 1 << 26,
            "batch_rows", self.batch_rows, f"from 1 to {1 << 26}",
        )
        require(
            self.keys is None or self.keys is False
            or (isinstance(self.keys, str) and self.keys in ("str", "bytes")),
            "keys", self.keys, 'True, False, "str" or "bytes", or leave it out',
        )
        _check_secret(self.key_secret, keyed=self.keyed)
        require(
            is_int(self.min_merge) and (self.min_merge == 0 or 2 <= self.min_merge <= 64),
            "min_merge", self.min_merge, "0, or from 2 to 64",
        )
        require(
            is_int(self.reservoir_rows) and 0 <= self.reservoir_rows <= 1 << 18,
            "reservoir_rows", self.reservoir_rows, f"from 0 to {1 << 18}",
        )
        require(
            is_int(self.slice_memory) and LEAST_SLICE_MEMORY <= self.slice_memory <= 1 << 48,
            "slice_memory", self.slice_memory,
            f"a number of bytes from {LEAST_SLICE_MEMORY} (16 MiB) to 2^48",
        )
        require(
            isinstance(self.allow_remote, bool), "allow_remote", self.allow_remote, "true or false"
        )
        require(isinstance(self.times, bool), "times", self.times, "true or false")
        require(
            self.recipe is None or self.recipe.bits == self.bits,
            "bits", self.bits, "the recipe's width, or leave it out",
        )
        require(
            self.recipe is None or getattr(self.recipe, "sketch_bits", 0) == self.sketch_bits,
            "sketch_bits", self.sketch_bits, "what the recipe has, or leave it out",
        )

    @property
    def has_usual_structures(self) -> bool:
        """Whether the structures are the default, and were not given."""
        return self.structures is DEFAULT_STRUCTURES or self.structures is WIDE_STRUCTURES

    @property
    def seal_rows(self) -> int:
        """How many rows make a segment. Fewer rows wait in the catalog as pending rows."""
        return max(1, min(self.batch_rows // 8, MAX_PENDING_ROWS))

    @property
    def words(self) -> int:
        """Number of 64-bit words of a fingerprint."""
        return self.bits // 64

    @property
    def sketch_words(self) -> int:
        """Number of 64-bit words of a sketch; 0 if rows have none."""
        return self.sketch_bits // 64

    @property
    def keyed(self) -> bool:
        """Whether rows have keys."""
        return bool(self.keys)

    @property
    def key_kind(self) -> KeyKind:
        """Type of the keys of an index with keys."""
        return "bytes" if self.keys == "bytes" else "str"

    @property
    def stored_secret(self) -> bytes:
        """The secret of an index with keys; set when the index is created."""
        if self.key_secret is None:
            raise InvalidOption("these options were not read from an index", option="key_secret")
        return self.key_secret

    def to_dict(self) -> dict[str, Any]:
        """The options as plain values for the catalog, without the recipe, with the secret."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["recipe"]
        if self.key_secret is None:
            del values["key_secret"]
        if not self.times:
            del values["times"]
        if not self.sketch_bits:
            del values["sketch_bits"]
        return {**values, "structures": list(self.structures)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> IndexOptions:
        """The options that `to_dict` returned, as an index stores them.

        Raises InvalidOption if a name is unknown, or if there are keys without their secret.
        """
        known = {field.name for field in fields(cls)} - {"recipe"}
        if not isinstance(values, dict):
            raise InvalidOption("the stored options are not a map of names", option="options")
        unknown = sorted(map(str, set(values) - known))
        if unknown:
            raise InvalidOption(f"unknown index option {unknown[0]!r}", option=unknown[0])
        options = cls(**values)
        if options.keyed and options.key_secret is None:
            raise InvalidOption("the stored options have keys but no secret", option="key_secret")
        return options

    def differences(self, other: IndexOptions) -> dict[str, tuple[Any, Any]]:
        """Options that differ, as name -> (mine, other's).

        Structures, keys, times, sketches and the secret count only if the other options name them.
        Of secrets it says only that they differ.
        """
        mine, theirs = self.to_dict(), other.to_dict()
        mine["times"] = self.times
        theirs.setdefault("times", self.times)
        mine["sketch_bits"] = self.sketch_bits
        theirs.setdefault("sketch_bits", self.sketch_bits)
        mine["keys"] = mine["keys"] or False
        if theirs["keys"] is None:
            theirs["keys"] = mine["keys"]
        if other.has_usual_structures:
            theirs["structures"] = mine["structures"]
        secret = theirs.pop("key_secret", None)
        same_secret = secret in (None, mine.pop("key_secret", None))
        found = {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}
        return found if same_secret else {**found, "key_secret": ("a secret", "another one")}


def is_structure(name: str) -> bool:
    """Whether a structure may be called so; whether the design fits is not looked at."""
    return _STRUCTURE.fullmatch(name) is not None


def is_slicing(name: str) -> bool:
    """Whether a structure's name is one of slice lists."""
    return is_structure(name) and name.startswith(SLICE_LISTS)


def checked_structures(names: Any) -> tuple[str, ...]:
    """Structure names of the right form, "psm" first; whether a design fits is not looked at.

    Raises InvalidOption on anything but a list or tuple of distinct names.
    """
    expected = f"a tuple out of {_STRUCTURE_FORMS}, at most {MAX_STRUCTURES}, each once"
    listed = list(names) if isinstance(names, (list, tuple)) else []
    require(
        0 < len(listed) <= MAX_STRUCTURES
        and all(isinstance(name, str) and _STRUCTURE.fullmatch(name) for name in listed)
        and len(set(listed)) == len(listed)
        and sum(map(is_slicing, listed)) <= 1,
        "structures", names, expected,
    )
    return (SORTED_TABLE, *(name for name in listed if name != SORTED_TABLE))


def split_structures(text: str) -> tuple[str, ...]:
    """The names in a list such as "psm,bphs:G=5,g=2": a comma inside a design separates nothing."""
    names: list[str] = []
    for part in text.split(","):
        if names and ":" in names[-1] and ":" not in part and "=" in part:
            names[-1] += f",{part.strip()}"
        else:
            names.append(part.strip())
    return checked_structures(names)


def as_flag(value: object, option: str) -> bool:
    """A yes or no that the caller gave; InvalidOption if it is neither, as an array."""
    try:
        return bool(value)
    except (TypeError, ValueError) as error:
        raise InvalidOption(
            f"option {option}={value!r} is not valid",
            remedy="give true or false", option=option, found=value, expected="true or false",
        ) from error


def _check_secret(secret: object, *, keyed: bool) -> None:
    """Refuses what is not a secret, without showing it."""
    if secret is None:
        return
    if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
        found = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
        raise InvalidOption(
            f"option key_secret is not valid ({found})",
            remedy=f"give {SECRET_BYTES} bytes, such as secrets.token_bytes({SECRET_BYTES}), or "
            "leave it out", option="key_secret", found=found, expected=f"{SECRET_BYTES} bytes",
        )
    if not keyed:
        raise InvalidOption(
            "option key_secret needs an index with keys",
            remedy="give keys=True, too, or leave key_secret out", option="key_secret",
            expected=None,
        )
