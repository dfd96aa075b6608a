"""Sketches: in an index with `sketch_bits`, further bits of each row beside its fingerprint.

    a table     sketches (n, 8 S + 1), records of bits and a size, in the order of its rows
    the file    the same, as a section of its own at the end of the `.rows` file

`records.sketches` says what a record is.

1. No search reads them. `sketches_at` reads those of the rows that a search has found, and verifies
   the chunks that these are in. So they are never resident.
2. All rows of an index have a sketch of one width, or none has one.
"""

from __future__ import annotations

import numpy as np

from simindex.arrays import I64, U8
from simindex.storage.files.checksums import verified_at
from simindex.storage.tables.table import Table

SKETCHES = 9
"""Kind of the section."""


def sketches_at(table: Table, rows: I64) -> U8:
    """uint8 (len(rows), 8 S + 1): the sketches of some rows of a table that has them.

    Raises CorruptFile if a chunk that one of them is in is damaged. Reads no more of the file than
    these chunks.
    """
    assert table.sketches is not None
    if not len(rows):
        return np.empty((0, table.sketches.shape[1]), np.uint8)
    return verified_at(table.sketches, rows)
