"""How text becomes fingerprints: the recipe, a value that is stored and compared.

    text -> units -> n-grams -> hashes, weights -> sums W -> bits      [PSM] Algorithm 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import FunctionType
from typing import Any

from simindex.checks import require
from simindex.errors import CorruptFile, InvalidOption, what_happened
from simindex.records.batch import Batch
from simindex.simhash import recipe_bytes, words
from simindex.simhash.document_frequencies import MAX_FEATURES, DocumentFrequencies, require_source
from simindex.simhash.features import TOKENIZER, UNICODE, Unit
from simindex.simhash.projection import ProjectionName
from simindex.simhash.radius import recommended_radius
from simindex.simhash.reader import Reader, batched
from simindex.simhash.recipe_checks import (
    checked,
    checked_features,
    require_fitted,
    require_weighing,
)
from simindex.simhash.weighting import WEIGHTINGS, Feature, IdfTable, WeightingName, anatomy


@dataclass(frozen=True, eq=False, repr=False)
class Recipe:
    """How text becomes features, features get weights, and weights become fingerprints.

    Parameters
    ----------
    bits : int
        Width b of a fingerprint: a multiple of 64, at most 4096.
    unit : "word" or "char"
        What an n-gram is made of: words (matches of ``\\w+`` on the case-folded text; letters of
        Han, Kana and Thai in overlapping pairs), or code points of the case-folded text
        with runs of white space made one space.
    ngram : int or tuple of int
        Units in a feature, from 1 to 5 words or 16 code points; several sizes are features
        together. A text shorter than the smallest size is one feature, itself.
    weighting : str
        What a feature counts: "tf" as often as it occurs, "binary" once, "sublinear" 1 + ln tf;
        "tfidf", "idf" and "sublinear-tfidf" that times its idf (learned by `fit`); "given" what the
        caller says (`batch_features`).
    seed : int
        Seed of the feature hash, below 2**32.
    min_features : int
        Texts with fewer distinct features get no fingerprint, as empty texts never do.
    idf : IdfTable, optional
        What `fit` learned.
    projection : "sign", "gaussian" or "ternary"
        The random vectors that features are summed onto, see `projection`.
    tokenizer : callable, optional
        Gives the words of a case-folded text, instead of ``\\w+``. An index stores its name only:
        give it back with `using`. A number is the version of the built-in one.
    stop_words : iterable of str, or the code of a language such as "en"
        Words that are left out; a language needs the extra ``stopwords``.
    stemmer : str, optional
        A Snowball algorithm, such as "english", that words are cut down by; needs the extra
        ``stem``.
    h : int, optional
        The radius: in how many bits near-duplicates may differ, 0 to b. An index stores it, and
        calls without an h use it. By default the one recommended for the recipe; then the
        attribute `h` has that number.

    Raises
    ------
    InvalidOption
        Naming the option, what was found and what is expected.
    MissingExtra
        If an option needs a package that is not installed.

    Notes
    -----
    Single words without idf are no sane choice: function words decide the bits, and unrelated
    texts come within a few bits of each other. Equality and hash are those of `identity`, so `h`
    does not count: it makes no other fingerprints. `dataclasses.replace` keeps `h`; give ``h=None``
    with it to get the recommended radius of the changed recipe. Source: [PSM] section 3, Algorithm
    1 and equations (2) to (4).
    """

    bits: int = 64
    unit: Unit = "word"
    ngram: int | tuple[int, ...] = 3
    weighting: WeightingName = "tf"
    seed: int = 0
    min_features: int = 1
    idf: IdfTable | None = None
    projection: ProjectionName = "sign"
    tokenizer: int | str | words.Tokenizer = TOKENIZER
    stop_words: Iterable[str] = ()
    stemmer: str | None = None
    h: int | None = None

    def __post_init__(self) -> None:
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in checked(options).items():
            object.__setattr__(self, name, value)
        if self.h is None:
            radius = recommended_radius(self.bits, self.unit, self.sizes, self.weighting)
            object.__setattr__(self, "h", radius)
        header = recipe_bytes.packed_header(self.to_dict(), self.idf)
        require(
            len(header) < recipe_bytes.MOST_HEADER_BYTES,
            "stop_words", f"{len(tuple(self.stop_words))} words",
            "fewer: a recipe has room for about a megabyte",
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The n-gram sizes, ascending."""
        return self.ngram if isinstance(self.ngram, tuple) else (self.ngram,)

    @property
    def fitted(self) -> bool:
        """Whether features can be weighed: always, but for weightings by idf without `fit`."""
        return not WEIGHTINGS[self.weighting].idf or self.idf is not None

    def using(self, tokenizer: words.Tokenizer) -> Recipe:
        """This recipe with the tokenizer whose name it stores; InvalidOption for another one."""
        name = words.name_of(tokenizer)
        if name != self._tokenizer_name:
            raise InvalidOption(
                f"the recipe's tokenizer is {self._tokenizer_name!r}, not {name!r}",
                remedy="give that one, or make another recipe", option="tokenizer", found=name,
                expected=self._tokenizer_name,
            )
        return replace(self, tokenizer=tokenizer)

    def document_frequencies(
        self,
        texts: Iterable[str | bytes],
        *,
        max_features: int = MAX_FEATURES,
        threads: int | None = None,
    ) -> DocumentFrequencies:
        """In how many of some documents each feature occurs, for `fit`; what processes merge.

        Every text counts as a document, also one without features. Texts are read once; memory is
        bounded by `max_features`, see `DocumentFrequencies`.

        Raises
        ------
        InvalidBatch
            If a text is neither str nor UTF-8; carries its position.
        InvalidOption
            If `max_features` or `threads` is out of range.
        """
        counted = DocumentFrequencies(self._features_source, max_features=max_features)
        for frequencies in self._reader.frequencies(texts, threads):
            counted.add(*frequencies)
        return counted

    def fit(
        self,
        documents: Iterable[str | bytes] | DocumentFrequencies,
        *,
        threads: int | None = None,
    ) -> Recipe:
        """This recipe with the idf of some documents, which are read once, or were counted before.

        Raises
        ------
        InvalidOption
            If the weighting learns nothing, or there is no document.
        InvalidBatch
            If a text is neither str nor UTF-8; carries its position.
        RecipeMismatch
            If frequencies were counted by a recipe that makes other features.
        """
        if not WEIGHTINGS[self.weighting].idf:
            raise InvalidOption(
                f'weighting="{self.weighting}" does not learn from documents',
                remedy='do not call fit, or give weighting="tfidf"', option="weighting",
                found=self.weighting, expected="tfidf",
            )
        if not isinstance(documents, DocumentFrequencies):
            documents = self.document_frequencies(documents, threads=threads)
        else:
            require_source(documents, self._features_source)
        return replace(self, idf=documents.table())

    def fingerprint(self, text: str | bytes) -> Batch:
        """The batch of one text; empty, with the reason in `skipped`, if it gets no fingerprint."""
        return self.batch((text,))

    def batch(
        self,
        texts: Iterable[str | bytes],
        *,
        ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
        threads: int | None = None,
    ) -> Batch:
        """Fingerprints and weights of some texts, in their order.

        Parameters
        ----------
        texts : iterable of str or bytes, or an Arrow column of text
            Read once; bytes are UTF-8. A list is one native call, an iterator is taken in portions
            of 16,384 texts or 33 M characters. Neither portions nor threads show in the result.
        ids, keys
            One for each text, as `Batch` takes them; those of texts without fingerprint are left
            out.
        threads : int, optional
            By default `SIMINDEX_THREADS` or one for each processor; one for fewer than 256 texts.

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
            If the recipe was not fitted, its weights are the caller's, or its tokenizer is not
            known.

        Notes
        -----
        Linear in the bytes of the texts; memory beside the result is a few megabytes a thread,
        and with weightings other than tf and tfidf 40 bytes a distinct feature of the largest text;
        with a tokenizer, stop words or stems, texts are taken in portions of a million characters,
        whose words are held as Python strings.
        """
        require_weighing(self.weighting, fitted=self.fitted)
        return batched(self._reader.simhashes(texts, threads), self, ids, keys)

    def batch_features(
        self,
        hashes: Any,
        offsets: Any,
        weights: Any = None,
        *,
        ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
        threads: int | None = None,
    ) -> Batch:
        """Fingerprints of documents whose features were made elsewhere.

        Parameters
        ----------
        hashes : uint64 (f,)
            Hashes of the features, document by document; what the bits are drawn from, so they
            must be well mixed, as those of MurmurHash3 are.
        offsets : integers (n + 1,)
            Document i has the features offsets[i] to offsets[i + 1]; from 0 to f.
        weights : numbers (f,), optional
            Weight of each feature, finite and not negative; with ``weighting="given"`` only.
            Without it, a feature weighs what the recipe says, its idf looked up by its hash.

        Returns
        -------
        Batch
            As `batch` gives it.

        Raises
        ------
        InvalidBatch
            If the arrays do not fit, or a weight is negative or not finite; carries its row.
        InvalidOption
            If weights are given to a recipe that weighs by itself, or missing.

        Notes
        -----
        A caller's weights are added as doubles in the order given. Source: [PSM] Algorithm 1.
        """
        given = self.weighting == "given"
        if given != (weights is not None):
            raise InvalidOption(
                'weighting="given" needs weights' if given
                else f'weighting="{self.weighting}" computes the weights itself',
                remedy="give one for each hash" if given
                else 'leave out weights, or make the recipe with weighting="given"',
                option="weighting", found=self.weighting,
                expected="weights" if given else "no weights",
            )
        require_fitted(self.weighting, fitted=self.fitted)
        arrays = checked_features(hashes, offsets, weights)
        return batched(self._reader.hashed(*arrays, threads), self, ids, keys)

    def features(self, text: str | bytes) -> list[Feature]:
        """What a text is made of, for people: its features, the heaviest first.

        O(features) in Python; the same features, counts and weights as `batch` uses. Raises
        InvalidBatch and InvalidOption as `batch` does.
        """
        require_weighing(self.weighting, fitted=self.fitted)
        units = self._reader.units([text])[0]
        return anatomy(
            units, self.unit, self.sizes, WEIGHTINGS[self.weighting], seed=self.seed, idf=self.idf
        )

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self)

    @property
    def _tokenizer_name(self) -> int | str:
        tokenizer = self.tokenizer
        return tokenizer if isinstance(tokenizer, (int, str)) else words.name_of(tokenizer)

    @cached_property
    def _features_source(self) -> str:
        """Digest of what decides the features of a text and their hashes."""
        deciding = ("unit", "ngram", "seed", "tokenizer", "unicode", "stop_words", "stemmer")
        values = self.to_dict()
        return recipe_bytes.digest_of([values[name] for name in deciding])

    def to_dict(self) -> dict[str, Any]:
        """The recipe as plain values, the learned table as its size and digest."""
        idf = self.idf
        tokenizer = self._tokenizer_name
        return {
            "bits": self.bits,
            "unit": self.unit,
            "ngram": list(self.ngram) if isinstance(self.ngram, tuple) else self.ngram,
            "weighting": self.weighting,
            "seed": self.seed,
            "min_features": self.min_features,
            "projection": self.projection,
            "tokenizer": tokenizer,
            "unicode": UNICODE if isinstance(tokenizer, int) else None,
            "stop_words": list(self.stop_words),
            "stemmer": self.stemmer,
            "documents": None if idf is None else idf.documents,
            "features": None if idf is None else len(idf),
            "idf_digest": None if idf is None else idf.digest,
            "h": self.h,
        }

    def _deciding(self) -> dict[str, Any]:
        """What decides the fingerprints of texts."""
        return {name: value for name, value in self.to_dict().items() if name != "h"}

    @cached_property
    def identity(self) -> str:
        """32 hexadecimal digits; equal for recipes that make equal fingerprints of equal texts."""
        return recipe_bytes.digest_of(sorted(self._deciding().items()))

    def differences(self, other: Recipe) -> dict[str, tuple[Any, Any]]:
        """What differs, as name -> (mine, other's); empty for equal recipes."""
        mine, theirs = self._deciding(), other._deciding()
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def __eq__(self, other: object) -> bool:
        return self.identity == other.identity if isinstance(other, Recipe) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        learned = "" if self.idf is None else f", fitted on {self.idf.documents} documents"
        projection = "" if self.projection == "sign" else f", {self.projection}"
        return (
            f"<Recipe {self.bits} bits, {self.unit} {self.ngram}, {self.weighting}{projection}"
            f", h={self.h}{learned}, {self.identity[:8]}>"
        )

    def __reduce__(self) -> tuple[Callable[[bytes, Any], Recipe], tuple[bytes, Any]]:
        # A function is pickled by its name. A method would take its object along, as jieba's do
        # their dictionary: such a recipe comes back as from an index, and wants `using`.
        by_name = isinstance(self.tokenizer, FunctionType)
        return _restored, (self.to_bytes(), self.tokenizer if by_name else None)

    def to_bytes(self) -> bytes:
        """The recipe with all it learned, as `from_bytes` reads it; of a tokenizer its name."""
        return recipe_bytes.packed(self.to_dict(), self.idf)

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
        values, idf = recipe_bytes.unpacked(content)
        try:
            recipe = Recipe(**recipe_bytes.options(values), idf=idf)
        except (KeyError, TypeError, InvalidOption) as error:
            raise CorruptFile(
                f"the recipe's header is not valid: {what_happened(error)}",
                remedy=getattr(error, "remedy", None),
            ) from error
        if {**recipe.to_dict(), "unseen": recipe_bytes.unseen(idf)} != values:
            raise CorruptFile("the recipe's header does not describe its content", found=values)
        return recipe


def _restored(content: bytes, tokenizer: words.Tokenizer | None) -> Recipe:
    recipe = Recipe.from_bytes(content)
    return recipe if tokenizer is None else recipe.using(tokenizer)
