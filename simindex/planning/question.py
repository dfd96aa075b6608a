"""What a call asks: a question, or one for the nearest, checked once and then trusted."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from simindex.checks import is_whole, require_distance, require_share, require_whole, whole
from simindex.errors import InvalidOption
from simindex.options import as_flag, is_structure
from simindex.planning import registry
from simindex.planning.similarity import Similar
from simindex.values import dataclass

REMEMBERED = 256
"""Questions of either kind, and plans for the nearest, that a handle keeps, at most."""

USUAL_RECALL = 0.95
"""The recall to reach where `max_error="auto"` comes without one."""


@dataclass(frozen=True, slots=True)
class Question:
    """Checked options of a query; see `Index.query`."""

    h: int
    first: bool = False
    recall: float = 1.0
    method: str = "auto"
    memory: int | None = None
    memory_limit: int | None = None
    threads: int | None = None
    """As given: how many are used depends on the size of a call."""
    limit: int | None = None
    """Matches of a query, the nearest ones, at most."""
    similar: Similar | None = None
    """What h and the recall were chosen for."""

    @property
    def stops_early(self) -> bool:
        """Whether one row within h is enough: not where sketches may reject it."""
        return self.first and (self.similar is None or not self.similar.sketch_bits)

    def compared_by(self, sketch_bits: int) -> Question:
        """The question by a similarity for rows with sketches of so many bits, as the first rows
        may decide; one by a radius is the same for all rows."""
        similar = self.similar
        if similar is None or similar.sketch_bits == sketch_bits:
            return self
        return replace(self, similar=similar.compared_by(sketch_bits))


class Questions:
    """The questions of one handle, checked once each; safe from many threads."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._known: dict[tuple[object, ...], Question] = {}

    def asked(
        self, *, h: int, first: bool = False, recall: float = 1.0, method: str = "auto",
        memory: int | None = None, memory_limit: int | None = None, threads: int | None = None,
        limit: int | None = None, similar: Similar | None = None,
    ) -> Question:
        """The question of these options; InvalidOption names one that is out of range."""
        key = (h, first, recall, method, memory, memory_limit, threads)
        plain = type(h) is int and memory is memory_limit is limit is None
        plain = plain and similar is None
        plain = plain and type(threads) is not bool and type(recall) is not bool
        if plain:  # else an equal value of another type may not be allowed
            try:
                known = self._known.get(key)
            except TypeError:  # options of a type that cannot be right
                plain, known = False, None
            if known is not None:
                return known
        share = check_options(h=h, recall=recall, method=method, bits=self._bits)
        limit = check_limit(limit, first=first)
        if memory_limit is not None:
            memory_limit = check_memory(memory_limit, "memory_limit")
        elif memory is not None:
            memory = check_memory(memory)
        question = Question(
            int(h), as_flag(first, "first"), share, method, memory, memory_limit, threads, limit,
            similar,
        )
        if plain and type(first) is bool:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = question
        return question


def check_options(*, h: object, recall: object, method: object, bits: int) -> float:
    """The recall as a number; refuses options out of range with InvalidOption."""
    require_distance(h, bits)
    found = require_share(recall, "recall")
    if registry.names_design(method):
        if is_structure(str(method)):
            return found
        raise InvalidOption(
            f"method={method!r} is not the name of a structure",
            remedy='give a structure of the index, such as "bphs:G=4,g=1" or "bphs:G=3,g=1,r=2"; '
            'a design '
            'without flips has no r', option="method", found=method,
        )
    if not isinstance(method, str) or method not in registry.names():
        raise InvalidOption(
            f"method={method!r} is unknown",
            remedy=f"give one of {', '.join(registry.names())}, or the name of a structure of the "
            "index",
            option="method", found=method,
        )
    return found


def check_limit(limit: object, *, first: object) -> int | None:
    """The number of matches a query; refuses what is none, or contradicts `first`."""
    if limit is None:
        return None
    if first:
        raise InvalidOption(
            f"first=True and limit={limit!r} contradict each other",
            remedy="give limit=1 for a nearest match, or first=True for any", option="limit",
            found=limit,
        )
    return require_whole(limit, "limit", 1)


def check_memory(memory: object, option: str = "memory") -> int:
    """The number of bytes, of numpy or not, as Python's; refuses what is none with InvalidOption.
    """
    if not is_whole(memory) or memory < 0:
        raise InvalidOption(
            f"{option}={memory!r} is not a size in bytes",
            remedy="give a whole number of bytes", option=option, found=memory,
        )
    return int(memory)


@dataclass(frozen=True, slots=True)
class TopQuestion:
    """Checked options of a search for the nearest documents; see `Index.top`."""

    k: int
    max_error: int | None
    """None to choose it by a recall."""
    rerank: int | None
    """None for the usual ones; see `methods.issl.default_rerank`."""
    method: str
    recall: float | None
    threads: int | None = field(default=None, compare=False)
    """As given. Questions that differ by nothing else have the same plan."""

    @property
    def exact(self) -> bool:
        """Whether an exact method is asked for by name."""
        return self.method != "auto" and registry.top_of(self.method).exact


class TopQuestions:
    """The questions for the nearest of one handle, checked once each; safe from many threads."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], TopQuestion] = {}

    def asked(
        self, *, k: Any, max_error: Any, rerank: Any, method: Any, recall: Any, threads: Any,
        width: int,
    ) -> TopQuestion:
        """The question of these options; see `checked_top`."""
        given = (k, max_error, rerank, method, recall, threads, width)
        # Equal values of other types, such as True, are not whole numbers.
        key = (*given, *map(type, given))
        hashed = True
        try:
            found = self._known.get(key)
        except TypeError:  # arrays of one number, which have no hash, or what cannot be right
            found, hashed = None, False
        if found is not None:
            return found
        question = checked_top(
            k=k, max_error=max_error, rerank=rerank, method=method, recall=recall,
            threads=threads, width=width,
        )
        if hashed:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = question
        return question


def checked_top(
    *, k: object, max_error: object, rerank: object, method: object, recall: object, threads: Any,
    width: int,
) -> TopQuestion:
    """The options of a search for the nearest documents, once they are in range.

    Parameters
    ----------
    threads : int, optional
        Checked where they are counted.
    width : int
        Of the slices, in bits.

    Raises
    ------
    InvalidOption
        Names the option that is not, and what may be given.
    """
    count = whole(k)
    if count is None or count < 1:
        raise InvalidOption(
            f"k={k!r} is not a number of documents",
            remedy="give a whole number from 1 on", option="k", found=k, expected="1 or more",
        )
    methods = registry.top_names()
    if not isinstance(method, str) or method not in methods:
        raise InvalidOption(
            f"method={method!r} does not work here",
            remedy=f"give one of {', '.join(methods)}", option="method", found=method,
            expected=methods,
        )
    errors = None if isinstance(max_error, str) and max_error == "auto" else whole(max_error)
    if not (isinstance(max_error, str) and max_error == "auto") and (
        errors is None or not 0 <= errors <= width
    ):
        raise InvalidOption(
            f"max_error={max_error!r} is not valid",
            remedy=f'give a whole number from 0 to {width}, the bits of a slice, or "auto" with a '
            'recall', option="max_error", found=max_error, expected=f"0 to {width}",
        )
    rows = None if rerank is None else whole(rerank)
    if rerank is not None and (rows is None or rows < count):
        raise InvalidOption(
            f"rerank={rerank!r} is not a number of rows to compare",
            remedy=f"give a whole number from k={count} on, or leave rerank out", option="rerank",
            found=rerank, expected=f"{count} or more",
        )
    return TopQuestion(
        count, errors, rows, str(method), _checked_recall(recall, errors, str(method)), threads
    )


def _checked_recall(recall: object, max_error: int | None, method: str) -> float | None:
    if recall is None:
        return USUAL_RECALL if max_error is None else None
    share = require_share(recall, "recall")
    exact = method != "auto" and registry.top_of(method).exact
    if share == 1.0 and method != "auto" and not exact:
        raise InvalidOption(
            "recall=1 must be exact, and slice lists are not",
            remedy='give method="scan" or "auto", or a recall below 1', option="recall",
            found=recall,
        )
    if share < 1.0 and max_error is not None and not exact:
        raise InvalidOption(
            f'recall={recall!r} needs max_error="auto", and max_error={max_error} is '
            "given",
            remedy='give max_error="auto", or leave recall out', option="recall", found=recall,
        )
    return share
