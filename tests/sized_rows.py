"""A table of any size that holds nothing, for tests of plans."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from simindex.bits.design import BlockDesign
from simindex.storage.tables.sorted_rows import header_bits


class Rows:
    """Stands for a table of any size: plans see sizes alone."""

    def __init__(self, rows: int, words: int = 1, designs: Sequence[BlockDesign] = ()) -> None:
        self.fingerprints = np.broadcast_to(np.zeros(1, np.uint64), (rows, words))
        self.header_bits = header_bits(rows)
        self.slices = None
        self.structures = {
            design.structure: SimpleNamespace(
                damage=None,
                record=SimpleNamespace(
                    header_bits=tuple(min(self.header_bits, t) for t in design.header_bits[1:])
                )
            )
            for design in designs
        }

    def __len__(self) -> int:
        return len(self.fingerprints)
