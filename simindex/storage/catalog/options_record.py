"""The options of an index, as its catalog records them."""

from __future__ import annotations

from simindex.errors import (
    CorruptFile,
    InvalidOption,
)
from simindex.options import IndexOptions
from simindex.storage.catalog.values import unpack


def stored_options(payload: bytes | None) -> IndexOptions:
    """The options in the catalog's record of them; the usual ones where it has none.

    Raises CorruptFile if the record describes no options.
    """
    values = unpack("options", payload if payload is not None else b"\x80")
    try:
        if not isinstance(values, dict):
            raise InvalidOption("they are no map", found=type(values).__name__)
        return IndexOptions.from_dict(values)
    except InvalidOption as error:
        raise CorruptFile(
            f"the catalog's record meta/options describes no options of an index: {error}",
            path="meta/options",
        ) from error
