"""How text becomes fingerprints: the recipe, a value that is stored and compared.

    text -> units -> n-grams -> hashes, weights -> sums W -> bits      [PSM] Algorithm 1

    to_bytes   | magic | version | header length | header (msgpack) | hashes | idf steps | digest |
                 8 B     u32       u32             plain values       u64 f    u32 f       16 B

Numbers are little-endian; hashes and idf steps are those of `idf.IdfTable`, absent when unfitted;
the digest is BLAKE2b-128 of everything before it. The layout is frozen: see VERSION.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from struct import Struct
from typing import Any, Literal

import msgpack
import numpy as np

from simindex._kernels import _native
from simindex.errors import CorruptFile, FormatTooNew, InvalidBatch, InvalidOption
from simindex.options import MAX_BITS
from simindex.records import Batch, Skipped, as_keys
from simindex.simhash.features import TOKENIZER, UNITS, PreparedTexts, Unit, prepared_slices
from simindex.simhash.idf import STEPS_PER_UNIT, IdfTable, learn_idf

Weighting = Literal["tf", "tfidf", "binary"]
WEIGHTINGS: tuple[Weighting, ...] = ("binary", "tf", "tfidf")
"""Kinds of weight, by the number the kernel knows them by."""

MOST_NGRAM: dict[str, int] = {"word": 5, "char": 16}
"""Largest n-gram by unit."""

MAGIC = b"SIMRECIP"
VERSION = 1
_PREFIX = Struct("<8sII")
_DIGEST_BYTES = 16
_MOST_HEADER_BYTES = 4096
_MOST_DOCUMENTS = 1 << 48


@dataclass(frozen=True, eq=False, repr=False)
class Recipe:
    """How text becomes features, features get weights, and weights become fingerprints.

    Parameters
    ----------
    bits : int
        Width b of a fingerprint: a multiple of 64, at most 4096.
    unit : "word" or "char"
        What an n-gram is made of: words (matches of ``\\w+`` on the case-folded text), or code
        points of the case-folded text with runs of white space made one space.
    ngram : int or tuple of int
        Units in a feature, from 1 to 5 words or 16 code points; several sizes are features
        together. A text shorter than the smallest size is one feature, itself.
    weighting : "tf", "tfidf" or "binary"
        A feature counts as often as it occurs, that times its idf (learned by `fit`), or once.
    seed : int
        Seed of the feature hash, below 2**32.
    min_features : int
        Texts with fewer distinct features get no fingerprint, as empty texts never do.
    idf : IdfTable, optional
        What `fit` learned.

    Raises
    ------
    InvalidOption
        Naming the option, what was found and what is expected.

    Notes
    -----
    Single words without idf are no sane choice: function words decide the bits, and unrelated
    texts come within a few bits of each other. Equality and hash are those of `identity`.
    """

    bits: int = 64
    unit: Unit = "word"
    ngram: int | tuple[int, ...] = 3
    weighting: Weighting = "tf"
    seed: int = 0
    min_features: int = 1
    idf: IdfTable | None = None

    def __post_init__(self) -> None:
        _require(
            _is_int(self.bits) and 64 <= self.bits <= MAX_BITS and self.bits % 64 == 0,
            "bits", self.bits, f"a multiple of 64 from 64 to {MAX_BITS}",
        )
        _require(self.unit in UNITS, "unit", self.unit, '"word" or "char"')
        most = MOST_NGRAM[self.unit]
        sizes = self.ngram if isinstance(self.ngram, (tuple, list)) else (self.ngram,)
        _require(
            len(sizes) > 0 and all(_is_int(size) and 1 <= size <= most for size in sizes),
            "ngram", self.ngram, f"a number from 1 to {most}, or a tuple of such numbers",
        )
        ascending = tuple(sorted(set(sizes)))
        object.__setattr__(self, "ngram", ascending if len(ascending) > 1 else ascending[0])
        _require(
            self.weighting in WEIGHTINGS, "weighting", self.weighting, '"tf", "tfidf" or "binary"'
        )
        _require(
            _is_int(self.seed) and 0 <= self.seed < 1 << 32,
            "seed", self.seed, "from 0 to 2**32 - 1",
        )
        _require(
            _is_int(self.min_features) and 1 <= self.min_features < 1 << 31,
            "min_features", self.min_features, "from 1 to 2**31 - 1",
        )
        _require(
            self.idf is None or (isinstance(self.idf, IdfTable) and self.weighting == "tfidf"),
            "idf", self.idf, 'None, or with weighting="tfidf" what fit learned',
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The n-gram sizes, ascending."""
        return self.ngram if isinstance(self.ngram, tuple) else (self.ngram,)

    @property
    def fitted(self) -> bool:
        """Whether texts can be fingerprinted: always, but for tfidf without `fit`."""
        return self.weighting != "tfidf" or self.idf is not None

    def fit(self, texts: Iterable[str | bytes]) -> Recipe:
        """This recipe with the idf of some documents, which are read once.

        Memory is bounded by the number of distinct features, about 36 bytes each at most.

        Raises
        ------
        InvalidOption
            If the weighting learns nothing, or there is no document.
        InvalidBatch
            If a text is neither str nor UTF-8; carries its position.
        """
        if self.weighting != "tfidf":
            raise InvalidOption(
                f'weighting="{self.weighting}" learns nothing from documents: leave out fit, or '
                'give weighting="tfidf"',
                option="weighting", found=self.weighting, expected="tfidf",
            )
        return replace(self, idf=learn_idf(texts, self.unit, self.sizes, self.seed))

    def fingerprint(self, text: str | bytes) -> Batch:
        """The batch of one text; empty, with the reason in `skipped`, if it gets no fingerprint."""
        return self.batch((text,))

    def batch(
        self,
        texts: Iterable[str | bytes],
        *,
        ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
    ) -> Batch:
        """Fingerprints and weights of some texts, in their order.

        Parameters
        ----------
        texts : iterable of str or bytes
            Read once, in slices of about 4 MB; bytes are UTF-8.
        ids, keys
            One for each text, as `Batch` takes them; those of texts without fingerprint are left
            out.

        Returns
        -------
        Batch
            `weights` float32 (n, b) are the sums W in units of feature weight, `recipe` is this
            recipe, `skipped` lists the texts without units or with fewer than `min_features`
            distinct features.

        Raises
        ------
        InvalidBatch
            If a text is neither str nor UTF-8 (carries its position), or ids or keys do not fit.
        InvalidOption
            If the weighting is tfidf and the recipe was not fitted.
        """
        if not self.fitted:
            raise InvalidOption(
                "the recipe has no idf yet: learn it with recipe = recipe.fit(texts), or give "
                'weighting="tf"',
                option="weighting", found="tfidf",
            )
        words = self.bits // 64
        fingerprints = [np.empty((0, words), dtype=np.uint64)]
        weights = [np.empty((0, self.bits), dtype=np.float32)]
        counts = [np.empty(0, dtype=np.int64)]
        for part in prepared_slices(texts, self.unit):
            part_fingerprints, part_weights, part_counts = self._simhash(part)
            fingerprints.append(part_fingerprints)
            weights.append(part_weights)
            counts.append(part_counts)
        features = np.concatenate(counts)
        _check_length("ids", ids, len(features))
        _check_length("keys", keys, len(features))
        batch = Batch(
            np.concatenate(fingerprints),
            ids=ids,
            keys=None if keys is None else as_keys(keys, None),
            weights=np.concatenate(weights),
            recipe=self,
        )
        kept = features >= self.min_features
        if kept.all():
            return batch
        skipped = tuple(
            Skipped(position, _name(batch, position), self._reason(int(features[position])))
            for position in np.flatnonzero(~kept).tolist()
        )
        batch = batch.take(np.flatnonzero(kept))
        batch.skipped = skipped
        return batch

    def _simhash(self, part: PreparedTexts) -> tuple[Any, Any, Any]:
        idf = self.idf
        return _native.simhash(
            part.data,
            part.offsets,
            UNITS.index(self.unit),
            np.array(self.sizes, dtype=np.uint8),
            WEIGHTINGS.index(self.weighting),
            np.empty(0, dtype=np.uint64) if idf is None else idf.hashes,
            np.empty(0, dtype=np.uint32) if idf is None else idf.steps,
            STEPS_PER_UNIT if idf is None else idf.unseen,
            self.bits // 64,
            self.seed,
        )

    def _reason(self, features: int) -> str:
        return f"too few features: {features} < {self.min_features}" if features else "empty"

    def to_dict(self) -> dict[str, Any]:
        """The recipe as plain values, the learned table as its size and digest."""
        idf = self.idf
        return {
            "bits": self.bits,
            "unit": self.unit,
            "ngram": list(self.ngram) if isinstance(self.ngram, tuple) else self.ngram,
            "weighting": self.weighting,
            "seed": self.seed,
            "min_features": self.min_features,
            "tokenizer": TOKENIZER,
            "documents": None if idf is None else idf.documents,
            "features": None if idf is None else len(idf),
            "idf_digest": None if idf is None else idf.digest,
        }

    @cached_property
    def identity(self) -> str:
        """32 hexadecimal digits; equal for recipes that make equal fingerprints of equal texts."""
        packed: bytes = msgpack.packb(sorted(self.to_dict().items()))
        return blake2b(packed, digest_size=_DIGEST_BYTES).hexdigest()

    def differences(self, other: Recipe) -> dict[str, tuple[Any, Any]]:
        """What differs, as name -> (mine, other's); empty for equal recipes."""
        mine, theirs = self.to_dict(), other.to_dict()
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def __eq__(self, other: object) -> bool:
        return self.identity == other.identity if isinstance(other, Recipe) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        learned = "" if self.idf is None else f", fitted on {self.idf.documents} documents"
        return (
            f"<Recipe {self.bits} bits, {self.unit} {self.ngram}, {self.weighting}"
            f"{learned}, {self.identity[:8]}>"
        )

    def to_bytes(self) -> bytes:
        """The recipe with all it learned, as `from_bytes` reads it."""
        header: bytes = msgpack.packb({**self.to_dict(), "unseen": self.idf and self.idf.unseen})
        content = _PREFIX.pack(MAGIC, VERSION, len(header)) + header
        if self.idf is not None:
            content += self.idf.hashes.astype("<u8").tobytes()
            content += self.idf.steps.astype("<u4").tobytes()
        return content + _digest(content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Recipe:
        """The recipe that `to_bytes` wrote.

        Raises
        ------
        CorruptFile
            If the bytes are not what was written.
        FormatTooNew
            If a newer version wrote them, or the recipe splits texts in a newer way.
        """
        return _decoded(bytes(content))


def _decoded(content: bytes) -> Recipe:
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
    if _digest(content[:-_DIGEST_BYTES]) != content[-_DIGEST_BYTES:]:
        raise CorruptFile("the recipe's checksum does not match its bytes")
    body = _PREFIX.size + header_bytes
    arrays = content[body:-_DIGEST_BYTES]
    if version < 1 or header_bytes > _MOST_HEADER_BYTES or body > len(content) - _DIGEST_BYTES:
        raise CorruptFile("the recipe's header does not fit", found=header_bytes)
    values = _header(content[_PREFIX.size : body])
    if _is_int(values.get("tokenizer")) and values["tokenizer"] > TOKENIZER:
        raise FormatTooNew(
            f"the recipe splits texts by tokenizer {values['tokenizer']}, this version knows "
            f"{TOKENIZER}: install a newer one",
            found=values["tokenizer"], expected=TOKENIZER,
        )
    try:
        recipe = Recipe(
            bits=values["bits"], unit=values["unit"], ngram=_as_ngram(values["ngram"]),
            weighting=values["weighting"], seed=values["seed"],
            min_features=values["min_features"], idf=_table(values, arrays),
        )
    except (KeyError, TypeError, InvalidOption) as error:
        raise CorruptFile(f"the recipe's header is not valid: {error}") from error
    if {**recipe.to_dict(), "unseen": recipe.idf and recipe.idf.unseen} != values:
        raise CorruptFile("the recipe's header does not describe its content", found=values)
    return recipe


def _header(packed: bytes) -> dict[str, Any]:
    try:
        values = msgpack.unpackb(packed)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptFile("the recipe's header cannot be decoded") from error
    if not isinstance(values, dict):
        raise CorruptFile("the recipe's header is no map", found=type(values).__name__)
    return values


def _as_ngram(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _table(values: dict[str, Any], arrays: bytes) -> IdfTable | None:
    documents, features, unseen = (values[name] for name in ("documents", "features", "unseen"))
    if documents is None and features is None and unseen is None and not arrays:
        return None
    if not (
        _is_int(documents) and 1 <= documents <= _MOST_DOCUMENTS
        and _is_int(features) and features >= 0 and len(arrays) == 12 * features
        and _is_int(unseen) and STEPS_PER_UNIT <= unseen < 1 << 18
    ):  # fmt: skip
        raise CorruptFile("the recipe's idf table does not fit its header", found=len(arrays))
    hashes = np.frombuffer(arrays, dtype="<u8", count=features).astype(np.uint64)
    steps = np.frombuffer(arrays, dtype="<u4", offset=8 * features).astype(np.uint32)
    ascending = bool((hashes[1:] > hashes[:-1]).all())
    if not ascending or bool(((steps < STEPS_PER_UNIT) | (steps > unseen)).any()):
        raise CorruptFile("the recipe's idf table is out of order or out of range")
    return IdfTable(documents, hashes, steps, unseen)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _check_length(name: str, values: Any, n: int) -> None:
    if values is not None and hasattr(values, "__len__") and len(values) != n:
        raise InvalidBatch(
            f"{n} texts but {len(values)} {name}: give one for each text",
            found=len(values), expected=n,
        )


def _name(batch: Batch, position: int) -> Any:
    if batch.keys is not None:
        return batch.keys[position]
    return None if batch.ids is None else int(batch.ids[position])


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(held: bool, option: str, found: object, expected: str) -> None:
    if not held:
        raise InvalidOption(
            f"option {option}={found!r} is not valid: give {expected}",
            option=option, found=found, expected=expected,
        )
