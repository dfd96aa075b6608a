"""Which documents of inputs that can be read twice are kept, by rank over all of them.

    first reading     fingerprint, rank and key of each document
    by rank           buffers of rows, against what earlier runs kept, those that were kept and each
                      other
    second reading    documents in their order, with what they lost to

A row is dropped if one that was kept before it in rank is within the distance, whatever the size of
a buffer; or one of an earlier run, whatever its rank. Memory holds of each document its
fingerprint, rank and place, and what it lost to; keys, weights and sketches are in files, and what
is kept in an index on disk.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

import simindex
from simindex.bits.digests import blake2b
from simindex.cli.chunks import Buffer, Chunk, SkippedReport, places_of_rows, portions
from simindex.cli.dedup.known_documents import named_apart
from simindex.cli.dedup.marks import Loss
from simindex.cli.slots import read_ahead
from simindex.errors import InvalidInput
from simindex.outputs.columns import key_text
from simindex.pairs.buffer_losses import NOWHERE, Nearness, greedy
from simindex.pairs.doubtful_pairs import texts_of
from simindex.pairs.stored_winners import exactly_if_few, nearest_stored
from simindex.pairs.verified_losses import stored_candidates, verified_losses

if TYPE_CHECKING:
    from simindex.arrays import F32, I64, U16
    from simindex.cli.dedup.ranks import Keep
    from simindex.cli.dedup.texts import KeptTexts
    from simindex.cli.dedup.verification import Verifying
    from simindex.cli.progress import Progress
    from simindex.cli.short_texts import ShortTexts
    from simindex.inputs.document import Document

CHUNK_BYTES = 32 << 20

DIGEST_BYTES = 16
"""Of a text, which tells whether two are equal."""

NOTHING = -1
EARLIER = -2
"""What a document lost to: nothing, or the first of the winners of earlier runs."""


class _RowFile:
    """Rows of an array, all of one width, in a file."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("w+b")
        self._like: Any = None

    def add(self, rows: Any) -> None:
        """Adds rows behind those there are."""
        self._like = rows[:0]
        self._file.write(rows.tobytes())

    def rows(self, places: I64) -> Any:
        """A copy of some rows; None if none was ever added."""
        if self._like is None:
            return None
        self._file.flush()
        flat = np.memmap(self._file, self._like.dtype, "r")
        return np.array(flat.reshape(-1, self._like.shape[1])[places])

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class Ranking:
    """The documents of a first reading, and what each of them lost to."""

    def __init__(self, folder: Path, keep: Keep) -> None:
        self._keep = keep
        self._keys: BinaryIO = (folder / "keys").open("w+b")
        self._ends = array("Q", [0])
        """In the file: of each document a digest of its text and its key, then file and line."""
        self._ranks: Any = keep.ranks()
        self._parts: list[Any] = []
        self._places: list[I64] = []
        self._lost_to: I64 = np.empty(0, np.int64)
        """Of each document: another one, NOTHING, or EARLIER less the number of a winner."""
        self._distance: U16 = np.empty(0, np.uint16)
        self._exact: F32 = np.empty(0, np.float32)
        """Exact similarities, NaN where texts were not compared."""
        self._known = bytearray()
        """Whether an earlier run has stored the document."""
        self._renamed: dict[int, str] = {}
        """Documents whose names, which simindex made, are of other documents of earlier runs."""
        self._sketches = _RowFile(folder / "sketches")
        self._weights = _RowFile(folder / "weights")
        """The upper half of each float32: 8 bits tell which bits are likely to flip."""
        self._winners: BinaryIO = (folder / "winners").open("w+b")
        self._winner_ends = array("Q", [0])
        """In the file: the keys of winners of earlier runs."""

    def __len__(self) -> int:
        return (len(self._ends) - 1) // 2

    def close(self) -> None:
        """Closes the files."""
        self._keys.close()
        self._sketches.close()
        self._weights.close()
        self._winners.close()

    def read(
        self, documents: Iterable[Document], short: ShortTexts, without: SkippedReport,
        progress: Progress, near: Nearness, earlier: simindex.Index | None = None,
        texts: KeptTexts | None = None,
    ) -> None:
        """Takes all documents, which have a rank. `earlier` has what earlier runs kept.

        For a similarity the weights are kept in a file, and sketches, if they decide. So are texts,
        where they are asked for, by the places of documents, and by the keys of those that earlier
        runs stored.
        """
        with closing(read_ahead(portions(documents, 1 << 12, CHUNK_BYTES))) as portion:
            for chunk, _ in portion:
                batch = short.batch(chunk)
                without.add(chunk, batch.skipped)
                places = places_of_rows(len(chunk), batch.skipped)
                self._places.append(np.array(places, np.int64) + len(self))
                self._parts.append(batch.rows)
                if near.similar is not None and batch.weights is not None:
                    self._weights.add((batch.weights.view(np.uint32) >> 16).astype(np.uint16))
                if near.sketched and batch.sketches is not None:
                    self._sketches.add(batch.sketches)
                if earlier is not None:
                    self._compare_names(chunk, batch, earlier)
                for document in chunk:
                    if texts is not None:
                        texts.keep(_place(len(self)), document.text)
                        if self._known and self._known[len(self)]:
                            texts.keep(document.key, document.text)
                    self._ranks.append(self._keep.rank_of(document))
                    named = _digest(document) + document.key.encode()
                    for name in (named, document.place.encode()):
                        self._keys.write(name)
                        self._ends.append(self._ends[-1] + len(name))
                progress.advance(len(chunk))

    def _compare_names(
        self, chunk: Chunk, batch: simindex.Batch, earlier: simindex.Index
    ) -> None:
        """Notes which documents of a chunk an index has, and which need other names in it."""
        buffer = Buffer()
        buffer.add(list(chunk), batch)
        _, known = named_apart(earlier, buffer, batch, nearest_stored(earlier, batch, Nearness(0)))
        start = len(self)
        self._known.extend(bytes(len(chunk)))
        for row in known:
            self._known[start + buffer.places[row]] = 1
        for place, (document, named) in enumerate(zip(chunk, buffer.documents, strict=True)):
            if named is not document:
                self._renamed[start + place] = named.key

    def decide(
        self, index: simindex.Index, near: Nearness, buffer: int,
        earlier: simindex.Index | None = None, verifying: Verifying | None = None,
    ) -> None:
        """Finds what each document loses to. The index, which is empty, takes what is kept."""
        parts, self._parts = self._parts, []
        if not parts:
            self._forget()
            return
        places = np.concatenate(self._places)
        self._places = []
        order = self._keep.best_first(self._ranks, places)
        self._ranks = None
        rows = np.concatenate(parts)
        parts.clear()
        self._forget()
        if near.similar is None:
            near = replace(near, recall=1.0)
        for start in range(0, len(order), buffer):
            part = order[start : start + buffer]
            sketch, weights = self._sketches.rows(part), self._weights.rows(part)
            if weights is not None:
                weights = (weights.astype(np.uint32) << 16).view(np.float32)
            batch = simindex.Batch(
                rows[part], ids=places[part].astype(np.uint64), weights=weights,
                recipe=index.recipe, sketch=sketch,
            )
            if verifying is not None:
                kept = self._decide_by_texts(index, batch, places[part], earlier, verifying)
                if len(kept):
                    index.append(batch.take(kept))
                    index.commit()
                continue
            stored = nearest_stored(index, exactly_if_few(index, batch), near)
            excluded = stored.distance != NOWHERE
            before = None
            if earlier is not None:
                asked = simindex.Batch(
                    rows[part], weights=weights, recipe=earlier.recipe, sketch=sketch
                )
                before = nearest_stored(earlier, exactly_if_few(earlier, asked), near)
                excluded |= before.distance != NOWHERE
            by_rank = np.arange(len(part), dtype=np.int64)
            losses = greedy(batch.rows, by_rank, excluded, near, sketch)
            nearer = (stored.distance <= losses.distance) & (stored.distance != NOWHERE)
            distance = np.minimum(stored.distance, losses.distance)
            winner = places[part][losses.winner]
            held = np.flatnonzero(nearer)
            winner[held] = [int(stored.key(row)) for row in held.tolist()]
            if before is not None:
                held = np.flatnonzero((before.distance <= distance) & (before.distance != NOWHERE))
                distance = np.minimum(distance, before.distance)
                winner[held] = [self._winner(before.key(row)) for row in held.tolist()]
            lost = np.flatnonzero(distance != NOWHERE)
            self._lost_to[places[part][lost]] = winner[lost]
            self._distance[places[part][lost]] = distance[lost]
            kept = np.flatnonzero(distance == NOWHERE)
            if len(kept):
                index.append(batch.take(kept))
                index.commit()

    def _decide_by_texts(
        self, index: simindex.Index, batch: simindex.Batch, places: I64,
        earlier: simindex.Index | None, verifying: Verifying,
    ) -> I64:
        """Notes what the rows of a buffer, which come by rank, lose to; returns those kept."""
        doubt, texts = verifying.verifier.doubt, verifying.texts
        candidates = stored_candidates(index, batch, verifying.near, doubt)
        own = len(candidates.keys)
        if earlier is not None:
            asked = simindex.Batch(
                batch.rows, weights=batch.weights, recipe=earlier.recipe, sketch=batch.sketches
            )
            before = stored_candidates(earlier, asked, verifying.near, doubt)
            candidates = candidates.and_before(before)
        first = len(candidates.keys) - own
        """Those of earlier runs come first."""
        named = [*candidates.keys[:first], *map(_place, candidates.keys[first:])]
        candidates = replace(candidates, keys=named)
        decided = verified_losses(
            batch.rows, verifying.near.sketches(batch), np.arange(len(batch), dtype=np.int64),
            verifying.near, candidates, verifying.verifier,
            lambda row: texts_of(texts, _place(int(places[row]))), partial(texts_of, texts),
        )
        losses, stored = decided.losses, decided.stored
        winner = places[losses.winner]
        for row in np.flatnonzero(stored.place >= 0).tolist():
            key = stored.key(row)
            of_earlier = int(stored.place[row]) < first
            winner[row] = self._winner(key) if of_earlier else _number(key)
        distance = np.minimum(stored.distance, losses.distance)
        lost = np.flatnonzero(distance != NOWHERE)
        self._lost_to[places[lost]], self._distance[places[lost]] = winner[lost], distance[lost]
        self._exact[places[lost]] = decided.exact[lost]
        return np.flatnonzero(distance == NOWHERE)

    def _winner(self, key: Any) -> int:
        """Keeps the key of a winner of an earlier run; what `_lost_to` has for it."""
        self._winners.write((key_text(key) or "").encode())
        self._winner_ends.append(self._winners.tell())
        return EARLIER - (len(self._winner_ends) - 2)

    def _forget(self) -> None:
        """No document has lost so far."""
        self._lost_to = np.full(len(self), NOTHING, np.int64)
        self._distance = np.full(len(self), NOWHERE, np.uint16)
        self._exact = np.full(len(self), nan, np.float32)

    def decided(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Loss | None]]:
        """The documents of a second reading with what they lost to; InvalidInput if they differ."""
        seen = 0
        for place, document in enumerate(documents):
            if place >= len(self) or self._key_read(place) != document.key:
                raise InvalidInput(
                    f"{document.place}: is another document than in the first reading: the inputs "
                    "changed meanwhile", remedy="run it again", path=document.path,
                )
            lost_to, distance = int(self._lost_to[place]), int(self._distance[place])
            exact = float(self._exact[place])
            if place in self._renamed:
                document = document._replace(key=self._renamed[place])
            if self._known and self._known[place]:
                yield document, Loss(document.key, 0, known=True)
            elif lost_to == NOTHING:
                yield document, None
            elif lost_to <= EARLIER:
                yield document, Loss(
                    self._winner_key(EARLIER - lost_to), distance, exact=exact
                )
            else:
                same_text = distance == 0 and self._digest(lost_to) == _digest(document)
                winner_place = self._name(2 * lost_to + 1).decode()
                yield document, Loss(
                    self._key(lost_to), distance, winner_place, same_text, exact=exact
                )
            seen += 1
        if seen != len(self):
            raise InvalidInput(
                f"the inputs held {len(self):,} documents in the first reading and {seen:,} in the "
                "second", remedy="run it again",
            )

    def _key(self, place: int) -> str:
        return self._renamed.get(place) or self._key_read(place)

    def _key_read(self, place: int) -> str:
        return self._name(2 * place)[DIGEST_BYTES:].decode()

    def _winner_key(self, number: int) -> str:
        start, end = self._winner_ends[number], self._winner_ends[number + 1]
        self._winners.seek(start)
        return self._winners.read(end - start).decode()

    def _digest(self, place: int) -> bytes:
        return self._name(2 * place)[:DIGEST_BYTES]

    def _name(self, number: int) -> bytes:
        start, end = self._ends[number], self._ends[number + 1]
        self._keys.seek(start)
        return self._keys.read(end - start)


def _place(number: Any) -> bytes:
    """The name of a document's text: no key begins so."""
    return b"\xff%d" % int(number)


def _number(name: bytes) -> int:
    return int(name[1:])


def _digest(document: Document) -> bytes:
    return blake2b(document.text.encode(), digest_size=DIGEST_BYTES).digest()
