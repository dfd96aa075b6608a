"""`simindex query`: stored near-duplicates of documents, texts or fingerprints, or the nearest."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.query_options import (
    fingerprint_option,
    is_given,
    others_option,
    search_options,
    shown_options,
    text_option,
    top_options,
)
from simindex.cli.questions import Asking
from simindex.cli.recommendation import asked_threshold, calibrated_option
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import (
    distance_option,
    index_argument,
    output_options,
    process_limit_option,
    threads_option,
)
from simindex.cli.similarity import (
    measure_option,
    require_one,
    similarity_option,
    within,
)
from simindex.inputs.files import is_index
from simindex.inputs.reading import require_inputs

if TYPE_CHECKING:
    from simindex.cli.batches import Ask
    from simindex.records.reports import SpotCheck


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
                        how = f"{matches.stats.method}, " if is_given("method") else ""
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
