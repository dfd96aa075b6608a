"""`simindex query`: stored near-duplicates of documents, texts or fingerprints, or the nearest."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from simindex.cli.account import met
from simindex.cli.answers import (
    end_without_question,
    matched_queries,
    print_listed,
    print_matches,
    say_nearest,
    schema_of_matches,
    told_of,
    told_of_listing,
)
from simindex.cli.app import program
from simindex.cli.console import count, duration, say, spot_checked
from simindex.cli.input_options import Reading, input_options, inputs_argument, piped_input
from simindex.cli.numbers import Count, Share
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.questions import Asking
from simindex.cli.recommendation import asked_threshold, calibrated_option
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import (
    NamedPath,
    Option,
    collected,
    distance_option,
    index_argument,
    memory_option,
    output_options,
    process_limit_option,
    threads_option,
    together,
)
from simindex.cli.similarity import (
    measure_option,
    require_one,
    similarity_option,
    within,
)
from simindex.cli.suggestions import suggested
from simindex.inputs.files import is_index
from simindex.inputs.reading import require_inputs

if TYPE_CHECKING:
    from simindex.cli.batches import Ask
    from simindex.records.reports import SpotCheck


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
        if _is_given(name):
            raise click.UsageError(f"--top asks for the nearest, however far: leave out {option}")
    others = click.get_current_context().params
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


@program.command()
@index_argument
@inputs_argument
@text_option
@fingerprint_option
@others_option
@shown_options
@top_options("Print the K documents that are nearest to each query, at any distance.")
@process_limit_option
@input_options
@result_options
@output_options
@threads_option
@search_options
@distance_option
@similarity_option
@measure_option
@calibrated_option
def query(
    index_path: str, inputs: tuple[str, ...], texts: tuple[str, ...], fingerprints: list[list[int]],
    others: tuple[str, ...], h: int | None, similarity: float | None, measure: str,
    calibrated: bool, recall: float, first: bool, limit: int | None, listed: str | None,
    method: str, memory: int | None, memory_limit: int | None, threads: int | None,
    nearest: dict[str, Any] | None, reading: Reading, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print the near-duplicates that documents have in INDEX.

    Looks up every document or fingerprint of the INPUTs, every --text and --fingerprint, and every
    row of another --index. Prints one line for each match: the query, the key (or id) of the match,
    and their distance, separated by tabs. With --similarity, the estimated similarity follows. With
    --top it prints the nearest documents, near-duplicates or not.
    """
    import numpy as np

    from simindex.cli.batches import answers_of, near_in_parts, nearest_in_parts
    from simindex.cli.near_misses import FEW, Unmatched

    require_one(h, similarity)
    if listed and limit is not None:
        raise click.UsageError("--list prints no matches: leave out --limit")
    if not (inputs or texts or fingerprints or others):
        inputs = piped_input("nothing to look up: give an INPUT, --text, --fingerprint or --index")
    _require_index_first(index_path, inputs)
    require_inputs(inputs, "check the name; a text is looked up with --text TEXT")
    results.require_apart(inputs, index_path, *others)
    intake = reading.intake()
    extent = reading.extent(inputs, intake) if inputs and not others else None
    asked = matched = found = 0
    searching = 0.0
    exact = True
    hows: dict[str, None] = {}
    measured: list[SpotCheck] = []
    without = Unmatched(FEW if nearest is None and not (quiet or listed) else 0)
    with open_index(index_path, "r") as index:
        near = asked_threshold(
            index, index_path, h, similarity, measure, recall, calibrated=calibrated
        )
        h, similarity = near.h, near.similarity
        asking = Asking(index, index_path, reading, intake, inputs, texts, fingerprints, others)
        asking.check()
        ask: Ask = (
            partial(nearest_in_parts, partial(index.top, **nearest, threads=threads), nearest["k"])
            if nearest else
            partial(near_in_parts, partial(
                index.query_stream, **near.arguments, first=first or listed is not None,
                limit=limit, method=method, memory=memory, threads=threads,
            ))
        )
        answered = answers_of(asking.batches(), ask, index.options.bits, memory_limit)
        # Not on a terminal that matches are printed to.
        silent = quiet or not (inputs or others) or results.on_terminal
        shown = Progress("looking up", quiet=silent, extent=extent)
        schema = schema_of_matches(index.options.keys, listed, similarity)
        with results.opened(schema) as write:
            with closing(answered), shown as progress:
                for names, batch, answers in answered:
                    asked += len(names)
                    has = np.zeros(len(names), np.bool_)
                    for start, matches in answers:
                        searching += matches.stats.seconds
                        has[start + matched_queries(matches)] = True
                        found += len(matches)
                        how = f"{matches.stats.method}, " if _is_given("method") else ""
                        hows[f"{how}{matches.stats.guarantee}"] = None
                        exact = exact and matches.stats.exact
                        if not listed:
                            print_matches(names, start, matches, write)
                    matched += int(np.count_nonzero(has))
                    without.add(names, batch, has)
                    if listed:
                        print_listed(names, has, listed, write)
                    progress.advance(len(names), 0)
            if not asked:  # before -o FILE is there
                end_without_question(asking, quiet)
        if not quiet and method not in ("auto", "scan") and nearest is None:
            waiting = index.stats().pending_rows
            if waiting:
                say(
                    f"{count(waiting, 'document')} were compared one by one, because they are in "
                    f"no table yet; `simindex compact {index_path} --full` makes tables of them"
                )
        if not (exact or quiet):
            measured = index.stats().spot_checks
        say_nearest(without, index, as_json)
    asking.without.close()
    if not quiet:
        for line in met(intake):
            say(line)
        how = f" ({'; '.join(hows)})" if hows else ""
        if listed:
            result = told_of_listing(asked, matched, listed, within(h, similarity))
        else:
            k = None if nearest is None else nearest["k"]
            result = told_of(asked, matched, found, within(h, similarity), k)
        say(f"{result}, in {duration(searching)}{how}")
        for told in filter(None, map(spot_checked, measured)):
            say(told)


def _require_index_first(index_path: str, inputs: tuple[str, ...]) -> None:
    """Refuses inputs before the index, where the names say that it is so."""
    if not is_index(Path(index_path)) and any(is_index(Path(name)) for name in inputs):
        raise click.UsageError(f"{index_path} is not an index: the INDEX comes before the inputs")
