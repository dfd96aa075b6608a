"""What the documents of a buffer lost to: stored rows, or others of the buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simindex.cli.dedup.marks import Loss
from simindex.outputs.columns import key_text
from simindex.pairs.buffer_losses import NOWHERE, Losses
from simindex.pairs.stored_winners import Stored

if TYPE_CHECKING:
    from simindex.arrays import F32
    from simindex.cli.chunks import Buffer


def lost_to(
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
