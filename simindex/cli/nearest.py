"""`--top` of `query` and `explain`: the nearest documents instead of those within a distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from simindex.cli.choices import adopt, together

USUAL_MAX_ERROR = 2

_DISTANCE_ONLY = {
    "h": "--distance", "first": "--first", "memory": "--memory", "memory_limit": "--memory-limit",
}
"""Options that ask for all documents within a distance, or for how."""


def _max_error(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None or value == "auto":
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f'{value!r} is no number of bits: give one, or "auto"') from None


_top_options = together(
    click.option(
        "--top", type=int, metavar="K",
        help="The K nearest documents of each query, however far.",
    ),
    click.option(
        "--max-error", callback=_max_error, metavar="BITS",
        help="With --top, where there are slice lists: bits in which a slice may differ, "
        f"{USUAL_MAX_ERROR} by default; auto takes the fewest that reach --recall, which is then "
        "0.95 by default.",
    ),
    click.option(
        "--rerank", type=int, metavar="ROWS",
        help="With --top: rows of a segment to compare, of those that slice lists score highest.",
    ),
)


def top_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --top and what goes with it; the command gets the options of `Index.top` as `nearest`.

    That is None without --top. Options of the command that contradict it are a wrong call.
    """

    def collected(
        *args: Any, top: int | None, max_error: Any, rerank: int | None, **others: Any
    ) -> Any:
        return command(*args, nearest=_asked(top, max_error, rerank, others), **others)

    adopt(collected, command)
    return _top_options(collected)


def _asked(
    top: int | None, max_error: Any, rerank: int | None, others: dict[str, Any]
) -> dict[str, Any] | None:
    if top is None:
        for name, value in (("--max-error", max_error), ("--rerank", rerank)):
            if value is not None:
                raise click.UsageError(f"{name} says how the nearest are found: give --top, too")
        return None
    for name, option in _DISTANCE_ONLY.items():
        if _is_given(name):
            raise click.UsageError(f"--top asks for the nearest, however far: leave out {option}")
    recall = others["recall"] if _is_given("recall") else None
    if max_error is None:
        max_error = USUAL_MAX_ERROR if recall is None else "auto"
    return {
        "k": top, "max_error": max_error, "rerank": rerank, "method": others["method"],
        "recall": recall,
    }


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE
