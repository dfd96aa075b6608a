"""`simindex dedup`: a stream of documents without near-duplicates of earlier ones.

A document is dropped if it is within h of one that was kept before it, so the output does not
depend on how the stream is cut into chunks:

    chunk of documents -> drop those near a stored one      (an index of what was kept, on disk)
                       -> drop those near an earlier kept one of the same chunk
                       -> write the others, store them

Memory holds one chunk; the index lies in a temporary folder.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import click
import numpy as np

import simindex
from simindex.cli.choices import Reading, input_options, output_options, say_passed_over
from simindex.cli.chunks import CHUNK_DOCUMENTS, SkippedReport, chunks, places_of_rows
from simindex.cli.console import count, duration, say
from simindex.cli.learning import Lesson
from simindex.cli.progress import Progress
from simindex.cli.recipes import Learning, idf_options, prepare, recipe_options
from simindex.clusters import neighbours
from simindex.errors import InvalidOption
from simindex.inputs import Document, require_inputs

TEMPORARY_BATCH_ROWS = 1 << 16
"""Small segments: what is pending is looked through for every chunk."""


@click.command()
@click.argument("inputs", metavar="[INPUT]...", nargs=-1)
@click.option(
    "-h", "--distance", "h", type=click.IntRange(min=0), default=3, show_default=True,
    help="Hamming distance, inclusive.",
)
@click.option(
    "--recall", type=float, default=1.0, show_default=True,
    help="Share of the near-duplicates to find; 1 is exact.",
)
@click.option("--report", type=click.Path(), help="A file to list the dropped ones in, as JSONL.")
@click.option("--temp-dir", type=click.Path(), help="Where the temporary index is kept.")
@recipe_options
@idf_options
@input_options
@output_options
def dedup(
    inputs: tuple[str, ...], h: int, recall: float, report: str | None, temp_dir: str | None,
    recipe_given: dict[str, Any], learning: Learning, reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Print documents but no near-duplicates.

    A document is dropped when an earlier one that was kept is within the distance.

    Reads standard input without an INPUT. Lines of JSONL come out byte for byte; other documents as
    an object of their fields. A document that has no fingerprint is kept.
    """
    inputs = inputs or ("-",)
    require_inputs(inputs)
    started = time.perf_counter()
    without = SkippedReport()
    silent = quiet or sys.stdout.isatty()
    with ExitStack() as opened:
        folder = opened.enter_context(_temporary_folder(temp_dir))
        listing = opened.enter_context(_report_file(report))
        prepared = prepare(
            recipe_given, learning, inputs, reading, quiet=silent, printed=True
        )
        recipe, intake = prepared.recipe, prepared.intake
        options = simindex.IndexOptions(
            keys="str", batch_rows=TEMPORARY_BATCH_ROWS, recipe=recipe
        )
        progress = opened.enter_context(Progress("deduplicating", quiet=silent))
        index = opened.enter_context(simindex.open(folder / "kept", "n", options=options))
        output = sys.stdout.buffer
        read = kept = 0
        for chunk in chunks(prepared.documents, CHUNK_DOCUMENTS):
            batch = recipe.batch(
                [document.text for document in chunk], keys=[document.key for document in chunk]
            )
            without.add(chunk, batch.skipped)
            rows = [chunk[place] for place in places_of_rows(len(chunk), batch.skipped)]
            dropped = _near_stored(index, batch, h, recall)
            _near_earlier(batch, rows, h, dropped)
            survivors = [row for row in range(len(rows)) if row not in dropped]
            if survivors:
                index.append(batch.take(np.array(survivors, dtype=np.intp)))
                index.commit()
            gone = {id(rows[row]) for row in dropped}
            for document in chunk:
                if id(document) not in gone:
                    _write(output, document, reading)
            if listing is not None:
                for row in sorted(dropped):
                    _list(listing, rows[row], dropped[row])
            read += len(chunk)
            kept += len(chunk) - len(gone)
            progress.advance(len(chunk), sum(len(document.text) for document in chunk))
        output.flush()
    without.close()
    seconds = time.perf_counter() - started
    if as_json:
        _say_json(read, kept, without.number, intake.bad_records, seconds, prepared.lesson)
    elif not quiet:
        say_passed_over(intake)
        if intake.bad_records:
            say(f"skipped {count(intake.bad_records, 'bad record')}")
        if prepared.lesson is not None:
            say(prepared.lesson)
        say(
            f"kept {kept:,} of {count(read, 'document')}, dropped {read - kept:,} within {h} of an "
            f"earlier one, in {duration(seconds)}"
        )


# Row of a batch -> key of the kept document it is near to, and their distance.
Dropped = dict[int, tuple[str, int]]


def _near_stored(index: Any, batch: Any, h: int, recall: float) -> Dropped:
    dropped: Dropped = {}
    for match in index.query(batch, h=h, recall=recall):
        dropped.setdefault(match.query, (match.key, match.distance))  # the nearest comes first
    return dropped


def _near_earlier(batch: Any, rows: list[Document], h: int, dropped: Dropped) -> None:
    earlier, later, distance = neighbours(batch.fingerprints, h)
    nearest: Dropped = {}
    current = -1
    # Sorted by the later row, so every earlier row is decided when it is asked about.
    for a, b, apart in zip(earlier.tolist(), later.tolist(), distance.tolist(), strict=True):
        if b != current:
            dropped.update(nearest)
            nearest, current = {}, b
        if b in dropped or a in dropped:
            continue
        if b not in nearest or apart < nearest[b][1]:
            nearest[b] = (rows[a].key, apart)
    dropped.update(nearest)


def _write(output: BinaryIO, document: Document, reading: Reading) -> None:
    line = document.raw
    if line is None:
        fields = document.fields
        if fields is None:
            fields = {reading.key_field: document.key, reading.text_field: document.text}
        line = json.dumps(fields, ensure_ascii=False).encode()
    output.write(line if line.endswith(b"\n") else line + b"\n")


def _list(listing: TextIO, document: Document, near: tuple[str, int]) -> None:
    key, distance = near
    record = {"dropped": document.key, "kept": key, "distance": distance}
    listing.write(json.dumps(record, ensure_ascii=False) + "\n")


def _say_json(
    read: int, kept: int, without: int, bad_records: int, seconds: float, lesson: Lesson | None
) -> None:
    # Standard output is the documents', so the summary goes where summaries go.
    summary = {
        "documents": read,
        "kept": kept,
        "dropped": read - kept,
        "without_fingerprint": without,
        "bad_records": bad_records,
        "seconds": round(seconds, 3),
        **({} if lesson is None else {"idf": lesson.record()}),
    }
    click.echo(json.dumps(summary), err=True)


@contextmanager
def _temporary_folder(parent: str | None) -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(
            dir=parent, prefix="simindex-dedup-", ignore_cleanup_errors=True
        )
    except OSError as error:
        raise InvalidOption(
            f"no temporary folder can be made in {parent or tempfile.gettempdir()}: "
            f"{error.strerror}; name another with --temp-dir",
            option="temp_dir",
        ) from error
    with folder as name:
        yield Path(name)


@contextmanager
def _report_file(path: str | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise InvalidOption(
            f"--report {path} cannot be written: {error.strerror}", option="report", path=path
        ) from error
    with file:
        yield file
