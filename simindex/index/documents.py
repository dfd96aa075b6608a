"""Documents by their names: whether an index has them, and their rows.

A writer also sees what waits for its commit, as a dict sees what was put into it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from simindex.checks import whole
from simindex.errors import InvalidBatch
from simindex.records.batch import Batch
from simindex.storage.files.checksums import verified_at
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import Names
from simindex.writing.admission import checked_names, names_of_any_kind

if TYPE_CHECKING:
    from simindex.arrays import Bools
    from simindex.index.handle import Handle


def contained(handle: Handle, ids: Any, keys: Any) -> Bools:
    """Which of some ids or keys have a row; see `Index.contains`."""
    handle.check_open()
    if handle.undecided:
        return np.zeros(names_of_any_kind(ids, keys, handle.options), np.bool_)
    names = _names(handle, ids, keys)
    found = np.zeros(len(names), np.bool_)
    for _, places, _ in _held(handle, names):
        found[places] = True
    return found


def document(handle: Handle, name: Any) -> Batch | None:
    """The rows of one document; see `Index.get`."""
    given = names_of(handle, name)
    if handle.undecided:
        names_of_any_kind(**given, options=handle.options)
        return None
    names = _names(handle, **given)
    parts, sketches = [], []
    for holding, _, rows in _held(handle, names):
        parts.append(holding.fingerprints[rows])
        if holding.sketches is not None:
            sketches.append(verified_at(holding.sketches, rows))
    count = sum(map(len, parts))
    if not count:
        return None
    repeated: dict[str, Any] = {name: one * count for name, one in given.items() if one is not None}
    sketch = np.concatenate(sketches) if sketches else None
    return Batch(np.concatenate(parts), recipe=handle.recipe, sketch=sketch, **repeated)


def names_of(handle: Handle, name: Any) -> dict[str, list[Any] | None]:
    """A name as the ids or keys of a call, whichever rows have; InvalidBatch if it is no name."""
    handle.check_open()
    kind = handle.options.keys
    if isinstance(name, (str, bytes)) if handle.undecided else handle.options.keyed:
        if not isinstance(name, (str, bytes)):
            raise _no_name(
                "a key", "keys", name, kind if isinstance(kind, str) else "str or bytes"
            )
        return {"ids": None, "keys": [name]}
    number = whole(name)
    if number is None or not 0 <= number < 1 << 64:
        raise _no_name("an id", "ids", name, "whole number from 0 to 2**64 - 1")
    return {"ids": [number], "keys": None}


def _no_name(what: str, several: str, name: Any, expected: str) -> InvalidBatch:
    kind = type(name).__name__
    found = str(name) if isinstance(name, (int, np.integer)) else kind
    remedy = f"give a {expected}"
    if isinstance(name, (Sequence, Set, np.ndarray)) and not isinstance(name, (str, bytes)):
        remedy = f"give one name; Index.contains({several}=...) takes several"
    return InvalidBatch(
        f"{what} of this index is a {expected}, not {found}", remedy=remedy, found=kind,
        expected=expected,
    )


def _names(handle: Handle, ids: Any, keys: Any) -> Names:
    options = handle.options
    checked_ids, checked_keys = checked_names(ids, keys, options)
    if checked_keys is None:
        assert checked_ids is not None
        return Names.of_ids(checked_ids)
    assert options.key_secret is not None
    return Names.of_keys(KeyHeap.of(checked_keys), options.key_secret)


def _held(handle: Handle, names: Names) -> list[Any]:
    """What `Committer.named` gives; of a reader, what its snapshot does."""
    if handle.writer is None:
        return list(handle.view.current().named(names))
    with handle.turns, handle.lock:
        return list(handle.writer.committer.named(names))
