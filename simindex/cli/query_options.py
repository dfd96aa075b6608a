"""Options of a query, which other commands that ask an index share with `simindex query`."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from simindex.cli.numbers import Count, Share
from simindex.cli.shared_options import NamedPath, Option, collected, memory_option, together
from simindex.cli.suggestions import suggested

METHODS = ("auto", "psm", "bphs", "issl", "scan")
"""Those of the registry, which imports all of them."""


def _fingerprint(ctx: click.Context, parameter: click.Parameter, values: Any) -> list[list[int]]:
    fingerprints = []
    for value in values:
        digits = value.lower().removeprefix("0x").replace("_", "")
        if not digits or len(digits) % 16 or set(digits) - set("0123456789abcdef"):
            raise click.BadParameter(
                f"{value!r} is not 16 hexadecimal digits, or a multiple of 16 for wider ones"
            )
        fingerprints.append([int(digits[at : at + 16], 16) for at in range(0, len(digits), 16)])
    return fingerprints


text_option: Option = click.option(
    "--text", "texts", multiple=True, help="A text to look up. May be repeated."
)

fingerprint_option: Option = click.option(
    "--fingerprint", "fingerprints", multiple=True, callback=_fingerprint, metavar="HEX",
    help="A fingerprint to look up, as `simindex export` prints it. May be repeated.",
)

others_option: Option = click.option(
    "--index", "others", multiple=True, metavar="OTHER", type=NamedPath(),
    help="Look up every row of another index with the same recipe. May be repeated.",
)

shown_options: Option = together(
    click.option(
        "--first", is_flag=True,
        help="Print at most one match for each query, the first that is found.",
    ),
    click.option(
        "--limit", type=Count(), metavar="N",
        help="Print at most N matches for each query, the nearest ones. Default: all.",
    ),
    click.option(
        "--list", "listed", type=click.Choice(["matched", "unmatched"]),
        help="Print only the names of the queries that have a match, or of those that have none. "
        "With --index this lists what is in both indexes, or only in the other one.",
    ),
)
"""Which matches are printed; the command gets `first`, `limit` and `listed`."""

search_options: Option = together(
    memory_option,
    click.option(
        "--method", default="auto", show_default=True, metavar="NAME",
        shell_complete=suggested(lambda: METHODS),
        help=f"How to search: {', '.join(METHODS)}, or the name of a structure.",
    ),
    click.option(
        "--recall", type=Share(), default=1.0, show_default=True,
        help="Share of the near-duplicates to find. 1 finds all, and less is faster in large "
        "indexes. With --similarity: of those at exactly that similarity; 1 means 0.85 then.",
    ),
)
"""How tables are searched; the command gets `memory`, `method` and `recall`."""

USUAL_MAX_ERROR = 2

_DISTANCE_ONLY = {
    "h": "--distance", "similarity": "--similarity", "first": "--first", "limit": "--limit",
    "listed": "--list", "memory": "--memory", "memory_limit": "--memory-limit",
}
"""Options that ask for all documents within a distance, or for how."""


def _max_error(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None or value == "auto":
        return value
    try:
        return Count().convert(value, parameter, ctx)
    except click.BadParameter:
        raise click.BadParameter(
            f'{value!r} is not a number of bits: give one, or "auto"'
        ) from None


def _nearest(top: int | None, max_error: Any, rerank: int | None) -> dict[str, Any] | None:
    if top is None:
        for name, value in (("--max-error", max_error), ("--rerank", rerank)):
            if value is not None:
                raise click.UsageError(f"{name} says how the nearest are found: give --top, too")
        return None
    for name, option in _DISTANCE_ONLY.items():
        if is_given(name):
            raise click.UsageError(f"--top asks for the nearest, however far: leave out {option}")
    others = click.get_current_context().params
    recall = others["recall"] if is_given("recall") else None
    if max_error is None:
        max_error = USUAL_MAX_ERROR if recall is None else "auto"
    return {
        "k": top, "max_error": max_error, "rerank": rerank, "method": others["method"],
        "recall": recall,
    }


def is_given(name: str) -> bool:
    """Whether an option of the command was given, and not left at its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


slice_options: Option = together(
    click.option(
        "--max-error", callback=_max_error, metavar="BITS",
        help="With --top and slice lists: in how many bits a slice may differ. auto takes the "
        "smallest number that reaches --recall, 0.95 if not given. Default: "
        f"{USUAL_MAX_ERROR}, or auto with --recall.",
    ),
    click.option(
        "--rerank", type=Count(), metavar="ROWS",
        help="With --top and slice lists: how many rows of each file to compare exactly, those "
        "with the highest scores. Default: chosen by K and the size of the file.",
    ),
)
"""How the nearest are found in slice lists; the command gets `max_error` and `rerank`."""


def top_options(told: str) -> Option:
    """`--top`, with what help says of it, and what goes with it.

    The command gets the options of `Index.top` as `nearest`. That is None without --top. Options of
    the command that contradict it are a wrong call.
    """
    return collected(
        "nearest", _nearest, click.option("--top", type=Count(), metavar="K", help=told),
        slice_options,
    )
