"""What `build --append --prune` deletes: documents of folders that these have no more.

    of a folder    the key begins with its name, as in siteA/index.html or siteA/pages.jsonl:3
    no more        no document of this run has the key

Of each document a hash is kept: equal hashes only keep a document that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

import simindex
from simindex.cli.console import count
from simindex.inputs.reading import start_of_names

if TYPE_CHECKING:
    from simindex.arrays import I64
    from simindex.cli.input_options import Reading

CHUNK_KEYS = 1 << 16


class Pruning:
    """Of one run, over folders whose names keys begin with."""

    def __init__(self, starts: Sequence[str]) -> None:
        self._starts = tuple(f"{start.rstrip('/')}/" for start in starts)
        self._met: list[I64] = []
        self.pruned: int = 0
        """Documents that were deleted."""

    @classmethod
    def of(cls, inputs: Sequence[str], reading: Reading) -> Pruning:
        """That of some inputs; a wrong call where they are not folders that names begin with."""
        for name in inputs:
            if not Path(name).is_dir():
                raise click.UsageError(
                    f"--prune needs folders as INPUTs, and {name} is not a folder: it deletes the "
                    "documents whose keys begin with the name of a folder that no longer has them"
                )
        starts = [start_of_names(name, reading.options) for name in inputs]
        for name, start in zip(inputs, starts, strict=True):
            if not start:
                raise click.UsageError(
                    f"--prune finds the documents of a folder by the name that their keys begin "
                    f"with, and keys of {name} begin with no name: run it from the folder above"
                )
        return cls(starts)

    def note(self, keys: Iterable[str]) -> None:
        """Remembers documents of this run."""
        self._met.append(np.fromiter(map(hash, keys), np.int64))

    def prune(self, index: simindex.Index, before: simindex.Index) -> None:
        """Deletes the documents that were there `before` and that this run has not met."""
        met = np.unique(np.concatenate([*self._met, np.zeros(0, np.int64)]))
        for batch in before.rows(chunk_rows=CHUNK_KEYS):
            keys = [key for key in map(str, batch.keys or ()) if key.startswith(self._starts)]
            hashes = np.fromiter(map(hash, keys), np.int64, len(keys))
            at = np.minimum(np.searchsorted(met, hashes), max(0, len(met) - 1))
            gone = hashes != met[at] if len(met) else np.ones(len(keys), np.bool_)
            if gone.any():
                self.pruned += index.delete(keys=[keys[row] for row in np.flatnonzero(gone)])

    def told(self, path: Path, bad_records: int) -> str:
        """What was done, or why nothing was."""
        if bad_records:
            return (
                f"nothing was pruned from {path}: documents of bad records would have been, too"
            )
        if not self.pruned:
            return f"nothing to prune: the folders still have all their documents of {path}"
        return f"pruned {count(self.pruned, 'document')} that the folders no longer have"
