"""A run of `dedup`: from documents to what is printed, listed and stored.

    through     a buffer after the other: read, decided, written, committed
    over_all    all documents are read and decided; then they are read again, written, and in an
                index that lasts committed, a buffer after the other

The output of a buffer is written before its commit, see `cli/commands/dedup.py`. With an index
that lasts, a thread writes it while the next buffer is searched for in what was committed before:

    main thread   decide 1   search 2 .........  commit 1   what 1 kept, decide 2   search 3 ...
    writing                  write 1, fsync                                         write 2, ...

1. A buffer is committed once it is written, and nothing of the next is written before.
2. If the next buffer has not been read yet, no commit waits for it.
3. Whatever ends the run, a buffer that was written is committed first, unless it cannot be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

import simindex
from simindex.bits.distinct_rows import distinct
from simindex.cli.app import uninterrupted
from simindex.cli.chunks import Buffer, Chunk, SkippedReport, all_but_one, batch_of, portions
from simindex.cli.dedup.audit_file import Audit, settle
from simindex.cli.dedup.background import Background
from simindex.cli.dedup.known_documents import named_apart
from simindex.cli.dedup.marks import (
    Loss,
    audit_record,
    kept_lines,
    line_of,
    marked_line,
    marked_lines,
)
from simindex.cli.dedup.shared_ids import SharedIds
from simindex.cli.dedup.winners import lost_to
from simindex.cli.slots import Slot, read_ahead
from simindex.inputs.document import ID_FIELDS, Document, Intake
from simindex.inputs.document_columns import Documents, one_by_one
from simindex.pairs.buffer_losses import NOWHERE, Losses, Nearness, any_neighbour, greedy, whole
from simindex.pairs.doubtful_pairs import texts_of
from simindex.pairs.stored_winners import Stored, nearer_among, nearest_ahead, nearest_stored
from simindex.pairs.verified_losses import stored_candidates, verified_losses
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import I64
    from simindex.cli.dedup.matched_index import MatchedIndex
    from simindex.cli.dedup.ranks import Keep
    from simindex.cli.dedup.two_readings import Ranking
    from simindex.cli.dedup.verification import Verifying
    from simindex.cli.progress import Progress
    from simindex.cli.short_texts import ShortTexts

BUFFER_BYTES = 32 << 20
"""About so much text ends a buffer, too."""

WRITTEN_LINES, WRITTEN_BYTES = 512, 1 << 20
"""Lines handed to the system at once, unless their documents hold so much already."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A buffer, what some of its documents lost to, and the rows that it adds to the index."""

    buffer: Buffer
    lost: dict[int, Loss]
    kept: simindex.Batch


@dataclass(slots=True)
class Run:
    """What a run has done so far, and how it goes on."""

    matched: MatchedIndex
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
    apart: bool = False
    """Whether all rows of the index were kept by this run, none near another."""
    beside: Background = field(default_factory=Background)
    """Writes a buffer."""
    unsettled: Decided | None = None
    """The buffer that it writes, which is not committed."""
    without: SkippedReport = field(default_factory=SkippedReport)
    shared: SharedIds = field(default_factory=SharedIds)

    @property
    def kept(self) -> int:
        """Documents that came out, unmarked."""
        return self.documents - self.dropped - (0 if self.mark else self.known)

    def through(self, most: int, progress: Progress) -> None:
        """Every buffer, from reading to its commit."""
        prepared = self.matched.prepared
        new = not len(self.matched.index)
        self.apart = new and self.near.exact and self.keep.policy != "none"
        documents: Iterable[Document | Documents] = prepared.documents
        if self.keep.is_by_rank:
            documents = self.keep.ranked(one_by_one(documents), prepared.intake)

        slot: Slot[Buffer] = Slot()
        fewer = all_but_one()

        def batch_of_chunk(chunk: Chunk) -> simindex.Batch:
            # A buffer that waits says that the main thread is behind: a processor is left to it.
            batch = self.short.batch(chunk, threads=fewer if slot.waits else None)
            self.without.add(chunk, batch.skipped)
            progress.advance(len(chunk))
            return batch

        ahead = read_ahead(_buffers(documents, most, batch_of_chunk), slot)
        with closing(ahead) as buffers, closing(self.beside):
            try:
                while (buffer := self._next(buffers, slot)) is not None:
                    self._finish(buffer)
                self._settle()
            except KeyboardInterrupt:
                with suppress(Exception):  # of what follows from the interrupt
                    if self.beside.leave():
                        self._settle()
                raise
            except BaseException:
                self._settle()
                raise
        self.output.flush()

    @property
    def overlaps(self) -> bool:
        """Whether a buffer is written while the next one is searched for.

        That search does not see what this buffer adds, which is compared by itself. Rows that have
        several nearest ones are searched for again. That takes an index of rows apart.
        """
        return self.apart and self.matched.lasting

    def _next(self, buffers: Iterator[Buffer], slot: Slot[Buffer]) -> Buffer | None:
        """The next buffer, if there is one. While it is waited for, nothing else waits."""
        if not slot.waits:
            self._settle()
        return next(buffers, None)

    def over_all(
        self, ranking: Ranking, kept: simindex.Index, most: int, progress: Progress
    ) -> None:
        """The documents that are kept by their rank among all. The index `kept` is empty."""
        prepared = self.matched.prepared
        earlier = self.matched.index if self.matched.lasting else None
        documents = self.keep.ranked(one_by_one(prepared.documents), prepared.intake)
        ranking.read(
            documents, self.short, self.without, progress, self.near, earlier,
            texts=None if self.verifying is None else self.verifying.texts,
        )
        progress.then("comparing and writing")
        ranking.decide(kept, self.near, most, earlier, self.verifying)
        # What has no rank was reported in the first reading.
        again = self.keep.ranked(
            self.matched.again(), Intake(max_errors=None, report=lambda record: None)
        )
        decided = ranking.decided(again)
        if self.matched.lasting:
            self._store(decided, most)
        else:
            self._put(self._counted(decided))
        self.output.flush()

    def _counted(
        self, decided: Iterable[tuple[Document, Loss | None]]
    ) -> Iterator[tuple[Document, Loss | None]]:
        for document, loss in decided:
            self.documents += 1
            self.dropped += loss is not None
            yield document, loss

    def _store(self, decided: Iterable[tuple[Document, Loss | None]], most: int) -> None:
        """Writes decided documents, and commits those that are kept, buffer by buffer."""
        losses: deque[Loss | None] = deque()

        def documents() -> Iterator[Document]:
            for document, loss in decided:
                losses.append(loss)
                yield document

        # Made again, for their weights: the ranking kept fingerprints alone.
        made = partial(batch_of, self.matched.prepared.recipe)
        with closing(_buffers(documents(), most, made)) as buffers:
            for buffer in buffers:
                lost = {
                    place: loss for place in range(len(buffer.documents))
                    if (loss := losses.popleft()) is not None
                }
                self._write(buffer, lost)
                rows = [row for row, place in enumerate(buffer.places) if place not in lost]
                kept = buffer.batch().take(np.array(rows, np.int64))
                self._commit(Decided(buffer, lost, kept))

    def _finish(self, buffer: Buffer) -> None:
        batch = buffer.batch()
        verifying, exact = self.verifying, None
        candidates = None if verifying is None else stored_candidates(
            self.matched.index, batch, verifying.near, verifying.verifier.doubt
        )
        stored = self._nearest(batch) if candidates is None else candidates.nearest(len(batch))
        known: set[int] = set()
        if self.matched.lasting:
            batch, known = named_apart(self.matched.index, buffer, batch, stored)
        if verifying is None or candidates is None:
            losses = self._losses(buffer, batch, stored)
        else:
            documents, places = buffer.documents, buffer.places
            for row in known:
                verifying.texts.keep(documents.key(places[row]), documents.text(places[row]))
            decided = verified_losses(
                batch.rows, verifying.near.sketches(batch), self._order(buffer, batch),
                verifying.near, candidates, verifying.verifier,
                lambda row: (documents.text(places[row]),), partial(texts_of, verifying.texts),
            )
            losses, stored, exact = decided.losses, decided.stored, decided.exact
        lost = lost_to(buffer, stored, losses, known, exact)
        if verifying is not None:
            for place in buffer.places:
                if place not in lost:
                    verifying.texts.keep(buffer.documents.key(place), buffer.documents.text(place))
        if self.keep.policy == "none":
            # What was dropped is stored, too, so that later copies of it are dropped; once.
            rows = np.sort(distinct(whole(batch.rows, self.near.sketches(batch)))[0])
            rows = rows[stored.distance[rows] != 0]
        else:
            rows = np.flatnonzero((stored.distance == NOWHERE) & (losses.winner < 0))
        done = Decided(buffer, lost, batch.take(rows))
        if self.overlaps:
            self.unsettled = done
            self.beside.begin(partial(self._write, buffer, lost))
        else:
            self._write(buffer, lost)
            self._commit(done)

    def _nearest(self, batch: simindex.Batch) -> Stored:
        """What is nearest in the index, once the buffer before this one is committed."""
        before, index = self.unsettled, self.matched.index
        if not self.overlaps:
            return nearest_stored(index, batch, self.near, apart=self.apart)
        stored, tied = nearest_ahead(index, batch, self.near)
        if before is not None:
            self._settle()
            stored, tied = nearer_among(stored, tied, batch, before.kept, self.near)
        rows = np.flatnonzero(tied)
        if not len(rows):
            return stored
        again = nearest_stored(index, batch.take(rows), self.near, apart=True)
        return stored.with_others(rows, again)

    def _settle(self) -> None:
        """Commits the buffer that is being written, once it is."""
        decided = self.unsettled
        if decided is None:
            return
        try:
            self.beside.wait()
        except Exception:
            self.unsettled = None  # what was not written is not committed
            raise
        self.unsettled = None
        self._commit(decided)

    def _commit(self, decided: Decided) -> None:
        if len(decided.kept):
            self.matched.index.append(decided.kept)
        known = sum(loss.known for loss in decided.lost.values())
        self.documents += len(decided.buffer.documents)
        self.dropped += len(decided.lost) - known
        self.known += known
        with uninterrupted():
            self.matched.index.commit()
            self.matched.committed = self.documents

    def _losses(self, buffer: Buffer, batch: simindex.Batch, stored: Stored) -> Losses:
        if self.keep.policy == "none":
            return any_neighbour(batch.rows, self.near, self.near.sketches(batch))
        excluded = stored.distance != NOWHERE
        order = self._order(buffer, batch)
        return greedy(batch.rows, order, excluded, self.near, self.near.sketches(batch))

    def _order(self, buffer: Buffer, batch: simindex.Batch) -> I64:
        """The rows by rank, best first."""
        if not self.keep.is_by_rank:
            return np.arange(len(batch), dtype=np.int64)
        return self.keep.order([buffer.documents[place] for place in buffer.places])

    def _write(self, buffer: Buffer, lost: dict[int, Loss]) -> None:
        for chunk, some in buffer.documents.parted(lost):
            if isinstance(chunk, Documents) and chunk.raw is not None:
                self._put_columns(chunk, some)
            else:
                self._put((document, some.get(place)) for place, document in enumerate(chunk))
        if self.matched.lasting:
            settle(self.output)
            if self.listing is not None:
                self.listing.settle()
        else:
            self.output.flush()  # whoever reads a stream that does not end waits for it

    def _put_columns(self, documents: Documents, lost: dict[int, Loss]) -> None:
        """The same as `_put`, of documents with their lines; `lost` is by their places."""
        options = self.matched.asked.reading.options
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
        options = self.matched.asked.reading.options
        id_field, text_field = options.id_field or ID_FIELDS[0], options.text_field
        lines: list[bytes] = []
        told: list[dict[str, Any]] = []
        held = 0
        for document, loss in decided:
            self.shared.see(document, loss)
            held += document.held_bytes
            mark = None if loss is None or (self.mark and loss.known) else loss
            if self.mark:
                lines.append(marked_line(document, mark, id_field, text_field, self.near))
            elif loss is None:
                lines.append(line_of(document, id_field, text_field))
            if mark is not None and self.listing is not None:
                verified = self.verifying is not None
                told.append(audit_record(document, mark, self.near, verified=verified))
            if len(lines) + len(told) >= WRITTEN_LINES or held >= WRITTEN_BYTES:
                self._hand_over(lines, told)
                held = 0
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
                buffer.batch()  # here, which is another thread than that of the index
                yield buffer
                buffer = Buffer()
    if len(buffer.documents):
        yield buffer
