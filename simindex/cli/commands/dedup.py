"""`simindex dedup`: a stream of documents without near-duplicates, through an index on disk.

    documents -> buffer -> lost to a stored one, or to one of the buffer     deduplication.py
                        -> the others written out, in the order of the input
                        -> those stored, in one commit

Without --index the index is a temporary one. Memory holds one buffer and the chunk being read.

1. A document is never in the index without having been written: output and audit of a buffer are
   flushed (and synced, where they are files) before its commit. After a kill, what was written
   since the last commit is not in the index, so a second run writes it again and loses nothing.
2. What is in the index was written before, so it wins against all later documents.
3. With --keep first, what is dropped does not depend on where buffers end. With another rank it
   does not either, if the inputs can be read twice: see `cli/dedup/whole.py`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click
import numpy as np

import simindex
from simindex.bits.distinct import distinct
from simindex.cli.app import program, uninterrupted
from simindex.cli.batches import process_bytes
from simindex.cli.choices import NamedPath, Reading, distance, input_options, output_options
from simindex.cli.chunks import (
    Buffer,
    SkippedReport,
    characters_of,
    portions,
    read_ahead,
)
from simindex.cli.console import count, duration, key_text, megabytes, say
from simindex.cli.dedup.known import named_apart
from simindex.cli.dedup.listing import Listing, settle
from simindex.cli.dedup.marks import Loss, audit_line, line_of, marked_line
from simindex.cli.dedup.outputs import audit_file, require_apart, whole_writes
from simindex.cli.dedup.place import Asked, Place, lasting, temporary, temporary_folder
from simindex.cli.dedup.ranks import DATE_FIELDS, Keep, keep_option
from simindex.cli.dedup.shared_ids import SharedIds
from simindex.cli.dedup.spool import copied_stdin, decided_in_buffers
from simindex.cli.dedup.whole import Ranking
from simindex.cli.numbers import Count, Share
from simindex.cli.progress import Progress
from simindex.cli.recipes import Learning, idf_options, recipe_options
from simindex.cli.short_texts import ShortTexts
from simindex.inputs import ID_FIELDS, Document, Intake, require_inputs
from simindex.inputs.streams import STDIN
from simindex.pairs.deduplication import (
    NOWHERE,
    Losses,
    Stored,
    any_neighbour,
    greedy,
    nearest_stored,
)

BUFFER_DOCUMENTS = 1 << 14
BUFFER_BYTES = 64 << 20
"""About so much text ends a buffer, too."""

WRITTEN_LINES = 512
"""Lines handed to the system at once."""


@program.command()
@click.argument("inputs", metavar="[INPUT]...", nargs=-1)
@click.option(
    "--index", "index_path", type=NamedPath(), metavar="INDEX",
    help="Also drop near-duplicates of the documents of this index, and add the printed documents "
    "to it. A missing index is created; an existing one is used with its own recipe.",
)
@distance("the recipe")
@click.option(
    "--keep", default="first", show_default=True, metavar="POLICY", callback=keep_option,
    help="Which document of a group to keep: first, longest (the longest text), newest, "
    "highest:FIELD (the highest number or text in FIELD), or none (drop the whole group). longest, "
    "newest and highest read everything twice, standard input from a temporary copy. With --index, "
    "or standard input and --buffer, they choose within a buffer, and a document that was printed "
    "earlier wins, also over a newer one.",
)
@click.option(
    "--date-field", metavar="NAME",
    help=f"With --keep newest, the field that has the date. Default: the first of "
    f"{', '.join(DATE_FIELDS)} that a document has.",
)
@click.option(
    "--buffer", "buffer_documents", type=Count(1), metavar="N",
    default=BUFFER_DOCUMENTS, show_default=True,
    help="How many documents to collect before they are compared, printed and committed. At most "
    "64 MB of them. A stream that does not end needs --weighting sublinear, too: else its first "
    "10,000 documents are held to learn idf from them.",
)
@click.option(
    "--mark", is_flag=True,
    help="Drop nothing. Print all documents, and add to each a field near_duplicate_of: the kept "
    "document that it would lose to, or null.",
)
@click.option(
    "--audit", type=NamedPath(), metavar="FILE",
    help="Write a JSON line for each dropped document: its key, the key of the kept one, the "
    "distance, why it went, and the file and line of both. With --index the lines are added to "
    "FILE, except those that it has.",
)
@click.option(
    "--recall", type=Share(), default=1.0, show_default=True,
    help="Share of the stored near-duplicates to find. 1 is exact.",
)
@click.option("--temp-dir", type=NamedPath(), help="Folder for the temporary index.")
@recipe_options
@idf_options
@input_options
@output_options
def dedup(
    inputs: tuple[str, ...], index_path: str | None, h: int | None, keep: Keep,
    date_field: str | None, buffer_documents: int, mark: bool, audit: str | None, recall: float,
    temp_dir: str | None, recipe_given: dict[str, Any], learning: Learning, reading: Reading,
    as_json: bool, quiet: bool,
) -> None:
    """Copy documents without their near-duplicates.

    Drops a document if its fingerprint is within the distance of that of a kept document.

    Without an INPUT it reads standard input. It prints JSON lines byte for byte, and other
    documents as a JSON object of their fields. It keeps documents that have no fingerprint, such
    as empty ones.

    With --index it prints each buffer, and then commits it to INDEX. After a kill or Ctrl-C, the
    documents that were printed since the last commit are not in INDEX, and a second run prints them
    again. The second run omits documents that INDEX has under the same key with the same
    fingerprint. With --mark it prints them, unmarked.
    """
    inputs = inputs or ("-",)
    require_inputs(inputs)
    require_apart(audit, inputs, index_path)
    if index_path is not None and temp_dir is not None:
        raise click.UsageError("--temp-dir is for a temporary index: leave it out with --index")
    if date_field is not None:
        if keep.policy != "newest":
            raise click.UsageError("--date-field goes with --keep newest")
        keep = replace(keep, field=date_field)
    streamed = None if index_path is not None or not keep.is_by_rank else decided_in_buffers(inputs)
    whole = index_path is None and keep.is_by_rank and streamed is None
    if keep.is_by_rank and not (whole or quiet):
        say(
            f"--keep {keep.policy} is decided within each buffer of "
            f"{count(buffer_documents, 'document')}, because "
            + (streamed or f"what an earlier run printed wins: for the {keep.policy} of all, run "
               "it over all inputs without --index")
        )
    started = time.perf_counter()
    silent = quiet or sys.stdout.isatty()
    reading = reading if index_path is None else reading.lasting()
    asked = Asked(inputs, recipe_given, h, learning, reading, silent)
    with ExitStack() as opened:
        if index_path is None:
            folder = opened.enter_context(temporary_folder(temp_dir))
            if whole and STDIN in inputs:
                reading = reading.of_copy(copied_stdin(folder))
                asked = replace(asked, reading=reading)
            place = temporary(folder / "kept", asked, keys=False if whole else "str")
        else:
            place = lasting(Path(index_path), asked)
        opened.enter_context(place.index)
        rows_before = len(place.index)
        h = place.index.h if h is None else h
        extent = place.prepared.extent
        shown = Progress("deduplicating", quiet=silent, extent=extent)
        with place.outcome_told(), shown as progress:
            listing = opened.enter_context(audit_file(audit, adding=index_path is not None))
            output = opened.enter_context(whole_writes())
            short = ShortTexts(place.prepared.recipe, h)
            run = _Run(place, h, keep, recall, mark, reading, output, listing, short)
            if whole:
                again = reading.documents(inputs, reading.intake(silent=True))
                with closing(Ranking(folder, keep)) as ranking:
                    run.over_all(ranking, again, buffer_documents, progress)
            else:
                run.through(buffer_documents, progress)
            rows = len(place.index)
            place.leave(progress, quiet=silent or as_json)
    run.without.close()
    seconds = time.perf_counter() - started
    intake, lesson = place.prepared.intake, place.prepared.lesson
    if as_json:
        # Standard output is the documents', so the summary goes where summaries go.
        summary = {
            "documents": run.documents,
            "kept": run.kept,
            "dropped": run.dropped,
            "h": h,
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
        place.prepared.say()
        short.say(run.documents)
        for line in keep.dates.told(keep.field):
            say(line)
        for line in run.shared.told():
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
        said = (
            f"marked {run.dropped:,} of {of} as within {h} of {other}"
            if mark
            else f"kept {run.kept:,} of {of}, dropped {run.dropped:,} within {h} of {other}"
            + (f", and {run.known:,} that {index_path} has under the same id" * bool(run.known))
        )
        held = (
            "" if index_path is None
            else f"; {index_path} had {count(rows_before, 'row')} and holds {rows:,}"
        )
        say(f"{said}, in {duration(seconds)} and {megabytes(process_bytes())} of memory{held}")


@dataclass(slots=True)
class _Run:
    place: Place
    h: int
    keep: Keep
    recall: float
    mark: bool
    reading: Reading
    output: BinaryIO
    listing: Listing | None
    short: ShortTexts
    documents: int = 0
    dropped: int = 0
    known: int = 0
    """Documents that the index had before, not counted as dropped."""
    without: SkippedReport = field(default_factory=SkippedReport)
    shared: SharedIds = field(default_factory=SharedIds)

    @property
    def kept(self) -> int:
        """Documents that came out, unmarked."""
        return self.documents - self.dropped - (0 if self.mark else self.known)

    def through(self, most: int, progress: Progress) -> None:
        """Every buffer, from reading to its commit."""
        prepared = self.place.prepared
        documents = self.keep.ranked(prepared.documents, prepared.intake)
        buffer = Buffer()
        with closing(read_ahead(portions(documents, most, BUFFER_BYTES))) as portion:
            for chunk, ends in portion:
                batch = self.short.batch(chunk)
                self.without.add(chunk, batch.skipped)
                buffer.add(chunk, batch)
                progress.advance(len(chunk), characters_of(chunk))
                if ends:
                    self._finish(buffer)
                    buffer = Buffer()
        if buffer.documents:
            self._finish(buffer)
        self.output.flush()

    def over_all(
        self, ranking: Ranking, again: Iterator[Document], most: int, progress: Progress
    ) -> None:
        """The documents that are kept by their rank among all; `again` is a second reading."""
        prepared = self.place.prepared
        documents = self.keep.ranked(prepared.documents, prepared.intake)
        ranking.read(documents, self.short, self.without, progress)
        progress.then("comparing and writing")
        ranking.decide(self.place.index, self.h, most)
        # What has no rank was reported in the first reading.
        again = self.keep.ranked(again, Intake(max_errors=None, report=lambda record: None))
        decided = ranking.decided(again)
        while some := list(islice(decided, WRITTEN_LINES)):
            self.documents += len(some)
            self.dropped += sum(loss is not None for _, loss in some)
            self._put(some)
        self.output.flush()

    def _finish(self, buffer: Buffer) -> None:
        batch = buffer.batch()
        stored = nearest_stored(self.place.index, batch, self.h, self.recall)
        known: set[int] = set()
        if self.place.lasting:
            batch, known = named_apart(self.place.index, buffer, batch, stored)
        losses = self._losses(buffer, batch, stored)
        lost = _named(buffer, stored, losses, known)
        self._write(buffer, lost)
        if self.keep.policy == "none":
            # What was dropped is stored, too, so that later copies of it are dropped; once.
            rows = np.sort(distinct(batch.rows)[0])
            rows = rows[stored.distance[rows] != 0]
        else:
            rows = np.flatnonzero((stored.distance == NOWHERE) & (losses.winner < 0))
        if len(rows):
            self.place.index.append(batch.take(rows))
        self.documents += len(buffer.documents)
        self.dropped += len(lost) - len(known)
        self.known += len(known)
        with uninterrupted():
            self.place.index.commit()
            self.place.committed = self.documents

    def _losses(self, buffer: Buffer, batch: simindex.Batch, stored: Stored) -> Losses:
        if self.keep.policy == "none":
            return any_neighbour(batch.rows, self.h)
        order = self.keep.order([buffer.documents[place] for place in buffer.places])
        return greedy(batch.rows, order, stored.distance != NOWHERE, self.h)

    def _write(self, buffer: Buffer, lost: dict[int, Loss]) -> None:
        self._put(
            (document, lost.get(place)) for place, document in enumerate(buffer.documents)
        )
        if self.place.lasting:
            settle(self.output)
            if self.listing is not None:
                self.listing.settle()
        else:
            self.output.flush()  # whoever reads a stream that does not end waits for it

    def _put(self, decided: Iterable[tuple[Document, Loss | None]]) -> None:
        """Documents, and what they lost to. Nothing that is stored itself is marked."""
        options = self.reading.options
        id_field, text_field = options.id_field or ID_FIELDS[0], options.text_field
        lines: list[bytes] = []
        told: list[bytes] = []
        for document, loss in decided:
            self.shared.see(document, loss)
            mark = None if loss is None or (self.mark and loss.known) else loss
            if self.mark:
                lines.append(marked_line(document, mark, id_field, text_field))
            elif loss is None:
                lines.append(line_of(document, id_field, text_field))
            if mark is not None and self.listing is not None:
                told.append(audit_line(document, mark, self.h))
            if len(lines) + len(told) >= WRITTEN_LINES:
                self._hand_over(lines, told)
        self._hand_over(lines, told)

    def _hand_over(self, lines: list[bytes], told: list[bytes]) -> None:
        self.output.write(b"".join(lines))
        lines.clear()
        if self.listing is not None:
            self.listing.write(told)
            told.clear()


def _named(
    buffer: Buffer, stored: Stored, losses: Losses, known: set[int]
) -> dict[int, Loss]:
    """What each dropped document lost to, the nearest of all, by its place in the buffer."""
    lost: dict[int, Loss] = {}
    distances = np.minimum(stored.distance, losses.distance)
    for row in np.flatnonzero(distances != NOWHERE).tolist():
        distance, document = int(distances[row]), buffer.documents[buffer.places[row]]
        if row in known:
            loss = Loss(document.key, 0, known=True)
        elif stored.distance[row] == distance:
            loss = Loss(key_text(stored.key(row)) or "", distance)
        else:
            winner = buffer.documents[buffer.places[int(losses.winner[row])]]
            same = document.text == winner.text
            loss = Loss(winner.key, distance, winner.place, same)
        lost[buffer.places[row]] = loss
    return lost
