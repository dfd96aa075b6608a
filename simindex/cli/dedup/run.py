"""A run of `dedup`: from documents to what is printed, listed and stored.

    through     a buffer after the other: read, decided, written, committed
    over_all    all documents are read and decided; then they are read again, written, and in an
                index that lasts committed, a buffer after the other

The output of a buffer is written before its commit, see `cli/commands/dedup.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

import simindex
from simindex.bits.distinct import distinct
from simindex.cli.app import uninterrupted
from simindex.cli.chunks import (
    Buffer,
    Chunk,
    SkippedReport,
    batch_of,
    portions,
    read_ahead,
)
from simindex.cli.dedup.known import named_apart
from simindex.cli.dedup.listing import Audit, settle
from simindex.cli.dedup.marks import (
    Loss,
    audit_record,
    kept_lines,
    line_of,
    marked_line,
    marked_lines,
)
from simindex.cli.dedup.shared_ids import SharedIds
from simindex.inputs import ID_FIELDS, Document, Documents, Intake, one_by_one
from simindex.outputs.columns import key_text
from simindex.pairs.deduplication import (
    NOWHERE,
    Losses,
    Nearness,
    Stored,
    any_neighbour,
    greedy,
    nearest_stored,
    whole,
)
from simindex.pairs.verified_losses import stored_candidates, verified_losses
from simindex.pairs.verifying import texts_of
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import F32
    from simindex.cli.dedup.place import Place
    from simindex.cli.dedup.ranks import Keep
    from simindex.cli.dedup.verifying import Verifying
    from simindex.cli.dedup.whole import Ranking
    from simindex.cli.progress import Progress
    from simindex.cli.short_texts import ShortTexts

BUFFER_BYTES = 32 << 20
"""About so much text ends a buffer, too."""

WRITTEN_LINES = 512
"""Lines handed to the system at once."""


@dataclass(slots=True)
class Run:
    """What a run has done so far, and how it goes on."""

    place: Place
    near: Nearness
    keep: Keep
    mark: bool
    output: BinaryIO
    listing: Audit | None
    short: ShortTexts
    verifying: Verifying | None = None
    """What decides doubtful pairs, if texts are compared."""
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
        documents: Iterable[Document | Documents] = prepared.documents
        if self.keep.is_by_rank:
            documents = self.keep.ranked(one_by_one(documents), prepared.intake)

        def batch_of_chunk(chunk: Chunk) -> simindex.Batch:
            batch = self.short.batch(chunk)
            self.without.add(chunk, batch.skipped)
            progress.advance(len(chunk))
            return batch

        with closing(read_ahead(_buffers(documents, most, batch_of_chunk))) as buffers:
            for buffer in buffers:
                self._finish(buffer)
        self.output.flush()

    def over_all(
        self, ranking: Ranking, kept: simindex.Index, most: int, progress: Progress
    ) -> None:
        """The documents that are kept by their rank among all. The index `kept` is empty."""
        prepared = self.place.prepared
        earlier = self.place.index if self.place.lasting else None
        documents = self.keep.ranked(one_by_one(prepared.documents), prepared.intake)
        ranking.read(
            documents, self.short, self.without, progress, earlier,
            sketched=self.near.sketched,
            texts=None if self.verifying is None else self.verifying.texts,
        )
        progress.then("comparing and writing")
        ranking.decide(kept, self.near, most, earlier, self.verifying)
        # What has no rank was reported in the first reading.
        again = self.keep.ranked(
            self.place.again(), Intake(max_errors=None, report=lambda record: None)
        )
        decided = ranking.decided(again)
        if self.place.lasting:
            self._store(decided, most)
        else:
            while some := list(islice(decided, WRITTEN_LINES)):
                self.documents += len(some)
                self.dropped += sum(loss is not None for _, loss in some)
                self._put(some)
        self.output.flush()

    def _store(self, decided: Iterable[tuple[Document, Loss | None]], most: int) -> None:
        """Writes decided documents, and commits those that are kept, buffer by buffer."""
        losses: deque[Loss | None] = deque()

        def documents() -> Iterator[Document]:
            for document, loss in decided:
                losses.append(loss)
                yield document

        # Made again, for their weights: the ranking kept fingerprints alone.
        made = partial(batch_of, self.place.prepared.recipe)
        with closing(_buffers(documents(), most, made)) as buffers:
            for buffer in buffers:
                lost = {
                    place: loss for place in range(len(buffer.documents))
                    if (loss := losses.popleft()) is not None
                }
                self._write(buffer, lost)
                rows = [row for row, place in enumerate(buffer.places) if place not in lost]
                self._commit(buffer, buffer.batch().take(np.array(rows, np.int64)), lost)

    def _finish(self, buffer: Buffer) -> None:
        batch = buffer.batch()
        verifying, exact = self.verifying, None
        candidates = None if verifying is None else stored_candidates(
            self.place.index, batch, verifying.near, verifying.verifier.doubt
        )
        if candidates is None:
            stored = nearest_stored(self.place.index, batch, self.near)
        else:
            stored = candidates.nearest(len(batch))
        known: set[int] = set()
        if self.place.lasting:
            batch, known = named_apart(self.place.index, buffer, batch, stored)
        if verifying is None or candidates is None:
            losses = self._losses(buffer, batch, stored)
        else:
            documents = [buffer.documents[place] for place in buffer.places]
            for row in known:
                verifying.texts.keep(documents[row].key, documents[row].text)
            decided = verified_losses(
                batch.rows, verifying.near.sketches(batch), self.keep.order(documents),
                verifying.near, candidates, verifying.verifier,
                lambda row: (documents[row].text,), partial(texts_of, verifying.texts),
            )
            losses, stored, exact = decided.losses, decided.stored, decided.exact
        lost = _named(buffer, stored, losses, known, exact)
        if verifying is not None:
            for place in buffer.places:
                if place not in lost:
                    document = buffer.documents[place]
                    verifying.texts.keep(document.key, document.text)
        self._write(buffer, lost)
        if self.keep.policy == "none":
            # What was dropped is stored, too, so that later copies of it are dropped; once.
            rows = np.sort(distinct(whole(batch.rows, self.near.sketches(batch)))[0])
            rows = rows[stored.distance[rows] != 0]
        else:
            rows = np.flatnonzero((stored.distance == NOWHERE) & (losses.winner < 0))
        self._commit(buffer, batch.take(rows), lost)

    def _commit(self, buffer: Buffer, kept: simindex.Batch, lost: dict[int, Loss]) -> None:
        if len(kept):
            self.place.index.append(kept)
        known = sum(loss.known for loss in lost.values())
        self.documents += len(buffer.documents)
        self.dropped += len(lost) - known
        self.known += known
        with uninterrupted():
            self.place.index.commit()
            self.place.committed = self.documents

    def _losses(self, buffer: Buffer, batch: simindex.Batch, stored: Stored) -> Losses:
        if self.keep.policy == "none":
            return any_neighbour(batch.rows, self.near, self.near.sketches(batch))
        if self.keep.is_by_rank:
            order = self.keep.order([buffer.documents[place] for place in buffer.places])
        else:
            order = np.arange(len(batch))
        excluded = stored.distance != NOWHERE
        return greedy(batch.rows, order, excluded, self.near, self.near.sketches(batch))

    def _write(self, buffer: Buffer, lost: dict[int, Loss]) -> None:
        for chunk, some in buffer.documents.parted(lost):
            if isinstance(chunk, Documents) and chunk.raw is not None:
                self._put_columns(chunk, some)
            else:
                self._put((document, some.get(place)) for place, document in enumerate(chunk))
        if self.place.lasting:
            settle(self.output)
            if self.listing is not None:
                self.listing.settle()
        else:
            self.output.flush()  # whoever reads a stream that does not end waits for it

    def _put_columns(self, documents: Documents, lost: dict[int, Loss]) -> None:
        """The same as `_put`, of documents with their lines; `lost` is by their places."""
        options = self.place.asked.reading.options
        id_field, text_field = options.id_field or ID_FIELDS[0], options.text_field
        self.shared.see_all(documents, lost)
        marks = {
            place: loss for place, loss in lost.items() if not (self.mark and loss.known)
        }
        if self.mark:
            for lines in marked_lines(documents, marks, id_field, text_field, self.near):
                self.output.write(lines)
        else:
            self.output.write(kept_lines(documents, lost))
        if self.listing is not None:
            verified = self.verifying is not None
            self.listing.write([
                audit_record(documents[place], marks[place], self.near, verified=verified)
                for place in sorted(marks)
            ])

    def _put(self, decided: Iterable[tuple[Document, Loss | None]]) -> None:
        """Documents, and what they lost to. Nothing that is stored itself is marked."""
        options = self.place.asked.reading.options
        id_field, text_field = options.id_field or ID_FIELDS[0], options.text_field
        lines: list[bytes] = []
        told: list[dict[str, Any]] = []
        for document, loss in decided:
            self.shared.see(document, loss)
            mark = None if loss is None or (self.mark and loss.known) else loss
            if self.mark:
                lines.append(marked_line(document, mark, id_field, text_field, self.near))
            elif loss is None:
                lines.append(line_of(document, id_field, text_field))
            if mark is not None and self.listing is not None:
                verified = self.verifying is not None
                told.append(audit_record(document, mark, self.near, verified=verified))
            if len(lines) + len(told) >= WRITTEN_LINES:
                self._hand_over(lines, told)
        self._hand_over(lines, told)

    def _hand_over(self, lines: list[bytes], told: list[dict[str, Any]]) -> None:
        self.output.write(b"".join(lines))
        lines.clear()
        if self.listing is not None:
            self.listing.write(told)
            told.clear()


def _buffers(
    documents: Iterable[Document | Documents], most: int, batch: Callable[[Chunk], simindex.Batch]
) -> Generator[Buffer]:
    """Documents in buffers of at most so many, read ahead; `batch` makes the rows of a chunk."""
    buffer = Buffer()
    with closing(read_ahead(portions(documents, most, BUFFER_BYTES))) as portion:
        for chunk, ends in portion:
            buffer.add(chunk, batch(chunk))
            if ends:
                yield buffer
                buffer = Buffer()
    if len(buffer.documents):
        yield buffer


def _named(
    buffer: Buffer, stored: Stored, losses: Losses, known: set[int], exact: F32 | None = None
) -> dict[int, Loss]:
    """What each dropped document lost to, the nearest of all, by its place in the buffer."""
    lost: dict[int, Loss] = {}
    documents, places = buffer.documents, buffer.places
    distances = np.minimum(stored.distance, losses.distance)
    rows = np.flatnonzero(distances != NOWHERE)
    of_stored = (stored.distance == distances)[rows].tolist()
    for row, distance, is_stored in zip(
        rows.tolist(), distances[rows].tolist(), of_stored, strict=True
    ):
        place = places[row]
        if row in known:
            loss = Loss(documents.key(place), 0, known=True)
        elif is_stored:
            loss = Loss(key_text(stored.key(row)) or "", distance)
        else:
            winner = places[int(losses.winner[row])]
            # Equal texts have equal fingerprints.
            same = distance == 0 and documents[place].text == documents[winner].text
            loss = Loss(documents.key(winner), distance, documents.where(winner), same)
        if exact is not None:
            loss = loss._replace(exact=float(exact[row]))
        lost[place] = loss
    return lost
