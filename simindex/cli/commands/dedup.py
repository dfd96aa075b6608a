"""`simindex dedup`: a stream of documents without near-duplicates, through an index on disk.

    documents -> buffer -> lost to a stored one, or to one of the buffer     buffer_losses.py
                        -> the others written out, in the order of the input
                        -> those stored, in one commit

Without --index the index is a temporary one. Memory holds three buffers, of which one is decided,
one waits and one is made, and the chunks that are read meanwhile.

1. A document is never in the index without having been written: output and audit of a buffer are
   flushed (and synced, where they are files) before its commit. After a kill, what was written
   since the last commit is not in the index, so a second run writes it again and loses nothing.
2. What is in the index was written before, so it wins against all later documents.
3. With --keep first, what is dropped does not depend on where buffers end. With another rank it
   does not either, if the inputs can be read twice: see `cli/dedup/two_readings.py`.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.app import program
from simindex.cli.console import count, duration, megabytes, say
from simindex.cli.dedup.ranks import DATE_FIELDS, WRITTEN, Keep, keep_option
from simindex.cli.dedup.spool import copied_stdin, decided_in_buffers
from simindex.cli.dedup.verification import (
    Verifying,
    require_doubt,
    said_of,
    summary_of,
    verify_option,
)
from simindex.cli.input_options import Reading, input_options, inputs_argument
from simindex.cli.lock_wait import LockWait, wait_option
from simindex.cli.numbers import Count, Share
from simindex.cli.prepared_documents import Learning, idf_options
from simindex.cli.progress import Progress
from simindex.cli.recipes import recipe_options
from simindex.cli.recommendation import asked_threshold, calibrated_option, no_advice
from simindex.cli.shared_options import NamedPath, distance, output_options, times_option
from simindex.cli.short_texts import ShortTexts
from simindex.cli.similarity import measure_option, require_one, similarity_option
from simindex.cli.suggestions import suggested
from simindex.cli.targets import require_apart
from simindex.errors import InvalidOption
from simindex.inputs.reading import require_inputs
from simindex.inputs.streams import STDIN

if TYPE_CHECKING:
    from simindex.cli.dedup.matched_index import MatchedIndex
    from simindex.pairs.buffer_losses import Nearness

FIRST_BUFFER, BUFFER = 1 << 12, 1 << 14
"""Documents of a buffer: with `--keep first`, where its end changes nothing, so few that reading,
fingerprinting and writing run beside each other; else more, for what is decided among them."""

SKETCH_BITS = 512
"""Of a new index that --similarity compares, unless --sketch-bits says otherwise."""


@program.command()
@inputs_argument
@click.option(
    "--index", "index_path", type=NamedPath(), metavar="INDEX",
    help="Also drop near-duplicates of the documents of this index, and add the printed documents "
    "to it. It is created if it does not exist. An existing one is used with its own recipe. "
    "Default: a temporary index.",
)
@distance("that of the recipe, or of an existing --index")
@similarity_option
@measure_option
@calibrated_option
@verify_option
@click.option(
    "--keep", default="first", show_default=True, metavar="POLICY", callback=keep_option,
    shell_complete=suggested(lambda: WRITTEN),
    help="Which of several near-duplicates to keep: first, longest (the longest text), newest, "
    "highest:FIELD (the highest number or text in FIELD), or none (drop all of them). longest, "
    "newest and highest read the inputs twice, and standard input from a temporary copy. With "
    "standard input and --buffer they choose within each buffer. A document that was printed "
    "before always wins, such as one that an earlier run with --index printed.",
)
@click.option(
    "--date-field", metavar="NAME",
    help=f"With --keep newest, the field that has the date. Default: the first of "
    f"{', '.join(DATE_FIELDS)} that a document has.",
)
@click.option(
    "--buffer", "buffer_documents", type=Count(1), metavar="N",
    show_default=f"{FIRST_BUFFER} with --keep first, else {BUFFER}",
    help="How many documents to collect before they are compared, printed and committed. A buffer "
    "ends earlier at 32 MB. A stream that does not end also needs --weighting sublinear: other "
    "weightings wait for 10,000 documents to learn word weights from.",
)
@click.option(
    "--mark", is_flag=True,
    help="Drop nothing. Print all documents, each with a field near_duplicate_of: the kept "
    "document that it is a near-duplicate of, or null.",
)
@click.option(
    "--certificates", "--audit", "audit", type=NamedPath(), metavar="FILE",
    help="Write a line of JSON to FILE for each dropped document: its key, the key of the kept "
    "one, the distance, the similarity that it tells, the reason, and the file and line of both. "
    "With --index, lines are added to FILE, except those that it has. "
    "Without --index, a FILE that ends with .csv or .parquet gets a table, which appears at the "
    "end of the run. Both names are the same option.",
)
@click.option(
    "--recall", type=Share(), default=1.0, show_default=True,
    help="Share of the stored near-duplicates to find. 1 finds all. With --similarity: of those "
    "at exactly that similarity; 1 means 0.85 then.",
)
@click.option(
    "--temp-dir", type=NamedPath(), metavar="DIR",
    help="Folder for the temporary index and other temporary files. Default: the temporary folder "
    "of the system.",
)
@times_option
@recipe_options
@idf_options
@input_options
@wait_option
@output_options
def dedup(
    inputs: tuple[str, ...], index_path: str | None, h: int | None, similarity: float | None,
    measure: str, calibrated: bool, verify_text: bool, keep: Keep, date_field: str | None,
    buffer_documents: int | None, mark: bool, audit: str | None,
    recall: float, temp_dir: str | None, times: bool, recipe_given: dict[str, Any],
    learning: Learning, reading: Reading, wait: LockWait, as_json: bool, quiet: bool,
) -> None:
    """Copy documents without their near-duplicates.

    Drops a document if its fingerprint differs from that of a kept document in at most --distance
    bits. With --similarity it drops a document if the similarity that is estimated from both
    sketches is high enough.

    Without an INPUT it reads standard input. It prints JSON lines byte for byte, and other
    documents as a JSON object of their fields. It keeps documents that have no fingerprint, such
    as empty ones.

    With --index it prints each buffer, and then commits it to INDEX. After a kill or Ctrl-C, the
    documents that were printed since the last commit are not in INDEX, and a second run prints them
    again. A second run does not print documents that INDEX has under the same key with the same
    fingerprint. With --mark it prints them, unmarked.
    """
    from simindex.cli.batches import process_bytes
    from simindex.cli.dedup.audit_file import audit_typed
    from simindex.cli.dedup.matched_index import (
        Asked,
        empty_index,
        lasting,
        temporary,
        temporary_folder,
    )
    from simindex.cli.dedup.output_streams import audit_file, audit_format, whole_writes

    inputs = inputs or ("-",)
    require_inputs(inputs)
    require_one(h, similarity)
    _require_nearness(index_path, similarity, measure, recipe_given, calibrated=calibrated)
    if verify_text:
        _require_doubt(similarity, keep, calibrated=calibrated)
    require_apart(audit_typed(), audit, inputs, *([] if index_path is None else [index_path]))
    adding = index_path is not None
    audited = audit_format(audit, adding=adding)
    if date_field is not None:
        if keep.policy != "newest":
            raise click.UsageError("--date-field needs --keep newest")
        keep = replace(keep, field=date_field)
    if buffer_documents is None:
        buffer_documents = FIRST_BUFFER if keep.policy == "first" else BUFFER
    streamed = decided_in_buffers(inputs) if keep.is_by_rank else None
    whole = keep.is_by_rank and streamed is None
    for given, option in ((wait.seconds, "--wait"), (times, "--times")):
        if given and index_path is None:
            raise click.UsageError(f"{option} needs --index")
    if index_path is not None and temp_dir is not None and not (whole or verify_text):
        raise click.UsageError("nothing is temporary here: leave out --temp-dir")
    if keep.is_by_rank and not (whole or quiet):
        say(
            f"--keep {keep.policy} is decided within each buffer of "
            f"{count(buffer_documents, 'document')}, because {streamed}"
        )
    started = time.perf_counter()
    silent = quiet or sys.stdout.isatty()
    reading = reading.of_all_fields()
    reading = reading.of_this_run() if index_path is None else reading.lasting()
    if similarity is not None and (index_path is None or not Path(index_path).exists()):
        recipe_given = {"sketch_bits": SKETCH_BITS, **recipe_given}
    asked = Asked(inputs, recipe_given, h, learning, reading, silent, wait, times)
    with ExitStack() as opened:
        if index_path is None or whole or verify_text:
            folder = opened.enter_context(temporary_folder(temp_dir))
        if whole and STDIN in inputs:
            reading = reading.of_copy(copied_stdin(folder))
            asked = replace(asked, reading=reading)
        if index_path is None:
            matched = temporary(folder / "kept", asked, keys=False if whole else "str")
        else:
            matched = lasting(Path(index_path), asked)
        from simindex.cli.dedup.run import Run  # with the search, once documents are there
        from simindex.cli.dedup.two_readings import Ranking

        opened.enter_context(matched.index)
        rows_before = len(matched.index)
        near = _nearness(matched, h, similarity, measure, recall, calibrated=calibrated)
        h, similarity_given = near.h, similarity
        if near.similar is not None:
            similarity = near.similar.asked or near.similar.similarity
        verifying = None
        if verify_text:
            require_doubt(str(index_path), None if near.similar is None else similarity)
            verifying = Verifying.of(near, matched.prepared.recipe, folder)
            opened.callback(verifying.texts.close)
        extent = matched.prepared.extent
        shown = Progress("deduplicating", quiet=silent, extent=extent)
        with matched.outcome_told(), shown as progress:
            listing = opened.enter_context(
                audit_file(audit, audited, adding=adding, verified=verify_text)
            )
            output = opened.enter_context(whole_writes())
            short = ShortTexts(
                matched.prepared.recipe, h, fixed=matched.lasting and matched.made is None,
                compares=True, advice=_advice(similarity_given, calibrated=calibrated),
            )
            run = Run(matched, near, keep, mark, output, listing, short, verifying)
            if whole:
                kept = matched.index
                if matched.lasting:
                    kept = opened.enter_context(
                        empty_index(folder / "kept", matched.prepared.recipe)
                    )
                with closing(Ranking(folder, keep)) as ranking:
                    run.over_all(ranking, kept, buffer_documents, progress)
            else:
                run.through(buffer_documents, progress)
            rows = len(matched.index)
            matched.leave(progress, quiet=silent or as_json)
    run.without.close()
    seconds = time.perf_counter() - started
    intake, lesson = matched.prepared.intake, matched.prepared.lesson
    if as_json:
        # Standard output is the documents', so the summary goes where summaries go.
        summary = {
            "documents": run.documents,
            "kept": run.kept,
            "dropped": run.dropped,
            "h": h,
            **({} if similarity is None else {
                "similarity": similarity, "compared_bits": near.compared_bits,
            }),
            **({} if verifying is None else summary_of(verifying.verifier.told)),
            "without_fingerprint": run.without.number,
            **({"without_date": keep.dates.missing} if keep.policy == "newest" else {}),
            "bad_records": intake.bad_records,
            "short_texts": short.number,
            **({} if index_path is None else {
                "known": run.known, "rows_before": rows_before, "rows": rows,
            }),
            "seconds": round(seconds, 3),
            "peak_memory_bytes": process_bytes(),
            **({} if lesson is None else {"idf": lesson.record()}),
        }
        click.echo(json.dumps(summary), err=True)
    elif not quiet:
        matched.prepared.say()
        short.say(run.documents)
        for line in keep.dates.told(keep.field):
            say(line)
        for line in run.shared.told():
            say(line)
        for line in () if verifying is None else said_of(verifying.verifier.told):
            say(line)
        if index_path is not None and run.without.number:
            say(
                f"{count(run.without.number, 'document')} without a fingerprint: {index_path} "
                "cannot hold these, so each run prints them"
            )
        if not run.documents:
            say("the inputs hold no document")
        other = "another one" if keep.policy == "none" else "a kept one"
        of = count(run.documents, "document")
        reach = (
            f"within {h} bits of" if similarity is None
            else f"of similarity {similarity:g} or more to"
        )
        said = (
            f"marked {run.dropped:,} of {of} as {reach} {other}"
            if mark
            else f"kept {run.kept:,} of {of}, dropped {run.dropped:,} {reach} {other}"
            + (f", and {run.known:,} that {index_path} has under the same id" * bool(run.known))
        )
        held = (
            "" if index_path is None
            else f"; {index_path} had {count(rows_before, 'row')} and holds {rows:,}"
        )
        say(f"{said}, in {duration(seconds)} and {megabytes(process_bytes())} of memory{held}")


def _require_nearness(
    index_path: str | None, similarity: float | None, measure: str, recipe_given: dict[str, Any],
    *, calibrated: bool,
) -> None:
    """Refuses what no index can be asked for, before one is made for it."""
    from simindex.planning.similarity import require_measure, similar

    there = index_path is not None and Path(index_path).exists()
    if calibrated and index_path is None:
        raise click.UsageError("--calibrated needs --index")
    if calibrated and not there:
        raise no_advice(str(index_path))
    require_measure(measure, similarity, None)
    if similarity is not None:
        similar(similarity, h=None, recall=1.0, bits=64, sketch_bits=0, measure=measure)
    if measure == "jaccard" and not there and recipe_given.get("weighting") != "binary":
        raise InvalidOption(
            "--measure jaccard compares sets of features, which weights do not make",
            remedy="give --weighting binary, such as with --ngram 3", option="measure",
        )


def _advice(similarity: float | None, *, calibrated: bool) -> str | None:
    """What finds more edits of short texts, where -d cannot be given."""
    if calibrated:
        return ""
    return None if similarity is None else "A smaller --similarity finds more of these edits"


def _require_doubt(similarity: float | None, keep: Keep, *, calibrated: bool) -> None:
    if similarity is None and not calibrated:
        raise click.UsageError("--verify-text needs --similarity")
    if keep.policy == "none":
        raise click.UsageError(
            "--verify-text compares documents with a kept one, and --keep none keeps no document "
            "that has a near-duplicate"
        )


def _nearness(
    matched: MatchedIndex, h: int | None, similarity: float | None, measure: str, recall: float,
    *, calibrated: bool,
) -> Nearness:
    """What near-duplicates are: by the options, else by the recipe.

    Stored rows are asked for with weights, and buffers have the same radius.
    """
    from simindex.pairs.buffer_losses import Nearness
    from simindex.planning.similarity import similar

    recipe = matched.prepared.recipe
    if calibrated:
        asked = asked_threshold(
            matched.index, str(matched.path), h, similarity, measure, recall, calibrated=True
        ).arguments
        h, similarity = asked.get("h"), asked.get("similarity")
        recall = asked.get("recall", 1.0)
    if similarity is None:
        return Nearness(recipe.h if h is None else h, recall, bits=recipe.bits)
    found = similar(
        similarity, h=h, recall=recall, bits=recipe.bits,
        sketch_bits=matched.index.options.sketch_bits, measure=measure, recipe=recipe,
        weighted=True,
    )
    return Nearness(found.h, recall, found)
