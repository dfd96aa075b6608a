"""What a call asks: a question, whose options are checked once and then trusted."""

from __future__ import annotations

from dataclasses import dataclass

from simindex.checks import is_int, require_distance
from simindex.errors import InvalidOption
from simindex.options import as_flag
from simindex.planning import registry

REMEMBERED = 256
"""Questions that a handle keeps, at most."""


@dataclass(frozen=True, slots=True)
class Question:
    """Checked options of a query; see `Index.query`."""

    h: int = 3
    first: bool = False
    recall: float = 1.0
    method: str = "auto"
    memory: int | None = None
    memory_limit: int | None = None
    threads: int | None = None
    """As given: how many are used depends on the size of a call."""


class Questions:
    """The questions of one handle, checked once each; safe from many threads."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._known: dict[tuple[object, ...], Question] = {}

    def asked(
        self, *, h: int = 3, first: bool = False, recall: float = 1.0, method: str = "auto",
        memory: int | None = None, memory_limit: int | None = None, threads: int | None = None,
    ) -> Question:
        """The question of these options; InvalidOption names one that is out of range."""
        key = (h, first, recall, method, memory, memory_limit, threads)
        plain = type(h) is int and memory is memory_limit is None and type(threads) is not bool
        if plain:  # else an equal value of another type may not be allowed
            try:
                known = self._known.get(key)
            except TypeError:  # options of a type that cannot be right
                plain, known = False, None
            if known is not None:
                return known
        check_options(h=h, recall=recall, method=method, bits=self._bits)
        question = Question(
            h, as_flag(first, "first"), recall, method, memory, memory_limit, threads
        )
        if memory_limit is not None:
            check_memory(memory_limit, "memory_limit")
        elif memory is not None:
            check_memory(memory)
        if plain and type(first) is bool:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = question
        return question


def check_options(*, h: object, recall: object, method: object, bits: int) -> None:
    """Refuses options out of range with InvalidOption."""
    require_distance(h, bits)
    if isinstance(recall, bool) or not isinstance(recall, (int, float)) or not 0 < recall <= 1:
        raise InvalidOption(
            f"recall={recall!r} is not a share: give more than 0 and at most 1",
            option="recall", found=recall,
        )
    if registry.is_known(method):
        return
    if registry.names_design(method):
        raise InvalidOption(
            f"method={method!r} names no structure: give one of the index, such as "
            '"bphs:G=4,g=1" or "bphs:G=3,g=1,r=2"; a design without flips has no r',
            option="method", found=method,
        )
    raise InvalidOption(
        f"method={method!r} is unknown: give one of {', '.join(registry.names())}, or a structure "
        "of the index",
        option="method", found=method,
    )


def check_memory(memory: object, option: str = "memory") -> None:
    """Refuses what is no number of bytes with InvalidOption."""
    if not is_int(memory) or memory < 0:
        raise InvalidOption(
            f"{option}={memory!r} is no size: give a whole number of bytes",
            option=option, found=memory,
        )
