"""Words that are more than what the tokenizer finds: another tokenizer, stop words, stems.

    text -> folded -> words -> without stop words -> stems -> n-grams

This way goes through Python word by word, tens of times slower than the tokenizer's own words.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from simindex.errors import InvalidBatch, InvalidOption, MissingExtra
from simindex.values import dataclass

Tokenizer = Callable[[str], Iterable[str]]

PADDING = 64
"""Bytes that kernels may read behind the last unit."""


@dataclass(frozen=True, slots=True)
class Units:
    """Units of some texts: unit u is data[starts[u]:ends[u]], text i has offsets[i]:offsets[i + 1].

    Units of a text are separated by one byte; `data` has PADDING bytes more than its units.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    offsets: NDArray[np.int64]


def storable(text: object) -> TypeGuard[str]:
    """Whether a value is a str that UTF-8 can hold: one without lone surrogates."""
    return isinstance(text, str) and not any("\ud800" <= c <= "\udfff" for c in text)


def name_of(tokenizer: Any) -> str:
    """The name that a recipe stores for a tokenizer: "module:name".

    Raises InvalidOption for one that has none. A method of an object has one only if its module
    holds that very method, as `jieba.lcut` is: another object's would make other words.
    """
    owner = getattr(tokenizer, "__objclass__", tokenizer)  # the class, of a method as str.split
    module = getattr(owner, "__module__", None)
    name = getattr(tokenizer, "__qualname__", None)
    if isinstance(tokenizer, MethodType) and not isinstance(tokenizer.__self__, type):
        held = vars(sys.modules[module]) if module in sys.modules else {}
        name = next((key for key, value in held.items() if value == tokenizer), None)
    if not module or not name or "<" in name:
        raise InvalidOption(
            f"option tokenizer={tokenizer!r} has no name that an index could store",
            remedy="give a function that is defined in a module", option="tokenizer",
            found=repr(tokenizer), expected="a named function",
        )
    return f"{module}:{name}"


def language_stop_words(language: str) -> frozenset[str]:
    """The stop words of a language by its code, such as "en"; needs the extra `stopwords`."""
    try:
        import stopwordsiso
    except ImportError as error:
        raise MissingExtra(
            f"stop words of a language ({language!r}) need an optional package",
            remedy="pip install 'simindex[stopwords]', or give a list of words",
            extra="stopwords",
        ) from error
    if not stopwordsiso.has_lang(language):
        known = ", ".join(sorted(stopwordsiso.langs()))
        raise InvalidOption(
            f"option stop_words={language!r} is not a language with stop words",
            remedy=f"give words, or one of {known}", option="stop_words", found=language,
            expected=known,
        )
    return frozenset(stopwordsiso.stopwords(language))


def _stemming() -> Any:
    try:
        import Stemmer
    except ImportError as error:
        raise MissingExtra(
            "stemming needs an optional package", remedy="pip install 'simindex[stem]'",
            extra="stem",
        ) from error
    return Stemmer


PAIRED_LANGUAGES = frozenset({"ja", "th", "zh"})
"""Languages whose words the built-in tokenizer gives as pairs of letters."""

STORED_STEMMER = re.compile(r"[a-z_]+/[0-9]+\.[0-9]+")
"""A stemmer as a recipe stores it: algorithm, and version of its rules."""


def stemmer_name(algorithm: str) -> str:
    """An algorithm with the version of its rules, as a recipe stores it: "english/3.1"."""
    stemming = _stemming()
    name, _, version = algorithm.partition("/")
    if name not in stemming.algorithms(aliases=True):
        known = ", ".join(sorted(stemming.algorithms()))
        raise InvalidOption(
            f"option stemmer={algorithm!r} is not an algorithm of Snowball",
            remedy=f"give one of {known}", option="stemmer", found=algorithm, expected=known,
        )
    installed = ".".join(stemming.version().split(".")[:2])
    if version not in ("", installed):
        raise InvalidOption(
            f"the recipe uses the stems of PyStemmer {version}, but {installed} is installed, "
            "which may give other stems",
            remedy=f"pip install 'PyStemmer=={version}.*'", option="stemmer", found=installed,
            expected=version,
        )
    return f"{name}/{installed}"


def stems_of(algorithm: str) -> Callable[[list[str]], list[str]]:
    """What turns words into stems, for a name that `stemmer_name` made."""
    name, _, _ = stemmer_name(algorithm).partition("/")
    stem_words: Callable[[list[str]], list[str]] = _stemming().Stemmer(name).stemWords
    return stem_words


def tokenized(tokenizer: Tokenizer, texts: list[str], first: int) -> list[list[str]]:
    """Words of some texts by a caller's tokenizer; empty ones are left out.

    Raises InvalidBatch, with the position of the text, if it gives anything but words.
    """
    listed = []
    for position, text in enumerate(texts, first):
        given = tokenizer(text.casefold())
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        words = list(given) if several else []
        wrong = [word for word in words if not isinstance(word, str)]
        if not several or wrong:
            kind = type(wrong[0] if several else given).__name__
            raise InvalidBatch(
                f"the tokenizer gave a {kind} for text {position}",
                remedy="let it return words, each a str", position=position,
                found=kind, expected="an iterable of str",
            )
        listed.append([word for word in words if word])
    return listed


def as_units(listed: list[list[str]]) -> Units:
    """Words of some texts as the kernels read them."""
    encoded = [word.encode("utf-8", "surrogatepass") for words in listed for word in words]
    sizes = np.fromiter(map(len, encoded), dtype=np.uint64, count=len(encoded))
    ends = np.cumsum(sizes + np.uint64(1), dtype=np.uint64) - np.uint64(1)
    offsets = np.zeros(len(listed) + 1, dtype=np.int64)
    np.cumsum([len(words) for words in listed], out=offsets[1:])
    data = np.frombuffer(b" ".join(encoded) + bytes(PADDING), dtype=np.uint8)
    return Units(data, ends - sizes, ends, offsets)


def as_lists(units: Units) -> list[list[str]]:
    """The units of each text as str."""
    data = units.data.tobytes()
    words = [
        data[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip(units.starts.tolist(), units.ends.tolist(), strict=True)
    ]
    offsets = units.offsets.tolist()
    return [words[start:end] for start, end in itertools.pairwise(offsets)]
