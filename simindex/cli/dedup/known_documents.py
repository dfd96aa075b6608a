"""Which documents of a buffer a lasting index has already, under which names.

    a given name                known if the index has a row of it with the same fingerprint
    FILE:LINE, made by simindex the same; if the row is another record's, the name is FILE:LINE#2,
                                FILE:LINE#3 ...: the first that is free, or has this fingerprint

So a name that nobody gave stands for one record, and a second run finds the names of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import simindex
from simindex.cli.stored_documents import own_name

if TYPE_CHECKING:
    from simindex.cli.chunks import Buffer
    from simindex.pairs.stored_winners import Stored


def named_apart(
    index: simindex.Index, buffer: Buffer, batch: simindex.Batch, stored: Stored
) -> tuple[simindex.Batch, set[int]]:
    """The batch with names of its own, which its documents get, too; and the rows that are known.

    `stored` is what the rows are nearest to in the index.
    """
    keys: list[Any] = list(batch.keys or ())
    known = {
        row for row in np.flatnonzero(stored.distance == 0).tolist()
        if stored.key(row) == keys[row]
    }
    numbers = buffer.documents.numbered()
    numbered = np.array([numbers[place] for place in buffer.places], np.bool_)
    asked = [
        row for row in np.flatnonzero(numbered | (stored.distance == 0)).tolist()
        if row not in known
    ]
    there = index.contains(keys=[keys[row] for row in asked]) if asked else ()
    renamed = False
    for row in (row for row, held in zip(asked, there, strict=True) if held):
        name, same = own_name(index, keys[row], batch.rows[row])
        if same:
            known.add(row)
        if numbered[row] and name != keys[row]:
            renamed = True
            keys[row] = name
            place = buffer.places[row]
            buffer.documents[place] = buffer.documents[place]._replace(key=name)
    if renamed:
        batch = simindex.Batch(
            batch.rows, keys=keys, weights=batch.weights, recipe=batch.recipe, sketch=batch.sketches
        )
    return batch, known
