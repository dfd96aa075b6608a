"""What `build --append` does about documents that the index had before the run began.

    replace   the document takes the old one's place
    skip      the old one stays
    error     the run ends there

Fingerprints go by their keys or ids. Those without either are added in any case.

A key that nobody gave, FILE:LINE of a record without an id, names no document. If the index has a
row of it with the same fingerprint, the record was read before, and is passed over. Else it is
another record, and gets a key of its own, FILE:LINE#2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import simindex
from simindex.cli.chunks import Chunk, chunks, places_of_rows
from simindex.cli.opening import open_index
from simindex.errors import InvalidInput

if TYPE_CHECKING:
    from simindex.inputs.document import Document
    from simindex.inputs.fingerprints import Fingerprints

Choice = Literal["replace", "skip", "error"]

CHOICES: tuple[Choice, ...] = get_args(Choice)


class Existing:
    """Of one run, that adds to the index at `path`."""

    def __init__(self, path: Path, choice: Choice) -> None:
        self.before: simindex.Index = open_index(path, "r", refresh=False)
        """The index as it was."""
        self._choice = choice
        self._gone: set[Any] = set()
        self.names: list[str] = []
        """Those that the documents of the last chunk have, also without a fingerprint."""
        self.skipped: int = 0
        """Documents that were passed over."""

    @property
    def replaced(self) -> int:
        """Documents of the index that others took the place of."""
        return len(self._gone)

    def close(self) -> None:
        """Gives the index up."""
        self.before.close()

    def admitted(
        self, index: simindex.Index, chunk: Chunk, batch: simindex.Batch
    ) -> simindex.Batch:
        """What of a chunk's batch is to be appended, once the documents that it replaces are gone.

        Raises InvalidInput at the first document that is there, if that is the choice.
        """
        import numpy as np

        bare = [chunk[one.position] for one in batch.skipped]
        bare_names = list(dict.fromkeys(one.key for one in bare if not one.numbered))
        if self._choice == "replace":
            self._drop(index, bare_names)
        keys: list[Any] = list(batch.keys or [])
        there = np.flatnonzero(self.before.contains(keys=keys)) if keys else ()
        if not len(there):
            self.names = [*keys, *bare_names]
            return batch
        without = {one.position for one in batch.skipped}
        documents = [one for place, one in enumerate(chunk) if place not in without]
        kept = np.ones(len(keys), np.bool_)
        gone: list[str] = []
        for row in map(int, there):
            document = documents[row]
            if document.numbered:
                keys[row], same = own_name(self.before, keys[row], batch.rows[row])
                kept[row] = not same
            elif self._choice == "error":
                raise self._refused(
                    document.place, document.key, path=document.path, line=document.line
                )
            elif self._choice == "skip":
                kept[row] = False
            elif document.key not in self._gone:
                self._gone.add(document.key)
                gone.append(document.key)
        if gone:
            index.delete(keys=gone)
        self.names = [*keys, *bare_names]
        self.skipped += int(np.count_nonzero(~kept))
        places = np.flatnonzero(kept)
        taken = batch.take(places)
        taken.keys, taken.skipped = [keys[place] for place in places.tolist()], batch.skipped
        return taken

    def _drop(self, index: simindex.Index, names: list[str]) -> None:
        """Has new texts replace old ones also where the new ones have no fingerprint."""
        held = self.before.contains(keys=names) if names else ()
        gone = [name for name, there in zip(names, held, strict=True) if there]
        if gone:
            index.delete(keys=gone)
            self._gone.update(gone)

    def admitted_rows(self, index: simindex.Index, group: Fingerprints) -> simindex.Batch:
        """The same for fingerprints; rows without a key or id are appended in any case."""
        import numpy as np

        batch = group.batch
        names: Any = batch.ids if batch.keys is None else batch.keys
        if names is None or not len(names):
            return batch
        named = "ids" if batch.keys is None else "keys"
        there = self.before.contains(**{named: names})
        if not there.any():
            return batch
        if self._choice == "error":
            row = int(np.argmax(there))
            name = names[row] if batch.keys is not None else int(names[row])
            raise self._refused(group.place(row), name, path=group.path)
        if self._choice == "skip":
            self.skipped += int(np.count_nonzero(there))
            return batch.take(np.flatnonzero(~there))
        held = (names[row] for row in np.flatnonzero(there).tolist())
        gone = [name for name in dict.fromkeys(held) if name not in self._gone]
        if gone:
            self._gone.update(gone)
            index.delete(**{named: np.array(gone, np.uint64) if batch.keys is None else gone})
        return batch

    @staticmethod
    def _refused(place: str, name: object, **data: Any) -> InvalidInput:
        return InvalidInput(
            f"{place}: the index has a document {name!r} already",
            remedy="take the new one with --on-existing replace, or leave it out with "
            "--on-existing skip", **data,
        )


def kind_of_names(index: simindex.Index) -> Any:
    """What its rows are named by, as the option `keys`; None while no row has decided it."""
    kind = index.options.keys
    return False if kind is None and len(index) else kind


def own_name(index: simindex.Index, key: str, row: Any) -> tuple[str, bool]:
    """The name of a record without an id, and whether the index has its fingerprint under it.

    That is its key, or key#2, key#3 ... where the index has other records under those before.
    """
    name, number = key, 1
    while (stored := index.get(name)) is not None:
        if (stored.rows == row).all(axis=1).any():
            return name, True
        number += 1
        name = f"{key}#{number}"
    return name, False


def as_stored(index: simindex.Index, documents: Iterable[Document]) -> Iterator[Document]:
    """Documents of inputs, those without an id under the names that the index has them by."""
    recipe = index.recipe
    if recipe is None or index.options.keys != "str":
        yield from documents
        return
    for chunk in map(list, chunks(documents)):
        numbered = [place for place, document in enumerate(chunk) if document.numbered]
        others = [f"{chunk[place].key}#2" for place in numbered]
        there = index.contains(keys=others) if others else ()
        places = [place for place, held in zip(numbered, there, strict=True) if held]
        batch = recipe.batch([chunk[place].text for place in places])
        for row, at in enumerate(places_of_rows(len(places), batch.skipped)):
            document = chunk[places[at]]
            name, _ = own_name(index, document.key, batch.rows[row])
            chunk[places[at]] = document._replace(key=name)
        yield from chunk
