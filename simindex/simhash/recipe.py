"""How text becomes fingerprints: the recipe, a value that is stored and compared.

    text -> units -> n-grams -> hashes, weights -> sums W -> bits      [PSM] Algorithm 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any

from simindex.checks import is_int, require
from simindex.errors import CorruptFile, InvalidOption, what_happened
from simindex.records.batch import Batch
from simindex.simhash import recipe_bytes, words
from simindex.simhash.document_frequencies import MAX_FEATURES, DocumentFrequencies, require_source
from simindex.simhash.features import TOKENIZER, UNICODE, Unit
from simindex.simhash.projection import ProjectionName
from simindex.simhash.radius import recommended_radius
from simindex.simhash.recipe_checks import (
    checked,
    checked_features,
    require_fitted,
    require_learned_alike,
    require_weighing,
)
from simindex.simhash.weighting import WEIGHTINGS, Feature, IdfTable, WeightingName, anatomy
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.simhash.recipe_kernels import RecipeKernels

    class _Radius:
        """For type checkers: a field that is given as int or None, and then is an int."""

        def __get__(self, recipe: object, owner: type | None = None) -> int: ...
        def __set__(self, recipe: object, h: int | None) -> None: ...


@dataclass(frozen=True, eq=False, repr=False)
class Recipe:
    """How text becomes features, features get weights, and weights become fingerprints.

    Parameters
    ----------
    bits : int
        Width b of a fingerprint: a multiple of 64, at most 4096.
    unit : "word" or "char"
        What n-grams consist of: words (matches of ``\\w+`` in the case-folded text; letters of Han,
        Kana and Thai as overlapping pairs), or code points of the case-folded text, in which each
        run of white space becomes one space.
    ngram : int or tuple of int, optional
        Units in a feature: from 1 to 5 words, or to 16 code points. With several sizes, the
        features of all sizes count. A text shorter than the smallest size is itself the only
        feature. By default 1 and 2 words, or 5 code points; the attribute `ngram` then has these
        numbers.
    weighting : str
        The weight of a feature. "tf": how often it occurs. "binary": 1. "sublinear": 1 + ln tf.
        "tfidf", "idf" and "sublinear-tfidf": these times the idf, which `fit` learns.
        "balanced-tfidf": "tfidf", the idf lowered in documents whose common words are rare among
        those that `fit` learned from, such as the few in another language. "given": what the caller
        gives to `batch_features`.
    seed : int
        Seed of the feature hash, below 2**32.
    min_features : int
        Texts with fewer distinct features get no fingerprint. Empty texts never get one.
    idf : IdfTable, optional
        What `fit` learned.
    projection : "sign", "gaussian" or "ternary"
        The random vectors with which features are summed.
    tokenizer : callable, optional
        A function that returns the words of a case-folded text. An index stores only its name, so
        give it to `using` when you read the recipe from an index. A number is the version of the
        built-in tokenizer.
    stop_words : iterable of str, or the code of a language such as "en"
        Words that are removed. A language needs ``pip install 'simindex[stopwords]'``.
    stemmer : str, optional
        A Snowball algorithm such as "english", which reduces words to stems. It needs
        ``pip install 'simindex[stem]'``.
    h : int, optional
        The radius, from 0 to b: in how many bits near-duplicates may differ. An index stores it,
        and calls without an h use it. Default: the radius that is recommended for the recipe, which
        the attribute `h` then has.
    sketch_bits : int
        Width of a sketch beside the fingerprint: 0 for none, or a multiple of 64, at most 4096.
        These are further bits of the same features. The fingerprint finds candidates, and the
        sketch tells how similar they are.

    Raises
    ------
    InvalidOption
        If an option is not valid. The error names it, what was found and what is expected.
    MissingExtra
        If an option needs a package that is not installed.

    Notes
    -----
    The defaults need no learning. Single words with ``weighting="balanced-tfidf"``, fitted on your
    texts, find more; the shell uses them by default. Single words with "tf" are a bad choice:
    function words determine the bits, and unrelated texts are within a few bits of each other.
    docs/how-to/choosing-a-recipe.md has measurements.

    Recipes are equal if their `identity` is equal. `h` does not count, because it does not change
    fingerprints. `dataclasses.replace` keeps `h`; give ``h=None`` with it to get the recommended
    radius of the changed recipe. It keeps `idf`, too, and refuses a change of the features of which
    that was learned. Source: [PSM] section 3, Algorithm 1 and equations (2) to (4).
    """

    bits: int = 64
    unit: Unit = "word"
    ngram: int | tuple[int, ...] | None = None
    weighting: WeightingName = "sublinear"
    seed: int = 0
    min_features: int = 1
    idf: IdfTable | None = None
    projection: ProjectionName = "sign"
    tokenizer: int | str | words.Tokenizer = TOKENIZER
    stop_words: Iterable[str] = ()
    stemmer: str | None = None
    if TYPE_CHECKING:
        h: _Radius = _Radius()
    else:
        h: int | None = None
    sketch_bits: int = 0

    def __post_init__(self) -> None:
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in checked(options).items():
            object.__setattr__(self, name, value)
        if self.h is None:
            radius = recommended_radius(self.bits, self.unit, self.sizes, self.weighting)
            object.__setattr__(self, "h", radius)
        if self.idf is not None:
            require_learned_alike(self.idf.source, self._features_source)
        header = recipe_bytes.packed_header(self.to_dict(), self.idf)
        require(
            len(header) < recipe_bytes.MOST_HEADER_BYTES,
            "stop_words", f"{len(tuple(self.stop_words))} words",
            "fewer: a recipe has room for about a megabyte",
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The n-gram sizes, ascending."""
        sizes: Any = self.ngram
        return sizes if isinstance(sizes, tuple) else (sizes,)

    @property
    def fitted(self) -> bool:
        """Whether the recipe can weigh features. False for weightings with idf before `fit`."""
        return not WEIGHTINGS[self.weighting].idf or self.idf is not None

    def using(self, tokenizer: words.Tokenizer) -> Recipe:
        """This recipe with the tokenizer whose name it stores. Raises InvalidOption for another."""
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
        """Counts in how many documents each feature occurs. Several processes can merge counts.

        Every text counts as a document, also one without features. Texts are read once.
        `max_features` bounds the memory, see `DocumentFrequencies`.

        Raises
        ------
        InvalidBatch
            If a text is neither str nor UTF-8. The error has its position.
        InvalidOption
            If `max_features` or `threads` is out of range.
        """
        counted = DocumentFrequencies(self._features_source, max_features=max_features)
        for frequencies in self._kernels.frequencies(texts, threads):
            counted.add(*frequencies)
        return counted

    def fit(
        self,
        documents: Iterable[str | bytes] | DocumentFrequencies,
        *,
        threads: int | None = None,
    ) -> Recipe:
        """This recipe with the idf of some documents.

        Parameters
        ----------
        documents : iterable of str or bytes, or DocumentFrequencies
            Texts, which are read once, or counts of texts that were read before.

        Raises
        ------
        InvalidOption
            If the weighting has no idf, or there is no document.
        InvalidBatch
            If a text is neither str nor UTF-8. The error has its position.
        RecipeMismatch
            If a recipe that makes other features counted the frequencies.
        """
        if not WEIGHTINGS[self.weighting].idf:
            raise InvalidOption(
                f'weighting="{self.weighting}" does not learn from documents',
                remedy='do not call fit, or give weighting="balanced-tfidf"',
                option="weighting", found=self.weighting, expected="balanced-tfidf",
            )
        if not isinstance(documents, DocumentFrequencies):
            documents = self.document_frequencies(documents, threads=threads)
        else:
            require_source(documents, self._features_source)
        return replace(self, idf=documents.table())

    def fingerprint(
        self, text: str | bytes, *, ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
    ) -> Batch:
        """The batch of one text, with an id or a key if one is given, in a list. If the text gets
        no fingerprint, the batch is empty, and `skipped` has the reason."""
        require_weighing(self.weighting, fitted=self.fitted)
        return self._kernels.batched(self._kernels.simhash(text), self, ids, keys)

    def batch(
        self,
        texts: Iterable[str | bytes],
        *,
        ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
        threads: int | None = None,
        count_features: int = 0,
    ) -> Batch:
        """Makes the fingerprints and weights of texts, in the order of the texts.

        Parameters
        ----------
        texts : iterable of str or bytes, or an Arrow column of text
            Texts are read once. Bytes must be UTF-8. A list is processed in one native call, an
            iterator in portions of 16,384 texts or 33 M characters. The result depends neither on
            portions nor on threads.
        ids, keys
            One for each text, as in `Batch`. Those of texts without a fingerprint are dropped.
        threads : int, optional
            Default: `SIMINDEX_THREADS`, or one for each processor; one below 256 texts.
        count_features : int
            Count the distinct features of each text up to this number, 0 to 2**31 - 1; the batch
            has the counts as `features`. 50 cost a twentieth of the time.

        Returns
        -------
        Batch
            `weights` float32 (n, b) are the sums W in units of feature weight. `recipe` is this
            recipe. `sketch` is uint64 (n, sketch_bits / 64) if the recipe has one. `skipped` lists
            the texts without units or with fewer than `min_features` distinct features.

        Raises
        ------
        InvalidBatch
            If a text is neither str nor UTF-8 (the error has its position), or if ids or keys do
            not fit.
        InvalidOption
            If the recipe needs `fit`, if the caller must give its weights, if its tokenizer is not
            known, or if `count_features` is out of range.

        Notes
        -----
        Takes time linear in the bytes of the texts. In addition to the result it takes a few
        megabytes of memory a thread. "balanced-tfidf" also takes 20 bytes for each feature of the
        largest text. All other weightings except tf and tfidf, and all of them with a sketch, take
        50 bytes for each distinct feature. With a tokenizer, stop words or stems it reads texts in
        portions of a million characters, whose words are Python strings.
        """
        require_weighing(self.weighting, fitted=self.fitted)
        require(
            is_int(count_features) and 0 <= count_features < 1 << 31,
            "count_features", count_features, "from 0 to 2**31 - 1",
        )
        made = self._kernels.simhashes(texts, threads, count_features)
        return self._kernels.batched(made, self, ids, keys, counted=count_features)

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
        """Fingerprints of documents whose features you computed yourself.

        Parameters
        ----------
        hashes : uint64 (f,)
            Hashes of the features, document by document. The bits are drawn from them, so they must
            be well mixed, like those of MurmurHash3.
        offsets : integers (n + 1,)
            Document i has the features offsets[i] to offsets[i + 1]. They go from 0 to f.
        weights : numbers (f,), optional
            Weight of each feature, finite and not negative, only with ``weighting="given"``.
            Without it the recipe computes the weights, and looks up the idf by the hash.

        Returns
        -------
        Batch
            As `batch` returns it.

        Raises
        ------
        InvalidBatch
            If the arrays do not fit, or a weight is negative or not finite. The error has its row.
        InvalidOption
            If weights are given to a recipe that computes them, or are missing.

        Notes
        -----
        Given weights are added as doubles, in the given order. Source: [PSM] Algorithm 1.
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
        return self._kernels.batched(self._kernels.hashed(*arrays, threads), self, ids, keys)

    def features(self, text: str | bytes) -> list[Feature]:
        """The features of a text, the heaviest first, to show to people.

        These are the features, counts and weights that `batch` uses. Takes O(features) time in
        Python. Raises InvalidBatch and InvalidOption as `batch` does.
        """
        require_weighing(self.weighting, fitted=self.fitted)
        units = self._kernels.units([text])[0]
        return anatomy(
            units, self.unit, self.sizes, WEIGHTINGS[self.weighting], seed=self.seed, idf=self.idf
        )

    @cached_property
    def _kernels(self) -> RecipeKernels:
        from simindex.simhash.recipe_kernels import RecipeKernels

        return RecipeKernels(self)

    @property
    def _tokenizer_name(self) -> int | str:
        tokenizer = self.tokenizer
        return tokenizer if isinstance(tokenizer, (int, str)) else words.name_of(tokenizer)

    @cached_property
    def _features_source(self) -> str:
        return recipe_bytes.features_source(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The recipe as plain values. Instead of the learned table it has its size and digest."""
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
            **({"sketch_bits": self.sketch_bits} if self.sketch_bits else {}),
        }

    def _deciding(self) -> dict[str, Any]:
        """What decides the fingerprints of texts."""
        return {name: value for name, value in self.to_dict().items() if name != "h"}

    @cached_property
    def identity(self) -> str:
        """32 hexadecimal digits, equal for recipes that give equal texts equal fingerprints."""
        return recipe_bytes.digest_of(sorted(self._deciding().items()))

    def differences(self, other: Recipe) -> dict[str, tuple[Any, Any]]:
        """The values that differ, as name -> (mine, other's). Empty for equal recipes."""
        mine, theirs = ({"sketch_bits": 0, **one._deciding()} for one in (self, other))
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def __eq__(self, other: object) -> bool:
        return self.identity == other.identity if isinstance(other, Recipe) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        learned = "" if self.idf is None else f", fitted on {self.idf.documents} documents"
        projection = "" if self.projection == "sign" else f", {self.projection}"
        sketch = f" and {self.sketch_bits} of sketch" if self.sketch_bits else ""
        return (
            f"<Recipe {self.bits} bits{sketch}, {self.unit} {self.ngram}, {self.weighting}"
            f"{projection}, h={self.h}{learned}, {self.identity[:8]}>"
        )

    def __reduce__(self) -> tuple[Callable[[bytes, Any], Recipe], tuple[bytes, Any]]:
        # A function is pickled by its name. A method would be pickled with its object, as jieba's
        # with their dictionary. Such a recipe is unpickled as if from an index, and needs `using`.
        by_name = isinstance(self.tokenizer, FunctionType)
        return _restored, (self.to_bytes(), self.tokenizer if by_name else None)

    def to_bytes(self) -> bytes:
        """The recipe and all that it learned, for `from_bytes`. Of a tokenizer it has the name."""
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
