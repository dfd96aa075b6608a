"""Readers of fingerprints, run to their end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simindex.inputs.document import BadRecord, Intake
from simindex.inputs.fingerprints import Fingerprints
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read_fingerprints


class Read(NamedTuple):
    parts: list[Fingerprints]
    bad: list[str]

    @property
    def values(self) -> list[Any]:
        """Whole numbers, or lists of them for wide rows."""
        listed = [part.batch.fingerprints for part in self.parts]
        return [] if not listed else np.concatenate(listed).tolist()

    @property
    def names(self) -> list[Any]:
        return [part.name(row) for part in self.parts for row in range(len(part.batch))]


def take_rows(path: Path, *, bits: int | None = None, **options: Any) -> Read:
    bad: list[str] = []

    def report(record: BadRecord) -> None:
        bad.append(str(replace(record, path=Path(record.path).name)))

    intake = Intake(max_errors=None, report=report, bits=bits)
    return Read(list(read_fingerprints([str(path)], ReadOptions(**options), intake)), bad)
